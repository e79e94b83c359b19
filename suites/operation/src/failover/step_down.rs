//! A leader that cannot renew its Lease (HA-05).

use super::needs::ELECTION;
use harness_testkit::prelude::*;
use k8s_openapi::jiff::Timestamp;
use std::time::Duration;
use tokio::time::Instant;

pub(super) const CHECKS: &[Check] = &[Check::of("HA-05", |cx| Box::pin(gives_up_when_it_cannot_renew(cx)))
    .by_calls()
    .needs(ELECTION)
    .with(&[Facility::CcmControl])
    .alone()
    .takes(12)];

async fn gives_up_when_it_cannot_renew(cx: &CheckCx) -> Verdict {
    let leader = cx.active_replica().await?;
    leader.will_end();
    // Another client holds the Lease and keeps renewing it: for the leader, every renewal fails.
    let stolen = cx.lease().steal().await?;
    let (stolen_at, since) = (Timestamp::now(), Instant::now());
    let limit = cx.limits().step_down();
    let outcome = leader.becomes(ends()).within(limit + cx.limits().kubelet_report()).await;
    let seen_after = since.elapsed();
    stolen.let_go().await?;
    let reported = outcome?.at.and_then(|at| Duration::try_from(at.duration_since(stolen_at)).ok());
    if let Some(took) = too_late(reported, seen_after, limit) {
        let (limit, took) = (limit.as_secs_f64(), took.as_secs_f64());
        let (expected, seen) =
            (format!("within {limit:.1} s of the loss of its Lease"), format!("it ended after {took:.1} s"));
        return Err(leader.breaks("the leader ends itself", &expected, &seen));
    }
    let lease = cx.lease();
    let led = lease.becomes(held()).within(cx.limits().failover() + cx.limits().watch());
    led.when("again").await?;
    leader.becomes(is_back()).within(cx.limits().start()).when("as a standby").await
}

/// How long a leader took to end, if that was too long. The time when it ended counts, not the time when its
/// kubelet reported it. But the node's clock may differ from ours, and an end that was seen in time was in
/// time.
fn too_late(reported: Option<Duration>, seen_after: Duration, limit: Duration) -> Option<Duration> {
    reported.map(|reported| reported.min(seen_after)).filter(|took| *took > limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_is_late_only_when_it_ended_late() {
        let s = Duration::from_secs;
        assert_eq!(too_late(Some(s(9)), s(10), s(7)), Some(s(9)), "it ended late");
        assert_eq!(too_late(Some(s(4)), s(10), s(7)), None, "its kubelet said so late");
        assert_eq!(too_late(Some(s(60)), s(5), s(7)), None, "the node's clock is ahead");
        assert_eq!(too_late(None, s(10), s(7)), None, "the time is unknown");
    }
}
