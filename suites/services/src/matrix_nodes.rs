//! Load balancers follow their Nodes: with each traffic policy, while machines cannot be looked up, when a
//! new machine takes over a Node's name, and after an edit of their Service (contract SVC-NODES).

use super::needs::NODES_BEHIND_LB;
use super::nodes::{eligible, has_backend, lacks_backend, of_each_policy};
use super::port_parts::{Edit, edit};
use super::step_fails::FAILING;
use futures::future::try_join_all;
use harness_testkit::prelude::*;
use suites_common::port_parts::{Edited, Ports};

/// What happens to a Node.
#[derive(Clone, Copy)]
enum Happens {
    Joins,
    IsDeleted,
    IsExcluded,
    IsReplaced,
}

struct Cell {
    row: &'static str,
    claim: &'static str,
    happens: Happens,
    /// The policy of the Service; the default is `Cluster`.
    policy: &'static str,
}

static MATRIX: [Cell; 5] = [
    Cell { row: "SVC-NODES-01", claim: "local", happens: Happens::Joins, policy: "Local" },
    Cell { row: "SVC-NODES-02", claim: "local", happens: Happens::IsDeleted, policy: "Local" },
    Cell { row: "SVC-NODES-03", claim: "local", happens: Happens::IsExcluded, policy: "Local" },
    Cell { row: "SVC-NODES-16", claim: "cluster", happens: Happens::IsReplaced, policy: "Cluster" },
    Cell { row: "SVC-NODES-16", claim: "local", happens: Happens::IsReplaced, policy: "Local" },
];

pub(super) const CELLS: [Check; MATRIX.len()] = {
    let (mut checks, mut at) = ([of_cell(0); MATRIX.len()], 1);
    while at < MATRIX.len() {
        checks[at] = of_cell(at);
        at += 1;
    }
    checks
};

const fn of_cell(at: usize) -> Check {
    let id = CheckId::of_claim(MATRIX[at].row, MATRIX[at].claim);
    let check = Check::row(id, |cx, at| Box::pin(follows(cx, &MATRIX[at])), at);
    check.needs(NODES_BEHIND_LB)
}

pub(super) const CHECKS: &[Check] = &[
    Check::of("SVC-NODES-11.machines", |cx| Box::pin(keeps_what_it_cannot_look_up(cx)))
        .by_calls()
        .needs(NODES_BEHIND_LB)
        .with(&[Facility::Faults])
        // The fault concerns the look-ups for all Services.
        .alone()
        .takes(8),
    Check::of("SVC-NODES-17.joins", |cx| Box::pin(keeps_the_edit_as_a_node_joins(cx))).needs(NODES_BEHIND_LB),
    Check::of("SVC-NODES-17.leaves", |cx| Box::pin(keeps_the_edit_as_a_node_leaves(cx)))
        .needs(NODES_BEHIND_LB),
];

fn service(policy: &'static str) -> ServicePlan {
    load_balancer("web").port(80).with(move |spec| spec.external_traffic_policy = Some(policy.to_owned()))
}

async fn follows(cx: &CheckCx, cell: &'static Cell) -> Verdict {
    if matches!(cell.happens, Happens::Joins) {
        let web = cx.service(service(cell.policy)).await?.provisioned().await?;
        web.rests().await?;
        let (machine, _) = eligible(cx, "new").await?;
        return web.balancer().becomes(has_backend(&machine)).when("after its Node joined").await;
    }
    let (old, node) = eligible(cx, "a").await?;
    let web = cx.service(service(cell.policy)).await?.provisioned().await?;
    let balancer = web.balancer();
    balancer.becomes(has_backend(&old)).when("before anything happens to its Node").await?;
    web.rests().await?;
    match cell.happens {
        Happens::Joins => Ok(()),
        Happens::IsDeleted => {
            node.delete().await?;
            balancer.becomes(lacks_backend(&old)).when("after its Node's deletion").await
        }
        Happens::IsExcluded => {
            node.label(L_EXCL, Some("true")).await?;
            balancer.becomes(lacks_backend(&old)).when("once its Node is excluded").await?;
            node.label(L_EXCL, None).await?;
            balancer.becomes(has_backend(&old)).when("once its Node is no longer excluded").await
        }
        Happens::IsReplaced => {
            node.delete().await?;
            node.becomes(gone()).when("as it was deleted").await?;
            old.delete().await?;
            let new = cx.machine(machine("a-2").named(&old.name())).await?;
            // The CCM may have cached data about the old machine for as long.
            pause(cx.limits().instance_cache()).await;
            let node = cx.node(new.node().backend()).await?;
            node.becomes(initialised()).when("with another machine").await?;
            node.becomes(addressed()).when("with another machine").await?;
            balancer.becomes(has_backend(&new)).when("once its Node has come back").await?;
            balancer.becomes(lacks_backend(&old)).when("once its Node has another machine").await
        }
    }
}

/// Services of both traffic policies whose ports were edited, and whose load balancers have followed; and what each of these
/// has to be like since.
async fn edited(cx: &CheckCx) -> Result<Vec<(Service<'_>, Followed)>, CheckError> {
    let all = [("web", "Cluster"), ("local", "Local")];
    try_join_all(all.map(async |(name, policy)| {
        let policy = Some(policy.to_owned());
        let plan =
            load_balancer(name).port(80).port(443).with(move |spec| spec.external_traffic_policy = policy);
        let web = cx.service(plan).await?.provisioned().await?;
        web.rests().await?;
        let (old, before) = (Ports::of(&web).await?, web.balancer().read(ReadSource::Origin).await?);
        edit(&web, Edit::Port).await?;
        let new = Ports::of(&web).await?;
        let followed: Followed = Box::new(move || {
            let edited = Edited::of(&before, old.clone(), new.clone());
            edited.is_followed("has listeners, firewall and health checks of the edited ports")
        });
        web.balancer().becomes(followed()).when("after the edit").await?;
        web.rests().await?;
        Ok((web, followed))
    }))
    .await
}

/// What a load balancer has to be like.
type Followed = Box<dyn Fn() -> Matcher<Inventory>>;

async fn keeps_the_edit_as_a_node_joins(cx: &CheckCx) -> Verdict {
    let all = edited(cx).await?;
    let (machine, _) = eligible(cx, "new").await?;
    try_join_all(all.iter().map(async |(web, followed)| {
        web.balancer().becomes(has_backend(&machine)).when("after its Node joined").await?;
        web.balancer().keeps(followed()).when("after a Node joined").await
    }))
    .await
    .map(drop)
}

async fn keeps_the_edit_as_a_node_leaves(cx: &CheckCx) -> Verdict {
    let (machine, node) = eligible(cx, "a").await?;
    let all = edited(cx).await?;
    for (web, _) in &all {
        web.balancer().becomes(has_backend(&machine)).when("before its Node leaves").await?;
    }
    node.delete().await?;
    try_join_all(all.iter().map(async |(web, followed)| {
        web.balancer().becomes(lacks_backend(&machine)).when("after its Node's deletion").await?;
        web.balancer().keeps(followed()).when("after a Node left").await
    }))
    .await
    .map(drop)
}

async fn keeps_what_it_cannot_look_up(cx: &CheckCx) -> Verdict {
    let (stays, _) = eligible(cx, "stays").await?;
    let (goes, node) = eligible(cx, "goes").await?;
    let all = of_each_policy(cx).await?;
    for web in &all {
        for machine in [&stays, &goes] {
            web.balancer().becomes(has_backend(machine)).when("while machines can be looked up").await?;
        }
    }
    try_join_all(all.iter().map(Service::rests)).await?;
    let fault = cx.cloud().anything().fails().to(&[Op::InstanceGet, Op::InstanceList]);
    let fault = fault.await?;
    node.label(L_EXCL, Some("true")).await?;
    let when = "while no machine can be looked up";
    try_join_all(all.iter().map(async |web| {
        let balancer = web.balancer();
        balancer.keeps(has_backend(&stays)).within(FAILING).when(when).await
    }))
    .await?;
    let failures = fault.read(ReadSource::Origin).await?;
    cx.record("failed_look_ups", failures);
    fault.clear().await?;
    let failures = u32::try_from(failures).unwrap_or(u32::MAX).min(3);
    for web in &all {
        let balancer = web.balancer();
        let left = balancer.becomes(lacks_backend(&goes)).within(cx.limits().service_after(failures));
        left.when("once machines can be looked up again").await?;
        balancer.is(has_backend(&stays)).await?;
    }
    Ok(())
}
