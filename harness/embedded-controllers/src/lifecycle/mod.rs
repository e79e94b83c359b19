//! What happens to Nodes whose kubelets fall silent, and to the Pods on them.

pub(crate) mod eviction;
pub(crate) mod health;
pub(crate) mod orphans;
mod rounds;
mod verdict;
