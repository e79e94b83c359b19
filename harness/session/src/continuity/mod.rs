//! The continuity observer: what a load balancer lost while it changed from one correct state to the next.
//!
//! Checks wait for an end state. A CCM can reach it and still interrupt clients in between: it empties the backends and
//! fills them again, deletes a firewall and creates a new one, or removes an address from a Service's status for a while.
//! The cloud's journal shows each of these states, since it records what every write changed ([`Entry::change`]).
//!
//! [`Timeline`] collects facts as they come: changes of Nodes and Services from the watches, writes from the journal. [`judge`]
//! decides later and knows no clock: a loss counts only if neither the Service nor the Node concerned changed around it.

mod judge;
mod look;
mod settings;
mod spec;
mod timeline;

#[cfg(test)]
mod tests;

pub use judge::{Break, Window};
pub use timeline::Rule;

use self::look::Looks;
use self::timeline::Timeline;
use crate::journal::Journal;
use crate::k8s::{ChangeObserver, ClusterCaches};
use crate::record::object_changed;
use harness_clouds::{Cloud, Entry};
use harness_config::RunPlan;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::ResourceExt;
use std::sync::{Arc, Mutex};
use tokio::time::Instant;

/// The observer of one lane. Clones share what was observed.
#[derive(Clone)]
pub struct Continuity {
    timeline: Arc<Mutex<Timeline>>,
    plan: Arc<RunPlan>,
    looks: Looks,
}

impl std::fmt::Debug for Continuity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Continuity").finish_non_exhaustive()
    }
}

impl Continuity {
    /// Observes a lane from now on.
    pub(super) fn watch(
        plan: Arc<RunPlan>,
        cloud: Cloud,
        world: &ClusterCaches,
        journal: &Journal,
    ) -> Continuity {
        let timeline = Arc::<Mutex<Timeline>>::default();
        let this = Continuity { looks: Looks::new(cloud, timeline.clone()), timeline, plan };
        world.nodes.observe(this.of_nodes());
        world.services.observe(this.of_services());
        let observer = this.clone();
        journal.observe(Box::new(move |call| observer.take(call)));
        this
    }

    /// Records each change of a Node that load balancers may depend on.
    pub(super) fn of_nodes(&self) -> ChangeObserver<Node> {
        let this = self.clone();
        Box::new(move |old, new| {
            let Some(node) = new.or(old) else { return };
            if object_changed(old, new).is_some() {
                let names = spec::backend_names(node, &this.plan.profile.provider_id);
                this.timeline().node(&node.name_any(), names, Instant::now());
            }
        })
    }

    /// Records each change of a Service.
    pub(super) fn of_services(&self) -> ChangeObserver<Service> {
        let this = self.clone();
        Box::new(move |old, new| {
            let Some(service) = new.or(old) else { return };
            let place = format!("{}/{}", service.namespace().unwrap_or_default(), service.name_any());
            let owner =
                this.plan.profile.load_balancer_owner.owner(&service.uid().unwrap_or_default(), &place);
            let version = spec::ServiceVersion::of(service, new.is_none());
            let lost = this.timeline().service(&owner, &place, version, Instant::now());
            if let Some(lost) = lost {
                this.looks.look(owner, lost);
            }
        })
    }

    /// Records a call to the cloud that has ended.
    pub(super) fn take(&self, call: &Entry) {
        self.timeline().call(call, Instant::now());
    }

    /// Whether the journal has recorded what a write changed. If it never does, only the rule about addresses can be judged.
    pub fn sees_changes(&self) -> bool {
        self.timeline().sees_changes()
    }

    /// The losses, in the order of the writes that caused them.
    pub fn breaks(&self, window: &Window) -> Vec<Break> {
        judge::breaks(&self.timeline(), window)
    }

    fn timeline(&self) -> std::sync::MutexGuard<'_, Timeline> {
        self.timeline.lock().expect("no holder of this lock panics")
    }
}
