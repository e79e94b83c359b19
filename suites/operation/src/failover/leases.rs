//! Leases in special situations: kept under load, with another name, released, migrated (HA-07, -10, -11, -15).

use super::needs::{ELECTION, ELECTION_AND_LB};
use crate::authorization::least_rights;
use harness_testkit::prelude::*;
use suites_common::joining::registered;
use suites_common::leases::unchanged;
use tokio::time::Instant;

const BY_FLAGS: &[Capability] = &[ELECTION[0], ELECTION[1], Capability::FrameworkFlags];
const ALONE: &[Facility] = &[Facility::CcmControl];

pub(super) const CHECKS: &[Check] = &[
    Check::of("HA-10", |cx| Box::pin(stays_the_leader(cx))).needs(ELECTION_AND_LB).takes(62),
    Check::of("HA-11", |cx| Box::pin(leads_by_another_name(cx)))
        .needs(BY_FLAGS)
        .with(ALONE)
        .on_a_fresh_cluster(),
    Check::of("HA-07", |cx| Box::pin(hands_over(cx)))
        .by_calls()
        .needs(ELECTION)
        .with(ALONE)
        .alone()
        .takes(14),
    Check::of("HA-15", |cx| Box::pin(migrates(cx)))
        .needs(BY_FLAGS)
        .with(ALONE)
        .on_a_fresh_cluster()
        .takes(10),
];

/// How many Nodes the CCM has to process, in addition to those of other checks.
const NODES: usize = 5;
const SERVICES: usize = 3;

async fn stays_the_leader(cx: &CheckCx) -> Verdict {
    let lease = cx.lease();
    let before = lease.becomes(held()).await?;
    let load = async {
        for number in 0..NODES {
            registered(cx, machine(&format!("load-{number}"))).await?;
        }
        for number in 0..SERVICES {
            cx.service(load_balancer(&format!("load-{number}")).port(80)).await?;
        }
        Ok(())
    };
    // The contract says ten minutes. A run has time for a minute, under the load of the whole run.
    let kept = lease.keeps(unchanged(&before)).within(2 * cx.limits().quiet_nodes());
    let (loaded, kept) = tokio::join!(load, kept);
    loaded.and(kept)
}

async fn leads_by_another_name(cx: &CheckCx) -> Verdict {
    cx.withdraw_ccm().await?;
    let usual = cx.lease().is_taken().await?;
    let name = cx.fresh("another-ccm");
    let own = cx.lease_named(&name);
    let flag = format!("--leader-elect-resource-name={name}");
    let alone = cx.ccm_as(least_rights(cx), &[&flag]).await?;
    let (_, node) = registered(cx, machine("led")).await?;
    let led = node.becomes(initialised()).within(cx.limits().start()).when("by a CCM with another Lease");
    alone.while_it_runs(led).await?;
    own.becomes(held()).await?;
    usual.let_go().await
}

async fn hands_over(cx: &CheckCx) -> Verdict {
    let leader = cx.active_replica().await?;
    let led = cx.lease().becomes(held()).await?;
    let before = transitions_of(&led);
    leader.will_end();
    let terminated = Instant::now();
    leader.hands_over(before).await?;
    cx.record("handover_ms", terminated.elapsed().as_millis());
    Ok(())
}

/// The Lease that controllers use while they move from one component to another.
const MIGRATION: &str = "cloud-provider-extraction-migration";

async fn migrates(cx: &CheckCx) -> Verdict {
    cx.withdraw_ccm().await?;
    let migration = cx.lease_named(MIGRATION).is_taken().await?;
    let alone = cx.ccm_as(least_rights(cx), &["--enable-leader-migration=true"]).await?;
    let (_, node) = registered(cx, machine("led")).await?;
    let led = node.becomes(initialised()).within(cx.limits().start());
    let outcome = alone.while_it_runs(led).await;
    if alone.is(has_ended()).await.is_ok() {
        cx.record("migration", "the flag is refused");
        return Ok(());
    }
    outcome?;
    let lost = cx.machine(machine("lost")).await?;
    let lost_node = cx.node(lost.initialised_node().ready(Ready::False)).await?;
    lost.delete().await?;
    let kept = (&alone, &lost_node).keeps(both(keeps_running(), present())).within(cx.limits().life()).await;
    let waits = if kept.is_ok() {
        "the lifecycle controller waits for the migration Lease"
    } else {
        "it does not wait"
    };
    cx.record("migration", waits);
    migration.let_go().await
}
