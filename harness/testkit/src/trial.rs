//! Runs one CCM process with flags of a check: what it refuses, what it logs, what it does not do.

use super::tried::{Tried, is_up, never_ran};
use super::undo_steps::Undo;
use super::{Account, CheckCx, Grant, Right, SecurePort, Subject};
use harness_clouds::Entry;
use harness_core::check::{Blocker, Capability, CheckError, SubjectName, chain};
use harness_core::probe::{Observation, Observed, ReadError, ReadSource, poll};
use harness_session::ccm::{KUBECONFIG, ObjectKey, Rendered, key_of, last_lines, mentions, unrecoverable};
use harness_session::suffix;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, LogParams};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How many log lines a failure shows.
const SHOWN_LINES: usize = 12;

/// How long a check may wait for a trial at most; far longer than any limit of a check.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// How often the container runtime may fail to start a trial's program, before the check judges anything.
const ATTEMPTS: u32 = 3;

/// How often a trial's Pod is looked at while a check waits for something else.
const LOOKED_AT_EVERY: Duration = Duration::from_millis(50);

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
    /// Whether the check is about none of its flags, so that it exits only if it does so in every cluster.
    is_as_shipped: bool,
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

    /// Waits for what only a running CCM can bring about. When its process ends first, the wait is over at once.
    ///
    /// ```
    /// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, node: &Node<'_>) -> Verdict {
    /// let trial = cx.ccm_alone(&["--controllers=*,-service"]).await?;
    /// trial.while_it_runs(node.becomes(initialised()).within(cx.limits().start())).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of `work`, a failure with the process's last log lines. When the process ends:
    /// [`CheckError::Blocked`] by [`Blocker::StaysUp`] if the check is about none of its flags, otherwise a violation.
    pub async fn while_it_runs<T>(
        &self,
        work: impl IntoFuture<Output = Result<T, CheckError>>,
    ) -> Result<T, CheckError> {
        tokio::select! {
            biased;
            outcome = work.into_future() => self.explained(outcome).await,
            ended = self.end() => {
                let code = ended?;
                let seen = format!("the CCM ended with exit code {code}");
                if self.is_as_shipped {
                    let lines = last_lines_of(&self.cx.pods_client(), &self.pods(), SHOWN_LINES).await;
                    return Err(CheckError::Blocked { by: Blocker::StaysUp, seen: seen + &lines });
                }
                let promise = format!("the CCM works with {}", self.name().name);
                self.explained(Err(CheckError::violation(promise, "its process keeps running", seen))).await
            }
        }
    }

    /// The exit code of its process, or that it never ran; never returns while it runs.
    async fn end(&self) -> Result<i32, CheckError> {
        let ended = async |seen: &mut String| {
            let tried = Tried { pod: self.pods().pop(), leader: None };
            *seen = tried.observed();
            let failed = tried.pod.as_deref().and_then(never_ran);
            Ok(failed.map(|why| Err(CheckError::Error(why))).or_else(|| tried.exit_code().map(Ok)))
        };
        match poll("its process ends", LONGEST_WAIT, LOOKED_AT_EVERY, ended).await {
            Ok(ended) => ended,
            Err::<_, ReadError>(_) => std::future::pending().await,
        }
    }

    /// Waits until a kubelet has started its process, which may take a busy one longer than a CCM has for its work. If that
    /// does not happen, the check's next wait says why.
    async fn has_begun(&self) -> Result<(), CheckError> {
        let begun = async |seen: &mut String| {
            let pod = self.pods().pop();
            let fails = pod.as_deref().is_some_and(|pod| unrecoverable(pod).is_some());
            let tried = Tried { pod, leader: None };
            *seen = tried.observed();
            let is_up = matches!(is_up().matches(&tried), Observation::Matched(()));
            Ok::<_, ReadError>((fails || is_up).then_some(()))
        };
        let limit = self.cx.limits().start();
        let _ = poll("its process starts", limit, LOOKED_AT_EVERY, begun).await;
        Ok(())
    }

    fn pods(&self) -> Vec<Arc<Pod>> {
        let world = self.cx.session.ccm_site().world();
        world.pods.find(&self.pod.namespace, &self.pod.name).into_iter().collect()
    }

    /// A failure about it, with its last log lines.
    ///
    /// # Errors
    /// The given failure.
    pub async fn explained<T>(&self, outcome: Result<T, CheckError>) -> Result<T, CheckError> {
        self.cx.explained_by(&self.pods(), outcome).await
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
        if let Some(why) = pod.as_ref().and_then(|pod| unrecoverable(pod).or_else(|| never_ran(pod))) {
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
        let trial = self.ccm_alone(&self.without_routes(unelected)).await?;
        Ok(Trial { is_as_shipped: true, ..trial })
    }

    /// Like [`CheckCx::ccm_alone`], for checks that are about none of its flags: if the CCM ends, they are blocked.
    ///
    /// # Errors
    /// Those of [`CheckCx::ccm_alone`].
    pub async fn ccm_as_shipped(&self) -> Result<Trial<'_>, CheckError> {
        let trial = self.ccm_alone(&self.without_routes(&[])).await?;
        Ok(Trial { is_as_shipped: true, ..trial })
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

    /// The Pods of the CCMs that the check runs by itself.
    pub(super) fn trial_pods(&self) -> Vec<Arc<Pod>> {
        let ccm = self.session.ccm();
        let keys =
            self.trials().into_iter().filter_map(|name| ccm.trial(&name, &[])).flat_map(|one| one.workloads);
        let world = self.session.ccm_site().world();
        keys.filter_map(|key| world.pods.find(&key.namespace, &key.name)).collect()
    }

    /// A failure, with the last log lines of these Pods.
    pub(super) async fn explained_by<T>(
        &self,
        pods: &[Arc<Pod>],
        outcome: Result<T, CheckError>,
    ) -> Result<T, CheckError> {
        let Err(CheckError::Violation(mut violation)) = outcome else { return outcome };
        let lines = last_lines_of(&self.pods_client(), pods, SHOWN_LINES).await;
        violation.explained = (!pods.is_empty()).then(|| lines.trim_start_matches('\n').to_owned());
        Err(CheckError::Violation(violation))
    }

    async fn started(
        &self,
        rendered: Rendered,
        pod: ObjectKey,
        arguments: &[&str],
        account: Option<Account>,
    ) -> Result<Trial<'_>, CheckError> {
        let ccm = self.session.ccm();
        let trial = Trial { cx: self, arguments: arguments.join(" "), pod, account, is_as_shipped: false };
        let mut failed = None;
        for attempt in 1..=ATTEMPTS {
            ccm.apply_rendered(&rendered).await?;
            self.caught_up(|| trial.pods().iter().any(|pod| pod.metadata.uid != failed)).await?;
            self.session.unless_interrupted(trial.has_begun()).await?;
            let not_run = trial.pods().into_iter().find(|pod| never_ran(pod).is_some());
            let Some(not_run) = not_run.filter(|_| attempt < ATTEMPTS) else { break };
            failed.clone_from(&not_run.metadata.uid);
            // A kubelet would repeat it for a Pod that is restarted.
            let is_pod = |document: &&Value| rendered.workloads.contains(&key_of(document));
            let documents = rendered.documents.iter().filter(is_pod).cloned().collect();
            ccm.remove_additional(Rendered { documents, ..rendered.clone() }).await?;
        }
        Ok(trial)
    }

    pub(super) async fn undo_trial(&self, name: &str) -> Result<(), String> {
        let ccm = self.session.ccm();
        match ccm.trial(name, &[]) {
            Some(rendered) => ccm.remove_rendered(rendered).await.map_err(|error| chain(&error)),
            None => Ok(()),
        }
    }
}

/// The last log lines of these Pods, without secrets.
async fn last_lines_of(client: &Client, pods: &[Arc<Pod>], lines: usize) -> String {
    let mut text = String::new();
    for pod in pods {
        text.push_str(&last_lines(client, pod, lines).await);
    }
    harness_core::secrets::redact(text)
}
