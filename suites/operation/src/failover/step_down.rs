//! A leader that cannot renew its Lease (HA-05).

use super::needs::ELECTION;
use harness_testkit::prelude::*;

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
    let in_time = leader.cannot_renew().is_in_time().await;
    stolen.let_go().await?;
    in_time?;
    let lease = cx.lease();
    let led = lease.becomes(held()).within(cx.limits().failover() + cx.limits().watch());
    led.when("again").await?;
    leader.becomes(is_back()).within(cx.limits().start()).when("as a standby").await
}
