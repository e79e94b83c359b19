//! The manifests that are changed.

use crate::variant::WORKLOADS;
use fastrand::Rng;
use harness_config::yaml;
use harness_core::check::chain;
use harness_session::ccm::pod_spec;
use serde_json::{Value, json};

/// A change of manifests: what it did, in words; `None` if there was nothing to change.
pub(super) type Change = fn(&mut Set, &mut Rng) -> Option<String>;

/// Manifests, one of whose workloads is the CCM.
pub(super) struct Set {
    pub(super) documents: Vec<Value>,
}

impl Set {
    pub(super) fn new(mut documents: Vec<Value>) -> Set {
        documents.retain(|document| !document.is_null());
        Set { documents }
    }

    /// The CCM's workload: the one with the image of the CCM under test, otherwise the first.
    pub(super) fn ccm(&mut self) -> Option<&mut Value> {
        let is_workload = |one: &Value| one["kind"].as_str().is_some_and(|kind| WORKLOADS.contains(&kind));
        let named = |one: &Value| is_workload(one) && pod_spec(one)["containers"][0]["image"] == "${IMAGE}";
        let at = self.documents.iter().position(named);
        let at = at.or_else(|| self.documents.iter().position(is_workload))?;
        self.documents.get_mut(at)
    }

    /// The specification of the CCM's Pods.
    pub(super) fn spec(&mut self) -> Option<&mut Value> {
        let workload = self.ccm()?;
        match workload["kind"].as_str() {
            Some("Pod") => Some(&mut workload["spec"]),
            _ => Some(&mut workload["spec"]["template"]["spec"]),
        }
    }

    /// The CCM's namespace.
    pub(super) fn namespace(&mut self) -> String {
        self.ccm().and_then(|ccm| ccm["metadata"]["namespace"].as_str()).unwrap_or("default").to_owned()
    }

    /// The labels of the CCM's Pods.
    pub(super) fn labels(&mut self) -> Value {
        self.ccm().map_or(json!({}), |ccm| ccm["spec"]["template"]["metadata"]["labels"].clone())
    }

    /// Removes a random object of a kind; returns its name.
    pub(super) fn remove(&mut self, kind: &str, rng: &mut Rng) -> Option<String> {
        let of_kind = |at: &usize| self.documents[*at]["kind"] == kind;
        let found: Vec<usize> = (0..self.documents.len()).filter(of_kind).collect();
        let at = *found.get(rng.usize(..found.len().max(1)))?;
        let removed = self.documents.remove(at);
        Some(removed["metadata"]["name"].as_str().unwrap_or_default().to_owned())
    }

    /// The manifests as a text.
    pub(super) fn text(&self) -> Result<String, String> {
        let written = self.documents.iter().map(yaml::to_string);
        let written: Vec<String> =
            written.collect::<Result<_, _>>().map_err(|error: yaml::YamlError| chain(&error))?;
        Ok(written.join("---\n"))
    }
}

/// The list at a key, created if there is none.
pub(super) fn list<'a>(map: &'a mut Value, key: &str) -> Option<&'a mut Vec<Value>> {
    if map[key].is_null() {
        map[key] = json!([]);
    }
    map[key].as_array_mut()
}

/// One of several.
pub(super) fn pick<'a, T: ?Sized>(rng: &mut Rng, from: &[&'a T]) -> &'a T {
    from[rng.usize(..from.len())]
}
