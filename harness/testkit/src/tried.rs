//! What is seen of a trial of the CCM: its Pod, and whether it leads.

use harness_core::probe::{Matcher, Observation, Observed, holds, matcher};
use k8s_openapi::api::core::v1::{ContainerState, Pod};
use std::sync::Arc;

/// The state of a trial.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(trial: &Trial<'_>, node: &Node<'_>) -> Verdict {
/// type Both = (Tried, Option<std::sync::Arc<k8s_openapi::api::core::v1::Node>>);
/// let ends_first = matcher("ends with an error", |(tried, _): &Both| match tried.exit_code() {
///     Some(code) => Observation::when(code != 0),
///     None => Observation::Pending(String::new()),
/// });
/// (trial, node).becomes(ends_first).await
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Tried {
    pub(super) pod: Option<Arc<Pod>>,
    /// The holder of the CCM's Lease.
    pub(super) leader: Option<String>,
}

impl Tried {
    /// The exit code of its process, once it has ended.
    pub fn exit_code(&self) -> Option<i32> {
        let status = self.pod.as_ref()?.status.as_ref()?;
        let mut containers = status.container_statuses.iter().flatten();
        containers.find_map(|container| Some(container.state.as_ref()?.terminated.as_ref()?.exit_code))
    }

    /// Whether the Lease of the CCM has a holder.
    pub fn leads(&self) -> bool {
        self.leader.is_some()
    }
}

/// Reasons of a container that its runtime could not start: containerd's, and the one of older runtimes. Its exit code is
/// then the runtime's and not that of a program.
const NOT_STARTED: [&str; 2] = ["StartError", "ContainerCannotRun"];

/// Why the program of a Pod that is not restarted never ran, if its runtime failed to start it.
pub(super) fn never_ran(pod: &Pod) -> Option<String> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let terminated = statuses.iter().find_map(|own| own.state.as_ref()?.terminated.as_ref())?;
    let reason = terminated.reason.as_deref().filter(|reason| NOT_STARTED.contains(reason))?;
    let message = terminated.message.as_deref().unwrap_or_default();
    Some(format!(
        "the container runtime could not start the program of Pod {}: {reason} {message}",
        pod.metadata.name.as_deref().unwrap_or_default()
    ))
}

impl Observed for Tried {
    fn observed(&self) -> String {
        let mut text = self.pod.as_ref().map_or_else(|| "no Pod".to_owned(), |pod| pod.observed());
        if let Some(code) = self.exit_code() {
            text.push_str(&format!(", exit code {code}"));
        }
        if let Some(leader) = &self.leader {
            text.push_str(&format!(", the Lease held by {leader}"));
        }
        text
    }
}

/// Its process exited with an error before it became the leader.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let trial = cx.ccm_alone(&["--no-such-flag"]).await?;
/// trial.becomes(refuses()).within(cx.limits().start()).await
/// # }
/// ```
pub fn refuses() -> Matcher<Tried> {
    matcher("is refused", |tried: &Tried| match (tried.exit_code(), &tried.leader) {
        (_, Some(_)) => Observation::Impossible("it leads".to_owned()),
        (Some(0), None) => Observation::Impossible("that is not an error".to_owned()),
        (Some(_), None) => Observation::Matched(()),
        (None, None) => Observation::Pending(String::new()),
    })
    .expecting("its process exited with a code other than 0")
}

/// Its process exited, with any code.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, trial: &Trial<'_>) -> Verdict {
/// let ended = trial.becomes(has_ended()).within(cx.limits().start()).await;
/// trial.explained(ended).await
/// # }
/// ```
pub fn has_ended() -> Matcher<Tried> {
    holds("ends", |tried: &Tried| tried.exit_code().is_some()).expecting("its process ended")
}

/// Its process has started, whatever happened then.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let trial = cx.ccm_without_election().await?;
/// trial.becomes(is_up()).within(cx.limits().start()).await
/// # }
/// ```
pub fn is_up() -> Matcher<Tried> {
    holds("has started", |tried: &Tried| {
        let status = tried.pod.as_ref().and_then(|pod| pod.status.as_ref());
        let mut containers = status.iter().flat_map(|status| status.container_statuses.iter().flatten());
        let state = |of: &ContainerState| of.running.is_some() || of.terminated.is_some();
        containers.any(|container| container.state.as_ref().is_some_and(state))
    })
    .expecting("a container that runs or has ended")
}

/// The matcher's result about another subject, as long as its process runs: after its exit it cannot be fulfilled any
/// more.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, trial: &Trial<'_>, node: &Node<'_>) -> Verdict {
/// let seen = (trial, node).becomes(unless_it_ends(initialised())).within(cx.limits().start()).await;
/// trial.explained(seen).await?;
/// # Ok(()) }
/// ```
pub fn unless_it_ends<O: 'static, T: 'static>(wanted: Matcher<O, T>) -> Matcher<(Tried, O), T> {
    let (claim, expected) = (wanted.claim().to_owned(), wanted.expected().to_owned());
    matcher(claim, move |(tried, other): &(Tried, O)| match (wanted.matches(other), tried.exit_code()) {
        (Observation::Pending(_), Some(code)) => {
            Observation::Impossible(format!("the CCM ended with exit code {code}"))
        }
        (seen, _) => seen,
    })
    .expecting(expected)
}

/// Its process runs.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, trial: &Trial<'_>) -> Verdict {
/// trial.becomes(is_up()).within(cx.limits().start()).await?;
/// trial.keeps(keeps_running()).when("while the API server refuses its requests").await
/// # }
/// ```
pub fn keeps_running() -> Matcher<Tried> {
    holds("keeps running", |tried: &Tried| tried.pod.is_some() && tried.exit_code().is_none())
        .expecting("its process has not exited")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tried(code: Option<i32>, leader: Option<&str>) -> Tried {
        let state = match code {
            Some(code) => json!({"terminated": {"exitCode": code}}),
            None => json!({"running": {}}),
        };
        let pod = json!({"metadata": {"name": "p", "namespace": "n"}, "status": {"phase": "Running", "containerStatuses": [{
            "name": "c", "image": "i", "imageID": "", "ready": true, "restartCount": 0, "state": state,
        }]}});
        Tried {
            pod: Some(Arc::new(serde_json::from_value(pod).expect("a Pod"))),
            leader: leader.map(str::to_owned),
        }
    }

    #[test]
    fn what_the_runtime_could_not_start_is_no_end_of_a_program() {
        let pod = |reason: &str| -> Pod {
            let terminated = json!({"exitCode": 128, "reason": reason, "message": "no cgroup"});
            let status = json!({"name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state":
                {"terminated": terminated}});
            serde_json::from_value(
                json!({"metadata": {"name": "p"}, "status": {"containerStatuses": [status]}}),
            )
            .expect("a Pod")
        };
        let why = never_ran(&pod("StartError")).expect("it never ran");
        assert_eq!(why, "the container runtime could not start the program of Pod p: StartError no cgroup");
        assert_eq!(never_ran(&pod("Error")), None);
    }

    #[test]
    fn an_ended_process_is_not_waited_for() {
        let is_there = || unless_it_ends(holds("is there", |there: &bool| *there));
        assert_eq!(is_there().matches(&(tried(None, None), false)), Observation::Pending(String::new()));
        assert_eq!(is_there().matches(&(tried(Some(1), None), true)), Observation::Matched(()));
        assert!(matches!(is_there().matches(&(tried(Some(1), None), false)), Observation::Impossible(_)));
    }

    #[test]
    fn only_an_end_with_an_error_before_it_leads_is_a_refusal() {
        assert_eq!(refuses().matches(&tried(Some(1), None)), Observation::Matched(()));
        assert_eq!(refuses().matches(&tried(None, None)), Observation::Pending(String::new()));
        for other in [tried(Some(0), None), tried(None, Some("me")), tried(Some(1), Some("me"))] {
            assert!(matches!(refuses().matches(&other), Observation::Impossible(_)), "{}", other.observed());
        }
        assert_eq!(has_ended().matches(&tried(Some(0), None)), Observation::Matched(()));
        assert_eq!(has_ended().matches(&tried(None, None)), Observation::when(false));
    }
}
