//! The CCM by itself with flags of a check's own: what it refuses, what it says, what it leaves undone.

use super::made::Undo;
use super::{CheckCx, Subject};
use crate::ccm::{ObjectKey, last_lines, unrecoverable};
use crate::check::{Stop, SubjectName, chain};
use crate::cloud::Entry;
use crate::probe::{Matcher, Observed, Reach, ReadError, Seen, holds, matcher};
use crate::session::suffix;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, LogParams};
use std::sync::Arc;

/// How many log lines a failure shows.
const SHOWN_LINES: i64 = 12;

/// One process of the CCM, while no other runs. It is not started again when it ends.
#[derive(Clone)]
pub struct Trial<'a> {
    cx: &'a CheckCx,
    arguments: String,
    pod: ObjectKey,
}

/// What became of a trial.
#[derive(Clone, Debug)]
pub struct Tried {
    pod: Option<Arc<Pod>>,
    /// Who holds the CCM's Lease.
    leader: Option<String>,
}

impl Tried {
    fn exit_code(&self) -> Option<i32> {
        let status = self.pod.as_ref()?.status.as_ref()?;
        let mut containers = status.container_statuses.iter().flatten();
        containers.find_map(|container| Some(container.state.as_ref()?.terminated.as_ref()?.exit_code))
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

/// Its process ended with an error, before it led.
pub fn refuses() -> Matcher<Tried> {
    matcher("is refused", |tried: &Tried| match (tried.exit_code(), &tried.leader) {
        (_, Some(_)) => Seen::Never("it leads".to_owned()),
        (Some(0), None) => Seen::Never("that is no error".to_owned()),
        (Some(_), None) => Seen::Yes(()),
        (None, None) => Seen::NotYet(String::new()),
    })
    .expecting("its process ended with an exit code that is not 0")
}

/// Its process ended, however.
pub fn has_ended() -> Matcher<Tried> {
    holds("ends", |tried: &Tried| tried.exit_code().is_some()).expecting("its process ended")
}

/// Its process runs.
pub fn goes_on() -> Matcher<Tried> {
    holds("goes on", |tried: &Tried| tried.pod.is_some() && tried.exit_code().is_none())
        .expecting("its process has not ended")
}

impl Trial<'_> {
    /// What it has written so far.
    ///
    /// # Errors
    /// When the API server does not say.
    pub async fn log(&self) -> Result<String, Stop> {
        let api: Api<Pod> = Api::namespaced(self.cx.client.clone(), &self.pod.namespace);
        Ok(api.logs(&self.pod.name, &LogParams::default()).await?)
    }

    /// A failure about it, with its last log lines.
    ///
    /// # Errors
    /// As it was given.
    pub async fn explained<T>(&self, outcome: Result<T, Stop>) -> Result<T, Stop> {
        match outcome {
            Err(Stop::Unmet(mut unmet)) => {
                let pod = self.cx.session.world().pods.find(&self.pod.namespace, &self.pod.name);
                if let Some(pod) = pod {
                    let lines = last_lines(&self.cx.client, &pod, SHOWN_LINES).await;
                    unmet.explained = Some(crate::secrets::redact(lines));
                }
                Err(Stop::Unmet(unmet))
            }
            other => other,
        }
    }
}

impl Subject for Trial<'_> {
    type Seen = Tried;

    fn cx(&self) -> &CheckCx {
        self.cx
    }

    fn name(&self) -> SubjectName {
        SubjectName { kind: "the CCM with", name: self.arguments.clone(), uid: None }
    }

    async fn read(&self, reach: Reach) -> Result<Tried, ReadError> {
        let world = self.cx.session.world();
        let pod = match reach {
            Reach::Nearest => world.pods.current()?.find(&self.pod.namespace, &self.pod.name),
            Reach::Origin => {
                let api: Api<Pod> = Api::namespaced(self.cx.client.clone(), &self.pod.namespace);
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
    /// Takes the CCM away and starts one process of it with these arguments set after its others. It goes when the check
    /// ends. Only for checks that say so ([`Check::cold`](crate::check::Check::cold)).
    ///
    /// # Errors
    /// [`Stop::Unmet`] when there is no CCM, [`Stop::Error`] when the API server refuses.
    pub async fn ccm_alone(&self, arguments: &[&str]) -> Result<Trial<'_>, Stop> {
        self.withdraw_ccm().await?;
        let name = format!("trial-{}", suffix(self.session.next_number()));
        let listed: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let shown = arguments.join(" ");
        let ccm = self.session.ccm();
        let rendered = ccm.trial(&name, &listed);
        let promise = format!("the CCM starts with {shown}");
        let rendered = rendered.ok_or_else(|| Stop::unmet(promise, "a CCM", "the profile deploys none"))?;
        let pod = rendered.workloads.first().cloned();
        let pod = pod.ok_or_else(|| Stop::Error("a trial without a Pod".to_owned()))?;
        self.on_end(Undo::Trial(name));
        ccm.apply_rendered(&rendered).await?;
        self.caught_up(|| self.session.world().pods.find(&pod.namespace, &pod.name).is_some()).await?;
        Ok(Trial { cx: self, arguments: shown, pod })
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
    fn only_an_end_with_an_error_before_it_leads_is_a_refusal() {
        assert_eq!(refuses().matches(&tried(Some(1), None)), Seen::Yes(()));
        assert_eq!(refuses().matches(&tried(None, None)), Seen::NotYet(String::new()));
        for other in [tried(Some(0), None), tried(None, Some("me")), tried(Some(1), Some("me"))] {
            assert!(matches!(refuses().matches(&other), Seen::Never(_)), "{}", other.observed());
        }
        assert_eq!(has_ended().matches(&tried(Some(0), None)), Seen::Yes(()));
        assert_eq!(has_ended().matches(&tried(None, None)), Seen::when(false));
    }
}
