//! The release that takes over works, after an upgrade and after a rollback (contract UPG-01, UPG-10).

use super::rollout::{WATCHED, has_taken_over, served, upgraded};
use harness_testkit::prelude::*;
use suites_common::joining::registered;

pub(super) const CHECKS: &[Check] = &[
    Check::of("UPG-01", |cx| Box::pin(takes_over(cx))).on_a_fresh_cluster().upgrades().takes(8),
    Check::of("UPG-10", |cx| Box::pin(goes_back(cx))).on_a_fresh_cluster().upgrades().takes(14),
];

/// A Node joins, and a Service asks for a load balancer.
pub(super) async fn works(cx: &CheckCx, suffix: &str, when: &'static str) -> Verdict {
    if cx.declares(Capability::Instances) {
        let (_, node) = registered(cx, machine(suffix)).await?;
        node.becomes(initialised()).within(2 * cx.limits().watch()).when(when).await?;
    }
    if cx.declares(Capability::LoadBalancer) {
        let web = cx.service(load_balancer(suffix).port(80)).await?;
        let balancer = web.balancer();
        let lb = balancer.becomes(one_active()).within(cx.limits().load_balancer()).when(when).await?;
        web.becomes(publishes(&lb)).within(cx.limits().load_balancer()).when(when).await?;
    }
    Ok(())
}

async fn takes_over(cx: &CheckCx) -> Verdict {
    cx.old_release().await?;
    // A release may fail over what it finds.
    if cx.declares(Capability::LoadBalancer) {
        served(cx).await?;
    }
    let rollout = upgraded(cx).await?;
    cx.record("rollout_ms", rollout.at.elapsed().as_millis());
    works(cx, "after", "by the new release").await
}

async fn goes_back(cx: &CheckCx) -> Verdict {
    cx.old_release().await?;
    let before = if cx.declares(Capability::LoadBalancer) { served(cx).await? } else { Vec::new() };
    upgraded(cx).await?;
    works(cx, "between", "by the new release").await?;
    let back = cx.roll_out(Release::Old).await?;
    has_taken_over(cx, &back).await?;
    works(cx, "after", "by the old release, after the rollback").await?;
    for (web, lb) in &before {
        let same = no_other_than(lb, "is the same after the rollback", |_| true);
        web.balancer().keeps(same).within(WATCHED).when("after the rollback").await?;
        web.is(publishes(lb)).await?;
    }
    Ok(())
}
