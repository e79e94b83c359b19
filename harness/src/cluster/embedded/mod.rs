//! A cluster in this process: the embedded API server and controllers put together. Needs no Docker, nor any right.

mod attached;
mod control;
mod network;
mod version;

pub use attached::EmbeddedAttachment;
pub use version::EmbeddedVersion;

use super::topology::{self, Layout};
use super::{ClusterError, ClusterRecord, EmbeddedRecord, Families, Machine, Origin, ProviderIds, Role};
use crate::check::chain;
use crate::config::{Kubernetes, NodeIp, Topology};
use crate::images::RunId;
use crate::probe::{ReadError, poll};
use control::Control;
use embedded_apiserver::{Config, Container, Followed, LogLine, Server, User};
use embedded_controllers::{Clients, Controllers, NodeSpec, NodeTaint, Pods, Program, Settings};
use futures::stream::{self, StreamExt as _};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Label and taint of control-plane Nodes.
const L_CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
/// What kubeadm gives control-plane Nodes and kind takes from the only Node of a cluster.
const L_EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
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
    /// Whether there is a pod network at first.
    pub pod_network: bool,
    /// Where files of Pods are kept; `None` for a folder of its own among the system's temporary files.
    pub folder: Option<PathBuf>,
}

/// One machine of an embedded cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddedMachine {
    /// Name of machine and Node.
    pub name: String,
    /// What it does in the cluster.
    pub role: Role,
    /// Whether its kubelet announces its addresses (`--node-ip`).
    pub node_ip: NodeIp,
    /// What its kubelet writes into `spec.providerID`.
    pub provider_id: Option<String>,
}

impl EmbeddedSpec {
    /// A cluster of so many machines named `node-0` and on: the first a control plane, the others workers.
    pub fn of_nodes(nodes: u32, kubernetes: EmbeddedVersion) -> EmbeddedSpec {
        let role = |index| if index == 0 { Role::ControlPlane } else { Role::Worker };
        let machine = |index| EmbeddedMachine {
            name: format!("node-{index}"),
            role: role(index),
            node_ip: NodeIp::Kept,
            provider_id: None,
        };
        let machines = (0..nodes).map(machine).collect();
        EmbeddedSpec {
            machines,
            kubernetes,
            families: Families::Ipv4,
            programs: Vec::new(),
            pod_network: true,
            folder: None,
        }
    }
}

/// What a run wants of an embedded cluster.
#[derive(Clone, Debug)]
pub struct EmbeddedWish {
    /// The run it is for; machines are named after it, as kind names its own.
    pub run: RunId,
    /// Its machines and network.
    pub topology: Topology,
    /// Its Kubernetes.
    pub kubernetes: Kubernetes,
    /// What kubelets write into `spec.providerID`.
    pub provider_id: ProviderIds,
    /// Whether kubelets announce a node IP.
    pub node_ip: NodeIp,
    /// Which images are programs of this machine.
    pub programs: Vec<Program>,
    /// The run's own folder, for kubeconfig (0600), control socket and files of Pods.
    pub folder: PathBuf,
}

/// A running embedded cluster. Ends with [`EmbeddedCluster::stop`].
pub struct EmbeddedCluster {
    server: Arc<embedded_apiserver::Running>,
    controllers: embedded_controllers::Running,
    control: Option<Control>,
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
        settings.nodes = machines(&spec.machines, spec.families);
        settings.pod_cidrs = network::pods(spec.families, spec.machines.len());
        settings.programs = spec.programs;
        settings.folder = spec.folder;
        if !spec.pod_network {
            settings.network = embedded_controllers::PodNetwork::None;
        }
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
        let cluster = EmbeddedCluster { server, controllers, control: None };
        if let Err(error) = mark_control_planes(&administrator, &spec.machines).await {
            cluster.stop().await;
            return Err(ClusterError::Embedded { cause: error.text });
        }
        Ok(cluster)
    }

    /// Starts the cluster of a run: with its kubeconfig, a socket by which the run's processes reach its machines, and
    /// all Nodes registered.
    ///
    /// # Errors
    /// What was asked for cannot be ([`ClusterError::is_usage`]), or the cluster does not come up.
    pub async fn of_run(wish: EmbeddedWish) -> Result<(EmbeddedCluster, ClusterRecord), ClusterError> {
        let layout = topology::load(&wish.topology)?;
        let kubernetes = EmbeddedVersion::of(&wish.kubernetes).map_err(|why| ClusterError::Usage {
            what: format!("Kubernetes {}", wish.kubernetes),
            why,
            way_out: "name a version, or use '--cluster kind'".to_owned(),
        })?;
        check_families(&layout, kubernetes, wish.node_ip)?;
        let families = layout.families;
        let machines = machines_of(&wish, &layout);
        let spec = EmbeddedSpec {
            machines: machines.clone(),
            kubernetes,
            families,
            programs: wish.programs,
            pod_network: false,
            folder: Some(wish.folder.clone()),
        };
        let mut cluster = EmbeddedCluster::start(spec).await?;
        let kubeconfig = wish.folder.join("kubeconfig");
        let socket = wish.folder.join("cluster.socket");
        let ready = async {
            write_secret(&kubeconfig, &cluster.kubeconfig()?)?;
            cluster.control = Some(Control::listen(&socket, &cluster.controllers)?);
            cluster.registered(machines.len()).await
        };
        if let Err(error) = ready.await {
            cluster.stop().await;
            return Err(error);
        }
        let record = EmbeddedRecord {
            socket,
            kubernetes: kubernetes.to_string(),
            topology: layout.name,
            pod_network: layout.pod_network,
            machines: (0_u32..)
                .zip(&machines)
                .map(|(index, machine)| machine.record(families, index))
                .collect(),
        };
        let origin = Origin::Embedded(Box::new(record));
        let record = ClusterRecord { name: wish.run.name(), kubeconfig, origin };
        Ok((cluster, record))
    }

    /// Where the API server listens.
    pub fn url(&self) -> String {
        self.server.url()
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
        drop(self.control);
        self.controllers.stop().await;
        if let Some(server) = Arc::into_inner(self.server) {
            server.shutdown().await;
        }
    }

    async fn registered(&self, nodes: usize) -> Result<(), ClusterError> {
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

impl EmbeddedMachine {
    fn record(&self, families: Families, index: u32) -> Machine {
        Machine {
            name: self.name.clone(),
            role: self.role,
            ipv4: Some(network::ipv4(index)),
            ipv6: network::ipv6(families, index),
            container_id: String::new(),
        }
    }
}

/// The first version whose kubelets take two addresses beside an external cloud provider.
const TWO_NODE_IPS: u32 = 29;

/// Whether there can be a cluster of these families.
fn check_families(layout: &Layout, kubernetes: EmbeddedVersion, node_ip: NodeIp) -> Result<(), ClusterError> {
    let (minor, _) = kubernetes.numbers();
    let (why, way_out) = if layout.is_ipv6_only() {
        ("an embedded cluster has IPv4, or IPv4 and IPv6", "use ipFamily dual, or '--cluster kind'")
    } else if layout.families == Families::Both && node_ip == NodeIp::Kept && minor < TWO_NODE_IPS {
        (
            "before Kubernetes 1.29 kubelets with an external cloud provider take one address only",
            "use a newer version, or '--node-ip dropped'",
        )
    } else {
        return Ok(());
    };
    Err(ClusterError::Usage {
        what: format!("topology {}", layout.name),
        why: why.to_owned(),
        way_out: way_out.to_owned(),
    })
}

/// The machines of a run, named as kind names its own.
fn machines_of(wish: &EmbeddedWish, layout: &Layout) -> Vec<EmbeddedMachine> {
    let (mut control_planes, mut workers) = (0, 0);
    let mut machines: Vec<EmbeddedMachine> = layout
        .roles
        .iter()
        .map(|role| {
            let count = if *role == Role::ControlPlane { &mut control_planes } else { &mut workers };
            *count += 1;
            let number = if *count == 1 { String::new() } else { count.to_string() };
            let name = format!("{}-{role}{number}", wish.run.name());
            let provider_id = wish.provider_id.of(&name);
            EmbeddedMachine { name, role: *role, node_ip: wish.node_ip, provider_id }
        })
        .collect();
    machines.sort_by_key(|machine| machine.role != Role::ControlPlane);
    machines
}

/// As kubelets with an external cloud provider run: the addresses are announced or left to the cloud.
fn machines(wanted: &[EmbeddedMachine], families: Families) -> Vec<NodeSpec> {
    let first = network::first_loopback();
    let spec = |(index, machine): (u32, &EmbeddedMachine)| {
        let mut spec = NodeSpec::new(machine.name.clone());
        if machine.node_ip == NodeIp::Kept {
            let ipv6 = network::ipv6(families, index).map(IpAddr::from);
            spec.node_ips = [IpAddr::from(network::ipv4(index))].into_iter().chain(ipv6).collect();
        }
        spec.provider_id.clone_from(&machine.provider_id);
        spec.loopback = Some(Ipv4Addr::from_bits(first + index));
        if machine.role == Role::ControlPlane && wanted.len() > 1 {
            let (key, effect) = (L_CONTROL_PLANE.to_owned(), "NoSchedule".to_owned());
            spec.taints.push(NodeTaint { key, value: String::new(), effect });
        }
        spec
    };
    (0_u32..).zip(wanted).map(spec).collect()
}

/// Gives the control planes' Nodes their labels, as kubeadm does once they have registered: a kubelet may not do so
/// itself. The only Node of a cluster stays open to load balancers, as with kind.
async fn mark_control_planes(client: &kube::Client, machines: &[EmbeddedMachine]) -> Result<(), ReadError> {
    let nodes: Api<Node> = Api::all(client.clone());
    let mut labels = json!({L_CONTROL_PLANE: ""});
    if machines.len() > 1 {
        labels[L_EXCLUDED] = json!("");
    }
    let role = json!({"metadata": {"labels": labels}});
    for machine in machines.iter().filter(|machine| machine.role == Role::ControlPlane) {
        let marked = async |seen: &mut String| match nodes
            .patch(&machine.name, &PatchParams::default(), &Patch::Merge(&role))
            .await
        {
            Ok(_) => Ok(Some(())),
            Err(error) => {
                *seen = chain(&error);
                Ok(None)
            }
        };
        let what = format!("the control plane's Node {} registers", machine.name);
        poll(&what, REGISTRATION_LIMIT, Duration::from_millis(10), marked).await?;
    }
    Ok(())
}

/// Writes a new file for its owner alone.
fn write_secret(path: &std::path::Path, text: &str) -> Result<(), ClusterError> {
    use std::io::Write;
    let opened = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    opened.and_then(|mut file| file.write_all(text.as_bytes())).map_err(ClusterError::file("write", path))
}
