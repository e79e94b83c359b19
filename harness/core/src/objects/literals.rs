//! Literal strings of the contract, section 1.

/// Taint of a Node that no CCM has initialised yet (`T-UNINIT`).
/// Example: see [`has_taint`](super::has_taint).
pub const T_UNINIT: &str = "node.cloudprovider.kubernetes.io/uninitialized";
/// The taint of a Node that has not been Ready yet for the node lifecycle controller.
/// Example: see [`has_taint`](super::has_taint).
pub const T_NOT_READY: &str = "node.kubernetes.io/not-ready";
/// Taint of a Node whose instance is shut down (`T-SHUT`).
/// Example: see [`has_taint`](super::has_taint).
pub const T_SHUT: &str = "node.cloudprovider.kubernetes.io/shutdown";
/// Taint of a Node that the cluster autoscaler is about to remove: it leaves load balancers first.
/// Example: see [`has_taint`](super::has_taint).
pub const T_TO_BE_DELETED: &str = "ToBeDeletedByClusterAutoscaler";
/// Annotation with the addresses the kubelet was started with (`A-NODEIP`).
///
/// ```
/// use harness_core::objects::A_NODEIP;
/// # use k8s_openapi::api::core::v1::Node;
///
/// let node = serde_json::json!({"metadata": {"annotations": {A_NODEIP: "192.0.2.1"}}});
/// let node: Node = serde_json::from_value(node)?;
/// let annotations = node.metadata.annotations.unwrap_or_default();
/// assert_eq!(annotations[A_NODEIP], "192.0.2.1");
/// # Ok::<(), serde_json::Error>(())
/// ```
pub const A_NODEIP: &str = "alpha.kubernetes.io/provided-node-ip";
/// Zone label (`L-ZONE`).
/// Example: see [`label`](super::label).
pub const L_ZONE: &str = "topology.kubernetes.io/zone";
/// Region label (`L-REGION`).
/// Example: see [`label`](super::label).
pub const L_REGION: &str = "topology.kubernetes.io/region";
/// Instance type label (`L-TYPE`).
/// Example: see [`label`](super::label).
pub const L_TYPE: &str = "node.kubernetes.io/instance-type";
/// Deprecated zone label, still written and still authoritative (`B-ZONE`).
/// Example: see [`label`](super::label).
pub const B_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
/// Deprecated region label (`B-REGION`).
/// Example: see [`label`](super::label).
pub const B_REGION: &str = "failure-domain.beta.kubernetes.io/region";
/// Deprecated instance type label (`B-TYPE`).
/// Example: see [`label`](super::label).
pub const B_TYPE: &str = "beta.kubernetes.io/instance-type";
/// Label that excludes a Node from load balancers (`L-EXCL`).
/// Example: see [`label`](super::label).
pub const L_EXCL: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
/// Finalizer that holds a Service until its load balancer is gone (`F-LB`).
///
/// ```
/// use harness_core::objects::{F_LB, has_finalizer};
/// # use k8s_openapi::api::core::v1::Service;
///
/// let service = serde_json::json!({"metadata": {"finalizers": [F_LB]}});
/// let service: Service = serde_json::from_value(service)?;
/// assert!(has_finalizer(&service, F_LB));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub const F_LB: &str = "service.kubernetes.io/load-balancer-cleanup";
/// Taint that kubeadm sets on control plane Nodes without other workloads, from 1.24 on.
pub const T_CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
/// Label that kubeadm sets on control plane Nodes from 1.20 on.
pub const L_CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
/// Condition of a Node without a route to it (`C-NET`).
/// Example: see [`condition`](super::condition).
pub const C_NET: &str = "NetworkUnavailable";
