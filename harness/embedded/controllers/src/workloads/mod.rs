//! Deployments, ReplicaSets and DaemonSets.

mod daemon;
pub(crate) mod daemon_set;
pub(crate) mod deployment;
mod deployment_status;
pub(crate) mod replica_set;
mod rollout;
mod template;
