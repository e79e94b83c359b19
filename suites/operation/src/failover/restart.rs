//! A restart of the leader does not change load balancers and the zones of Nodes (SVC-CREATE-19, NODE-LBL-13).

use super::busy::time_to_take_up;
use super::needs::{KILL, LB_ELECTION};
use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1::{Node, Service};
use std::time::Duration;
use suites_common::joining::joined;

pub(super) const CHECKS: &[Check] = &[
    Check::of("SVC-CREATE-19", |cx| Box::pin(survives_a_restart(cx)))
        .needs(LB_ELECTION)
        .with(KILL)
        .at_the_crash()
        .takes(10),
    Check::of("NODE-LBL-13", |cx| Box::pin(keeps_zones(cx)))
        .needs(&[Capability::Instances, Capability::Regions, Capability::LeaderElection])
        .with(KILL)
        .at_the_crash()
        .takes(10),
];

async fn survives_a_restart(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?;
    let before = web.gets_published().await?;
    let Crash { transitions, mark, at, .. } = cx.leader_crash().await?;
    cx.lease().becomes(taken_over(transitions)).within(cx.limits().failover()).await?;
    // The new leader processes every Service once at its start: wait until it has processed this one.
    web.looks()
        .since(mark)
        .becomes(some_calls())
        .within(time_to_take_up(cx))
        .when("by the new leader")
        .await?;
    let same = no_other_than(&before, "is the same with the same address", |_| true);
    web.balancer().keeps(same).within(Duration::from_secs(3)).await?;
    let replaced = web.calls().of(&[Op::LbCreate, Op::LbDelete]).since(mark);
    replaced.is(no_calls()).await?;
    web.is(publishes(&before)).await?;
    let published = publishes(&before);
    let left = |version: &Version<Service>| {
        published.matches(&Some(version.object.clone())) == Observation::Matched(())
    };
    match web.history()?.iter().find(|version| version.at.into_std() > at && !left(version)) {
        None => Ok(()),
        Some(version) => Err(web.breaks(
            "its status is left as it is by a restart",
            "the addresses from before in every version",
            &Some(version.object.clone()).observed(),
        )),
    }
}

/// A machine in one of the zones that only this check uses, or in the single zone of the cloud.
fn in_zone(cx: &CheckCx, suffix: &str, zone: &str) -> MachinePlan {
    if !cx.reports_the_machines_location() {
        return machine(suffix);
    }
    let [zone, region] = [zone, "region"].map(|what| cx.name(what));
    machine(suffix).with(|instance| (instance.zone, instance.region) = (zone, region))
}

/// The place of a Node according to all four labels.
fn place(node: &Node) -> Vec<String> {
    let keys = [L_ZONE, B_ZONE, L_REGION, B_REGION];
    keys.iter().map(|key| format!("{key}={}", label(node, key).unwrap_or_default())).collect()
}

async fn keeps_zones(cx: &CheckCx) -> Verdict {
    let mut zones = Vec::new();
    for zone in ["one", "two"] {
        let (_, first) = joined(cx, in_zone(cx, &format!("{zone}-a"), zone)).await?;
        let (_, second) = joined(cx, in_zone(cx, &format!("{zone}-b"), zone)).await?;
        let there = place(&*first.becomes(initialised()).await?);
        has_place(&second, &there, "as another of its zone").await?;
        zones.push((zone, first, there));
    }
    let Crash { transitions, .. } = cx.leader_crash().await?;
    cx.lease().becomes(taken_over(transitions)).within(cx.limits().failover()).await?;
    for (zone, first, there) in &zones {
        let (_, third) = joined(cx, in_zone(cx, &format!("{zone}-c"), zone)).await?;
        has_place(&third, there, "as another of its zone had before").await?;
        first.retaint().await?;
        first.becomes(initialised()).when("again").await?;
        has_place(first, there, "as before").await?;
    }
    Ok(())
}

/// Checks that the Node's labels name this place.
async fn has_place(node: &harness_testkit::prelude::Node<'_>, there: &[String], when: &str) -> Verdict {
    // A client that removes a taint writes the whole list, so the uninitialized taint may be back for a moment.
    let here = place(&*node.becomes(initialised()).await?);
    match here == there {
        true => Ok(()),
        false => {
            Err(node.breaks(&format!("it has zone and region {when}"), &there.join(", "), &here.join(", ")))
        }
    }
}
