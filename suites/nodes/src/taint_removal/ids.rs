//! The providerID: set once, kept, and always that of the current machine (contract NODE-INIT-06, -07).

use futures::future::{try_join, try_join_all};
use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1::Node;
use std::sync::Arc;
use suites_common::joining::{joined, node_with};

const INSTANCES: &[Capability] = &[Capability::Instances];

pub(super) const CHECKS: &[Check] = &[
    Check::of("NODE-INIT-06", |cx| Box::pin(sets_provider_id(cx))).needs(INSTANCES),
    Check::of("NODE-INIT-06.alike", |cx| Box::pin(knows_names_that_are_alike(cx))).needs(INSTANCES),
    Check::of("NODE-INIT-07", |cx| Box::pin(keeps_provider_id(cx))).needs(INSTANCES),
    Check::of("NODE-INIT-06.again", |cx| Box::pin(knows_no_earlier_node(cx))).needs(INSTANCES).takes(12),
];

/// Matches a Node with this providerID.
fn has_provider_id(wanted: String) -> Matcher<Option<Arc<Node>>> {
    let expected = format!("providerID {wanted}");
    holds("has its machine's providerID", move |node: &Option<Arc<Node>>| {
        node.as_ref().and_then(|node| provider_id(node)).as_deref() == Some(&wanted)
    })
    .expecting(expected)
}

async fn sets_provider_id(cx: &CheckCx) -> Verdict {
    let (machine, node) = joined(cx, machine("a")).await?;
    node.is(has_provider_id(machine.provider_id())).await?;
    for _ in 0..2 {
        node.retaint().await?;
        let again = node.becomes(initialised()).when("again").await?;
        node.has_shown(&Some(again), has_provider_id(machine.provider_id()))?;
    }
    Ok(())
}

async fn keeps_provider_id(cx: &CheckCx) -> Verdict {
    let machine = cx.machine(machine("a")).await?;
    let node = cx.node(machine.node().provider_id(&machine.provider_id())).await?;
    let seen = node.becomes(initialised()).await?;
    node.has_shown(&Some(seen), has_provider_id(machine.provider_id()))
}

/// Creates a Node for this machine, which is new or has come back, and waits until it has the machine's
/// providerID and addresses.
async fn is_the_node_of(cx: &CheckCx, machine: &Machine<'_>, when: &'static str) -> Verdict {
    let node = cx.node(machine.node()).await?;
    let seen = node.becomes(initialised()).when(when).await?;
    node.has_shown(&Some(seen), has_provider_id(machine.provider_id()))?;
    let mut whole = node_with(&machine.instance().addresses, &machine.name());
    cx.in_reported_order(&mut whole, &[]);
    let addressed = node.becomes(has_addresses(whole)).within(cx.limits().addresses_after_taint());
    addressed.when(when).await?;
    node.delete().await?;
    node.becomes(gone()).when("as it was deleted").await
}

/// How many machines have similar names. With this many, a CCM that picks any of them is seldom right by chance.
const ALIKE: usize = 8;

async fn knows_names_that_are_alike(cx: &CheckCx) -> Verdict {
    let name = cx.absent_machine(machine("n-1")).name();
    let alike = (0..ALIKE).map(|number| format!("{name}{number}")).chain([format!("x-{name}")]);
    let alike: Vec<String> = alike.collect();
    // In lists, some of these come before the machine itself, and others after it.
    let ids = (0..).map(|at| if at % 2 == 0 { format!("a-{at}") } else { format!("z-{at}") });
    let plans: Vec<_> = ids.zip(&alike).map(|(id, name)| machine(&id).named(name)).collect();
    let _others = try_join_all(plans.into_iter().map(|plan| cx.machine(plan))).await?;
    let own = cx.machine(machine("n-1")).await?;
    let [dash, dot, letter] = [("b-1", "-"), ("b-2", "."), ("b-3", "x")]
        .map(|(id, dot)| machine(id).named(&format!("{name}{dot}example")));
    let _more = try_join(cx.machine(dash), cx.machine(letter)).await?;
    if !cx.cloud().has_dotted_names() {
        return is_the_node_of(cx, &own, "next to machines with similar names").await;
    }
    // A host name with its domain is a machine name as well.
    let dotted = cx.machine(dot).await?;
    is_the_node_of(cx, &own, "next to machines with similar names").await?;
    is_the_node_of(cx, &dotted, "whose name has a dot").await
}

/// A Node is deleted and registers again, as kubelets do: first for the same machine, then for another one
/// with that name.
async fn knows_no_earlier_node(cx: &CheckCx) -> Verdict {
    let first = cx.machine(machine("a")).await?;
    is_the_node_of(cx, &first, "for the first time").await?;
    is_the_node_of(cx, &first, "again, and its machine is the same").await?;
    first.delete().await?;
    let second = cx.machine(machine("a-2").named(&first.name())).await?;
    // The CCM may have cached what it knows of the first machine for as long.
    pause(cx.limits().instance_cache()).await;
    is_the_node_of(cx, &second, "again, and another machine has its name").await
}

#[cfg(test)]
mod tests {
    use super::*;

    use serde_json::json;

    #[test]
    fn a_provider_id_is_the_machines_own() {
        let of = |id: &str| serde_json::from_value(json!({"spec": {"providerID": id}})).ok().map(Arc::new);
        let own = || has_provider_id("p://1".to_owned());
        assert_eq!(own().matches(&of("p://1")), Observation::Matched(()));
        for other in [of("p://2"), of(""), None] {
            assert_eq!(own().matches(&other), Observation::when(false));
        }
    }
}
