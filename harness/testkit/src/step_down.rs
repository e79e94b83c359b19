//! A leader that can no longer renew its Lease has to end itself, and not too late.

use super::{Replica, Subject, ends};
use harness_core::check::Verdict;
use k8s_openapi::jiff::Timestamp;
use std::time::Duration;
use tokio::time::Instant;

/// A leader that has just lost the means to renew its Lease.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let leader = cx.active_replica().await?;
/// leader.will_end();
/// let outage = cx.api_server_is_away().await?;
/// let step_down: StepDown<'_> = leader.cannot_renew();
/// let in_time = step_down.is_in_time().await;
/// outage.restore().await?;
/// in_time
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct StepDown<'a> {
    leader: &'a Replica<'a>,
    at: Timestamp,
    since: Instant,
}

impl<'a> Replica<'a> {
    /// States that it cannot renew its Lease from now on.
    pub fn cannot_renew(&'a self) -> StepDown<'a> {
        StepDown { leader: self, at: Timestamp::now(), since: Instant::now() }
    }
}

impl StepDown<'_> {
    /// The leader ends within B-STEPDOWN. The time when its process ended counts. A busy kubelet, or one that could not
    /// reach the API server, may report that time three periods of [`Limits::kubelet_report`] later.
    ///
    /// [`Limits::kubelet_report`]: harness_config::Limits::kubelet_report
    ///
    /// # Errors
    /// [`CheckError::Violation`] when it ends too late or not at all.
    ///
    /// [`CheckError::Violation`]: harness_core::check::CheckError::Violation
    pub async fn is_in_time(self) -> Verdict {
        let limits = self.leader.cx.limits();
        let limit = limits.step_down();
        let wait = (limit + 3 * limits.kubelet_report()).saturating_sub(self.since.elapsed());
        let wait = self.leader.becomes(ends()).within(wait.max(limits.kubelet_report()));
        let end = wait.when("as it cannot renew its Lease").await?;
        let reported = end.at.and_then(|at| Duration::try_from(at.duration_since(self.at)).ok());
        let Some(took) = too_late(reported, self.since.elapsed(), limit) else { return Ok(()) };
        let (limit, took) = (limit.as_secs_f64(), took.as_secs_f64());
        let expected = format!("within {limit:.1} s after it could no longer renew its Lease");
        Err(self.leader.breaks("the leader ends itself", &expected, &format!("it ended after {took:.1} s")))
    }
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
