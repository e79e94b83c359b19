//! The CCM's credential for the cloud: the CCM does not give up if a credential is rejected, a replaced one is read
//! again, and no one can see it (AUTH-23 to -25).

use super::missing_rights::TRIAL;
use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1 as core;
use std::sync::Arc;
use suites_common::joining::{ccm_initialises_others, registered};
use tokio::time::Instant;

const BOTH: &[Capability] = &[Capability::Instances, Capability::LoadBalancer];

pub(super) const CHECKS: &[Check] = &[
    Check::of("AUTH-23", |cx| Box::pin(gives_nothing_up(cx)))
        .needs(BOTH)
        .with(&[TRIAL[0], Facility::Faults])
        .on_a_fresh_cluster()
        .takes(62),
    Check::of("AUTH-24", |cx| Box::pin(takes_the_new_one_up(cx)))
        .needs(&[Capability::Instances])
        .with(&[TRIAL[0], Facility::Credentials])
        .by_calls()
        .on_a_fresh_cluster()
        // A CCM that never reads the new one makes this check wait for five minutes, so it begins early.
        .takes(30),
    Check::of("AUTH-25", |cx| Box::pin(discloses_no_credential(cx)))
        .of_the_cloud(&[])
        .with(TRIAL)
        .after_the_run(),
];

async fn gives_nothing_up(cx: &CheckCx) -> Verdict {
    let trial = cx.ccm_as_shipped().await?;
    let (_, first) = registered(cx, machine("first")).await?;
    let begun = first.becomes(initialised()).within(cx.limits().start()).when("before anything is refused");
    trial.while_it_runs(begun).await?;
    let web = cx.service(load_balancer("web").port(80)).await?;
    web.balancer().becomes(one_active()).within(cx.limits().load_balancer()).await?;
    web.becomes(keeps_finalizer()).await?;
    let kept = cx.machine(machine("kept")).await?;
    let not_ready = cx.node(kept.initialised_node().ready(Ready::False)).await?;

    let refusals = cx.cloud().anything().answers(401).await?;
    let (_, new) = registered(cx, machine("new")).await?;
    web.delete().await?;
    refusals.hits(1).await?;
    let tainted = holds("is not initialised", |node: &Option<Arc<core::Node>>| {
        node.as_ref().is_some_and(|node| has_taint(node, T_UNINIT))
    });
    let nodes = (&new, &not_ready);
    let all = (&nodes, &web);
    let kept = both(both(tainted.expecting(T_UNINIT), present()), keeps_finalizer());
    // The contract's 60 s include the pauses of a CCM that retries less and less often.
    all.keeps(kept).within(2 * cx.limits().quiet_nodes()).when("while its credential is refused").await?;
    first.is(present()).await?;

    refusals.clear().await?;
    let limit = cx.limits().services_after(2 * cx.limits().quiet_nodes());
    let goes = web.becomes(gone()).within(limit).when("as its credential is good again");
    let gone = tokio::select! {
        gone = goes => gone,
        ended = trial.becomes(has_ended()).within(2 * limit) => ended,
    };
    // A CCM that ends because of this, at once or later, is not restarted here, and nothing else is left that
    // could recover.
    if trial.is(keeps_running()).await.is_err() {
        cx.record("ends", "its process ended for it");
        return Ok(());
    }
    gone
}

async fn takes_the_new_one_up(cx: &CheckCx) -> Verdict {
    let ccm = cx.ccm_with_own_credential().await?;
    let (_, first) = registered(cx, machine("first")).await?;
    let begun = first.becomes(initialised()).within(cx.limits().start());
    ccm.explained(begun.when("before its credential expires").await).await?;

    let mark = cx.cloud().mark_now().await?;
    ccm.expires().await?;
    let (_, new) = registered(cx, machine("new")).await?;
    let refused = |call: &Entry| matches!(call.outcome, Outcome::Answered { status: 401 | 403 });
    let refusals = cx.cloud().calls().since(mark).that(refused);
    refusals.becomes(some_calls()).when("with a credential that has expired").await?;

    ccm.is_replaced().await?;
    let since = Instant::now();
    let taken_up = new.becomes(initialised()).within(cx.limits().credential());
    let taken_up = ccm.explained(taken_up.when("once its credential is replaced").await).await;
    let Err(CheckError::Violation(mut violation)) = taken_up else {
        taken_up?;
        cx.record("taken_up_after_ms", since.elapsed().as_millis());
        return Ok(());
    };
    // The state that remains for the user.
    ccm.restarts().await?;
    let restarted = new.becomes(initialised()).within(cx.limits().start()).when("started again").await;
    let explained = match restarted {
        Ok(_) => "restarted from outside it works with the new credential",
        Err(_) => "restarted from outside it does not work with the new credential either",
    };
    violation.explained =
        Some(format!("{explained}; before that it said:\n{}", violation.explained.unwrap_or_default()));
    Err(CheckError::Violation(violation))
}

async fn discloses_no_credential(cx: &CheckCx) -> Verdict {
    cx.ccm_runs().await?;
    // Once the CCM has called its cloud, it has something to disclose, whatever the result of the call.
    if cx.declares(Capability::Instances) {
        match ccm_initialises_others(cx).await {
            Ok(()) | Err(CheckError::Violation(_)) => {}
            Err(other) => return Err(other),
        }
    }
    let disclosed = cx.disclosures().await?;
    match disclosed.is_empty() {
        true => Ok(()),
        false => Err(CheckError::violation("no credential is shown", "it nowhere", disclosed.join("; "))),
    }
}
