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
        let with_conditions: Vec<usize> =
            backends.iter().copied().filter(|w| !self.workloads[*w].conditions.is_empty()).collect();
        let mut needed: Vec<usize> =
            with_conditions.iter().copied().filter(|w| !boots_without(self, cluster, &[*w])).collect();
        // Of several that can stand in for each other, the first represents all.
        if needed.is_empty() && with_conditions.len() > 1 && !boots_without(self, cluster, &with_conditions) {
            needed.extend(with_conditions.first());
        }
        let is_needed = |w: usize| needed.contains(&w);
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

/// Whether the cluster boots in every order although these workloads get no Pods.
fn boots_without(set: &Set, cluster: &Cluster, absent: &[usize]) -> bool {
    [false, true].into_iter().all(|webhooks_first| {
        let explored = explore(&Model::without(set, cluster, webhooks_first, absent.to_vec()));
        explored.complete && explored.stuck.is_none()
    })
}
