//! The first steps of most checks of routes: a Node of a machine has a pod network, and a route leads there.

use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1 as core;
use std::sync::Arc;
use std::time::Duration;

/// A Node of this machine with these pod networks, in the state that it has once it is initialised.
pub fn with_networks(machine: &Machine<'_>, networks: &[&Destination<'_>]) -> NodePlan {
    let cidrs: Vec<String> = networks.iter().map(|network| network.cidr()).collect();
    let cidrs: Vec<&str> = cidrs.iter().map(String::as_str).collect();
    machine.initialised_node().pod_cidrs(&cidrs)
}

/// Creates a machine and its Node with this pod network, and waits for a route to it. Returns machine, Node
/// and route.
pub async fn routed<'a>(
    cx: &'a CheckCx,
    suffix: &str,
    network: &Destination<'a>,
) -> Result<(Machine<'a>, Node<'a>, Route), CheckError> {
    let machine = cx.machine(machine(suffix)).await?;
    let node = cx.node(with_networks(&machine, &[network])).await?;
    let route = network.becomes(leads_to(&machine.instance())).within(cx.limits().route()).await?;
    Ok((machine, node, route))
}

/// Makes the CCM reconcile routes if only changes of Nodes prompt it to: one more Node joins.
pub async fn prompt(cx: &CheckCx) -> Verdict {
    match cx.route_trigger() {
        RouteTrigger::Period => Ok(()),
        RouteTrigger::NodeChanges => {
            let machine = cx.machine(machine(&cx.fresh("prompt"))).await?;
            cx.node(machine.initialised_node()).await?;
            Ok(())
        }
    }
}

/// Waits until a route is made for another Node. This proves that the CCM works and leaves the first Node alone.
pub async fn ccm_routes_others(cx: &CheckCx) -> Verdict {
    routed(cx, &cx.fresh("witness"), &cx.pod_network(3)?).await.map(drop)
}

/// How long replicas that have just started may take.
const STARTS: Duration = Duration::from_secs(2);

/// Waits until a route is made for another Node, and until no replica still reads what it reads when it starts.
pub async fn is_settled(cx: &CheckCx) -> Verdict {
    let (_, other, _) = routed(cx, &cx.fresh("settled"), &cx.pod_network(3)?).await?;
    other.keeps(present()).within(STARTS).await
}

type MaybeNode = Option<Arc<core::Node>>;

fn network(node: &MaybeNode) -> Option<(String, String)> {
    node.as_ref().and_then(|node| condition(node, C_NET))
}

fn says(claim: &str, status: &'static str, reason: Option<&'static str>) -> Matcher<MaybeNode> {
    let expected = reason.map_or_else(String::new, |reason| format!(", reason {reason}"));
    holds(claim, move |node: &MaybeNode| {
        network(node).is_some_and(|(is, why)| is == status && reason.is_none_or(|reason| why == reason))
    })
    .expecting(format!("condition {C_NET} {status}{expected}"))
}

/// Matches a Node whose condition says that its network is available.
pub fn is_reachable() -> Matcher<MaybeNode> {
    says("says that its network is there", "False", None)
}

/// The same, with the reason and message of the framework.
pub fn is_reachable_by_the_framework() -> Matcher<MaybeNode> {
    says("says that a route was made", "False", Some("RouteCreated"))
}

/// Matches a Node whose condition says that its network is unavailable.
pub fn is_unreachable() -> Matcher<MaybeNode> {
    says("says that its network is not there", "True", None)
}

/// The same, with the reason and message of the framework.
pub fn is_unreachable_by_the_framework() -> Matcher<MaybeNode> {
    says("says that no route was made", "True", Some("NoRouteCreated"))
}

/// Matches a Node that exists and has no network condition.
pub fn says_nothing_of_its_network() -> Matcher<MaybeNode> {
    holds("says nothing of its network", |node: &MaybeNode| node.is_some() && network(node).is_none())
        .expecting(format!("no condition {C_NET}"))
}

/// Matches a Node whose condition does not say that its network is available.
pub fn is_not_said_to_be_reachable() -> Matcher<MaybeNode> {
    matcher("does not say that its network is there", |node: &MaybeNode| match network(node) {
        _ if node.is_none() => Observation::Impossible("no such Node".to_owned()),
        Some((status, _)) if status == "False" => Observation::Pending(String::new()),
        _ => Observation::Matched(()),
    })
    .expecting(format!("no condition {C_NET} False"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_condition_is_read_by_status_and_where_asked_by_reason() {
        let of = |status: &str, reason: &str| {
            let conditions = json!([{"type": C_NET, "status": status, "reason": reason}]);
            serde_json::from_value(json!({"status": {"conditions": conditions}})).ok().map(Arc::new)
        };
        let (there, other) = (of("False", "RouteCreated"), of("False", "CalicoIsUp"));
        let (lost, bare) = (of("True", "NoRouteCreated"), Some(Arc::new(core::Node::default())));
        let yes =
            |matcher: Matcher<MaybeNode>, node: &MaybeNode| matcher.matches(node) == Observation::Matched(());
        assert!(yes(is_reachable(), &there) && yes(is_reachable(), &other));
        assert!(
            yes(is_reachable_by_the_framework(), &there) && !yes(is_reachable_by_the_framework(), &other)
        );
        assert!(yes(is_unreachable(), &lost) && yes(is_unreachable_by_the_framework(), &lost));
        for node in [&lost, &bare, &None] {
            assert!(!yes(is_reachable(), node));
        }
        assert!(yes(is_not_said_to_be_reachable(), &lost) && yes(is_not_said_to_be_reachable(), &bare));
        assert!(yes(says_nothing_of_its_network(), &bare) && !yes(says_nothing_of_its_network(), &there));
        assert!(!yes(is_not_said_to_be_reachable(), &there) && !yes(is_not_said_to_be_reachable(), &None));
    }
}
