//! A running cluster: started, reached, stopped.

use crate::addresses::{self, IpFamilies};
use crate::logs::KubeletLogs;
use crate::machine::{self, MachineSpec};
use crate::remote::{self, Serving};
use crate::spec::ClusterSpec;
use embedded_apiserver::{AuthorityError, Config, Issued, Server, User};
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
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("url", &self.url()).finish_non_exhaustive()
    }
}

/// Why a cluster did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The API server did not: no port of loopback can be had.
    #[error("the embedded API server does not start")]
    ApiServer(#[source] embedded_apiserver::StartError),
    /// The controllers did not: the spec contradicts itself, or this computer runs no programs.
    #[error("the controllers of the embedded cluster do not start")]
    Controllers(#[source] embedded_controllers::StartError),
    /// A kubelet did not register its Node.
    #[error("the Node {node} does not register within {limit:?}")]
    Registration {
        /// Name of the Node.
        node: String,
        /// How long was waited.
        limit: Duration,
    },
    /// A Node could not be given its labels.
    #[error("the Node {node} cannot be labelled")]
    Labels {
        /// Name of the Node.
        node: String,
        /// What the API server says.
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
            version: embedded_apiserver::Version { minor, patch: spec.kubernetes.patch() },
            service_networks: addresses::services(spec.families),
            ..Config::default()
        };
        let server = Arc::new(Server::start(config).await.map_err(StartError::ApiServer)?);
        let (machines, settings) = settings(spec, &server);
        let clients = clients(&server);
        let controllers = Controllers::start(clients, settings).await.map_err(StartError::Controllers)?;
        server.serve_logs(Arc::new(KubeletLogs(controllers.pods())));
        let cluster = Cluster { server, controllers };
        if let Err(error) = cluster.set_up_nodes(&machines, minor).await {
            cluster.stop().await;
            return Err(error);
        }
        Ok(cluster)
    }

    /// Waits until every machine has registered its Node, and gives Nodes the labels that kubelets may not write.
    async fn set_up_nodes(&self, machines: &[MachineSpec], minor: u32) -> Result<(), StartError> {
        let nodes: Api<Node> = Api::all(self.client());
        let known = self.machines();
        for machine in machines {
            let node = machine.name.clone();
            // The machines are the spec's own, so none is missing.
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

    /// An administrator's client, in this process: no socket, no TLS.
    #[must_use]
    pub fn client(&self) -> kube::Client {
        self.client_as(User::admin())
    }

    /// A user's client, in this process. What it may do is for RBAC to say.
    #[must_use]
    pub fn client_as(&self, user: User) -> kube::Client {
        self.server.client(user)
    }

    /// An administrator's kubeconfig, with a client key in it: a secret.
    ///
    /// # Errors
    /// When no certificate can be made.
    pub fn kubeconfig(&self) -> Result<String, AuthorityError> {
        self.kubeconfig_for(&User::admin())
    }

    /// A user's kubeconfig, with a client key in it: a secret.
    ///
    /// # Errors
    /// When no certificate can be made for this name.
    pub fn kubeconfig_for(&self, user: &User) -> Result<String, AuthorityError> {
        self.server.kubeconfig_for(user)
    }

    /// Writes an administrator's kubeconfig into a new file, for its owner alone (0600).
    ///
    /// # Errors
    /// There is a file of this name, it cannot be written, or no certificate can be made.
    pub fn write_kubeconfig(&self, path: &Path) -> io::Result<()> {
        let text = self.kubeconfig().map_err(io::Error::other)?;
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(text.as_bytes())
    }

    /// Says who is told of each credential that is made from now on: tokens of service accounts, keys and certificates of
    /// clients. Whoever shows to others what programs print keeps these out of it.
    pub fn tell_issued(&self, issued: Arc<dyn Issued>) {
        self.server.tell_issued(issued);
    }

    /// Where the API server listens.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// The same, for programs that are told host and port apart.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The address a kubelet announces with [`NodeIp::Announced`](crate::NodeIp::Announced), by the number of its
    /// machine in the spec from 0 up.
    #[must_use]
    pub fn node_ipv4(index: u32) -> Ipv4Addr {
        addresses::ipv4(index)
    }

    /// The same of the other family, where the cluster has both.
    #[must_use]
    pub fn node_ipv6(families: IpFamilies, index: u32) -> Option<Ipv6Addr> {
        addresses::ipv6(families, index)
    }

    /// Its machines, and what can be done to them.
    #[must_use]
    pub fn machines(&self) -> Nodes {
        self.controllers.nodes()
    }

    /// The programs of its Pods: logs and signals.
    #[must_use]
    pub fn pods(&self) -> Pods {
        self.controllers.pods()
    }

    /// Ends all watches of service accounts, programs of Pods among them. Whoever asks for one waits, until
    /// [`Cluster::expire_watches`]; lists are answered.
    pub fn interrupt_watches(&self) {
        self.server.interrupt_watches();
    }

    /// Forgets what has changed so far and lets watches begin again: one that missed a change is answered with 410, and so
    /// is, once, the second page of a list in pages.
    pub fn expire_watches(&self) {
        self.server.expire_watches();
    }

    /// Lets other processes reach machines and Pods by this socket, until what is returned is dropped; see
    /// [`Remote`](crate::Remote).
    ///
    /// # Errors
    /// The path is taken, or cannot be made.
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

/// What the controllers are told; the machines beside it.
fn settings(spec: ClusterSpec, server: &embedded_apiserver::Running) -> (Vec<MachineSpec>, Settings) {
    let (minor, patch) = (spec.kubernetes.minor(), spec.kubernetes.patch());
    let settings = Settings {
        kubernetes: embedded_controllers::KubernetesVersion { minor, patch },
        nodes: machine::kubelets(&spec.machines, spec.families, minor),
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

/// A client for each component, with the rights of that component alone.
fn clients(server: &Arc<embedded_apiserver::Running>) -> Clients {
    let admin = server.client(User::admin());
    let kubelets = Arc::downgrade(server);
    Clients {
        controller_manager: admin.clone(),
        scheduler: server.client(User::authenticated("system:kube-scheduler", &[])),
        // Only a server that is going has no client of its own left to give.
        kubelet: Arc::new(move |node| {
            kubelets.upgrade().map_or_else(|| admin.clone(), |server| server.client(User::node(node)))
        }),
    }
}
