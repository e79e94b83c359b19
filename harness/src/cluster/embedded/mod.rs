//! A cluster in this process: the embedded API server and controllers put together. Needs no Docker, nor any right.

mod backend;
mod control;
mod machines;
mod network;
mod version;

pub(super) use backend::BACKEND;
pub use machines::EmbeddedMachine;
pub use version::EmbeddedVersion;

use super::{ClusterError, Families, Role};
use crate::check::chain;
use crate::config::NodeIp;
use crate::probe::{ReadError, poll};
use embedded_apiserver::{Config, Container, Followed, LogLine, Server, User};
use embedded_controllers::{Clients, Controllers, Dns, Pace, Pods, Program, ServiceVip, Settings};
use futures::stream::{self, StreamExt as _};
use k8s_openapi::api::core::v1::Node;
use kube::api::Api;
use machines::{machines, mark};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long the first Nodes may take to register.
const REGISTRATION_LIMIT: Duration = Duration::from_secs(60);

/// What an embedded cluster is like.
#[derive(Clone, Debug)]
pub struct EmbeddedSpec {
    /// Its machines, all waiting for a cloud controller manager, control planes first.
    pub machines: Vec<EmbeddedMachine>,
    /// Version of Kubernetes.
    pub kubernetes: EmbeddedVersion,
    /// The IP families of machines, Pods and Services.
    pub families: Families,
    /// Which images are programs of this machine; Pods of all others are simulated.
    pub programs: Vec<Program>,
    /// The pod network at first.
    pub network: embedded_controllers::PodNetwork,
    /// Whether Service addresses lead anywhere.
    pub services: ServiceVip,
    /// Whether there is a cluster DNS.
    pub dns: Dns,
    /// Names that the machines' resolvers know, and cluster DNS with them.
    pub names: BTreeMap<String, IpAddr>,
    /// How fast things go.
    pub pace: Pace,
    /// Where files of Pods are kept; `None` for a folder of its own among the system's temporary files.
    pub folder: Option<PathBuf>,
}

impl EmbeddedSpec {
    /// A cluster of these machines with a pod network that needs nobody, with working Service addresses and without DNS.
    pub fn new(machines: Vec<EmbeddedMachine>, kubernetes: EmbeddedVersion) -> EmbeddedSpec {
        EmbeddedSpec {
            machines,
            kubernetes,
            families: Families::Ipv4,
            programs: Vec::new(),
            network: embedded_controllers::PodNetwork::Independent,
            services: ServiceVip::Shortcut,
            dns: Dns::Absent,
            names: BTreeMap::new(),
            pace: Pace::default(),
            folder: None,
        }
    }

    /// A cluster of so many machines named `node-0` and on: the first a control plane, the others workers.
    pub fn of_nodes(nodes: u32, kubernetes: EmbeddedVersion) -> EmbeddedSpec {
        let role = |index| if index == 0 { Role::ControlPlane } else { Role::Worker };
        let machine = |index| EmbeddedMachine {
            node_ip: NodeIp::Kept,
            kubeadm_taint: nodes > 1,
            ..EmbeddedMachine::new(format!("node-{index}"), role(index))
        };
        EmbeddedSpec::new((0..nodes).map(machine).collect(), kubernetes)
    }
}

/// A running embedded cluster. Ends with [`EmbeddedCluster::stop`].
pub struct EmbeddedCluster {
    server: Arc<embedded_apiserver::Running>,
    controllers: embedded_controllers::Running,
}

impl fmt::Debug for EmbeddedCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedCluster").field("url", &self.url()).finish_non_exhaustive()
    }
}

/// The API server asks the kubelets for logs.
struct KubeletLogs(Pods);

impl embedded_apiserver::Logs for KubeletLogs {
    fn lines(&self, container: Container<'_>, previous: bool) -> Option<Vec<LogLine>> {
        let Container { namespace, pod, name } = container;
        let lines = if previous {
            self.0.previous_log(namespace, pod, name)
        } else {
            self.0.log(namespace, pod, name)
        };
        lines.map(lines_of)
    }

    fn follow(&self, container: Container<'_>) -> Option<Followed> {
        let Container { namespace, pod, name } = container;
        let mut reader = self.0.follow(namespace, pod, name)?;
        let kept = lines_of(reader.try_next());
        let coming = stream::unfold(reader, |mut reader| async move {
            let lines = lines_of(reader.next().await);
            (!lines.is_empty()).then_some((lines, reader))
        });
        Some(Followed { kept, coming: coming.boxed() })
    }
}

fn lines_of(lines: Vec<embedded_controllers::LogLine>) -> Vec<LogLine> {
    lines.into_iter().map(|line| LogLine { at: line.at, text: line.text }).collect()
}

impl EmbeddedCluster {
    /// Starts one on a free port of loopback. Returns when the API server answers and the controllers see it; workers
    /// register a moment later.
    ///
    /// # Errors
    /// When the port cannot be had, or Pods cannot be run on this machine.
    pub async fn start(spec: EmbeddedSpec) -> Result<EmbeddedCluster, ClusterError> {
        let failed = |error: &dyn std::error::Error| ClusterError::Embedded { cause: chain(error) };
        let (minor, patch) = spec.kubernetes.numbers();
        let version = embedded_apiserver::Version { minor, patch };
        let service_networks = network::services(spec.families);
        let config = Config { version, service_networks, ..Config::default() };
        let server = Server::start(config).await.map_err(|e| failed(&e))?;
        let server = Arc::new(server);
        let mut settings = Settings::new(server.address(), server.certificate_authority());
        settings.kubernetes = embedded_controllers::KubernetesVersion { minor, patch };
        settings.nodes = machines(&spec.machines, spec.families, minor);
        settings.pod_cidrs = network::pods(spec.families, spec.machines.len());
        settings.programs = spec.programs;
        settings.folder = spec.folder;
        settings.network = spec.network;
        settings.service_vip = spec.services;
        settings.dns = spec.dns;
        settings.names = spec.names;
        settings.pace = spec.pace;
        let admin = server.client(User::admin());
        let kubelets = Arc::downgrade(&server);
        let clients = Clients {
            controller_manager: admin.clone(),
            scheduler: server.client(User::authenticated("system:kube-scheduler", &[])),
            // Only a server that is going has no client of its own left to give.
            kubelet: Arc::new(move |node| {
                kubelets.upgrade().map_or_else(|| admin.clone(), |server| server.client(User::node(node)))
            }),
        };
        let administrator = server.client(User::admin());
        let controllers = Controllers::start(clients, settings).await.map_err(|error| failed(&error))?;
        server.serve_logs(Arc::new(KubeletLogs(controllers.pods())));
        let cluster = EmbeddedCluster { server, controllers };
        if let Err(error) = mark(&administrator, &spec.machines, minor).await {
            cluster.stop().await;
            return Err(ClusterError::Embedded { cause: error.text });
        }
        Ok(cluster)
    }

    /// Where the API server listens.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// An administrator's client.
    pub fn client(&self) -> kube::Client {
        self.server.client(User::admin())
    }

    /// The address a kubelet with `--node-ip` announces, by the number of its machine from 0 up.
    pub fn node_ip(index: u32) -> Ipv4Addr {
        network::ipv4(index)
    }

    /// Replaces the pod network, as installing a plugin does.
    pub fn set_network(&self, network: embedded_controllers::PodNetwork) {
        self.controllers.nodes().set_network(network);
    }

    /// Whether Pods have mount namespaces of their own here, and with them names of their own.
    pub fn has_namespaces(&self) -> bool {
        self.controllers.pods().have_namespaces()
    }

    /// Where the API server listens, for programs that are told host and port apart.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// A service account's kubeconfig, with a client key in it: a secret.
    ///
    /// # Errors
    /// When no certificate can be made.
    pub fn kubeconfig_of_account(&self, namespace: &str, name: &str) -> Result<String, ClusterError> {
        let user = User::service_account(namespace, name, "");
        self.server.kubeconfig_for(&user).map_err(|error| ClusterError::Embedded { cause: chain(&error) })
    }

    /// An administrator's kubeconfig, with a client key in it: a secret.
    ///
    /// # Errors
    /// When no certificate can be made.
    pub fn kubeconfig(&self) -> Result<String, ClusterError> {
        self.server.kubeconfig().map_err(|error| ClusterError::Embedded { cause: chain(&error) })
    }

    /// Stops controllers, programs of Pods and the API server.
    pub async fn stop(self) {
        self.controllers.stop().await;
        if let Some(server) = Arc::into_inner(self.server) {
            server.shutdown().await;
        }
    }

    /// Waits until so many Nodes have registered.
    ///
    /// # Errors
    /// When they do not.
    pub async fn registered(&self, nodes: usize) -> Result<(), ClusterError> {
        let api: Api<Node> = Api::all(self.server.client(User::admin()));
        let all = async |seen: &mut String| {
            let list =
                api.list(&Default::default()).await.map_err(|error| ReadError::passing(chain(&error)))?;
            *seen = format!("{} of {nodes} Nodes", list.items.len());
            Ok((list.items.len() >= nodes).then_some(()))
        };
        poll("every Node registers", REGISTRATION_LIMIT, Duration::from_millis(10), all)
            .await
            .map_err(|error| ClusterError::Embedded { cause: error.text })
    }
}
