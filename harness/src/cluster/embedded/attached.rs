//! An embedded cluster as any process of its run sees it.

use super::control::{ContainerOp, MachineOp, Order, send};
use crate::check::Facility;
use crate::cluster::node_ops::{KubeletOp, TaskOp};
use crate::cluster::{ClusterError, ClusterRecord, EmbeddedRecord, Machine, PodNetwork, Target};
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
            KubeletOp::Start => MachineOp::StartKubelet,
            KubeletOp::Stop => MachineOp::StopKubelet,
            KubeletOp::Restart => MachineOp::RestartKubelet,
        };
        self.machine(machine, op).await
    }

    pub(in crate::cluster) async fn task(&self, id: &str, op: TaskOp<'_>) -> Result<(), ClusterError> {
        let op = match op {
            TaskOp::Kill { signal: "SIGKILL" } => ContainerOp::Kill,
            TaskOp::Kill { signal: "SIGTERM" } => ContainerOp::Terminate,
            TaskOp::Kill { signal } => {
                return Err(ClusterError::NotObservable {
                    what: format!("sending {signal}"),
                    why: "the embedded cluster knows SIGKILL and SIGTERM".to_owned(),
                });
            }
            TaskOp::Pause => ContainerOp::Pause,
            TaskOp::Resume => ContainerOp::Resume,
        };
        self.send(Order::Container { id: id.to_owned(), op }).await
    }

    pub(in crate::cluster) async fn freeze(&self, machine: &Machine) -> Result<(), ClusterError> {
        self.machine(machine, MachineOp::Freeze).await
    }

    pub(in crate::cluster) async fn thaw(&self, machine: &Machine) -> Result<(), ClusterError> {
        self.machine(machine, MachineOp::Thaw).await
    }

    pub(in crate::cluster) async fn power_off(&self, machine: &Machine) -> Result<(), ClusterError> {
        self.machine(machine, MachineOp::PowerOff).await
    }

    pub(in crate::cluster) async fn power_on(&self, machine: &Machine) -> Result<Machine, ClusterError> {
        self.machine(machine, MachineOp::PowerOn).await.map(|()| machine.clone())
    }

    pub(in crate::cluster) async fn cut(
        &self,
        machine: &Machine,
        target: Target,
    ) -> Result<(), ClusterError> {
        match target {
            Target::ApiServer(_) => self.machine(machine, MachineOp::CutApiServer).await,
            Target::Cloud(_) => Err(no_cut_from_cloud()),
        }
    }

    pub(in crate::cluster) async fn mend(
        &self,
        machine: &Machine,
        target: Target,
    ) -> Result<(), ClusterError> {
        match target {
            Target::ApiServer(_) => self.machine(machine, MachineOp::MendApiServer).await,
            Target::Cloud(_) => Err(no_cut_from_cloud()),
        }
    }

    pub(in crate::cluster) async fn set_pod_network(&self, wanted: &PodNetwork) -> Result<(), ClusterError> {
        self.send(Order::PodNetwork { present: *wanted != PodNetwork::Absent }).await
    }

    async fn machine(&self, machine: &Machine, op: MachineOp) -> Result<(), ClusterError> {
        self.send(Order::Machine { name: machine.name.clone(), op }).await
    }

    async fn send(&self, order: Order) -> Result<(), ClusterError> {
        send(&self.embedded.socket, &order).await
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
