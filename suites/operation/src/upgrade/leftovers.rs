//! What the release before has made goes when its time has come (contract UPG-06).

use super::rollout::{LB, served, upgraded};
use crate::failover::time_to_take_up;
use harness_testkit::prelude::*;
use serde_json::json;
use suites_common::joining::joined;

pub(super) const CHECKS: &[Check] = &[
    Check::of("UPG-06.service", |cx| Box::pin(cleans_up_services(cx)))
        .needs(LB)
        .without_machines()
        .on_a_fresh_cluster()
        .upgrades()
        .takes(12),
    Check::of("UPG-06.node", |cx| Box::pin(removes_nodes(cx)))
        .needs(&[Capability::Instances])
        .on_a_fresh_cluster()
        .upgrades()
        .takes(16),
];

async fn cleans_up_services(cx: &CheckCx) -> Verdict {
    cx.old_release().await?;
    let all = served(cx).await?;
    let [(deleted, _), (changed, _)] = all.as_slice() else {
        return Err(CheckError::Error("there are not two Services".to_owned()));
    };
    upgraded(cx).await?;
    deleted.delete().await?;
    changed.patch(&json!({"spec": {"type": "ClusterIP", "externalTrafficPolicy": null}})).await?;
    let limit = time_to_take_up(cx).max(cx.limits().load_balancer());
    for web in [deleted, changed] {
        web.balancer().becomes(nothing_left()).within(limit).when("by the new release").await?;
    }
    deleted.becomes(gone()).within(limit).when("by the new release").await?;
    changed.becomes(lacks_finalizer()).within(limit).when("by the new release").await
}

async fn removes_nodes(cx: &CheckCx) -> Verdict {
    cx.old_release().await?;
    let (lost, node) = joined(cx, machine("lost")).await?;
    let (_, stays) = joined(cx, machine("stays")).await?;
    upgraded(cx).await?;
    lost.delete().await?;
    node.set_ready(Ready::Unknown).await?;
    let limit = cx.limits().life_of_machine();
    node.becomes(gone()).within(limit).when("by the new release, after its machine").await?;
    stays.is(present()).await
}
