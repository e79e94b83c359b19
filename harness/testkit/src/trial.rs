//! Runs one CCM process with flags of a check: what it refuses, what it logs, what it does not do.

use super::undo_steps::Undo;
use super::{Account, CheckCx, Grant, Right, SecurePort, Subject};
use harness_clouds::Entry;
use harness_core::check::{Capability, CheckError, SubjectName, chain};
use harness_core::probe::{Matcher, Observation, Observed, ReadError, ReadSource, holds, matcher};
use harness_session::ccm::{KUBECONFIG, ObjectKey, Rendered, key_of, last_lines, mentions, unrecoverable};
use harness_session::suffix;
use k8s_openapi::api::core::v1::{ContainerState, Pod};
use kube::api::{Api, LogParams};
use serde_json::{Value, json};
use std::sync::Arc;

/// How many log lines a failure shows.
const SHOWN_LINES: i64 = 12;

/// One process of the CCM, while no other runs. It is not restarted when it exits.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let trial: Trial<'_> = cx.ccm_alone(&["--no-such-flag"]).await?;
/// let refused = trial.becomes(refuses()).within(cx.limits().start()).await;
/// trial.explained(refused).await
/// # }
/// ```
#[derive(Clone)]
pub struct Trial<'a> {
    cx: &'a CheckCx,
    arguments: String,
    pod: ObjectKey,
    /// Its own service account, if it has one.
    account: Option<Account>,
}

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
    pod: Option<Arc<Pod>>,
    /// The holder of the CCM's Lease.
    leader: Option<String>,
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

impl<'a> Trial<'a> {
    /// Its secure port.
    ///
    /// # Errors
    /// As [`Replica::secure_port`](super::Replica::secure_port).
    pub fn secure_port(&self) -> Result<SecurePort<'a>, CheckError> {
        let session = &self.cx.session;
        let pod = session.ccm_site().world().pods.find(&self.pod.namespace, &self.pod.name);
        let like = session.ccm().replicas().first().map(|replica| replica.name.clone()).unwrap_or_default();
        self.cx.port_of(&self.pod.name, pod, session.ccm().secure_port_of(&like).unwrap_or_default())
    }

    /// Its log so far.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn log(&self) -> Result<String, CheckError> {
        let api: Api<Pod> = Api::namespaced(self.cx.pods_client(), &self.pod.namespace);
        Ok(api.logs(&self.pod.name, &LogParams::default()).await?)
    }

    /// Replaces its permissions, and waits until the API server permits `right` or no longer does. Only for one of
    /// [`CheckCx::ccm_as`].
    ///
    /// # Errors
    /// When the API server refuses, or does not apply the change.
    pub async fn may(&self, grants: &[Grant], right: &Right, allowed: bool) -> Result<(), CheckError> {
        let account = self.account.as_ref();
        let account =
            account.ok_or_else(|| CheckError::Error("the trial has no service account".to_owned()))?;
        self.cx.grant(account, grants).await?;
        self.cx.has_right(account, right, allowed).await
    }

    /// The service account it runs as.
    ///
    /// # Errors
    /// As [`CheckCx::ccm_account`].
    pub fn account(&self) -> Result<Account, CheckError> {
        self.account.clone().map_or_else(|| self.cx.ccm_account(), Ok)
    }

    /// A failure about it, with its last log lines.
    ///
    /// # Errors
    /// The given failure.
    pub async fn explained<T>(&self, outcome: Result<T, CheckError>) -> Result<T, CheckError> {
        let pod = self.cx.session.ccm_site().world().pods.find(&self.pod.namespace, &self.pod.name);
        self.cx.explained_by(pod.as_slice(), outcome).await
    }
}

impl Subject for Trial<'_> {
    type Snapshot = Tried;

    fn cx(&self) -> &CheckCx {
        self.cx
    }

    fn name(&self) -> SubjectName {
        let flags = if self.arguments.is_empty() { "its own flags" } else { &self.arguments };
        SubjectName { kind: "the CCM with", name: flags.to_owned(), uid: None }
    }

    async fn read(&self, reach: ReadSource) -> Result<Tried, ReadError> {
        let world = self.cx.session.ccm_site().world();
        let pod = match reach {
            ReadSource::Cache => world.pods.current()?.find(&self.pod.namespace, &self.pod.name),
            ReadSource::Origin => {
                let api: Api<Pod> = Api::namespaced(self.cx.pods_client(), &self.pod.namespace);
                api.get_opt(&self.pod.name).await?.map(Arc::new)
            }
        };
        if let Some(why) = pod.as_ref().and_then(|pod| unrecoverable(pod)) {
            return Err(ReadError { text: why, fatal: true });
        }
        let lease = self.cx.lease().read(reach).await?;
        Ok(Tried { pod, leader: lease.and_then(|lease| super::holder_of(&lease)) })
    }

    fn concerns(&self, _: &Entry) -> bool {
        false
    }
}

impl CheckCx {
    /// Removes the CCM and starts one process of it with these arguments after its others. It is removed when the check
    /// ends. Only for checks that declare this
    /// ([`Check::on_a_fresh_cluster`](harness_core::check::Check::on_a_fresh_cluster)).
    ///
    /// # Errors
    /// [`CheckError::Violation`] when there is no CCM, [`CheckError::Error`] when the API server refuses.
    pub async fn ccm_alone(&self, arguments: &[&str]) -> Result<Trial<'_>, CheckError> {
        let (rendered, pod) = self.trial(arguments).await?;
        self.started(rendered, pod, arguments, None).await
    }

    /// Like [`CheckCx::ccm_alone`], but without leader election if the CCM has flags for that: it holds no Lease that it
    /// could lose while it cannot reach the API server, and creates no routes.
    ///
    /// # Errors
    /// Those of [`CheckCx::ccm_alone`].
    pub async fn ccm_without_election(&self) -> Result<Trial<'_>, CheckError> {
        let takes = self.declares(Capability::LeaderElection) && self.declares(Capability::FrameworkFlags);
        let unelected: &[&str] = if takes { &["--leader-elect=false"] } else { &[] };
        self.ccm_alone(&self.without_routes(unelected)).await
    }

    /// Like [`CheckCx::ccm_alone`], but with its own service account. Its permissions are what `grants` returns for those
    /// that the manifests grant to the CCM, and nothing else.
    ///
    /// # Errors
    /// Those of [`CheckCx::ccm_alone`].
    pub async fn ccm_as(
        &self,
        grants: impl FnOnce(&[Grant]) -> Vec<Grant>,
        arguments: &[&str],
    ) -> Result<Trial<'_>, CheckError> {
        let arguments = &self.under_one_account(self.without_routes(arguments));
        let (mut rendered, pod) = self.trial(arguments).await?;
        let is_pod = |document: &Value| key_of(document) == pod;
        let (mut pods, others): (Vec<Value>, Vec<Value>) = rendered.documents.into_iter().partition(is_pod);
        rendered.documents = others;
        self.session.ccm().apply_rendered(&rendered).await?;
        let granted = grants(&self.granted_to(&self.ccm_account()?).await?);
        let account = self.account_with(&pod.namespace, &granted).await?;
        for document in &mut pods {
            document["spec"]["serviceAccountName"] = json!(account.name);
        }
        // A hosted CCM gets a kubeconfig for that account.
        rendered.documents.retain(|document| mentions(document, KUBECONFIG));
        rendered.documents.append(&mut pods);
        self.started(rendered, pod, arguments, Some(account)).await
    }

    /// These arguments, and one that makes a CCM create no routes, if it has such a flag: a trial ends before it has
    /// removed its routes, and nothing else might remove them.
    pub fn without_routes<'a>(&self, arguments: &[&'a str]) -> Vec<&'a str> {
        let takes = self.declares(Capability::Routes) && self.declares(Capability::FrameworkFlags);
        let without = takes.then_some("--configure-cloud-routes=false");
        arguments.iter().copied().chain(without).collect()
    }

    /// These arguments, and one that makes all of a CCM's controllers use the account whose permissions the check
    /// chooses, if it has such a flag and it is not set yet (contract AUTH-13).
    fn under_one_account<'a>(&self, mut arguments: Vec<&'a str>) -> Vec<&'a str> {
        const FLAG: &str = "--use-service-account-credentials";
        if self.declares(Capability::FrameworkFlags) && !arguments.iter().any(|one| one.starts_with(FLAG)) {
            arguments.push("--use-service-account-credentials=false");
        }
        arguments
    }

    /// Removes the CCM; returns the parts of a trial, and its Pod. Undone when the check ends.
    async fn trial(&self, arguments: &[&str]) -> Result<(Rendered, ObjectKey), CheckError> {
        self.withdraw_ccm().await?;
        let name = format!("trial-{}", suffix(self.session.next_number()));
        let listed: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let ccm = self.session.ccm();
        let rendered = ccm.trial(&name, &listed);
        let promise = format!("the CCM starts with {}", arguments.join(" "));
        let rendered =
            rendered.ok_or_else(|| CheckError::violation(promise, "a CCM", "the profile deploys none"))?;
        let pod = rendered.workloads.first().cloned();
        let pod = pod.ok_or_else(|| CheckError::Error("the trial has no Pod".to_owned()))?;
        self.on_end(Undo::Trial(name));
        Ok((rendered, pod))
    }

    /// A failure, with the last log lines of these Pods.
    pub(super) async fn explained_by<T>(
        &self,
        pods: &[Arc<Pod>],
        outcome: Result<T, CheckError>,
    ) -> Result<T, CheckError> {
        let Err(CheckError::Violation(mut violation)) = outcome else { return outcome };
        let mut lines = String::new();
        for pod in pods {
            lines.push_str(&last_lines(&self.pods_client(), pod, SHOWN_LINES).await);
        }
        violation.explained = (!pods.is_empty()).then(|| harness_core::secrets::redact(lines));
        Err(CheckError::Violation(violation))
    }

    async fn started(
        &self,
        rendered: Rendered,
        pod: ObjectKey,
        arguments: &[&str],
        account: Option<Account>,
    ) -> Result<Trial<'_>, CheckError> {
        self.session.ccm().apply_rendered(&rendered).await?;
        self.caught_up(|| self.session.ccm_site().world().pods.find(&pod.namespace, &pod.name).is_some())
            .await?;
        Ok(Trial { cx: self, arguments: arguments.join(" "), pod, account })
    }

    pub(super) async fn undo_trial(&self, name: &str) -> Result<(), String> {
        let ccm = self.session.ccm();
        match ccm.trial(name, &[]) {
            Some(rendered) => ccm.remove_rendered(rendered).await.map_err(|error| chain(&error)),
            None => Ok(()),
        }
    }
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
