//! How a replica that is asked to end does so: by itself, or killed when its grace period is over.

use super::{CheckCx, Replica, Subject, taken_over};
use harness_clouds::Entry;
use harness_core::check::{CheckError, SubjectName, Verdict};
use harness_core::probe::{Matcher, Observed, ReadError, ReadSource, holds};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::ResourceExt;
use kube::api::Api;
use std::sync::Arc;
use std::time::Duration;

/// Exit code of a process that was killed: 128 and SIGKILL.
const KILLED: i32 = 137;
/// The default grace period of Kubernetes.
const USUAL_GRACE: Duration = Duration::from_secs(30);

/// The end of one Pod of a replica, as it happens.
#[derive(Clone)]
pub struct Departure<'a> {
    cx: &'a CheckCx,
    replica: String,
    namespace: String,
    pod: String,
    uid: Option<String>,
    grace: Duration,
}

/// Its progress. A Pod may exist for a while after its process has ended: its kubelet cleans up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departed {
    runs: bool,
    /// The exit code, if the kubelet has reported it.
    pub code: Option<i32>,
}

impl Departed {
    /// Whether its kubelet had to kill it.
    pub fn was_killed(&self) -> bool {
        self.code == Some(KILLED)
    }
}

impl Observed for Departed {
    fn observed(&self) -> String {
        let code =
            self.code.map_or_else(|| "no exit code reported".to_owned(), |code| format!("exit code {code}"));
        format!("{}, {code}", if self.runs { "its process runs" } else { "its process is gone" })
    }
}

/// Its process is gone.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, replica: &Replica<'_>) -> Verdict {
/// let departure = replica.departure()?;
/// replica.will_end();
/// replica.terminate().await?;
/// departure.becomes(departs()).within(departure.grace() + cx.limits().kubelet_report()).await
/// # }
/// ```
pub fn departs() -> Matcher<Departed> {
    holds("goes", |departed: &Departed| !departed.runs).expecting("no process of the replica")
}

impl<'a> Replica<'a> {
    /// Watches how its Pod ends from now on.
    ///
    /// # Errors
    /// [`CheckError::Error`] when it has none.
    pub fn departure(&self) -> Result<Departure<'a>, CheckError> {
        let name = self.name();
        let pods = self.cx.session().ccm().pods_of_replica(name);
        let pod = pods.into_iter().find(|pod| pod.metadata.deletion_timestamp.is_none());
        let pod = pod.ok_or_else(|| CheckError::Error(format!("replica {name} has no Pod")))?;
        let grace = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
        let grace = grace.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
        Ok(Departure {
            cx: self.cx,
            replica: name.to_owned(),
            namespace: pod.namespace().unwrap_or_default(),
            pod: pod.name_any(),
            uid: pod.uid(),
            grace: grace.unwrap_or(USUAL_GRACE),
        })
    }
}

impl Replica<'_> {
    /// Ends the replica with SIGTERM (see [`Replica::terminate`]) and waits until another one has taken over the Lease,
    /// which has had `before` transitions so far. B-FAILOVER counts from when the Pod shows that its process has ended,
    /// because a busy kubelet sends the signal late.
    ///
    /// # Errors
    /// [`CheckError::Violation`] when no other replica takes over, [`CheckError::Error`] when its kubelet does not end it.
    pub async fn hands_over(&self, before: i32) -> Verdict {
        let departure = self.departure()?;
        self.terminate().await?;
        let (lease, failover) = (self.cx.lease(), self.cx.limits().failover());
        let taken = lease.becomes(taken_over(before)).within(departure.limit() + failover);
        tokio::select! {
            taken = taken => return taken.map(drop),
            gone = departure.is_over() => gone?,
        }
        lease.becomes(taken_over(before)).within(failover).await.map(drop)
    }
}

impl Departure<'_> {
    /// The grace period of its Pod.
    pub fn grace(&self) -> Duration {
        self.grace
    }

    /// How long its kubelet may take to report its end. A busy one may take 15 s to send SIGTERM.
    pub fn limit(&self) -> Duration {
        self.grace + 6 * self.cx.limits().kubelet_report()
    }

    /// Waits until no process of it is left.
    ///
    /// # Errors
    /// [`CheckError::Error`] when that takes too long: a kubelet kills what has not ended after the grace period.
    pub async fn is_over(&self) -> Verdict {
        match self.becomes(departs()).within(self.limit()).await {
            Err(CheckError::Violation(violation)) => Err(self.not_ended(&violation.seen)),
            other => other,
        }
    }

    fn not_ended(&self, seen: &str) -> CheckError {
        CheckError::Error(format!(
            "the kubelet has not ended Pod {} within {:.0} s after its deletion, of which {:.0} s are its grace period \
             (last seen: {seen}); run on a machine with less load",
            self.pod,
            self.limit().as_secs_f64(),
            self.grace.as_secs_f64(),
        ))
    }
}

impl Subject for Departure<'_> {
    type Snapshot = Departed;

    fn cx(&self) -> &CheckCx {
        self.cx
    }

    fn name(&self) -> SubjectName {
        SubjectName { kind: "replica", name: self.replica.clone(), uid: None }
    }

    async fn read(&self, reach: ReadSource) -> Result<Departed, ReadError> {
        let pods = self.cx.session().ccm_site().world().pods.current()?;
        let same = |pod: &Pod| pod.uid() == self.uid;
        let now = match reach {
            ReadSource::Cache => pods.find(&self.namespace, &self.pod),
            ReadSource::Origin => {
                let api: Api<Pod> = Api::namespaced(self.cx.pods_client(), &self.namespace);
                api.get_opt(&self.pod).await?.map(Arc::new)
            }
        };
        let runs = now.is_some_and(|pod| same(&pod) && runs(&pod));
        let history = pods.history(&self.namespace, &self.pod);
        let its = history.iter().map(|version| &version.object).filter(|pod| same(pod));
        Ok(Departed { runs, code: its.filter_map(|pod| exit_code(pod)).next_back() })
    }

    fn concerns(&self, _: &Entry) -> bool {
        false
    }
}

fn runs(pod: &Pod) -> bool {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    let running = |one: &ContainerStatus| one.state.as_ref().is_some_and(|state| state.running.is_some());
    statuses.into_iter().flatten().any(running)
}

fn exit_code(pod: &Pod) -> Option<i32> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    statuses.iter().find_map(|one| Some(one.state.as_ref()?.terminated.as_ref()?.exit_code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::probe::Observation;

    #[test]
    fn a_killed_process_is_recognised_by_its_exit_code() {
        let gone = |code| Departed { runs: false, code };
        assert!(gone(Some(137)).was_killed());
        for code in [None, Some(0), Some(1), Some(143)] {
            assert!(!gone(code).was_killed(), "{code:?}");
        }
        assert_eq!(departs().matches(&gone(None)), Observation::Matched(()));
        assert_eq!(departs().matches(&Departed { runs: true, code: None }), Observation::when(false));
    }
}
