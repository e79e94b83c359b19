//! Leaves out workloads that do not affect the boot, so that a cluster's worth of manifests costs no more than its CCM.

use super::build::Set;
use super::explore::rival;
use bootstrap_manifests::known::{Behind, CloudService, Webhook};
use bootstrap_manifests::workload::Role;

impl Set {
    /// The workloads that the boot waits for, those behind webhooks and clouds, those that could block them, and those that their
    /// affinity requires.
    pub(crate) fn reduced(&self) -> Set {
        let all = &self.workloads;
        let backends = self.backends();
        let waited: Vec<usize> =
            (0..all.len()).filter(|w| all[*w].role != Role::Other || backends.contains(w)).collect();
        let near = |own: usize, other: usize| {
            all[own]
                .near
                .iter()
                .any(|term| term.means(&all[own].namespace, &all[other].namespace, &all[other].labels))
        };
        let matters = |w: &usize| {
            waited.contains(w) || waited.iter().any(|own| rival(&all[*own], &all[*w]) || near(*own, *w))
        };
        let kept: Vec<usize> = (0..all.len()).filter(matters).collect();
        let place = |old: &usize| kept.iter().position(|kept| kept == old);
        let moved = |hook: &Webhook| {
            let mut hook = hook.clone();
            hook.backends = hook.backends.map(|backends| backends.iter().filter_map(place).collect());
            hook
        };
        let behind = |service: &CloudService| {
            let behind = match &service.behind {
                Behind::Pods(pods) => Behind::Pods(pods.iter().filter_map(place).collect()),
                other => other.clone(),
            };
            Some(CloudService { ccm: place(&service.ccm)?, behind, ..service.clone() })
        };
        Set {
            workloads: kept.iter().map(|w| all[*w].clone()).collect(),
            missing: kept.iter().map(|w| self.missing[*w].clone()).collect(),
            gaps: kept.iter().map(|w| self.gaps[*w].clone()).collect(),
            webhooks: self.webhooks.iter().map(moved).collect(),
            asked: kept.iter().map(|w| self.asked[*w].clone()).collect(),
            cloud_by_name: self.cloud_by_name,
            refused: self.refused.clone(),
            orphans: self.orphans.clone(),
            ordinary: self.ordinary.clone(),
            unknown: self.unknown.clone(),
            node_manager: self.node_manager,
            api_servers: kept.iter().map(|w| self.api_servers[*w].clone()).collect(),
            cloud_services: self.cloud_services.iter().filter_map(behind).collect(),
        }
    }
}
