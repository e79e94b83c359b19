//! What load balancers lost while they changed from one correct state to the next, as a subject of checks.

use super::aborted::{Origin, origin};
use super::{CheckCx, Service, Subject};
use harness_clouds::Entry;
use harness_core::check::{CheckError, SubjectName};
use harness_core::probe::{Matcher, ReadError, ReadSource, holds, pause};
use harness_session::{Break, Rule, Session, Window};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Losses of load balancers: those of one Service since some moment, or all during the run.
#[derive(Clone)]
pub struct Losses<'a> {
    cx: &'a CheckCx,
    lanes: Vec<Arc<Session>>,
    window: Window,
    name: SubjectName,
}

impl Losses<'_> {
    /// Whether the cloud records what each write changed, which is needed to know the states in between.
    ///
    /// # Errors
    /// [`CheckError::NotObservable`] if no write so far has recorded it.
    pub async fn can_be_seen(&self) -> Result<(), CheckError> {
        for lane in &self.lanes {
            lane.journal().catch_up().await?;
        }
        match self.lanes.iter().any(|lane| lane.continuity().sees_changes()) {
            true => Ok(()),
            false => Err(CheckError::NotObservable(
                "the driver's journal does not record what each call changed (field `change`)".to_owned(),
            )),
        }
    }
}

impl Subject for Losses<'_> {
    type Snapshot = Vec<Break>;

    fn cx(&self) -> &CheckCx {
        self.cx
    }

    fn name(&self) -> SubjectName {
        self.name.clone()
    }

    async fn read(&self, reach: ReadSource) -> Result<Vec<Break>, ReadError> {
        let mut all = Vec::new();
        for lane in &self.lanes {
            if reach == ReadSource::Origin {
                lane.journal().catch_up().await?;
            }
            let mut breaks = lane.continuity().breaks(&self.window);
            // Another check may still be working: what explains a loss can become known a moment later.
            while let Some(first) = breaks.iter().map(|broken| broken.certain_from).min()
                && let Some(wait) =
                    first.checked_duration_since(Instant::now()).filter(|wait| !wait.is_zero())
            {
                pause(wait).await;
                breaks = lane.continuity().breaks(&self.window);
            }
            let now = Instant::now();
            breaks.retain(|broken| broken.certain_from <= now);
            if self.window.owner.is_none() {
                // Services of an attempt that an error of the environment aborted are not evidence about the CCM.
                let fold = self.cx.whole_run()?;
                let number = lane.events().lane().unwrap_or_default();
                breaks.retain(|broken| origin(&fold, number, broken.service.as_deref()) == Origin::Judged);
            }
            all.append(&mut breaks);
        }
        Ok(all)
    }

    fn concerns(&self, call: &Entry) -> bool {
        call.write && self.window.owner.as_ref().is_none_or(|owner| call.owner.as_ref() == Some(owner))
    }
}

/// Nothing was lost during the change.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(web: &Service<'_>) -> Verdict {
/// web.rests().await?;
/// let losses = web.losses_since(tokio::time::Instant::now(), &[Rule::Addresses]);
/// web.patch(&serde_json::json!({"spec": {"ports": [{"port": 443}]}})).await?;
/// losses.keeps(nothing_lost()).when("while an edit is carried out").await
/// # }
/// ```
pub fn nothing_lost() -> Matcher<Vec<Break>> {
    holds("lose nothing during the change", Vec::is_empty)
        .expecting("no backend, address, setting or firewall lost during the change, not even for a moment")
}

impl Service<'_> {
    /// What its load balancer lost since a moment at which the CCM had finished all work for it.
    pub fn losses_since(&self, since: Instant, rules: &[Rule]) -> Losses<'_> {
        let owner = Some(self.cloud_owner().to_owned());
        let name = SubjectName { kind: "the load balancers of Service", ..self.name() };
        let window = Window { rules: rules.to_vec(), owner, since: Some(since), heard: Duration::ZERO };
        Losses { cx: self.cx(), lanes: vec![self.cx().session.clone()], window, name }
    }
}

impl CheckCx {
    /// What the load balancers of all checks lost, in all lanes.
    pub fn losses_of_all(&self) -> Losses<'_> {
        let name = SubjectName { kind: "the load balancers", name: "of the run".to_owned(), uid: None };
        Losses { cx: self, lanes: self.lanes.clone(), window: Window::whole(), name }
    }
}
