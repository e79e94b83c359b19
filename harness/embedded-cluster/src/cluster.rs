//! A running cluster: how it is started, used and stopped.

use crate::addresses::{self, IpFamilies};
use crate::logs::KubeletLogs;
use crate::machine::{self, MachineSpec};
use crate::remote::{self, Serving};
use crate::spec::ClusterSpec;
use embedded_apiserver::{AuthorityError, Config, Issued, RequestFault, RequestFaultState, Server, User};
use embedded_controllers::{Clients, Controllers, Nodes, Pods, Settings};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use std::fmt;
use std::io::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long a Node may take to register after the one before it.
const REGISTRATION_LIMIT: Duration = Duration::from_secs(60);

/// A running cluster. [`Cluster::stop`] ends it and waits for the programs of its Pods; dropping it only asks them to end.
pub struct Cluster {
    server: Arc<embedded_apiserver::Running>,
    controllers: embedded_controllers::Running,
    /// Held until the last program of a Pod has ended.
    _loopback: addresses::Loopback,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("url", &self.url()).finish_non_exhaustive()
    }
}

/// The reason why a cluster did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The API server did not start: there is no free port on loopback.
    #[error("the embedded API server does not start")]
    ApiServer(#[source] embedded_apiserver::StartError),
    /// The controllers did not start: the spec is contradictory, or this computer cannot run programs.
    #[error("the controllers of the embedded cluster do not start")]
    Controllers(#[source] embedded_controllers::StartError),
    /// A kubelet did not register its Node.
    #[error("the Node {node} does not register within {limit:?}")]
    Registration {
        /// The name of the Node.
        node: String,
        /// How long the cluster waited.
        limit: Duration,
    },
    /// The labels of a Node could not be set.
    #[error("the Node {node} cannot be labelled")]
    Labels {
        /// The name of the Node.
        node: String,
        /// The answer of the API server.
        #[source]
        source: kube::Error,
    },
}

impl Cluster {
    /// Starts a cluster on a free port of loopback. When this returns, the API server answers, the controllers see it and
    /// every Node is registered. They become ready a moment later.
    ///
    /// # Errors
    /// [`StartError`]. Nothing is left running.
    pub async fn start(spec: ClusterSpec) -> Result<Cluster, StartError> {
        let minor = spec.kubernetes.minor();
        let config = Config {
            version: spec.kubernetes.into(),
            service_networks: addresses::services(spec.families),
            ..Config::default()
        };
        let server = Arc::new(Server::start(config).await.map_err(StartError::ApiServer)?);
        let loopback = addresses::loopback(spec.machines.len());
        let (machines, settings) = settings(spec, &server, &loopback);
        let clients = clients(&server);
        let controllers = Controllers::start(clients, settings).await.map_err(StartError::Controllers)?;
        server.serve_logs(Arc::new(KubeletLogs(controllers.pods())));
        let cluster = Cluster { server, controllers, _loopback: loopback };
        if let Err(error) = cluster.set_up_nodes(&machines, minor).await {
            cluster.stop().await;
            return Err(error);
        }
        Ok(cluster)
    }

    /// Waits until every machine has registered its Node, and sets the labels that kubelets may not write.
    async fn set_up_nodes(&self, machines: &[MachineSpec], minor: u32) -> Result<(), StartError> {
        let nodes: Api<Node> = Api::all(self.client());
        let known = self.machines();
        for machine in machines {
            let node = machine.name.clone();
            // The machines come from the spec, so none is missing.
            let registered = tokio::time::timeout(REGISTRATION_LIMIT, known.registered(&node)).await;
            if !matches!(registered, Ok(Ok(()))) {
                return Err(StartError::Registration { node, limit: REGISTRATION_LIMIT });
            }
            let labels = machine.labels_of_others(machines.len(), minor);
            if !labels.is_empty() {
                let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
                let labelled = nodes.patch_metadata(&node, &PatchParams::default(), &patch).await;
                labelled.map_err(|source| StartError::Labels { node, source })?;
            }
        }
        Ok(())
    }

    /// A client in this process for the administrator: no socket, no TLS.
    #[must_use]
    pub fn client(&self) -> kube::Client {
        self.client_as(User::admin())
    }

    /// A client in this process for a user. RBAC decides what it may do.
    #[must_use]
    pub fn client_as(&self, user: User) -> kube::Client {
        self.server.client(user)
    }

    /// A kubeconfig for the administrator. It contains a client key, so it is a secret.
    ///
    /// # Errors
    /// When no certificate can be made.
    pub fn kubeconfig(&self) -> Result<String, AuthorityError> {
        self.kubeconfig_for(&User::admin())
    }

    /// A kubeconfig for a user. It contains a client key, so it is a secret.
    ///
    /// # Errors
    /// When no certificate can be made for this name.
    pub fn kubeconfig_for(&self, user: &User) -> Result<String, AuthorityError> {
        self.server.kubeconfig_for(user)
    }

    /// Writes a kubeconfig for the administrator to a new file that only its owner can read (0600).
    ///
    /// # Errors
    /// The file already exists or cannot be written, or no certificate can be made.
    pub fn write_kubeconfig(&self, path: &Path) -> io::Result<()> {
        let text = self.kubeconfig().map_err(io::Error::other)?;
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(text.as_bytes())
    }

    /// Sets a listener that is notified of each new credential: tokens of service accounts, keys and
    /// certificates of clients. A program that shows the output of other programs uses it to remove these
    /// secrets.
    pub fn tell_issued(&self, issued: Arc<dyn Issued>) {
        self.server.tell_issued(issued);
    }

    /// The URL of the API server.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// The same as host and port, for programs that need them separately.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The address that a kubelet announces with [`NodeIp::Announced`](crate::NodeIp::Announced), by the
    /// number of its machine in the spec, starting with 0.
    #[must_use]
    pub fn node_ipv4(index: u32) -> Ipv4Addr {
        addresses::ipv4(index)
    }

    /// The same for IPv6, if the cluster has both families.
    #[must_use]
    pub fn node_ipv6(families: IpFamilies, index: u32) -> Option<Ipv6Addr> {
        addresses::ipv6(families, index)
    }

    /// The machines of the cluster, and operations on them.
    #[must_use]
    pub fn machines(&self) -> Nodes {
        self.controllers.nodes()
    }

    /// The programs of the cluster's Pods: logs and signals.
    #[must_use]
    pub fn pods(&self) -> Pods {
        self.controllers.pods()
    }

    /// Sets a fault of single requests of service accounts, including those of programs in Pods, under an id that the
    /// caller chooses; a fault with the same id is replaced.
    pub fn set_request_fault(&self, id: u64, fault: RequestFault) {
        self.server.request_faults().set(id, fault);
    }

    /// What a fault has done so far; `None` if there is none with this id.
    #[must_use]
    pub fn request_fault(&self, id: u64) -> Option<RequestFaultState> {
        self.server.request_faults().state(id)
    }

    /// Removes a fault; requests that it holds continue.
    pub fn clear_request_fault(&self, id: u64) {
        self.server.request_faults().clear(id);
    }

    /// Ends all watches of service accounts, including those of programs in Pods. New watches wait until
    /// [`Cluster::expire_watches`]; lists are answered.
    pub fn interrupt_watches(&self) {
        self.server.interrupt_watches();
    }

    /// Discards the history of changes and allows watches again. A watch that missed a change is answered
    /// with 410, and so is, once, the second page of a list in pages.
    pub fn expire_watches(&self) {
        self.server.expire_watches();
    }

    /// Makes watches, and lists with resource version 0, of service accounts show the state of now until
    /// [`Cluster::end_lag`], as an API server whose watch cache is behind etcd. Other reads and all writes use the
    /// latest state.
    pub fn begin_lag(&self) {
        self.server.begin_lag();
    }

    /// Lets watches and cached lists catch up: changes that were held back are delivered in order.
    pub fn end_lag(&self) {
        self.server.end_lag();
    }

    /// Lets other processes use machines and Pods through this socket, until the returned value is dropped;
    /// see [`Remote`](crate::Remote).
    ///
    /// # Errors
    /// The path is taken, or the socket cannot be created.
    pub fn serve(&self, socket: &Path) -> io::Result<Serving> {
        remote::serve(socket, self.machines(), self.pods(), Arc::downgrade(&self.server))
    }

    /// Stops controllers, programs of Pods and the API server.
    pub async fn stop(self) {
        self.controllers.stop().await;
        if let Some(server) = Arc::into_inner(self.server) {
            server.shutdown().await;
        }
    }
}

/// The settings of the controllers. The machines are set separately.
fn settings(
    spec: ClusterSpec,
    server: &embedded_apiserver::Running,
    loopback: &addresses::Loopback,
) -> (Vec<MachineSpec>, Settings) {
    let settings = Settings {
        kubernetes: spec.kubernetes.into(),
        nodes: machine::kubelets(&spec.machines, spec.families, spec.kubernetes.minor(), loopback.first),
        controllers: spec.controllers,
        pod_cidrs: addresses::pods(spec.families, spec.machines.len()),
        programs: spec.programs,
        folder: spec.folder,
        network: spec.network,
        service_vip: spec.services,
        dns: spec.dns,
        names: spec.names,
        pace: spec.pace,
        ..Settings::new(server.address(), server.certificate_authority())
    };
    (spec.machines, settings)
}

/// A client for each component, with only the rights of that component.
fn clients(server: &Arc<embedded_apiserver::Running>) -> Clients {
    let admin = server.client(User::admin());
    let kubelets = Arc::downgrade(server);
    Clients {
        controller_manager: admin.clone(),
        scheduler: server.client(User::authenticated("system:kube-scheduler", &[])),
        // Only a server that is stopping cannot give a client any more.
        kubelet: Arc::new(move |node| {
            kubelets.upgrade().map_or_else(|| admin.clone(), |server| server.client(User::node(node)))
        }),
    }
}
