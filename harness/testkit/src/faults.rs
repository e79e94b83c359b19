//! Faults and barriers: what happens to calls about one thing in the cloud.

use super::cloud::{absent_is_fine, passing};
use super::undo_steps::Undo;
use super::{CheckCx, Subject};
use futures::future::try_join_all;
use harness_clouds::{CloudError, Effect, Entry, Fault as FaultSpec, Match, Op, fresh_id};
use harness_core::check::{CheckError, SubjectName};
use harness_core::probe::{Matcher, ReadError, ReadSource, holds};
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Mutex;
use std::time::Duration;

/// The target of faults and barriers in the cloud.
#[derive(Clone)]
pub struct Target<'a> {
    pub(super) cx: &'a CheckCx,
    pub(super) about: SubjectName,
    /// All names that calls may use for it, the usual one first. Empty: calls about anything.
    pub(super) names: Vec<String>,
}

impl<'a> Target<'a> {
    /// Calls are answered with this HTTP status and have no effect.
    pub fn answers(&self, status: u16) -> FaultPlan<'a> {
        self.meets(format!("answers {status}"), &[Effect::Status { status, retry_after_s: None }])
    }

    /// Calls fail: the first with 503, which many clients retry silently, the following ones with 500, which the CCM sees
    /// sooner or later.
    pub fn fails(&self) -> FaultPlan<'a> {
        let [first, others] = [503, 500].map(|status| Effect::Status { status, retry_after_s: None });
        self.meets("fails with 503 and 500", &[first, others])
    }

    /// Calls take effect, but their answer never arrives.
    pub fn loses_the_answer(&self) -> FaultPlan<'a> {
        self.meets("answers that are lost", &[Effect::LoseAnswer { ms: None }])
    }

    /// Calls take effect, but their answer never arrives; the caller's connection ends after this time.
    pub fn withholds_the_answer(&self, time: Duration) -> FaultPlan<'a> {
        let ms = u64::try_from(time.as_millis()).ok();
        self.meets(
            format!("answers that are lost after {} s", time.as_secs_f64()),
            &[Effect::LoseAnswer { ms }],
        )
    }

    /// Resources that a call creates have no address for this time. Needs a cloud with settings.
    pub fn provisions_for(&self, time: Duration) -> FaultPlan<'a> {
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.meets(
            format!("provisioning that takes {} s", time.as_secs_f64()),
            &[Effect::SlowProvisioning { ms }],
        )
    }

    /// Calls are accepted, but what they start fails. Needs a cloud with settings and an API that reports this.
    pub fn fails_actions(&self) -> FaultPlan<'a> {
        let code = "server_error".to_owned();
        self.meets("actions that fail", &[Effect::FailAction { code }])
    }

    /// Calls meet these effects in order, each once and the last one from then on; `what` is for failures.
    pub fn meets(&self, what: impl Into<String>, effects: &[Effect]) -> FaultPlan<'a> {
        let (what, effects) = (what.into(), effects.to_vec());
        let (target, ops) = (self.clone(), Vec::new());
        FaultPlan { target, what, effects, ops, from_page: None, times: None, must_be_met: false }
    }

    /// Resources that a call deletes exist for this time, shown as being deleted. Needs a cloud with settings.
    pub fn deletes_for(&self, time: Duration) -> FaultPlan<'a> {
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.meets(format!("deletion that takes {} s", time.as_secs_f64()), &[Effect::SlowDeletion { ms }])
    }

    /// Holds back these operations before they take effect.
    ///
    /// # Errors
    /// When the cloud refuses.
    pub async fn holds(&self, ops: &[Op]) -> Result<Barrier<'a>, CheckError> {
        let (cx, matching) = (self.cx, self.matching(ops));
        let id =
            noted(&cx.undo, Undo::Barrier, async |id| cx.cloud.raise_barrier(id, &matching).await).await?;
        Ok(Barrier { target: self.clone(), id })
    }

    /// One name is enough: the cloud knows the other names of existing resources.
    fn matching(&self, ops: &[Op]) -> Match {
        Match { ops: ops.to_vec(), resource: self.names.first().cloned(), ..Match::default() }
    }

    pub(super) fn concerns(&self, call: &Entry) -> bool {
        let resource = call.resource.as_deref().map(|r| r.split_once('=').map_or(r, |(_, value)| value));
        let is_named =
            |name: &String| resource == Some(name.as_str()) || call.owner.as_deref() == Some(name.as_str());
        self.names.is_empty() || self.names.iter().any(is_named)
    }
}

/// Chooses an id, registers the undo step for it, and only then makes the call: the call may take effect even if its
/// answer is lost or the waiting task is cancelled. Returns the id.
async fn noted<T>(
    list: &Mutex<Vec<Undo>>,
    undo: fn(u64) -> Undo,
    ask: impl AsyncFnOnce(u64) -> Result<T, CloudError>,
) -> Result<u64, CloudError> {
    let id = fresh_id();
    list.lock().expect("no holder of this lock panics").push(undo(id));
    ask(id).await.map(|_| id)
}

/// A fault that takes effect when awaited.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(web: &Service<'_>) -> Verdict {
/// let plan: FaultPlan<'_> = web.cloud().answers(500).to(&[Op::LbCreate, Op::LbUpdate]).times(2);
/// let fault = plan.await?;
/// fault.hits(2).await
/// # }
/// ```
#[must_use = "a fault takes effect only when awaited"]
pub struct FaultPlan<'a> {
    target: Target<'a>,
    what: String,
    effects: Vec<Effect>,
    ops: Vec<Op>,
    from_page: Option<u64>,
    times: Option<u64>,
    must_be_met: bool,
}

impl FaultPlan<'_> {
    /// Limits it to these operations.
    pub fn to(mut self, ops: &[Op]) -> Self {
        self.ops = ops.to_vec();
        self
    }

    /// Limits it, for lists, to this page, counted from 1, and later ones.
    pub fn from_page(mut self, page: u64) -> Self {
        self.from_page = Some(page);
        self
    }

    /// Unless a call meets it, a check that passes otherwise is not observable. Only for calls that every CCM makes in the course
    /// of the check: one that keeps the promise without such calls would be judged by chance.
    pub fn must_be_met(mut self) -> Self {
        self.must_be_met = true;
        self
    }

    /// Limits it to this number of calls.
    pub fn times(mut self, calls: u64) -> Self {
        self.times = Some(calls);
        self
    }
}

impl CheckCx {
    /// What an effect needs but the cloud's API does not have.
    fn never_seen(&self, effect: &Effect) -> Option<&'static str> {
        let shown = self.cloud.shown();
        match effect {
            Effect::SlowProvisioning { .. } if !shown.provisioning => {
                Some("load balancer that has no address yet")
            }
            Effect::SlowDeletion { .. } if !shown.deletions => Some("load balancer that is being deleted"),
            Effect::FailAction { .. } if !shown.actions => Some("call that is accepted and fails later"),
            _ => None,
        }
    }
}

impl<'a> IntoFuture for FaultPlan<'a> {
    type Output = Result<Fault<'a>, CheckError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<Fault<'a>, CheckError>> + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let FaultPlan { target, what, effects, ops, from_page, times, must_be_met } = self;
            if let Some(what) = effects.iter().find_map(|effect| target.cx.never_seen(effect)) {
                return Err(CheckError::NotObservable(format!("the cloud's API does not show a {what}")));
            }
            let matching = Match { from_page, ..target.matching(&ops) };
            let mut ids = Vec::new();
            for (place, effect) in effects.iter().enumerate() {
                let last = place + 1 == effects.len();
                let calls = if last { times } else { Some(1) };
                let spec =
                    FaultSpec { matching: matching.clone(), effect: effect.clone(), calls, for_ms: None };
                let cx = target.cx;
                ids.push(noted(&cx.undo, Undo::Fault, async |id| cx.cloud.inject(id, &spec).await).await?);
            }
            let fault = Fault { target, what, ids };
            if must_be_met {
                fault.cx().unmet.add(fault.in_words(), &fault.ids);
            }
            Ok(fault)
        })
    }
}

/// An injected fault, until it is used up, cleared, or the check ends. Reads as the number of calls it has affected.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let fault: Fault<'_> = cx.cloud().anything().answers(503).to(&[Op::InstanceList]).await?;
/// fault.hits(1).await?;
/// fault.clear().await
/// # }
/// ```
#[derive(Clone)]
pub struct Fault<'a> {
    target: Target<'a>,
    what: String,
    ids: Vec<u64>,
}

impl Fault<'_> {
    fn in_words(&self) -> String {
        let Target { about, .. } = &self.target;
        format!("'{}' for {} {}", self.what, about.kind, about.name)
    }

    /// It affects at least this number of calls within B-WATCH.
    ///
    /// # Errors
    /// [`CheckError::Violation`] when fewer do.
    pub async fn hits(&self, calls: u64) -> Result<(), CheckError> {
        self.becomes(met_by(calls)).await
    }

    /// What a wait for calls that meet it leads to. If no call met it, and what the calls are for has come about all the same,
    /// no call was due: the cloud does it by itself, or the CCM does it by other calls. Then nothing shows what a failure would
    /// lead to.
    ///
    /// # Errors
    /// [`CheckError::NotObservable`] then; otherwise that of the wait.
    pub async fn unless_needless<T>(
        &self,
        met: Result<T, CheckError>,
        came_about: impl Future<Output = Result<(), CheckError>>,
    ) -> Result<T, CheckError> {
        let Err(CheckError::Violation(violation)) = met else { return met };
        let unmet = self.read(ReadSource::Origin).await? == 0;
        if !unmet || came_about.await.is_err() {
            return Err(CheckError::Violation(violation));
        }
        Err(needless(&self.name().name))
    }

    /// Like [`Fault::hits`], for calls that may not be due: see [`Fault::unless_needless`].
    ///
    /// # Errors
    /// [`CheckError::Violation`] when fewer calls meet it; [`CheckError::NotObservable`] when none does and what they are for
    /// has come about.
    pub async fn hits_unless(
        &self,
        calls: u64,
        came_about: impl Future<Output = Result<(), CheckError>>,
    ) -> Result<(), CheckError> {
        self.unless_needless(self.hits(calls).await, came_about).await
    }

    /// Clears it.
    ///
    /// # Errors
    /// When the cloud does not answer.
    pub async fn clear(self) -> Result<(), CheckError> {
        // It cannot be read once it is cleared.
        if self.cx().unmet.has(&self.ids) && self.read(ReadSource::Origin).await? == 0 {
            self.cx().unmet.stays(&self.ids);
        }
        try_join_all(self.ids.iter().map(|id| self.target.cx.cloud.clear_fault(*id))).await?;
        Ok(())
    }
}

/// What a fault or a barrier shows that no call was due to meet.
fn needless(unmet: &str) -> CheckError {
    CheckError::NotObservable(format!(
        "no call met {unmet}, and what such calls are for has come about without one"
    ))
}

/// At least this number of calls were affected.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(web: &Service<'_>) -> Verdict {
/// let refusals = web.cloud().answers(503).to(&[Op::LbDelete]).times(2).await?;
/// web.delete().await?;
/// refusals.becomes(met_by(2)).when("as the CCM tries again").await
/// # }
/// ```
pub fn met_by(calls: u64) -> Matcher<u64> {
    let words = if calls == 1 { "affects a call".to_owned() } else { format!("affects {calls} calls") };
    holds(words, move |hits: &u64| *hits >= calls).expecting(format!("at least {calls}"))
}

impl Subject for Fault<'_> {
    type Snapshot = u64;

    fn cx(&self) -> &CheckCx {
        self.target.cx
    }

    /// Calls may come only when the cloud has carried out earlier ones.
    fn usual_limit(&self) -> Duration {
        self.cx().limits().load_balancer()
    }

    fn name(&self) -> SubjectName {
        SubjectName { kind: "the fault", name: self.in_words(), uid: self.target.about.uid.clone() }
    }

    async fn read(&self, _: ReadSource) -> Result<u64, ReadError> {
        let hits = self.cx().hits_of(&self.ids).await.map_err(passing)?;
        if hits > 0 {
            self.cx().unmet.is_met(&self.ids);
        }
        Ok(hits)
    }

    fn concerns(&self, call: &Entry) -> bool {
        self.target.concerns(call)
    }
}

/// A barrier. Calls that it holds wait until it is released, at the latest by cleanup. Reads as the number of waiting
/// calls.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let machine = cx.machine(machine("a")).await?;
/// let held = machine.cloud().holds(&[Op::InstanceGet, Op::InstanceList]).await?;
/// let node = cx.node(machine.node()).await?;
/// held.is_reached().await?;
/// node.keeps(untouched()).when("while the cloud does not answer").await?;
/// held.release().await
/// # }
/// ```
#[derive(Clone)]
pub struct Barrier<'a> {
    target: Target<'a>,
    id: u64,
}

impl Barrier<'_> {
    /// A call waits at it within B-WATCH.
    ///
    /// # Errors
    /// [`CheckError::Violation`] when none does.
    pub async fn is_reached(&self) -> Result<(), CheckError> {
        self.becomes(holds("holds back a call", |waiting: &u64| *waiting > 0)).await
    }

    /// Like [`Barrier::is_reached`], for calls that may not be due: see [`Fault::unless_needless`].
    ///
    /// # Errors
    /// [`CheckError::Violation`] when no call waits; [`CheckError::NotObservable`] when in addition what such calls are for has
    /// come about.
    pub async fn is_reached_unless(
        &self,
        came_about: impl Future<Output = Result<(), CheckError>>,
    ) -> Result<(), CheckError> {
        let reached = self.is_reached().await;
        let Err(CheckError::Violation(violation)) = reached else { return reached };
        match came_about.await {
            Ok(()) => Err(needless(&format!("the barrier {}", self.name().name))),
            Err(_) => Err(CheckError::Violation(violation)),
        }
    }

    /// Lets the waiting calls take effect and removes the barrier.
    ///
    /// # Errors
    /// When the cloud does not answer.
    pub async fn release(self) -> Result<(), CheckError> {
        self.target.cx.cloud.release_barrier(self.id).await?;
        Ok(())
    }
}

impl Subject for Barrier<'_> {
    type Snapshot = u64;

    fn cx(&self) -> &CheckCx {
        self.target.cx
    }

    /// Calls may come only when the cloud has carried out earlier ones.
    fn usual_limit(&self) -> Duration {
        self.cx().limits().load_balancer()
    }

    fn name(&self) -> SubjectName {
        let Target { about, .. } = &self.target;
        let name = format!("before {} {}", about.kind, about.name);
        SubjectName { kind: "the barrier", name, uid: about.uid.clone() }
    }

    async fn read(&self, _: ReadSource) -> Result<u64, ReadError> {
        self.target.cx.cloud.barrier(self.id).await.map(|status| status.waiting).map_err(passing)
    }

    fn concerns(&self, call: &Entry) -> bool {
        self.target.concerns(call)
    }
}

impl CheckCx {
    pub(super) async fn undo_fault(&self, id: u64) -> Result<(), String> {
        absent_is_fine(self.cloud.clear_fault(id).await)
    }

    pub(super) async fn undo_barrier(&self, id: u64) -> Result<(), String> {
        absent_is_fine(self.cloud.release_barrier(id).await.map(|_| ()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test]
    async fn a_requested_fault_is_undone_even_if_the_answer_was_not_awaited() {
        let (list, asked) = (Mutex::default(), Mutex::new(None));
        let ask = async |id: u64| {
            *asked.lock().expect("fine") = Some(id);
            futures::future::pending::<Result<(), CloudError>>().await
        };
        let dropped = noted(&list, Undo::Barrier, ask).now_or_never();
        assert!(dropped.is_none());
        let id = asked.lock().expect("fine").expect("asked for");
        assert_eq!(*list.lock().expect("fine"), [Undo::Barrier(id)]);
    }
}
