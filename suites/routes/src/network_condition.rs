//! A Node's network condition is true, whatever went wrong before its route existed (contract ROUTE-02).

use super::needs::{NODES_AND_ROUTES, ROUTES};
use super::refused_creation::is_met;
use futures::future::try_join;
use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1 as core;
use std::sync::Arc;
use std::time::Duration;
use suites_common::joining::registered;
use suites_common::routed_node::{is_reachable, is_settled, prompt, with_networks};
use tokio::time::Instant;

pub(super) const CHECKS: &[Check] = &[
    Check::of("ROUTE-02.look-up", |cx| Box::pin(says_so_though_its_machine_is_unknown(cx)))
        .needs(ROUTES)
        .with(&[Facility::Faults])
        .takes(6),
    Check::of("ROUTE-02.new", |cx| Box::pin(says_so_though_it_is_not_initialised(cx)))
        .needs(NODES_AND_ROUTES)
        .with(&[Facility::Faults, Facility::Settings])
        .takes(6),
    Check::of("ROUTE-02.action", |cx| Box::pin(says_so_though_it_is_accepted_alone(cx)))
        .needs(ROUTES)
        .with(&[Facility::Faults, Facility::Settings])
        .takes(6),
    Check::of("ROUTE-02.taken", |cx| Box::pin(says_so_though_it_is_taken(cx)))
        .on_routes()
        .needs(ROUTES)
        .with(&[Facility::Faults, Facility::Barriers])
        .alone()
        .takes(6),
    Check::of("ROUTE-02.read", |cx| Box::pin(says_so_though_routes_are_unknown(cx)))
        .needs(ROUTES)
        .with(&[Facility::Faults, Facility::Barriers])
        .alone()
        .takes(6),
];

type MaybeNode = Option<Arc<core::Node>>;

/// Matches unless the condition reports the network as available while no route leads to the machine. The
/// Node is read before the routes, so a route that was made in between is seen.
fn says_only_what_is(machine: &Instance) -> Matcher<(MaybeNode, Vec<Route>)> {
    let (said, leads) = (is_reachable(), leads_to(machine));
    matcher(
        "says that its network is there only where a route leads to it",
        move |(node, routes): &(MaybeNode, Vec<Route>)| {
            let is_said = said.matches(node) == Observation::Matched(());
            Observation::when(!is_said || matches!(leads.matches(routes), Observation::Matched(_)))
        },
    )
    .expecting(format!("one route, to instance {}, or no condition NetworkUnavailable False", machine.id))
}

/// How long a CCM may take from its last watch event to its queue of Nodes.
const QUEUED: Duration = Duration::from_secs(1);

/// Waits until the CCM knows this Node while a list that it has requested is pending. Watch events arrive in their order: once
/// a Node that joined later is initialised, the event about this one has been delivered. A CCM that does nothing else
/// before the list is answered gets B-WATCH.
async fn hears_of(cx: &CheckCx, node: &Node<'_>) -> Verdict {
    if cx.declares(Capability::Instances) {
        let (_, later) = registered(cx, machine("later")).await?;
        match later.becomes(initialised()).within(cx.limits().watch()).await {
            Ok(_) | Err(CheckError::Violation(_)) => {}
            Err(other) => return Err(other),
        }
    }
    node.keeps(present()).within(QUEUED).await
}

/// Holds a reconciliation that has begun, before it gets the list of routes. What a CCM reads when it starts
/// is over by then.
async fn begun(cx: &CheckCx) -> Result<Barrier<'_>, CheckError> {
    is_settled(cx).await?;
    let list = cx.cloud().anything().holds(&[Op::RouteList]).await?;
    prompt(cx).await?;
    list.becomes(holds("holds a call", |waiting: &u64| *waiting > 0)).within(cx.limits().route()).await?;
    Ok(list)
}

/// A machine, its pod network and its Node.
type Joined<'a> = (Machine<'a>, Destination<'a>, Node<'a>);

async fn joins<'a>(
    cx: &'a CheckCx,
    suffix: &str,
    network: Destination<'a>,
) -> Result<Joined<'a>, CheckError> {
    let machine = cx.machine(machine(suffix)).await?;
    let node = cx.node(with_networks(&machine, &[&network])).await?;
    Ok((machine, network, node))
}

async fn is_so((machine, network, node): &Joined<'_>, when: &str) -> Verdict {
    let both_of_them = (node, network);
    let said = both_of_them.keeps(says_only_what_is(&machine.instance()));
    said.within(node.cx().limits().quiet_routes()).when(when).await
}

/// Waits until the route exists and the Node's condition shows it. A CCM that only Nodes prompt may need two
/// rounds: the first removes what is in the way.
async fn gets_its_route((machine, network, node): &Joined<'_>, when: &str) -> Verdict {
    let (cx, limit) = (node.cx(), node.cx().limits().route());
    prompt(cx).await?;
    let leads = || network.becomes(leads_to(&machine.instance())).within(limit).when(when);
    match leads().await {
        Err(CheckError::Violation(_)) if cx.route_trigger() == RouteTrigger::NodeChanges => {
            prompt(cx).await?;
            leads().await?
        }
        led => led?,
    };
    node.becomes(is_reachable()).within(limit).when("once its route is there").await
}

async fn says_so_though_its_machine_is_unknown(cx: &CheckCx) -> Verdict {
    let (network, machine) = (cx.pod_network(0)?, cx.machine(machine("a")).await?);
    let fault = machine.cloud().answers(503).to(&[Op::InstanceGet]).await?;
    let node = cx.node(with_networks(&machine, &[&network])).await?;
    let joined = (machine, network, node);
    is_so(&joined, "while its machine cannot be looked up").await?;
    fault.clear().await?;
    gets_its_route(&joined, "once its machine can be looked up").await
}

/// The Node has neither providerID nor addresses.
async fn says_so_though_it_is_not_initialised(cx: &CheckCx) -> Verdict {
    let (network, machine) = (cx.pod_network(0)?, cx.machine(machine("a")).await?);
    let began = Instant::now();
    let fault = machine.cloud().fails().to(&[Op::InstanceGet]).await?;
    let lists =
        cx.cloud().anything().meets("a list without it", &[without(&machine)]).to(&[Op::InstanceList]);
    let lists = lists.await?;
    let node = cx.node(machine.node().pod_cidrs(&[&network.cidr()])).await?;
    let joined = (machine, network, node);
    is_so(&joined, "while it cannot be initialised").await?;
    fault.clear().await?;
    lists.clear().await?;
    joined.2.becomes(initialised()).within(cx.limits().nodes_after(began.elapsed())).await?;
    gets_its_route(&joined, "once it can be initialised").await
}

/// Leaves this machine out of lists.
fn without(machine: &Machine<'_>) -> Effect {
    Effect::Without { names: vec![machine.id(), machine.name(), machine.provider_id()] }
}

async fn says_so_though_it_is_accepted_alone(cx: &CheckCx) -> Verdict {
    let (network, machine) = (cx.pod_network(0)?, cx.machine(machine("a")).await?);
    let fault = network.cloud().fails_actions().to(&[Op::RouteCreate]).await?;
    let node = cx.node(with_networks(&machine, &[&network])).await?;
    is_met(cx, &fault, &network).await?;
    let joined = (machine, network, node);
    is_so(&joined, "while its route is accepted, and not made").await?;
    fault.clear().await?;
    gets_its_route(&joined, "once it can be made").await
}

async fn says_so_though_it_is_taken(cx: &CheckCx) -> Verdict {
    cx.cloud().has_one_route_for_a_network()?;
    let (stuck, moved, other) = (cx.pod_network(0)?, cx.pod_network(1)?, cx.machine(machine("other")).await?);
    let list = begun(cx).await?;
    // The first route cannot be deleted, the second only at the second attempt.
    let fault = stuck.cloud().answers(503).to(&[Op::RouteDelete]).await?;
    moved.cloud().answers(503).to(&[Op::RouteDelete]).times(1).await?;
    for network in [&stuck, &moved] {
        network.is_routed(Some(&other)).await?;
    }
    let (stuck, moved) = (joins(cx, "stuck", stuck).await?, joins(cx, "moved", moved).await?);
    hears_of(cx, &moved.2).await?;
    list.release().await?;
    let why = "while the route to its network leads to another machine";
    try_join(is_so(&stuck, why), is_so(&moved, why)).await?;
    fault.clear().await?;
    gets_its_route(&moved, "once the other machine's is away").await?;
    gets_its_route(&stuck, "once the other machine's can be taken away").await
}

async fn says_so_though_routes_are_unknown(cx: &CheckCx) -> Verdict {
    let list = begun(cx).await?;
    let joined = joins(cx, "a", cx.pod_network(0)?).await?;
    hears_of(cx, &joined.2).await?;
    // The pending list is answered; whatever is read after it fails.
    let fault = cx.cloud().anything().answers(503).to(&[Op::RouteList]).await?;
    list.release().await?;
    is_so(&joined, "while routes cannot be read again").await?;
    fault.clear().await?;
    gets_its_route(&joined, "once routes can be read").await
}

#[cfg(test)]
mod tests {
    use super::*;

    use serde_json::json;

    #[test]
    fn a_node_says_that_its_network_is_there_only_with_its_own_route() {
        let machine =
            json!({"id": "i-a", "name": "a", "instance_type": "", "addresses": [], "state": "running"});
        let machine: Instance = serde_json::from_value(machine).expect("an instance");
        let node = |status: &str| {
            let conditions = json!([{"type": C_NET, "status": status, "reason": "R"}]);
            serde_json::from_value(json!({"status": {"conditions": conditions}})).ok().map(Arc::new)
        };
        let to = |id: &str| {
            let (target_instance, destination) = (Some(id.to_owned()), "10.244.0.0/24".to_owned());
            vec![Route {
                id: "r".into(),
                destination,
                target_instance,
                target_addresses: vec![],
                blackhole: false,
            }]
        };
        let right = |node: MaybeNode, routes| {
            says_only_what_is(&machine).matches(&(node, routes)) == Observation::Matched(())
        };
        assert!(right(node("False"), to("i-a")) && right(node("True"), vec![]) && right(None, vec![]));
        assert!(!right(node("False"), vec![]) && !right(node("False"), to("i-b")));
    }
}
