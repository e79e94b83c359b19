//! A right is missing when the CCM starts: the work that needs it begins only when the right is there
//! (AUTH-01, -07, -10), or the process ends (AUTH-14). An open watch continues without its right, so these
//! rights have to be missing from the start.

use super::least_rights::least_rights;
use super::missing_rights::{TRIAL, Worker};
use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1 as core;
use std::sync::Arc;
use std::time::Duration;
use suites_common::joining::{ends_or_works, registered};
use suites_common::services::left_alone;

const INSTANCES: &[Capability] = &[Capability::Instances];
const LB: &[Capability] = &[Capability::LoadBalancer];
const ELECTION: &[Capability] = &[Capability::LeaderElection, Capability::Instances];

pub(super) const CHECKS: &[Check] = &[
    Check::of("AUTH-01", |cx| Box::pin(waits_for_nodes(cx)))
        .by_calls()
        .needs(INSTANCES)
        .with(TRIAL)
        .on_a_fresh_cluster()
        .takes(5),
    Check::of("AUTH-07", |cx| Box::pin(waits_for_services(cx)))
        .by_calls()
        .needs(LB)
        .with(TRIAL)
        .on_a_fresh_cluster()
        .takes(5),
    Check::of("AUTH-10", |cx| Box::pin(waits_for_its_lease(cx)))
        .needs(ELECTION)
        .with(TRIAL)
        .on_a_fresh_cluster()
        .takes(5),
    Check::of("AUTH-13", |cx| Box::pin(ends_without_accounts(cx)))
        .needs(&[Capability::Instances, Capability::FrameworkFlags])
        .with(TRIAL)
        .on_a_fresh_cluster(),
    Check::of("AUTH-14", |cx| Box::pin(waits_not_for_ever(cx)))
        .needs(INSTANCES)
        // The check changes roles of the whole cluster, so it needs one whose machines belong to the harness.
        .with(&[TRIAL[0], Facility::KubeletControl])
        .on_a_fresh_cluster()
        .takes(11),
];

/// How long the CCM is seen not to do the work. The API server denies it for that long.
fn window(cx: &CheckCx) -> Duration {
    2 * cx.limits().settle()
}

async fn is_running(cx: &CheckCx, worker: &Worker<'_>) -> Verdict {
    let up = worker.trial.becomes(is_up()).within(cx.limits().start()).await;
    worker.trial.explained(up).await
}

async fn waits_for_nodes(cx: &CheckCx) -> Verdict {
    let worker = Worker::start(cx, "AUTH-01", true, &[]).await?;
    is_running(cx, &worker).await?;
    let (_, node) = registered(cx, machine("unseen")).await?;
    if cx.declares(Capability::LoadBalancer) {
        let web = cx.service(load_balancer("unseen").port(80)).await?;
        let changes = web.calls().writes();
        (&web, &changes).keeps(left_alone()).within(window(cx)).when("as it knows no Node").await?;
    }
    node.keeps(untouched()).within(cx.limits().settle()).when("as it may not see Nodes").await?;
    worker.keeps_running().await?;
    worker.has_it_again().await?;
    worker.sees(&node, initialised(), cx.limits().start(), "as it may see Nodes again").await.map(drop)
}

async fn waits_for_services(cx: &CheckCx) -> Verdict {
    let worker = Worker::start(cx, "AUTH-07", true, &[]).await?;
    is_running(cx, &worker).await?;
    let web = cx.service(load_balancer("unseen").port(80)).await?;
    let calls = web.calls();
    let machines = cx.declares(Capability::Instances);
    let witness = if machines { Some(registered(cx, machine("witness")).await?) } else { None };
    (&web, &calls).keeps(left_alone()).within(window(cx)).when("as it may not see Services").await?;
    if let Some((_, witness)) = &witness {
        // The framework waits with all its work for what it is not allowed to read.
        let works = witness.is(initialised()).await.is_ok();
        cx.record("meanwhile", if works { "it initialises Nodes" } else { "it does nothing else" });
    }
    worker.keeps_running().await?;
    worker.has_it_again().await?;
    let (balancer, limit) = (web.balancer(), cx.limits().start() + cx.limits().load_balancer_work());
    worker.sees(&balancer, one_active(), limit, "as it may see Services again").await.map(drop)
}

async fn waits_for_its_lease(cx: &CheckCx) -> Verdict {
    let worker = Worker::start(cx, "AUTH-10", true, &[]).await?;
    is_running(cx, &worker).await?;
    let (_, node) = registered(cx, machine("unled")).await?;
    node.keeps(untouched()).within(window(cx)).when("as no replica can lead").await?;
    // A CCM that ends because of this cannot recover by itself.
    if worker.trial.is(keeps_running()).await.is_err() {
        cx.record("ends", "its process ended for it");
        return Ok(());
    }
    worker.has_it_again().await?;
    worker.sees(&node, initialised(), cx.limits().start(), "as it may lead again").await.map(drop)
}

async fn ends_without_accounts(cx: &CheckCx) -> Verdict {
    let worker = Worker::start(cx, "AUTH-13", true, &["--use-service-account-credentials=true"]).await?;
    let (_, node) = registered(cx, machine("refused")).await?;
    let ended = (&worker.trial, &node).becomes(ends_before_it_works()).within(cx.limits().start()).await;
    worker.trial.explained(ended).await
}

/// Matches a CCM that ends before it initialises a Node, so that it has not used rights that it should not use.
fn ends_before_it_works() -> Matcher<(Tried, Option<Arc<core::Node>>)> {
    let outcome = ends_or_works();
    matcher("ends with an error", move |seen: &(Tried, Option<Arc<core::Node>>)| {
        match outcome.matches(seen) {
            Observation::Matched(true) => Observation::Matched(()),
            Observation::Matched(false) => Observation::Impossible("it works with other rights".to_owned()),
            Observation::Pending(why) => Observation::Pending(why),
            Observation::Impossible(why) => Observation::Impossible(why),
        }
    })
    .expecting("its process ended with an exit code that is not 0, and no Node initialised")
}

async fn waits_not_for_ever(cx: &CheckCx) -> Verdict {
    cx.withdraw_ccm().await?;
    cx.withholds_healthz().await?;
    // With a separate account: a denied request is caused by this check.
    let trial = cx.ccm_as(least_rights(cx), &[]).await?;
    let (_, node) = registered(cx, machine("led")).await?;
    let outcome = (&trial, &node).becomes(ends_or_works()).within(cx.limits().start()).await;
    let ended = trial.explained(outcome).await?;
    if ended {
        let code = trial.read(ReadSource::Origin).await.map_err(CheckError::from)?.exit_code();
        cx.record("exit-code", code.unwrap_or_default());
    } else {
        cx.record("another-way", "it works without");
    }
    Ok(())
}
