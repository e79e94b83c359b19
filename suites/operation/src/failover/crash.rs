//! The leader crashes: another replica takes over, and the two never work at once (HA-03, -04).

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

/// Somebody else holds it than before the crash, and one crash was one transition.
fn succeeds(crash: &Crash) -> Matcher<Option<Arc<Lease>>> {
    let (holder, transitions) = (crash.holder.clone(), crash.transitions + 1);
    let expected =
        format!("{transitions} transitions and another holder than {}", holder.as_deref().unwrap_or("none"));
    holds("has changed hands once", move |lease: &Option<Arc<Lease>>| {
        lease.as_ref().is_some_and(|l| holder_of(l) != holder && transitions_of(l) == transitions)
    })
    .expecting(expected)
}

/// How much less than its duration a Lease may have been left alone: clocks of two nodes, and times that are cut off.
const SLACK: Duration = Duration::from_secs(1);

/// After how long a Lease was taken over, in words, if that was before its duration was over since its last renewal
/// (k8s.io/client-go tools/leaderelection: a standby counts from when it has seen the renewal).
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

/// How many writes there are before the crash: two of each of two replicas that do not wait for one another, so that either's
/// come between the other's.
const WRITES: usize = 4;
/// How long a write of the edited Service takes: longer than any replica needs to find it still due.
const SLOWNESS: Duration = Duration::from_millis(300);

/// There are so many calls.
fn as_many_as(count: usize) -> Matcher<Vec<Entry>> {
    holds("are enough", move |calls: &Vec<Entry>| calls.len() >= count)
        .expecting(format!("at least {count} calls"))
}

/// The leader writes, crashes, and another replica writes; yields who led.
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
    // Steady work before, during and after the crash.
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
        assert_eq!(too_early(at(100), at(103), six).as_deref(), Some("3.0s after it"));
        for (last, acquired) in [(at(100), at(106)), (at(100), at(105)), (None, at(103)), (at(100), None)] {
            assert_eq!(too_early(last, acquired, six), None);
        }
    }
}
