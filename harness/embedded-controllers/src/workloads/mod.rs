//! Deployments, ReplicaSets, DaemonSets and StatefulSets.

mod daemon;
pub(crate) mod daemon_set;
pub(crate) mod deployment;
mod deployment_status;
pub(crate) mod replica_set;
mod rollout;
pub(crate) mod stateful_set;
mod template;
