//! What a running environment offers to checks.

use super::Session;
use harness_config::{Deployment, Offer};
use harness_core::check::Facility;
use std::collections::BTreeSet;

/// Facilities that act on the CCM's Pods, or on their machine.
const OF_PODS: &[Facility] = &[Facility::ProcessControl, Facility::HostPorts];

impl Session {
    /// The available facilities: those of the cluster's machines, of the cloud's driver, and of the harness itself.
    pub fn facilities(&self) -> BTreeSet<Facility> {
        let mut all = self.cluster.facilities();
        if self.state.management.is_some() {
            // Actions on its Pods happen where they run.
            let there = self.ccm_site.cluster().facilities();
            all.retain(|one| !OF_PODS.contains(one));
            all.extend(there.into_iter().filter(|one| OF_PODS.contains(one)));
        }
        all.extend(self.cloud.facilities());
        all.insert(Facility::CcmControl);
        // A hosted CCM has no Pods on the cluster whose boot could be judged.
        all.extend((self.plan.profile.deployment == Deployment::InCluster).then_some(Facility::BootsInside));
        all.extend((self.machines().len() == 1).then_some(Facility::SingleNode));
        all.extend((self.state.replicas.len() > 1).then_some(Facility::Standby));
        let makes_more = self.plan.cluster.desired().own().is_some() && self.plan.profile.cloud.is_many();
        all.extend(makes_more.then_some(Facility::OwnEnvironment));
        all.extend(self.ccm.ships_replicas().then_some(Facility::ShippedReplicas));
        if self.state.cloud.name.is_none() {
            all.remove(&Facility::CloudName);
        }
        all
    }

    /// Everything that checks can use, fully determined.
    pub fn offer(&self) -> Offer {
        Offer {
            facilities: Some(self.facilities()),
            cloud: Some(self.cloud.driver().to_owned()),
            served_minor: Some(self.state.served_minor),
            ..Offer::declared(&self.plan.profile)
        }
    }
}
