//! The orders that other processes can send to a cluster, as data: one line of JSON for each order.

use crate::audit::{AuditEntry, AuditQuery};
use crate::version::KubernetesVersion;
use embedded_apiserver::{Partition, RequestFault, Running as Server};
use embedded_controllers::{ContainerSignal, NoSuch, Nodes, PodNetwork, Pods};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// An order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub(crate) enum Order {
    /// An operation on a machine.
    Machine {
        /// The name of the machine.
        name: String,
        /// The operation.
        operation: MachineOperation,
    },
    /// Replaces API server, scheduler and controllers by those of another version.
    ReplaceControlPlane {
        /// The new version.
        version: KubernetesVersion,
    },
    /// Replaces the kubelet of a machine by that of another version.
    ReplaceKubelet {
        /// The name of the machine.
        name: String,
        /// The new version.
        version: KubernetesVersion,
    },
    /// Replaces the pod network on all machines.
    PodNetwork {
        /// The new pod network.
        network: PodNetwork,
    },
    /// An operation on the watches of service accounts.
    Watches {
        /// The operation.
        operation: WatchOperation,
    },
    /// Makes the API server unreachable for service accounts, or reachable again.
    CurrentPartition {
        /// For which accounts it is unreachable.
        without: OutOfReach,
    },
    /// Reads the requests to the API server.
    Audit {
        /// Which of them.
        query: AuditQuery,
    },
    /// Stops or resumes the assignment of pod ranges to new Nodes.
    PodCidrs {
        /// Whether new Nodes get no pod ranges.
        withheld: bool,
    },
    /// Sets a fault of requests of service accounts.
    SetRequestFault {
        /// Its id.
        id: u64,
        /// The fault.
        fault: RequestFault,
    },
    /// Reads what a fault of requests has done so far.
    RequestFaultState {
        /// Its id.
        id: u64,
    },
    /// Removes a fault of requests.
    ClearRequestFault {
        /// Its id.
        id: u64,
    },
    /// A signal to the process of a container.
    Container {
        /// The id of the container, as in the Pod's status.
        id: String,
        /// The signal.
        signal: ContainerSignal,
    },
}

/// The operations on a machine: see the methods of [`Machines`](crate::Machines).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MachineOperation {
    /// [`Machines::start_kubelet`](crate::Machines::start_kubelet).
    StartKubelet,
    /// [`Machines::stop_kubelet`](crate::Machines::stop_kubelet).
    StopKubelet,
    /// [`Machines::restart_kubelet`](crate::Machines::restart_kubelet).
    RestartKubelet,
    /// [`Machines::freeze`](crate::Machines::freeze).
    Freeze,
    /// [`Machines::thaw`](crate::Machines::thaw).
    Thaw,
    /// [`Machines::power_off`](crate::Machines::power_off).
    PowerOff,
    /// [`Machines::power_on`](crate::Machines::power_on).
    PowerOn,
    /// [`Machines::cut_off`](crate::Machines::cut_off).
    CutOff,
    /// [`Machines::reconnect`](crate::Machines::reconnect).
    Reconnect,
}

/// The operations on the watches of service accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WatchOperation {
    /// [`Cluster::interrupt_watches`](crate::Cluster::interrupt_watches).
    Interrupt,
    /// [`Cluster::expire_watches`](crate::Cluster::expire_watches).
    Expire,
    /// [`Cluster::begin_lag`](crate::Cluster::begin_lag).
    BeginLag,
    /// [`Cluster::end_lag`](crate::Cluster::end_lag).
    EndLag,
}

/// The clients that cannot reach the API server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutOfReach {
    /// None.
    None,
    /// Every service account.
    ServiceAccounts,
    /// The programs of these Pods.
    Pods(Vec<String>),
    /// The holders of these tokens, by their ids as in `authentication.kubernetes.io/credential-id`.
    Credentials(Vec<String>),
}

impl From<OutOfReach> for Partition {
    fn from(without: OutOfReach) -> Partition {
        match without {
            OutOfReach::None => Partition::None,
            OutOfReach::ServiceAccounts => Partition::ServiceAccounts,
            OutOfReach::Pods(names) => Partition::Pods(names.into_iter().collect()),
            OutOfReach::Credentials(ids) => Partition::Credentials(ids.into_iter().collect()),
        }
    }
}

impl Order {
    /// Carries the order out; the answer is null except for the audit log and the state of a fault.
    pub(crate) fn carry_out(self, nodes: &Nodes, pods: &Pods, server: &Server) -> Result<Value, NoSuch> {
        match &self {
            Order::Audit { query } => {
                let entries: Vec<AuditEntry> = query.answer(&server.audit().entries());
                return Ok(json!(entries));
            }
            Order::RequestFaultState { id } => return Ok(json!(server.request_faults().state(*id))),
            _ => {}
        }
        self.done(nodes, pods, server).map(|()| Value::Null)
    }

    fn done(self, nodes: &Nodes, pods: &Pods, server: &Server) -> Result<(), NoSuch> {
        match self {
            Order::Audit { .. } | Order::RequestFaultState { .. } => Ok(()),
            Order::SetRequestFault { id, fault } => {
                server.request_faults().set(id, fault);
                Ok(())
            }
            Order::ClearRequestFault { id } => {
                server.request_faults().clear(id);
                Ok(())
            }
            Order::CurrentPartition { without } => {
                server.part(without.into());
                Ok(())
            }
            Order::Machine { name, operation } => match operation {
                MachineOperation::StartKubelet => nodes.start_kubelet(&name),
                MachineOperation::StopKubelet => nodes.stop_kubelet(&name),
                MachineOperation::RestartKubelet => nodes.restart_kubelet(&name),
                MachineOperation::Freeze => nodes.freeze(&name),
                MachineOperation::Thaw => nodes.thaw(&name),
                MachineOperation::PowerOff => nodes.power_off(&name),
                MachineOperation::PowerOn => nodes.power_on(&name),
                MachineOperation::CutOff => nodes.cut_off(&name),
                MachineOperation::Reconnect => nodes.reconnect(&name),
            },
            Order::ReplaceControlPlane { version } => {
                nodes.replace_control_plane(version.into());
                server.set_version(version.into());
                Ok(())
            }
            Order::ReplaceKubelet { name, version } => nodes.replace_kubelet(&name, version.into()),
            Order::PodNetwork { network } => {
                nodes.set_network(network);
                Ok(())
            }
            Order::Watches { operation } => {
                match operation {
                    WatchOperation::Interrupt => server.interrupt_watches(),
                    WatchOperation::Expire => server.expire_watches(),
                    WatchOperation::BeginLag => server.begin_lag(),
                    WatchOperation::EndLag => server.end_lag(),
                }
                Ok(())
            }
            Order::PodCidrs { withheld } => {
                nodes.withhold_pod_cidrs(withheld);
                Ok(())
            }
            Order::Container { id, signal } => pods.signal_container(&id, signal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use embedded_apiserver::{RequestEffect, RequestMatch};

    #[test]
    fn an_order_is_one_line_and_comes_back_the_same() {
        let network =
            PodNetwork::StartupTaint { key: "example.com/wait".to_owned(), waits_for_addresses: true };
        let orders = [
            Order::Machine { name: "node-0".to_owned(), operation: MachineOperation::CutOff },
            Order::ReplaceControlPlane { version: KubernetesVersion::default() },
            Order::ReplaceKubelet { name: "node-0".to_owned(), version: KubernetesVersion::default() },
            Order::PodNetwork { network },
            Order::Watches { operation: WatchOperation::Expire },
            Order::PodCidrs { withheld: true },
            Order::CurrentPartition { without: OutOfReach::Pods(vec!["ccm-a".to_owned()]) },
            Order::Audit {
                query: AuditQuery { user: "system:serviceaccount:".to_owned(), ..AuditQuery::default() },
            },
            Order::SetRequestFault {
                id: 3,
                fault: RequestFault {
                    matching: RequestMatch { verb: "patch".to_owned(), ..RequestMatch::default() },
                    skip: 1,
                    times: 2,
                    effect: RequestEffect::Refuse { code: 409 },
                },
            },
            Order::RequestFaultState { id: 3 },
            Order::ClearRequestFault { id: 3 },
            Order::Container { id: "embedded://x-y-1".to_owned(), signal: ContainerSignal::Terminate },
        ];
        for order in orders {
            let text = serde_json::to_string(&order).expect("an order is JSON");
            assert!(!text.contains('\n'), "{text}");
            assert_eq!(serde_json::from_str::<Order>(&text).ok(), Some(order));
        }
        assert!(serde_json::from_str::<Order>(r#"{"do":"dance"}"#).is_err());
    }
}
