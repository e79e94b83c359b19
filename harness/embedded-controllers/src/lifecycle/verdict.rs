//! The conditions and taints that a Node has to have. Pure functions.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeCondition, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use embedded_runtime::node::{condition, node_taints};
use embedded_runtime::taints::{
    NETWORK_UNAVAILABLE, NO_EXECUTE, NO_SCHEDULE, NOT_READY, PRESSURES, UNREACHABLE, UNSCHEDULABLE, same,
    taint,
};

/// The conditions that the controller sets when a kubelet is silent.
const WATCHED: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// The conditions of a Node whose kubelet has been silent for too long. Empty if they are already set.
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

/// Whether Pods may be evicted from Nodes: not while no Node is ready, because then the fault is elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disruption {
    /// At least one Node is ready.
    Partial,
    /// No Node is ready.
    Full,
}

/// When the eviction of Pods from a Node begins or stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Driving {
    /// With this change.
    Now,
    /// Not yet: the taints that cause it stay as they are.
    Later,
}

/// The status of a Node's condition.
fn says<'a>(node: &'a Node, type_: &str) -> Option<&'a str> {
    condition(node, type_).map(|condition| condition.status.as_str())
}

/// The key of the taints of a Node that is not ready.
fn ready_taint(node: &Node) -> Option<&'static str> {
    match says(node, "Ready") {
        // A Node that was never heard of is not tainted, and loses the taint that it was created with: it
        // counts as unreachable once it is Unknown.
        Some("True") | None => None,
        Some("False") => Some(NOT_READY),
        Some(_) => Some(UNREACHABLE),
    }
}

/// The key of the taint that evicts Pods from a Node.
fn driving_taint(node: &Node, disruption: Disruption) -> Option<&'static str> {
    let drives = disruption == Disruption::Partial && says(node, "Ready").is_some();
    ready_taint(node).filter(|_| drives)
}

fn drives(taint: &Taint) -> bool {
    taint.effect == NO_EXECUTE && [NOT_READY, UNREACHABLE].contains(&taint.key.as_str())
}

/// Whether a Node has exactly the eviction taint that it has to have.
pub(crate) fn drives_as_it_has_to(node: &Node, disruption: Disruption) -> bool {
    let known = node_taints(node).iter().filter(|taint| drives(taint)).map(|taint| taint.key.as_str());
    known.eq(driving_taint(node, disruption))
}

/// The taints that a Node has to have. `None` if it already has them.
pub(crate) fn taints(
    node: &Node,
    disruption: Disruption,
    driving: Driving,
    now: Timestamp,
) -> Option<Vec<Taint>> {
    let says = |type_: &str| says(node, type_);
    let mut wanted: Vec<Taint> = Vec::new();
    wanted.extend(ready_taint(node).map(|key| taint(key, NO_SCHEDULE)));
    if driving == Driving::Now {
        wanted.extend(driving_taint(node, disruption).map(|key| taint(key, NO_EXECUTE)));
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
            && (taint.effect == NO_SCHEDULE || (driving == Driving::Now && drives(taint)))
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
    use embedded_runtime::node;
    use embedded_runtime::settings::{KubernetesVersion, NodeSpec};

    fn node(ready: bool) -> Node {
        let version = KubernetesVersion { minor: 36, patch: 2 };
        node::registration(&NodeSpec::new("a"), version, ready, Timestamp::UNIX_EPOCH)
    }

    fn keys(taints: Option<Vec<Taint>>) -> Vec<String> {
        taints.unwrap_or_default().iter().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect()
    }

    const CLOUD: &str = "node.cloudprovider.kubernetes.io/uninitialized:NoSchedule";

    #[test]
    fn a_node_that_is_not_ready_is_tainted_and_the_clouds_taint_stays() {
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(
            keys(taints(&node(false), Disruption::Partial, Driving::Now, now)),
            [CLOUD, "node.kubernetes.io/not-ready:NoSchedule", "node.kubernetes.io/not-ready:NoExecute"]
        );
        assert_eq!(
            keys(taints(&node(false), Disruption::Full, Driving::Now, now)),
            [CLOUD, "node.kubernetes.io/not-ready:NoSchedule"]
        );
        assert!(taints(&node(true), Disruption::Partial, Driving::Now, now).is_none());
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
        let tainted = taints(&silent, Disruption::Partial, Driving::Now, now);
        assert_eq!(
            keys(tainted.clone()),
            [CLOUD, "node.kubernetes.io/unreachable:NoSchedule", "node.kubernetes.io/unreachable:NoExecute"]
        );
        let mut back = node(true);
        if let Some(spec) = back.spec.as_mut() {
            spec.taints = tainted;
        }
        assert_eq!(keys(taints(&back, Disruption::Partial, Driving::Now, now)), [CLOUD]);
    }

    #[test]
    fn no_execute_taints_wait_for_a_round_and_no_schedule_taints_do_not() {
        let now = Timestamp::UNIX_EPOCH;
        let not_ready = node(false);
        assert!(!drives_as_it_has_to(&not_ready, Disruption::Partial));
        assert!(drives_as_it_has_to(&not_ready, Disruption::Full));
        assert_eq!(
            keys(taints(&not_ready, Disruption::Partial, Driving::Later, now)),
            [CLOUD, "node.kubernetes.io/not-ready:NoSchedule"]
        );
        let mut back = node(true);
        if let Some(spec) = back.spec.as_mut() {
            spec.taints = Some(vec![taint(UNREACHABLE, NO_SCHEDULE), taint(UNREACHABLE, NO_EXECUTE)]);
        }
        assert!(!drives_as_it_has_to(&back, Disruption::Partial));
        assert_eq!(
            keys(taints(&back, Disruption::Partial, Driving::Later, now)),
            ["node.kubernetes.io/unreachable:NoExecute"]
        );
    }

    #[test]
    fn cordoning_taints_and_foreign_taints_are_left_alone() {
        let mut cordoned = node(true);
        if let Some(spec) = cordoned.spec.as_mut() {
            spec.unschedulable = Some(true);
            spec.taints = Some(vec![taint("example.com/mine", NO_EXECUTE)]);
        }
        assert_eq!(
            keys(taints(&cordoned, Disruption::Partial, Driving::Now, Timestamp::UNIX_EPOCH)),
            ["example.com/mine:NoExecute", "node.kubernetes.io/unschedulable:NoSchedule"]
        );
    }
}
