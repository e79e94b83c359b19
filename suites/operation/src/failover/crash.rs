//! The leader crashes: another replica takes over, and two replicas never work at the same time (HA-03, -04).

use super::busy::{another_writes, edits, in_order, time_to_take_up};
use super::in_flight::EDITS;
use super::needs::{ELECTION, ELECTION_AND_LB, KILL};
use harness_testkit::prelude::*;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use std::sync::Arc;
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[
    Check::of("HA-03", |cx| Box::pin(fails_over(cx))).needs(ELECTION).with(KILL).at_the_crash().takes(10),
    Check::of("HA-04.crash", |cx| Box::pin(never_overlaps(cx)))
        .needs(ELECTION_AND_LB)
        .with(KILL)
        .at_the_crash()
        .takes(10),
];

/// Matches a Lease that another replica holds than before the crash, with one transition for the crash.
fn succeeds(crash: &Crash) -> Matcher<Option<Arc<Lease>>> {
    let (holder, transitions) = (crash.holder.clone(), crash.transitions + 1);
    let expected =
        format!("{transitions} transitions and another holder than {}", holder.as_deref().unwrap_or("none"));
    holds("has changed hands once", move |lease: &Option<Arc<Lease>>| {
        lease.as_ref().is_some_and(|l| holder_of(l) != holder && transitions_of(l) == transitions)
    })
    .expecting(expected)
}

/// A tolerance for the duration of a Lease: the clocks of two nodes differ, and times are truncated.
const SLACK: Duration = Duration::from_secs(1);

/// Describes after how long a Lease was taken over, if that was before its duration had passed since its last
/// renewal (k8s.io/client-go tools/leaderelection: a standby counts from when it has seen the renewal).
fn too_early(last: Option<Timestamp>, acquired: Option<Timestamp>, duration: Duration) -> Option<String> {
    let left_alone = Duration::try_from(acquired?.duration_since(last?)).ok()?;
    (left_alone + SLACK < duration).then(|| format!("{:.1} s after it", left_alone.as_secs_f64()))
}

async fn fails_over(cx: &CheckCx) -> Verdict {
    let crash = cx.leader_crash().await?;
    let lease = cx.lease();
    let taken = lease.becomes(taken_over(crash.transitions)).within(cx.limits().failover()).await?;
    cx.record("failover_ms", crash.at.elapsed().as_millis());
    lease.has_shown(&Some(taken.clone()), succeeds(&crash))?;
    let last = match &crash.holder {
        Some(holder) => lease.last_renewal_by(holder)?,
        None => None,
    };
    let acquired = taken.spec.as_ref().and_then(|spec| spec.acquire_time.as_ref()).map(|time| time.0);
    if let Some(early) = too_early(last, acquired, cx.limits().lease().duration) {
        let duration = cx.limits().lease().duration.as_secs_f64();
        let expected = format!("{duration} s after the last renewal");
        return Err(lease.breaks("a standby leaves the Lease alone for its duration", &expected, &early));
    }
    // The successor works: a Node that joins now is initialised.
    let machine = cx.machine(machine("after")).await?;
    let node = cx.node(machine.node()).await?;
    node.becomes(initialised()).within(2 * cx.limits().watch()).when("by the new leader").await?;
    Ok(())
}

/// The number of writes before the crash: two for each of two replicas. If the replicas do not wait for one
/// another, their writes alternate.
const WRITES: usize = 4;
/// How long a write for the edited Service takes: longer than any replica needs to notice that it is still due.
const SLOWNESS: Duration = Duration::from_millis(300);

/// Matches at least this many calls.
fn as_many_as(count: usize) -> Matcher<Vec<Entry>> {
    holds("are enough", move |calls: &Vec<Entry>| calls.len() >= count)
        .expecting(format!("at least {count} calls"))
}

/// The leader writes, crashes, and another replica writes. Returns the name of the first leader.
async fn change_of_leader(cx: &CheckCx, mark: u64) -> Result<String, CheckError> {
    let writes = cx.cloud().calls().writes().since(mark);
    writes.becomes(as_many_as(WRITES)).within(time_to_take_up(cx)).when("by the leader").await?;
    let Crash { replica, transitions, .. } = cx.leader_crash().await?;
    cx.lease().becomes(taken_over(transitions)).within(cx.limits().failover()).await?;
    another_writes(cx, &replica, mark).await?;
    Ok(replica)
}

async fn never_overlaps(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("busy").port(80)).await?.provisioned().await?;
    cx.crash_is_near().await?;
    if cx.makes_faults() {
        let slow = Effect::Latency { ms: u64::try_from(SLOWNESS.as_millis()).unwrap_or(u64::MAX) };
        web.cloud()
            .meets(format!("writes that take {} s", SLOWNESS.as_secs_f64()), &[slow])
            .to(EDITS)
            .await?;
    }
    let mark = cx.cloud().mark()?;
    // Writes continue before, during and after the crash.
    let leader = tokio::select! {
        stop = edits(&web) => return Err(stop),
        outcome = change_of_leader(cx, mark) => outcome?,
    };
    in_order(cx, mark, &leader).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_takeover_is_early_only_before_the_duration_is_over() {
        let at = |second| Timestamp::from_second(second).ok();
        let six = Duration::from_secs(6);
        assert_eq!(too_early(at(100), at(103), six).as_deref(), Some("3.0 s after it"));
        for (last, acquired) in [(at(100), at(106)), (at(100), at(105)), (None, at(103)), (at(100), None)] {
            assert_eq!(too_early(last, acquired, six), None);
        }
    }
}
