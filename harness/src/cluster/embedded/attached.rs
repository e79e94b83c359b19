//! An embedded cluster as any process of its run sees it.

use crate::check::{Facility, chain};
use crate::cluster::node_ops::{KubeletOp, TaskOp};
use crate::cluster::{ClusterError, ClusterRecord, EmbeddedRecord, Machine, PodNetwork, Target};
use embedded_cluster::{ContainerSignal, MachineOperation, Remote, RemoteError};
use std::collections::BTreeSet;

/// An embedded cluster that this process, or another one of the run, has started.
#[derive(Clone, Debug)]
pub struct EmbeddedAttachment {
    pub(in crate::cluster) record: ClusterRecord,
    pub(in crate::cluster) embedded: Box<EmbeddedRecord>,
}

impl EmbeddedAttachment {
    /// What can be done to its machines: everything, as they are the harness's own.
    pub(in crate::cluster) fn facilities() -> BTreeSet<Facility> {
        BTreeSet::from([
            Facility::NodeControl,
            Facility::KubeletControl,
            Facility::ProcessControl,
            Facility::PodNetworkControl,
        ])
    }

    pub(in crate::cluster) async fn kubelet(
        &self,
        machine: &Machine,
        op: KubeletOp,
    ) -> Result<(), ClusterError> {
        let op = match op {
            KubeletOp::Start => MachineOperation::StartKubelet,
            KubeletOp::Stop => MachineOperation::StopKubelet,
            KubeletOp::Restart => MachineOperation::RestartKubelet,
        };
        self.machine(machine, op).await
    }

    pub(in crate::cluster) async fn task(&self, id: &str, op: TaskOp<'_>) -> Result<(), ClusterError> {
        let signal = match op {
            TaskOp::Kill { signal: "SIGKILL" } => ContainerSignal::Kill,
            TaskOp::Kill { signal: "SIGTERM" } => ContainerSignal::Terminate,
            TaskOp::Kill { signal } => {
                return Err(ClusterError::NotObservable {
                    what: format!("sending {signal}"),
                    why: "the embedded cluster knows SIGKILL and SIGTERM".to_owned(),
                });
            }
            TaskOp::Pause => ContainerSignal::Pause,
            TaskOp::Resume => ContainerSignal::Resume,
        };
        self.remote().signal_container(id, signal).await.map_err(failed)
    }

    pub(in crate::cluster) async fn freeze(&self, machine: &Machine) -> Result<(), ClusterError> {
        self.machine(machine, MachineOperation::Freeze).await
    }

    pub(in crate::cluster) async fn thaw(&self, machine: &Machine) -> Result<(), ClusterError> {
        self.machine(machine, MachineOperation::Thaw).await
    }

    pub(in crate::cluster) async fn power_off(&self, machine: &Machine) -> Result<(), ClusterError> {
        self.machine(machine, MachineOperation::PowerOff).await
    }

    pub(in crate::cluster) async fn power_on(&self, machine: &Machine) -> Result<Machine, ClusterError> {
        self.machine(machine, MachineOperation::PowerOn).await.map(|()| machine.clone())
    }

    pub(in crate::cluster) async fn cut(
        &self,
        machine: &Machine,
        target: Target,
    ) -> Result<(), ClusterError> {
        match target {
            Target::ApiServer(_) => self.machine(machine, MachineOperation::CutOff).await,
            Target::Cloud(_) => Err(no_cut_from_cloud()),
        }
    }

    pub(in crate::cluster) async fn mend(
        &self,
        machine: &Machine,
        target: Target,
    ) -> Result<(), ClusterError> {
        match target {
            Target::ApiServer(_) => self.machine(machine, MachineOperation::Reconnect).await,
            Target::Cloud(_) => Err(no_cut_from_cloud()),
        }
    }

    pub(in crate::cluster) async fn set_pod_network(&self, wanted: &PodNetwork) -> Result<(), ClusterError> {
        let network = match wanted {
            PodNetwork::Absent => embedded_cluster::PodNetwork::None,
            _ => embedded_cluster::PodNetwork::Independent,
        };
        self.remote().set_network(network).await.map_err(failed)
    }

    async fn machine(&self, machine: &Machine, operation: MachineOperation) -> Result<(), ClusterError> {
        self.remote().machine(&machine.name, operation).await.map_err(failed)
    }

    fn remote(&self) -> Remote {
        Remote::new(&self.embedded.socket)
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

/// Programs reach the cloud directly, not by way of their machine.
fn no_cut_from_cloud() -> ClusterError {
    ClusterError::NotObservable {
        what: "cutting a machine off from the cloud".to_owned(),
        why: "programs of an embedded cluster share this machine's network; use a fault of the cloud"
            .to_owned(),
    }
}
