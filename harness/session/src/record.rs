//! Turns observations of cluster and cloud into events. Pure functions.

use crate::ccm::REPLICA_LABEL;
use crate::k8s::{
    B_REGION, B_TYPE, B_ZONE, L_EXCL, L_REGION, L_TYPE, L_ZONE, addresses, ingress, provider_id, ready,
    show_addresses, taints,
};
use harness_clouds::{ActiveFault, BarrierStatus, Disturbance, Effect, Entry, Match, Op};
use harness_core::events::{CloudCall, LAST_EXIT_CODE, ObjectChanged, Payload, REPLICA};
use harness_core::objects::show_outcome;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod, Service};
use kube::{Resource, ResourceExt};
use std::collections::BTreeMap;

/// The properties of an object whose changes are recorded, by name.
pub(super) trait Facts: Resource<DynamicType = ()> {
    /// The facts.
    fn facts(&self) -> BTreeMap<&'static str, String>;
}

fn deletion(meta: &impl ResourceExt) -> Option<(&'static str, String)> {
    meta.meta().deletion_timestamp.as_ref().map(|time| ("deletionTimestamp", time.0.to_string()))
}

impl Facts for Node {
    fn facts(&self) -> BTreeMap<&'static str, String> {
        let labels = [L_ZONE, B_ZONE, L_REGION, B_REGION, L_TYPE, B_TYPE, L_EXCL];
        let labels = labels.into_iter().filter_map(|key| self.labels().get(key).map(|v| (key, v.clone())));
        let cordoned = self.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false);
        let mut facts: BTreeMap<&'static str, String> = labels.collect();
        facts.extend([("taints", taints(self).join(", ")), ("addresses", show_addresses(&addresses(self)))]);
        facts.extend(ready(self).map(|ready| ("ready", ready)));
        facts.extend(provider_id(self).map(|id| ("providerID", id)));
        facts.extend(cordoned.then(|| ("unschedulable", "true".to_owned())));
        facts.extend(deletion(self));
        facts
    }
}

impl Facts for Service {
    fn facts(&self) -> BTreeMap<&'static str, String> {
        let spec = self.spec.clone().unwrap_or_default();
        let port = |port: &k8s_openapi::api::core::v1::ServicePort| {
            let protocol = port.protocol.as_deref().unwrap_or("TCP");
            format!("{}/{protocol} to {}", port.port, port.node_port.unwrap_or_default())
        };
        let ports: Vec<String> = spec.ports.iter().flatten().map(port).collect();
        let shown = |(ip, name): (Option<String>, Option<String>)| ip.or(name).unwrap_or_default();
        let ingress: Vec<String> = ingress(self).into_iter().map(shown).collect();
        let mut facts = BTreeMap::from([
            ("type", spec.type_.unwrap_or_else(|| "ClusterIP".to_owned())),
            ("ports", ports.join(", ")),
            ("finalizers", self.finalizers().join(", ")),
            ("ingress", ingress.join(", ")),
        ]);
        facts.extend(spec.external_traffic_policy.map(|policy| ("externalTrafficPolicy", policy)));
        facts.extend(deletion(self));
        facts
    }
}

impl Facts for Lease {
    /// Renewals are not recorded: if a holder stops renewing, another one takes the Lease.
    fn facts(&self) -> BTreeMap<&'static str, String> {
        let spec = self.spec.clone().unwrap_or_default();
        let mut facts = BTreeMap::new();
        facts.extend(spec.holder_identity.map(|holder| ("holderIdentity", holder)));
        facts.extend(spec.lease_transitions.map(|count| ("leaseTransitions", count.to_string())));
        facts.extend(spec.lease_duration_seconds.map(|s| ("leaseDurationSeconds", s.to_string())));
        facts
    }
}

impl Facts for Pod {
    fn facts(&self) -> BTreeMap<&'static str, String> {
        let status = self.status.clone().unwrap_or_default();
        let containers = status.container_statuses.unwrap_or_default();
        let restarts: i32 = containers.iter().map(|container| container.restart_count).sum();
        let state = |container: &k8s_openapi::api::core::v1::ContainerStatus| {
            let state = container.state.as_ref()?;
            let waiting =
                state.waiting.as_ref().map(|w| w.reason.clone().unwrap_or_else(|| "waiting".into()));
            let ended = state.terminated.as_ref().map(|t| format!("ended with {}", t.exit_code));
            waiting.or(ended).or_else(|| state.running.as_ref().map(|_| "running".to_owned()))
        };
        let last = containers.iter().find_map(|container| container.last_state.as_ref()?.terminated.as_ref());
        let states: Vec<String> = containers.iter().filter_map(state).collect();
        let mut facts = BTreeMap::from([("restarts", restarts.to_string())]);
        facts.extend(self.labels().get(REPLICA_LABEL).map(|replica| (REPLICA, replica.clone())));
        facts.extend(last.map(|end| (LAST_EXIT_CODE, end.exit_code.to_string())));
        facts.extend(status.phase.map(|phase| ("phase", phase)));
        facts.extend(self.spec.as_ref().and_then(|s| s.node_name.clone()).map(|node| ("node", node)));
        facts.extend((!states.is_empty()).then(|| ("containers", states.join(", "))));
        facts.extend(deletion(self));
        facts
    }
}

/// The change from one version of an object to the next; `None` if no recorded property differs. `old` is the previous
/// version, if any; `new` is `None` if the object was deleted.
pub(super) fn object_changed<K: Facts>(old: Option<&K>, new: Option<&K>) -> Option<Payload> {
    let object = new.or(old)?;
    let same_uid = |old: &&K| old.meta().uid == object.meta().uid;
    let before = old.filter(same_uid).map(Facts::facts).unwrap_or_default();
    let after = new.map(Facts::facts).unwrap_or_default();
    let deleted = new.is_none();
    let mut changed: BTreeMap<String, Option<String>> = BTreeMap::new();
    if !deleted {
        let gone = before.keys().filter(|name| !after.contains_key(*name));
        changed.extend(gone.map(|name| ((*name).to_owned(), None)));
        let news = after.iter().filter(|(name, value)| before.get(*name) != Some(*value));
        changed.extend(news.map(|(name, value)| ((*name).to_owned(), Some(value.clone()))));
        if changed.is_empty() && old.is_some_and(|old| same_uid(&old)) {
            return None;
        }
    }
    Some(Payload::ObjectChanged(ObjectChanged {
        kind: K::kind(&()).into_owned(),
        namespace: object.meta().namespace.clone().unwrap_or_default(),
        name: object.meta().name.clone().unwrap_or_default(),
        uid: object.meta().uid.clone().unwrap_or_default(),
        deleted,
        changed,
    }))
}

/// A call to the cloud that has ended.
pub(super) fn cloud_call(entry: &Entry) -> Payload {
    Payload::CloudCall(CloudCall {
        seq: entry.seq,
        by: entry.credential.clone(),
        operation: operation(entry.op),
        request: entry.request.clone(),
        resource: entry.resource.clone(),
        owner: entry.owner.clone(),
        writes: entry.write,
        took_ms: entry.took_ms.unwrap_or_default(),
        outcome: show_outcome(&entry.outcome),
    })
}

/// A fault or barrier that was added or removed.
pub fn disturbance(disturbance: &Disturbance) -> Payload {
    match disturbance {
        Disturbance::FaultInjected(ActiveFault { id, fault, .. }) => {
            let times = fault.calls.map(|calls| format!(", {calls} times")).unwrap_or_default();
            let what = format!("{}{times} for {}", effect(&fault.effect), matching(&fault.matching));
            Payload::FaultInjected { fault: *id, what }
        }
        Disturbance::FaultCleared(id) => Payload::FaultCleared { fault: *id },
        Disturbance::BarrierRaised(BarrierStatus { id, matching: held, .. }) => {
            Payload::BarrierRaised { barrier: *id, what: matching(held) }
        }
        Disturbance::BarrierReleased(BarrierStatus { id, .. }) => Payload::BarrierReleased { barrier: *id },
    }
}

fn operation(op: Op) -> String {
    serde_json::to_value(op).ok().and_then(|op| op.as_str().map(str::to_owned)).unwrap_or_default()
}

fn matching(matching: &Match) -> String {
    let ops: Vec<String> = matching.ops.iter().copied().map(operation).collect();
    let ops = if ops.is_empty() { "every call".to_owned() } else { ops.join(", ") };
    let about = matching.resource.as_ref().map(|resource| format!(" about {resource}"));
    let pages = matching.from_page.filter(|page| *page > 1).map(|page| format!(" from page {page} on"));
    let caller = matching.credential.as_ref().map(|replica| format!(" by {replica}"));
    format!("{ops}{}{}{}", about.unwrap_or_default(), pages.unwrap_or_default(), caller.unwrap_or_default())
}

fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Status { status, .. } => format!("status {status}"),
        Effect::Malformed => "a malformed answer".to_owned(),
        Effect::Refuse => "a refused connection".to_owned(),
        Effect::Hang { ms: Some(ms) } => format!("silence for {ms} ms"),
        Effect::Hang { ms: None } => "silence".to_owned(),
        Effect::Latency { ms } => format!("an answer {ms} ms late"),
        Effect::LoseAnswer { ms: None } => "a lost answer".to_owned(),
        Effect::LoseAnswer { ms: Some(ms) } => format!("an answer lost after {ms} ms"),
        Effect::SlowProvisioning { ms } => format!("provisioning that takes {ms} ms"),
        Effect::SlowDeletion { ms } => format!("deletion that takes {ms} ms"),
        Effect::Empty => "an empty list".to_owned(),
        Effect::Without { names } => format!("a list without {}", names.join(", ")),
        Effect::Stale => "a list of what there was".to_owned(),
        Effect::EmptyFirstPage => "a list that begins with an empty page".to_owned(),
        Effect::ShiftedPages => "machines that move between the pages of a list".to_owned(),
        Effect::FailAction { code } => format!("an action that fails with {code}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(uid: &str, ready: &str, version: &str) -> Node {
        serde_json::from_value(serde_json::json!({
            "metadata": {"name": "n", "uid": uid, "resourceVersion": version},
            "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
            "status": {"conditions": [{"type": "Ready", "status": ready, "lastHeartbeatTime": null}]},
        }))
        .expect("a Node")
    }

    fn changed(old: Option<&Node>, new: Option<&Node>) -> Option<(bool, BTreeMap<String, Option<String>>)> {
        match object_changed(old, new)? {
            Payload::ObjectChanged(change) => Some((change.deleted, change.changed)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_changes_are_recorded_and_not_heartbeats() {
        let (first, beat) = (node("u1", "True", "1"), node("u1", "True", "2"));
        let (deleted, facts) = changed(None, Some(&first)).expect("it came");
        assert!(!deleted && facts["ready"].as_deref() == Some("True") && facts.contains_key("taints"));
        assert_eq!(changed(Some(&first), Some(&beat)), None);
        let (_, facts) = changed(Some(&beat), Some(&node("u1", "False", "3"))).expect("it changed");
        assert_eq!(facts, BTreeMap::from([("ready".to_owned(), Some("False".to_owned()))]));
        assert_eq!(changed(Some(&first), None).map(|(deleted, _)| deleted), Some(true));
        // An object with the same name is another object: all of its properties are new.
        let (_, facts) = changed(Some(&first), Some(&node("u2", "True", "4"))).expect("it came");
        assert!(facts.contains_key("taints"));
    }

    #[test]
    fn removed_objects_are_recorded_too() {
        let mut bare = node("u1", "True", "2");
        bare.status = None;
        let (_, facts) = changed(Some(&node("u1", "True", "1")), Some(&bare)).expect("it changed");
        assert_eq!(facts.get("ready"), Some(&None));
    }
}
