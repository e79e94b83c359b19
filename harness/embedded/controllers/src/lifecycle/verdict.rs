//! What a Node's conditions and taints have to be. Pure.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeCondition, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::nodes::object::{condition, node_taints};
use crate::taints::{
    NETWORK_UNAVAILABLE, NO_EXECUTE, NO_SCHEDULE, NOT_READY, PRESSURES, UNREACHABLE, UNSCHEDULABLE, same,
    taint,
};

/// The conditions the controller answers for when a kubelet is silent.
const WATCHED: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// The conditions of a Node whose kubelet has been silent for too long. Empty: they say so already.
pub(crate) fn unknown(node: &Node, now: Timestamp) -> Vec<NodeCondition> {
    WATCHED
        .iter()
        .filter_map(|type_| {
            let known = condition(node, type_);
            if known.is_some_and(|known| known.status == "Unknown") {
                return None;
            }
            let (reason, message) = match known {
                Some(_) => ("NodeStatusUnknown", "Kubelet stopped posting node status."),
                None => ("NodeStatusNeverUpdated", "Kubelet never posted node status."),
            };
            Some(NodeCondition {
                type_: (*type_).to_owned(),
                status: "Unknown".to_owned(),
                reason: Some(reason.to_owned()),
                message: Some(message.to_owned()),
                last_heartbeat_time: known
                    .and_then(|known| known.last_heartbeat_time.clone())
                    .or(Some(Time(now))),
                last_transition_time: Some(Time(now)),
            })
        })
        .collect()
}

/// Whether Pods may be driven off Nodes: not while no Node at all is ready, because then the fault is elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disruption {
    /// At least one Node is ready.
    Partial,
    /// None is.
    Full,
}

/// The taints a Node has to have. `None`: it has them.
pub(crate) fn taints(node: &Node, disruption: Disruption, now: Timestamp) -> Option<Vec<Taint>> {
    let says = |type_: &str| condition(node, type_).map(|condition| condition.status.as_str());
    let ready_taint = match says("Ready") {
        Some("True") => None,
        Some("False") => Some(NOT_READY),
        // A Node without the condition has never been heard of: it counts as unreachable once it is Unknown.
        Some(_) => Some(UNREACHABLE),
        None => Some(NOT_READY),
    };
    let mut wanted: Vec<Taint> = Vec::new();
    if let Some(key) = ready_taint {
        wanted.push(taint(key, NO_SCHEDULE));
        if disruption == Disruption::Partial && says("Ready").is_some() {
            wanted.push(taint(key, NO_EXECUTE));
        }
    }
    for (type_, key) in PRESSURES.into_iter().chain([("NetworkUnavailable", NETWORK_UNAVAILABLE)]) {
        if says(type_) == Some("True") {
            wanted.push(taint(key, NO_SCHEDULE));
        }
    }
    if node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true) {
        wanted.push(taint(UNSCHEDULABLE, NO_SCHEDULE));
    }
    let ours = [NOT_READY, UNREACHABLE, UNSCHEDULABLE, NETWORK_UNAVAILABLE];
    let is_ours = |taint: &Taint| {
        (ours.contains(&taint.key.as_str()) || PRESSURES.iter().any(|(_, key)| *key == taint.key))
            && (taint.effect == NO_SCHEDULE
                || (taint.effect == NO_EXECUTE && [NOT_READY, UNREACHABLE].contains(&taint.key.as_str())))
    };
    let known = node_taints(node);
    let mut result: Vec<Taint> = known
        .iter()
        .filter(|known| !is_ours(known) || wanted.iter().any(|wanted| same(wanted, known)))
        .cloned()
        .collect();
    let kept = result.len();
    for mut wanted in wanted {
        if !known.iter().any(|known| same(known, &wanted)) {
            wanted.time_added = Some(Time(now));
            result.push(wanted);
        }
    }
    (kept != known.len() || result.len() != kept).then_some(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::object;
    use crate::settings::{KubernetesVersion, NodeSpec};

    fn node(ready: bool) -> Node {
        let version = KubernetesVersion { minor: 36, patch: 2 };
        object::registration(&NodeSpec::new("a"), version, ready, Timestamp::UNIX_EPOCH)
    }

    fn keys(taints: Option<Vec<Taint>>) -> Vec<String> {
        taints.unwrap_or_default().iter().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect()
    }

    const CLOUD: &str = "node.cloudprovider.kubernetes.io/uninitialized:NoSchedule";

    #[test]
    fn a_node_that_is_not_ready_is_tainted_and_the_clouds_taint_stays() {
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(
            keys(taints(&node(false), Disruption::Partial, now)),
            [CLOUD, "node.kubernetes.io/not-ready:NoSchedule", "node.kubernetes.io/not-ready:NoExecute"]
        );
        assert_eq!(
            keys(taints(&node(false), Disruption::Full, now)),
            [CLOUD, "node.kubernetes.io/not-ready:NoSchedule"]
        );
        assert!(taints(&node(true), Disruption::Partial, now).is_none());
    }

    #[test]
    fn silence_makes_it_unknown_then_unreachable_and_back() {
        let now = Timestamp::UNIX_EPOCH;
        let mut silent = node(true);
        let conditions = unknown(&silent, now);
        assert_eq!(conditions.len(), 4);
        assert!(conditions.iter().all(|condition| condition.reason.as_deref() == Some("NodeStatusUnknown")));
        if let Some(status) = silent.status.as_mut() {
            status.conditions = Some(conditions);
        }
        assert!(unknown(&silent, now).is_empty(), "said once");
        let tainted = taints(&silent, Disruption::Partial, now);
        assert_eq!(
            keys(tainted.clone()),
            [CLOUD, "node.kubernetes.io/unreachable:NoSchedule", "node.kubernetes.io/unreachable:NoExecute"]
        );
        let mut back = node(true);
        if let Some(spec) = back.spec.as_mut() {
            spec.taints = tainted;
        }
        assert_eq!(keys(taints(&back, Disruption::Partial, now)), [CLOUD]);
    }

    #[test]
    fn cordoning_taints_and_foreign_taints_are_left_alone() {
        let mut cordoned = node(true);
        if let Some(spec) = cordoned.spec.as_mut() {
            spec.unschedulable = Some(true);
            spec.taints = Some(vec![taint("example.com/mine", NO_EXECUTE)]);
        }
        assert_eq!(
            keys(taints(&cordoned, Disruption::Partial, Timestamp::UNIX_EPOCH)),
            ["example.com/mine:NoExecute", "node.kubernetes.io/unschedulable:NoSchedule"]
        );
    }
}
