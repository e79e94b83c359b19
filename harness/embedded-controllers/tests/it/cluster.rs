//! A cluster for one test: API server and controllers in this process.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use embedded_apiserver::{Config, Container, Followed, LogLine, Logs, Server, User};
use embedded_controllers::{Clients, Controllers, NodeSpec, Pace, Pods, Program, Running, Settings};
use futures::{StreamExt as _, stream};
use kube::api::PostParams;
use kube::core::NamespaceResourceScope;
use kube::runtime::wait::await_condition;
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The longest time that a test waits for something that has to happen.
const LIMIT: Duration = Duration::from_secs(180);

/// A running cluster.
pub(crate) struct Cluster {
    pub(crate) client: Client,
    pub(crate) running: Running,
    server: embedded_apiserver::Running,
}

impl Cluster {
    /// A cluster with these machines; `change` may change the settings.
    pub(crate) async fn start(nodes: Vec<NodeSpec>, change: impl FnOnce(&mut Settings)) -> Cluster {
        Cluster::with(Config::default(), nodes, change).await
    }

    /// The same with another configuration of the API server.
    pub(crate) async fn with(
        config: Config,
        nodes: Vec<NodeSpec>,
        change: impl FnOnce(&mut Settings),
    ) -> Cluster {
        // Set `RUST_LOG` to see the controllers' log; by default nothing is written.
        let filter = tracing_subscriber::EnvFilter::from_default_env();
        let _ = tracing_subscriber::fmt().with_env_filter(filter).with_test_writer().try_init();
        let server = Server::start(config).await.expect("the API server starts");
        let mut settings = Settings::new(server.address(), server.certificate_authority());
        settings.nodes = nodes;
        settings.pace = Pace { simulated_start: Duration::from_millis(5), ..Pace::default() };
        change(&mut settings);
        let admin = server.client(User::admin());
        let clients = Clients {
            controller_manager: admin.clone(),
            scheduler: server.client(User::authenticated("system:kube-scheduler", &[])),
            kubelet: {
                let clients: BTreeMap<_, _> = (0..4)
                    .map(|index| format!("node-{index}"))
                    .map(|name| (name.clone(), server.client(User::node(&name))))
                    .collect();
                let admin = admin.clone();
                Arc::new(move |name| clients.get(name).cloned().unwrap_or_else(|| admin.clone()))
            },
        };
        let running = Controllers::start(clients, settings).await.expect("the controllers start");
        server.serve_logs(Arc::new(KubeletLogs(running.pods())));
        Cluster { client: admin, running, server }
    }

    /// The API of a namespaced kind in `default`.
    pub(crate) fn api<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), "default")
    }

    /// An administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> String {
        self.server.kubeconfig().expect("a kubeconfig")
    }

    /// Stops everything.
    pub(crate) async fn stop(self) {
        self.running.stop().await;
        self.server.shutdown().await;
    }
}

/// The source of logs for the API server.
struct KubeletLogs(Pods);

fn lines_of(lines: Vec<embedded_controllers::LogLine>) -> Vec<LogLine> {
    lines.into_iter().map(|line| LogLine { at: line.at, text: line.text }).collect()
}

impl Logs for KubeletLogs {
    fn lines(&self, of: Container<'_>, _previous: bool) -> Option<Vec<LogLine>> {
        self.0.log(of.namespace, of.pod, of.name).map(lines_of)
    }

    fn follow(&self, of: Container<'_>) -> Option<Followed> {
        let mut reader = self.0.follow(of.namespace, of.pod, of.name)?;
        let kept = lines_of(reader.try_next());
        let coming = stream::unfold(reader, |mut reader| async move {
            let lines = lines_of(reader.next().await);
            (!lines.is_empty()).then_some((lines, reader))
        });
        Some(Followed { kept, coming: coming.boxed() })
    }
}

/// Creates an object written as JSON.
pub(crate) async fn create<K>(api: &Api<K>, object: Value) -> K
where
    K: Resource + Serialize + DeserializeOwned + Clone + Debug,
{
    let object: K = serde_json::from_value(object).expect("an object of this kind");
    api.create(&PostParams::default(), &object).await.expect("created")
}

/// Waits until the object meets the condition; fails with its last state.
pub(crate) async fn wait<K>(api: &Api<K>, name: &str, what: &str, holds: impl Fn(&K) -> bool) -> K
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + 'static,
{
    let condition = |object: Option<&K>| object.is_some_and(&holds);
    match tokio::time::timeout(LIMIT, await_condition(api.clone(), name, condition)).await {
        Ok(Ok(Some(object))) => object,
        Ok(other) => panic!("{what}: {other:?}"),
        Err(_) => panic!("{what}: not in {LIMIT:?}; last seen: {:#?}", api.get_opt(name).await),
    }
}

/// Waits until the object is gone.
pub(crate) async fn wait_gone<K>(api: &Api<K>, name: &str)
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + 'static,
{
    let gone = tokio::time::timeout(
        LIMIT,
        await_condition(api.clone(), name, |object: Option<&K>| object.is_none()),
    );
    if gone.await.is_err() {
        panic!("{name} is still there: {:#?}", api.get_opt(name).await);
    }
}

/// A program of this machine: a shell that runs the container's arguments.
pub(crate) fn shell() -> Program {
    Program { arguments: vec!["true".to_owned()], ..Program::new("shell", ["sh", "-c"]) }
}
