//! Whatever a change does not concern stays in place at every moment (contract SVC-UPD-11). Other checks
//! judge the end states; these checks look at the state after each call to the cloud.

use super::delete::restricted;
use super::edits::EDIT_CALLS;
use super::needs::{LB, NODES_BEHIND_LB};
use super::nodes::{eligible, has_backend, lacks_backend};
use harness_testkit::prelude::*;
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

const ROW: &str = "SVC-UPD-11";

/// A change of Nodes and the parts of a load balancer that it must not affect.
struct Claim {
    name: &'static str,
    rule: Rule,
}

static CLAIMS: [Claim; 3] = [
    Claim { name: "backends", rule: Rule::Backends },
    Claim { name: "settings", rule: Rule::Settings },
    Claim { name: "firewall", rule: Rule::Firewall },
];

const fn through_nodes(at: usize) -> Check {
    let id = CheckId::of_claim(ROW, CLAIMS[at].name);
    let check = Check::row(id, |cx, at| Box::pin(keeps_through_nodes(cx, &CLAIMS[at])), at);
    check.by_calls().needs(NODES_BEHIND_LB).takes(4)
}

pub(super) const CHECKS: &[Check] = &[
    through_nodes(0),
    through_nodes(1),
    through_nodes(2),
    Check::of("SVC-UPD-11.address", |cx| Box::pin(keeps_the_address(cx)))
        .by_calls()
        .without_machines()
        .needs(LB)
        .with(&[Facility::Faults])
        .takes(8),
    Check::of("SVC-UPD-11.whole-run", |cx| Box::pin(nothing_was_lost(cx)))
        .by_calls()
        .without_machines()
        .needs(LB)
        .after_the_run(),
];

/// A Service with everything that its load balancer can lose.
fn whole(cx: &CheckCx) -> ServicePlan {
    let plan = restricted(cx, load_balancer("web").port(80).port(443));
    match cx.declares(Capability::Affinity) {
        true => plan.with(|spec| spec.session_affinity = Some("ClientIP".to_owned())),
        false => plan,
    }
}

async fn keeps_through_nodes(cx: &CheckCx, claim: &'static Claim) -> Verdict {
    let (stays, _) = eligible(cx, "stays").await?;
    let (goes, node) = eligible(cx, "goes").await?;
    let web = cx.service(whole(cx)).await?.provisioned().await?;
    for machine in [&stays, &goes] {
        web.balancer().becomes(has_backend(machine)).when("before any change").await?;
    }
    web.rests().await?;
    let since = Instant::now();
    node.label(L_EXCL, Some("true")).await?;
    web.balancer().becomes(lacks_backend(&goes)).when("once its Node is excluded").await?;
    web.rests().await?;
    node.label(L_EXCL, None).await?;
    web.balancer().becomes(has_backend(&goes)).when("once its Node is no longer excluded").await?;
    web.rests().await?;
    let losses = web.losses_since(since, &[claim.rule]);
    losses.can_be_seen().await?;
    losses.is(nothing_lost()).await?;
    web.balancer().is(has_backend(&stays)).await
}

/// For how long an edit fails. A CCM reacts to the failure at once, and again at its second try.
const FAILING: Duration = Duration::from_secs(7);

async fn keeps_the_address(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?;
    let before = web.gets_published().await?;
    web.rests().await?;
    let losses = web.losses_since(Instant::now(), &[Rule::Addresses]);
    // Twice and no more: each change of a Node, by any check, makes the CCM retry the edit, and each failure
    // doubles the pause.
    let refusals = web.cloud().answers(503).to(EDIT_CALLS).times(2).await?;
    let ports = json!([{"name": "p80", "port": 80}, {"name": "p443", "port": 443}]);
    web.patch(&json!({"spec": {"ports": ports}})).await?;
    let serves = || {
        no_other_than(&before, "serves the new port", |held| {
            held.load_balancers.iter().all(|lb| lb.frontends.iter().any(|port| port.port == 443))
        })
    };
    refusals.hits_unless(1, web.balancer().is(serves())).await?;
    losses.keeps(nothing_lost()).within(FAILING).when("while an edit fails").await?;
    let limit = cx.limits().service_after(2);
    web.balancer().becomes(serves()).within(limit).when("once the cloud works again").await?;
    losses.is(nothing_lost()).await
}

async fn nothing_was_lost(cx: &CheckCx) -> Verdict {
    cx.ccm_runs().await?;
    let losses = cx.losses_of_all();
    losses.can_be_seen().await?;
    losses.is(nothing_lost()).await
}
