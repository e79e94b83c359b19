//! Which conditions outside of the manifests a boot depends on.

use super::build::{Model, Set, takes_ordinary_pods};
use super::explore::explore;
use bootstrap_manifests::cluster::Cluster;
use bootstrap_manifests::workload::{Condition, Role};

impl Set {
    /// The conditions outside of the manifests for what the boot of this cluster waits for, each listed once.
    pub(crate) fn conditions(&self, cluster: &Cluster) -> Vec<&Condition> {
        let backends = self.backends();
        // A webhook that the boot does not meet needs no backend.
        let is_needed = |w: usize| {
            backends.contains(&w)
                && !self.workloads[w].conditions.is_empty()
                && !boots_without(self, cluster, w)
        };
        let waited = |w: &usize| self.workloads[*w].role != Role::Other || is_needed(*w);
        let mut all: Vec<&Condition> = Vec::new();
        for condition in (0..self.workloads.len()).filter(waited).flat_map(|w| &self.workloads[w].conditions)
        {
            if !all.iter().any(|known| known.words == condition.words) {
                all.push(condition);
            }
        }
        if takes_ordinary_pods(&cluster.machines()) {
            all.extend(&self.ordinary.conditions);
        }
        all
    }
}

/// Whether the cluster boots in every order although a workload gets no Pods.
fn boots_without(set: &Set, cluster: &Cluster, workload: usize) -> bool {
    [false, true].into_iter().all(|webhooks_first| {
        let explored = explore(&Model::without(set, cluster, webhooks_first, Some(workload)));
        explored.complete && explored.stuck.is_none()
    })
}
