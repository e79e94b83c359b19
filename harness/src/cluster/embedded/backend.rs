//! The embedded cluster as a backend: brought up and taken down with a run, its machines reached by a socket in the run's
//! folder.

use super::control::{ContainerOrder, Control, MachineOrder, Order, send};
use super::machines::machines_of;
use super::{EmbeddedCluster, EmbeddedSpec, EmbeddedVersion};
use crate::check::Facility;
use crate::cluster::backend::{Backend, BackendEntry, Facts, Fidelity, Lifetime, Machines, Runs};
use crate::cluster::error::ClusterError;
use crate::cluster::operation::{ContainerOp, KubeletOp, Operation, PodNetwork, PowerOp};
use crate::cluster::record::{About, CloudSite, ClusterRecord, Ownership};
use crate::cluster::spec::{ClusterSpec, ProgramImage};
use crate::cluster::topology::{self, Families, Layout};
use crate::config::{BackendKind, NodeIp};
use embedded_controllers::Program;
use futures::FutureExt;
use futures::future::{BoxFuture, LocalBoxFuture};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Mutex;

pub(in crate::cluster) const BACKEND: BackendEntry = BackendEntry {
    facts: Facts {
        fidelity: Fidelity::Simulated,
        runs: Runs::Programs,
        lifetime: Lifetime::Process,
        // Checks mostly wait.
        side_by_side: 4,
        lacks_because: "its machines are simulated and its programs share this machine's network",
    },
    begin: |spec| Arc::new(Embedded { spec, running: Mutex::default() }),
    attach: |record| Ok(Some(Arc::new(EmbeddedMachines::attach(record)?))),
};

/// What a cluster's record holds for this backend alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct EmbeddedRecord {
    /// The socket by which its machines are reached.
    socket: PathBuf,
}

/// One cluster of a run.
#[derive(Debug)]
struct Embedded {
    spec: ClusterSpec,
    running: Mutex<Option<Running>>,
}

/// A cluster that is up, and the listening end of its socket.
#[derive(Debug)]
struct Running {
    cluster: EmbeddedCluster,
    control: Option<Control>,
}

impl Running {
    async fn stop(self) {
        drop(self.control);
        self.cluster.stop().await;
    }
}

impl Backend for Embedded {
    fn up(&self) -> LocalBoxFuture<'_, Result<ClusterRecord, ClusterError>> {
        self.start().boxed_local()
    }

    fn down(&self) -> LocalBoxFuture<'_, Result<(), ClusterError>> {
        async {
            if let Some(running) = self.running.lock().await.take() {
                running.stop().await;
            }
            Ok(())
        }
        .boxed_local()
    }
}

impl Embedded {
    /// Starts it with its kubeconfig, a socket by which the run's processes reach its machines, and all Nodes
    /// registered. What is running is noted at once, so that `down` finds it whatever happens next.
    async fn start(&self) -> Result<ClusterRecord, ClusterError> {
        let (spec, own) = (&self.spec, self.spec.own());
        let layout = topology::load(&own.topology)?;
        let kubernetes = EmbeddedVersion::of(&own.kubernetes).map_err(|why| ClusterError::Usage {
            what: format!("Kubernetes {}", own.kubernetes),
            why,
            way_out: "name a version, or use '--cluster kind'".to_owned(),
        })?;
        check_families(&layout, kubernetes, own.node_ip)?;
        check_registrations(&layout)?;
        let machines = machines_of(spec, &layout);
        let cluster = EmbeddedCluster::start(EmbeddedSpec {
            families: layout.families,
            programs: spec.programs.iter().map(program).collect(),
            network: embedded_controllers::PodNetwork::None,
            folder: Some(spec.folder.clone()),
            ..EmbeddedSpec::new(machines.clone(), kubernetes)
        })
        .await?;
        let mut held = self.running.lock().await;
        let running = held.insert(Running { cluster, control: None });
        let kubeconfig = spec.folder.join("kubeconfig");
        let socket = spec.folder.join("cluster.socket");
        write_secret(&kubeconfig, &running.cluster.kubeconfig()?)?;
        running.control = Some(Control::listen(&socket, &running.cluster.controllers)?);
        running.cluster.registered(machines.len()).await?;
        let own = EmbeddedRecord { socket };
        Ok(ClusterRecord {
            backend: BackendKind::Embedded,
            name: spec.run.name(),
            kubeconfig,
            ownership: Ownership::Ours,
            machines: (0_u32..)
                .zip(&machines)
                .map(|(index, machine)| machine.record(layout.families, index))
                .collect(),
            facilities: BTreeSet::from([
                Facility::NodeControl,
                Facility::KubeletControl,
                Facility::ProcessControl,
                Facility::PodNetworkControl,
            ]),
            pod_network: Some(layout.pod_network),
            api_server_for_pods: None,
            cloud_site: CloudSite::ThisMachine,
            about: About {
                topology: layout.name,
                kubernetes: Some(kubernetes.to_string()),
                ..About::default()
            },
            own: serde_json::to_value(own).expect("a record is plain data"),
        })
    }
}

fn program(of: &ProgramImage) -> Program {
    Program {
        image: of.image.clone(),
        entry_point: vec![of.program.to_string_lossy().into_owned()],
        arguments: Vec::new(),
        keeps_entry_point: true,
        more_arguments: of.more_arguments.clone(),
        environment: Default::default(),
    }
}

/// The machines of an embedded cluster, as any process of its run reaches them.
#[derive(Debug)]
struct EmbeddedMachines {
    socket: PathBuf,
}

impl EmbeddedMachines {
    fn attach(record: &ClusterRecord) -> Result<EmbeddedMachines, ClusterError> {
        let own = serde_json::from_value::<EmbeddedRecord>(record.own.clone());
        match own {
            Ok(EmbeddedRecord { socket }) => Ok(EmbeddedMachines { socket }),
            Err(error) => Err(ClusterError::Record { name: record.name.clone(), cause: error.to_string() }),
        }
    }
}

impl Machines for EmbeddedMachines {
    fn operate<'a>(&'a self, operation: Operation<'a>) -> BoxFuture<'a, Result<(), ClusterError>> {
        async move { send(&self.socket, &order(operation)?).await }.boxed()
    }
}

fn order(operation: Operation<'_>) -> Result<Order, ClusterError> {
    let machine = |name: &str, op| Order::Machine { name: name.to_owned(), op };
    Ok(match operation {
        Operation::Kubelet { machine: on, op } => machine(
            &on.name,
            match op {
                KubeletOp::Start => MachineOrder::StartKubelet,
                KubeletOp::Stop => MachineOrder::StopKubelet,
                KubeletOp::Restart => MachineOrder::RestartKubelet,
            },
        ),
        Operation::Power { machine: on, op: PowerOp::Off } => machine(&on.name, MachineOrder::PowerOff),
        Operation::Power { machine: on, op: PowerOp::On } => machine(&on.name, MachineOrder::PowerOn),
        Operation::Link { .. } => {
            return Err(ClusterError::NotObservable {
                what: operation.to_string(),
                why: BACKEND.facts.lacks_because.to_owned(),
            });
        }
        Operation::Container { id, op, .. } => Order::Container {
            id: id.to_owned(),
            op: match op {
                ContainerOp::Kill => ContainerOrder::Kill,
                ContainerOp::Terminate => ContainerOrder::Terminate,
                ContainerOp::Freeze => ContainerOrder::Pause,
                ContainerOp::Thaw => ContainerOrder::Resume,
            },
        },
        Operation::PodNetwork(wanted) => Order::PodNetwork { present: *wanted != PodNetwork::Absent },
    })
}

/// Whether it is known what every Node begins with.
fn check_registrations(layout: &Layout) -> Result<(), ClusterError> {
    let unknown = layout.machines.iter().find_map(|machine| machine.registration.unknown.clone());
    unknown.map_or(Ok(()), |why| {
        Err(ClusterError::Usage {
            what: format!("topology {}", layout.name),
            why: format!("the taints of its Nodes are not known: {why}"),
            way_out: "use a patch without apiVersion, or '--cluster kind'".to_owned(),
        })
    })
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

/// Writes a new file for its owner alone.
fn write_secret(path: &Path, text: &str) -> Result<(), ClusterError> {
    use std::io::Write;
    let opened = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    opened.and_then(|mut file| file.write_all(text.as_bytes())).map_err(ClusterError::file("write", path))
}
