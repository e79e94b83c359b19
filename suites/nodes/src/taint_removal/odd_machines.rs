//! Nodes that cannot be initialised do not hold up others: one has an invalid providerID, the machine of
//! another cannot be read (contract NODE-INIT-27, -28). A machine whose name has capitals is the machine of
//! its Node (NODE-INIT-06).

use futures::future::try_join_all;
use harness_testkit::prelude::*;
use suites_common::failures::unless_it_lists;
use suites_common::joining::{joined, recovers};
use tokio::time::Instant;

const INSTANCES: &[Capability] = &[Capability::Instances];

pub(super) const CHECKS: &[Check] = &[
    Check::of("NODE-INIT-27", |cx| Box::pin(works_despite_malformed_ids(cx)))
        .needs(INSTANCES)
        // A CCM that fails over such a Node would fail in every other check as well.
        .alone(),
    Check::of("NODE-INIT-28", |cx| Box::pin(works_despite_an_unreadable_machine(cx)))
        .by_calls()
        .needs(INSTANCES)
        .with(&[Facility::Faults]),
    Check::of("NODE-INIT-06.capitals", |cx| Box::pin(knows_capitals(cx))).needs(INSTANCES),
];

/// Texts that are not provider ids in the format of `right`.
fn malformed(right: &str) -> Vec<String> {
    let scheme = right.split_once("://").map_or("cloud", |(scheme, _)| scheme);
    let forms = ["", "/", "///", "//a//b//c/", "%zz", " ", "ä"].map(|rest| format!("{scheme}://{rest}"));
    let others = [scheme.to_owned(), format!("{scheme}:/x"), "://".to_owned(), "x".repeat(1000)];
    forms.into_iter().chain(others).collect()
}

async fn works_despite_malformed_ids(cx: &CheckCx) -> Verdict {
    let (right, _) = joined(cx, machine("right")).await?;
    let ids = malformed(&right.provider_id());
    let machines: Vec<_> =
        (0..ids.len()).map(|at| cx.absent_machine(machine(&format!("bad-{at}")))).collect();
    let nodes = machines.iter().zip(&ids).map(|(machine, id)| cx.node(machine.node().provider_id(id)));
    try_join_all(nodes).await?;
    for suffix in ["after-1", "after-2", "after-3"] {
        let machine = cx.machine(machine(suffix)).await?;
        let node = cx.node(machine.node()).await?;
        node.becomes(initialised()).when("next to Nodes whose providerIDs are malformed").await?;
    }
    Ok(())
}

async fn works_despite_an_unreadable_machine(cx: &CheckCx) -> Verdict {
    let unreadable = cx.machine(machine("unreadable")).await?;
    let fault = unreadable.cloud().answers(500).to(&[Op::InstanceGet]).await?;
    let began = Instant::now();
    let node = cx.node(unreadable.node()).await?;
    if let Err(stop) = fault.hits(1).await {
        return Err(unless_it_lists(cx, stop));
    }
    for suffix in ["other-1", "other-2", "other-3"] {
        joined(cx, machine(suffix)).await?;
    }
    fault.clear().await?;
    recovers(cx, &unreadable, &node, began.elapsed()).await
}

async fn knows_capitals(cx: &CheckCx) -> Verdict {
    let lower = cx.absent_machine(machine("capitals")).name();
    let machine =
        cx.machine(machine("capitals").with(|instance| instance.name.make_ascii_uppercase())).await?;
    let node = cx.node(machine.node().named(&lower)).await?;
    node.becomes(initialised()).when("as the machine of its name, whatever the case").await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_ids_are_others_than_the_right_one_and_fit_a_node() {
        let right = "native://i-1";
        let ids = malformed(right);
        assert!(ids.iter().all(|id| id != right && !id.is_empty()));
        assert!(ids.contains(&"native://".to_owned()) && ids.contains(&"native".to_owned()), "{ids:?}");
    }
}
