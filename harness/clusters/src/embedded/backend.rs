//! The embedded cluster as a backend: created and removed with a run; its machines are reached by a socket in the run's
//! folder.

use super::survey::{MEMORY_GIB, requirements};
use super::wanted::{check_families, check_registrations, families, machines, records, version};
use crate::audit::{Asked, AuditQuery};
use crate::backend::{ApiFaults, Backend, BackendEntry, Facts, Fidelity, Lifetime, Machines, Runs};
use crate::error::ClusterError;
use crate::operation::{
    ApiReach, ContainerOp, KubeletOp, Operation, Part, PodNetwork, PodTraffic, PowerOp, WatchOp,
};
use crate::record::{About, CloudSite, ClusterRecord, Ownership};
use crate::spec::{ClusterSpec, ProgramImage, Purpose};
use crate::topology::{self, Layout};
use embedded_cluster::{
    AuditEntry, Cluster, ContainerSignal, Issued, KubernetesVersion, MachineOperation, OutOfReach, Pace,
    Program, Remote, RemoteError, RequestFault, RequestFaultState, Serving, WatchOperation,
};
use futures::FutureExt;
use futures::future::{BoxFuture, LocalBoxFuture, ready};
use harness_config::{BackendKind, OwnCluster};
use harness_core::check::{Facility, chain};
use harness_core::probe::pause;
use harness_core::secrets;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// The host name of a cloud in this process for programs of an embedded cluster; `.test` is reserved.
pub const CLOUD_NAME: &str = "cloud.conformance.test";

/// The facilities of its machines.
const FACILITIES: &[Facility] = &[
    Facility::NodeControl,
    Facility::KubeletControl,
    Facility::ProcessControl,
    Facility::PodNetworkControl,
    Facility::PodCidrControl,
    Facility::HostPorts,
    Facility::WatchControl,
    Facility::AuditLog,
    Facility::ApiControl,
    Facility::CloudName,
    Facility::VersionControl,
];

pub(crate) const BACKEND: BackendEntry = BackendEntry {
    facts: Facts {
        fidelity: Fidelity::Simulated,
        runs: Runs::Programs,
        lifetime: Lifetime::Process,
        manages: true,
        // Checks mostly wait.
        side_by_side: 16,
        memory_gib: MEMORY_GIB,
        facilities: FACILITIES,
        lacks_because: "its machines are simulated and its programs share this machine's network",
    },
    requirements: || requirements().boxed_local(),
    check: |desired| desired.own().map_or(Ok(()), |own| layout_and_version(own).map(drop)),
    has: |minor| ready(Ok(KubernetesVersion::of_minor(minor).is_some())).boxed_local(),
    begin: |spec| Arc::new(Embedded { spec, running: Mutex::default() }),
    attach: |record| Ok(Some(Arc::new(EmbeddedMachines::attach(record)?))),
};

/// The part of a cluster's record that only this backend uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct EmbeddedRecord {
    /// The socket for access to its machines.
    socket: PathBuf,
}

/// Credentials that the API server issues are redacted from all output.
#[derive(Debug)]
struct KeptSecret;

impl Issued for KeptSecret {
    fn issued(&self, credential: &str) {
        secrets::know(credential);
    }
}

/// One cluster of a run.
#[derive(Debug)]
struct Embedded {
    spec: ClusterSpec,
    running: Mutex<Option<Running>>,
}

/// A cluster that is up, and its listening socket.
#[derive(Debug)]
struct Running {
    cluster: Cluster,
    serving: Option<Serving>,
}

impl Running {
    async fn stop(self) {
        drop(self.serving);
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

/// The machines and the version of a requested cluster.
///
/// # Errors
/// [`ClusterError::is_usage`]: it cannot be simulated.
fn layout_and_version(own: &OwnCluster) -> Result<(Layout, KubernetesVersion), ClusterError> {
    let layout = topology::load(&own.topology)?;
    let kubernetes = version(&own.kubernetes).map_err(|why| ClusterError::Usage {
        what: format!("--kubernetes {}", own.kubernetes),
        why,
        way_out: "name such a version, or use '--cluster kind'".to_owned(),
    })?;
    check_families(&layout, kubernetes, own.node_ip)?;
    check_registrations(&layout)?;
    Ok((layout, kubernetes))
}

impl Embedded {
    /// Starts it with its kubeconfig, a socket through which the run's processes access its machines, and all Nodes
    /// registered. What runs is recorded at once, so that `down` finds it whatever happens next.
    async fn start(&self) -> Result<ClusterRecord, ClusterError> {
        let (spec, own) = (&self.spec, self.spec.own());
        let (layout, kubernetes) = layout_and_version(own)?;
        let families = families(&layout);
        let machines = machines(spec, &layout);
        let mut records = records(&machines, families);
        let seed = own.seed.unwrap_or_else(|| spec.run.seed());
        let cluster = Cluster::start(embedded_cluster::ClusterSpec {
            families,
            kubernetes,
            programs: spec.programs.iter().map(program).collect(),
            network: match spec.purpose {
                Purpose::Served => embedded_cluster::PodNetwork::None,
                Purpose::Management => embedded_cluster::PodNetwork::Independent,
            },
            folder: Some(spec.folder.clone()),
            names: BTreeMap::from([(CLOUD_NAME.to_owned(), Ipv4Addr::LOCALHOST.into())]),
            pace: Pace { seed: u64::from(seed) << 32 | u64::from(spec.run.number()), ..Pace::default() },
            ..embedded_cluster::ClusterSpec::new(machines.into_iter().map(|(_, machine)| machine).collect())
        });
        let cluster = cluster.await.map_err(|error| ClusterError::Embedded { cause: chain(&error) })?;
        cluster.tell_issued(Arc::new(KeptSecret));
        let fleet = cluster.machines();
        for machine in &mut records {
            // Programs listen on their simulated machine's address on this computer.
            machine.reached_at = fleet.state(&machine.name).ok().map(|state| state.loopback.into());
        }
        let mut held = self.running.lock().await;
        let running = held.insert(Running { cluster, serving: None });
        let kubeconfig = spec.folder.join("kubeconfig");
        let socket = spec.folder.join("cluster.socket");
        running.cluster.write_kubeconfig(&kubeconfig).map_err(ClusterError::file("write", &kubeconfig))?;
        let serving = running.cluster.serve(&socket).map_err(ClusterError::file("listen at", &socket))?;
        running.serving = Some(serving);
        let own = EmbeddedRecord { socket };
        // Without their own files, programs share the name resolution of this machine.
        let named = running.cluster.pods().have_namespaces();
        let possible = |facility: &Facility| named || *facility != Facility::CloudName;
        Ok(ClusterRecord {
            backend: BackendKind::Embedded,
            name: spec.name(),
            kubeconfig,
            ownership: Ownership::Ours,
            machines: records,
            facilities: FACILITIES.iter().copied().filter(possible).collect(),
            pod_network: Some(layout.pod_network),
            api_server_for_pods: None,
            api_server_for_other_clusters: None,
            replica_group: None,
            cloud_site: CloudSite::ThisMachine {
                address: Ipv4Addr::LOCALHOST,
                name: Some(CLOUD_NAME.to_owned()),
            },
            about: About {
                topology: layout.name,
                kubernetes: Some(kubernetes.to_string()),
                seed: Some(seed),
                ..About::default()
            },
            own: serde_json::to_value(own).expect("a record is plain data"),
        })
    }
}

fn program(of: &ProgramImage) -> Program {
    let path = of.program.to_string_lossy().into_owned();
    let entry_point = std::iter::once(path).chain(of.first_arguments.iter().cloned());
    Program {
        keeps_entry_point: true,
        more_arguments: of.more_arguments.clone(),
        ..Program::new(&of.image, entry_point)
    }
}

/// The machines of an embedded cluster, accessible from all processes of its run.
#[derive(Debug)]
struct EmbeddedMachines {
    remote: Remote,
}

impl EmbeddedMachines {
    fn attach(record: &ClusterRecord) -> Result<EmbeddedMachines, ClusterError> {
        let own = serde_json::from_value::<EmbeddedRecord>(record.own.clone());
        match own {
            Ok(EmbeddedRecord { socket }) => Ok(EmbeddedMachines { remote: Remote::new(socket) }),
            Err(error) => Err(ClusterError::Record { name: record.name.clone(), cause: error.to_string() }),
        }
    }
}

impl Machines for EmbeddedMachines {
    fn operate<'a>(&'a self, operation: Operation<'a>) -> BoxFuture<'a, Result<(), ClusterError>> {
        async move { operate(&self.remote, operation).await }.boxed()
    }

    fn asked<'a>(&'a self, query: &'a AuditQuery) -> BoxFuture<'a, Result<Vec<Asked>, ClusterError>> {
        let AuditQuery { user, since_ms, refused, distinct } = query.clone();
        let query = embedded_cluster::AuditQuery { user, since_ms, refused, distinct };
        async move {
            let entries = self.remote.audit(query).await.map_err(failed)?;
            Ok(entries.into_iter().map(asked).collect())
        }
        .boxed()
    }

    fn api_faults(&self) -> Option<&dyn ApiFaults> {
        Some(self)
    }
}

impl ApiFaults for EmbeddedMachines {
    fn set(&self, id: u64, fault: RequestFault) -> BoxFuture<'_, Result<(), ClusterError>> {
        async move { self.remote.set_request_fault(id, fault).await.map_err(failed) }.boxed()
    }

    fn state(&self, id: u64) -> BoxFuture<'_, Result<Option<RequestFaultState>, ClusterError>> {
        async move { self.remote.request_fault(id).await.map_err(failed) }.boxed()
    }

    fn clear(&self, id: u64) -> BoxFuture<'_, Result<(), ClusterError>> {
        async move { self.remote.clear_request_fault(id).await.map_err(failed) }.boxed()
    }

    fn set_lag(&self, lags: bool) -> BoxFuture<'_, Result<(), ClusterError>> {
        let operation = if lags { WatchOperation::BeginLag } else { WatchOperation::EndLag };
        async move { self.remote.watches(operation).await.map_err(failed) }.boxed()
    }
}

fn asked(entry: AuditEntry) -> Asked {
    let AuditEntry {
        at_ms,
        user,
        verb,
        group,
        resource,
        namespace,
        name,
        path,
        code,
        authorized,
        user_agent,
    } = entry;
    Asked { at_ms, user, verb, group, resource, namespace, name, path, code, authorized, user_agent }
}

async fn operate(remote: &Remote, operation: Operation<'_>) -> Result<(), ClusterError> {
    let done = match operation {
        Operation::Kubelet { machine, op } => {
            let op = match op {
                KubeletOp::Start => MachineOperation::StartKubelet,
                KubeletOp::Stop => MachineOperation::StopKubelet,
                KubeletOp::Restart => MachineOperation::RestartKubelet,
            };
            remote.machine(&machine.name, op).await
        }
        Operation::Power { machine, op: PowerOp::Off } => {
            remote.machine(&machine.name, MachineOperation::PowerOff).await
        }
        Operation::Power { machine, op: PowerOp::On } => {
            remote.machine(&machine.name, MachineOperation::PowerOn).await
        }
        Operation::Link { .. } | Operation::ImageCredentials { .. } | Operation::DirectWay { .. } => {
            return Err(ClusterError::NotObservable {
                what: operation.to_string(),
                why: BACKEND.facts.lacks_because.to_owned(),
            });
        }
        Operation::Container { id, op, .. } => {
            let signal = match op {
                ContainerOp::Kill => ContainerSignal::Kill,
                ContainerOp::Terminate => ContainerSignal::Terminate,
                ContainerOp::Freeze => ContainerSignal::Pause,
                ContainerOp::Thaw => ContainerSignal::Resume,
            };
            remote.signal_container(id, signal).await
        }
        Operation::Watches(op) => {
            let op = match op {
                WatchOp::Interrupt => WatchOperation::Interrupt,
                WatchOp::Expire => WatchOperation::Expire,
            };
            remote.watches(op).await
        }
        Operation::ApiServer(reach) => {
            let without = match reach {
                ApiReach::All => OutOfReach::None,
                ApiReach::None => OutOfReach::ServiceAccounts,
                ApiReach::AllBut(pods) => out_of_reach(pods),
            };
            remote.part(without).await
        }
        Operation::PodNetwork(wanted) => {
            let network = match wanted {
                PodNetwork::Absent => embedded_cluster::PodNetwork::None,
                PodNetwork::Present(_) => embedded_cluster::PodNetwork::Independent,
            };
            remote.set_network(network).await
        }
        Operation::Upgrade { part, minor } => {
            let unknown = || ClusterError::NotObservable {
                what: operation.to_string(),
                why: "the embedded cluster does not know this version".to_owned(),
            };
            let version = KubernetesVersion::of_minor(minor).ok_or_else(unknown)?;
            match part {
                Part::ControlPlane { away } => replace_control_plane(remote, version, away).await,
                Part::Kubelet(machine) => remote.replace_kubelet(&machine.name, version).await,
            }
        }
        Operation::PodCidrs { withheld } => remote.withhold_pod_cidrs(withheld).await,
    };
    done.map_err(failed)
}

/// Replaces the control plane, whose API server no Pod reaches meanwhile.
async fn replace_control_plane(
    remote: &Remote,
    version: KubernetesVersion,
    away: Duration,
) -> Result<(), RemoteError> {
    remote.part(OutOfReach::ServiceAccounts).await?;
    let replaced = remote.replace_control_plane(version).await;
    if replaced.is_ok() {
        pause(away).await;
    }
    remote.part(OutOfReach::None).await.and(replaced)
}

/// These Pods: identified by their own tokens, or by tokens that they got for this cluster from outside.
fn out_of_reach(pods: &[PodTraffic]) -> OutOfReach {
    let tokens: Vec<String> = pods.iter().filter_map(|pod| pod.token.clone()).collect();
    match tokens.is_empty() {
        true => OutOfReach::Pods(pods.iter().map(|pod| pod.name.clone()).collect()),
        false => OutOfReach::Credentials(tokens),
    }
}

fn failed(error: RemoteError) -> ClusterError {
    match error {
        RemoteError::Gone { .. } => ClusterError::Gone { what: chain(&error) },
        RemoteError::Silent { limit, .. } => ClusterError::TimedOut {
            what: "an operation on a machine".to_owned(),
            limit,
            seen: chain(&error),
        },
        RemoteError::Refused { why } => ClusterError::Embedded { cause: why },
    }
}
