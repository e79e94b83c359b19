//! The CCM as one of the two releases in an upgrade.

use super::deploy::CcmError;
use super::handle::Ccm;
use super::manifests::{Manifests, key_of, pod_spec};
use super::render::{Placed, Rendered, as_released};
use super::trial::{is_met, terms};
use kube::ResourceExt;
use serde_json::Value;

/// Which of the two releases in an upgrade.
///
/// ```
/// use harness_session::ccm::Release;
/// assert_ne!(Release::Old, Release::New);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// The one that is installed first.
    Old,
    /// The CCM under test, which replaces it.
    New,
}

impl Ccm {
    /// The objects of this CCM as that release; `None` if there is no CCM. The objects with the credential of the old one have
    /// names of their own. `machines` are the Nodes of the cluster itself.
    pub fn released(&self, as_: Release, machines: &[String]) -> Option<Rendered> {
        let (manifests, own) = (self.manifests.as_ref()?, self.replicas.first()?);
        let placed = Placed { apart: as_ == Release::Old, places: self.places(manifests, machines) };
        Some(as_released(manifests, own, &self.surroundings, placed))
    }

    /// On how many of these Nodes the Pods of the workload may run, by their labels.
    fn places(&self, manifests: &Manifests, machines: &[String]) -> usize {
        let terms = terms(pod_spec(&manifests.documents[manifests.workload]));
        let nodes = &self.pods_side().world.nodes;
        let fits = |name: &&String| {
            nodes.find("", name).is_some_and(|node| {
                terms.is_empty() || terms.iter().any(|term| term.iter().all(|one| is_met(one, node.labels())))
            })
        };
        machines.iter().filter(fits).count()
    }

    /// Replaces another release, whose objects are `before`, by the objects of this one, as users do: applies them over the
    /// others, and removes workloads that this release does not have. Does not wait.
    ///
    /// # Errors
    /// What the API server refused.
    pub async fn replace(&self, before: &Rendered, rendered: &Rendered) -> Result<(), CcmError> {
        self.apply_rendered(rendered).await?;
        let stays = |document: &&Value| rendered.workloads.contains(&key_of(document));
        let others = before.documents.iter().filter(|document| before.workloads.contains(&key_of(document)));
        let others: Vec<Value> = others.filter(|document| !stays(document)).cloned().collect();
        self.pods_side().applier.remove(&others).await
    }
}
