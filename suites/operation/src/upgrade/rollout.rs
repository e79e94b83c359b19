//! The steps that checks of upgrades share: what the old release serves, and the rollout of the new one.

use crate::failover::time_to_take_up;
use harness_testkit::prelude::*;
use std::time::Duration;

/// The CCM provisions load balancers.
pub(super) const LB: &[Capability] = &[Capability::LoadBalancer];

/// For how long the new release is watched once it has taken up its work.
pub(super) const WATCHED: Duration = Duration::from_secs(3);

/// Replaces the old release by the CCM under test, and waits until it leads.
pub(super) async fn upgraded(cx: &CheckCx) -> Result<Rollout<'_>, CheckError> {
    let rollout = cx.roll_out(Release::New).await?;
    has_taken_over(cx, &rollout).await?;
    Ok(rollout)
}

pub(super) async fn has_taken_over(cx: &CheckCx, rollout: &Rollout<'_>) -> Verdict {
    rollout.becomes(rolled_out()).within(cx.limits().start() + cx.limits().failover()).await
}

/// Waits until the release that replaces the other has looked at the load balancer of a Service: it processes every Service
/// once at its start.
pub(super) async fn looks_at(
    cx: &CheckCx,
    web: &Service<'_>,
    rollout: &Rollout<'_>,
    release: Release,
) -> Verdict {
    let caller = cx.caller_of(release);
    let looks = web.looks().since(rollout.mark).that(move |call| call.credential.as_deref() == Some(&caller));
    let looked = looks.becomes(some_calls()).within(time_to_take_up(cx));
    looked.when("by the release that took over").await.map(drop)
}

/// A Service of each traffic policy, and the load balancers that the release that leads has made for them.
pub(super) async fn served(cx: &CheckCx) -> Result<Vec<(Service<'_>, LoadBalancer)>, CheckError> {
    let mut all = Vec::new();
    for (name, policy) in [("web", "Cluster"), ("local", "Local")] {
        let policy = Some(policy.to_owned());
        let plan =
            load_balancer(name).port(80).port(443).with(move |spec| spec.external_traffic_policy = policy);
        let web = cx.service(plan).await?;
        web.gets_published().await?;
        web.rests().await?;
        // Ports and backends may be added once it is active.
        let complete = web.balancer().becomes(one_active()).await?;
        all.push((web, complete));
    }
    Ok(all)
}
