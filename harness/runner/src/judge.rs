//! Judges one check: runs its body, then determines the outcome by a short list of rules.

use super::Planned;
use super::own_environment::leave_after_check;
use super::starts_nowhere::starts_nowhere;
use futures::FutureExt;
use futures::future::join_all;
use harness_config::contract::bugs_of;
use harness_core::check::{Blocker, CheckError, CheckId, Facility, Isolation, Verdict, row_of};
use harness_core::events::{CheckEvents, Payload, REPLICA, StreamError};
use harness_core::ledger::{Entry, Outcome, SkipReason};
use harness_session::ccm::Form;
use harness_session::up::Leave;
use harness_session::{Participant, Session};
use harness_testkit::{CheckCx, evidence};
use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::time::Instant;

/// Judges a check on a cluster that it holds (`turn`), and writes the outcome into its entry. `lanes` are all
/// environments of the run: for a check that judges the whole run, and to know whether the CCM starts at all.
pub(super) async fn judge(
    lanes: &[Arc<Session>],
    session: Arc<Session>,
    planned: &Planned,
    entry: &mut Entry,
    turn: File,
    participant: Option<Participant>,
    events: &CheckEvents,
) {
    let began_ms = session.events().now_ms();
    let is_own = planned.check.isolation == Isolation::DedicatedCluster;
    let ready = async {
        ready(lanes, &session, planned.check.isolation).await?;
        CheckCx::new(planned.check.id, session.clone(), turn, participant).await
    };
    let cx = match ready.await {
        // A check in an environment of its own does not judge the run.
        Ok(cx) if is_own => cx.soaking(planned.check.soaks),
        Ok(cx) => cx.with_lanes(lanes).soaking(planned.check.soaks),
        Err(stop) => {
            entry.outcome = outcome_of(planned.check.id, Err(stop));
            return;
        }
    };
    let looked_from = Instant::now();
    let verdict = tokio::select! {
        biased;
        verdict = run_body(planned, &cx) => verdict,
        blocked = starts_nowhere(planned.check.isolation, lanes) => Err(blocked),
    };
    let attempt = Attempt::of(&session, planned, &verdict, began_ms, looked_from);
    entry.outcome = outcome_of(planned.check.id, verdict);
    attempt.decide(Rule::EnvironmentFailed, entry).await;
    attempt.decide(Rule::CallsUnseen, entry).await;
    entry.budget_used_percent = cx.budget_used_percent();
    entry.facts = cx.facts();
    if session.gone().is_some() {
        // There is nothing left from which to take evidence, and nothing to undo.
        return;
    }
    take_evidence(&session, planned, &cx, entry, events).await;
    attempt.decide(Rule::CcmRestarted, entry).await;
    if is_own && leave_after_check(session.plan(), &entry.outcome) == Leave::Nothing {
        cx.leaves_it_to_its_environment();
    }
    clean_up(&session, &cx, entry).await;
    attempt.decide(Rule::NodesLost, entry).await;
}

/// Deploys the CCM in the form that the check needs.
async fn ready(lanes: &[Arc<Session>], session: &Session, isolation: Isolation) -> Result<(), CheckError> {
    match isolation {
        Isolation::FreshCluster | Isolation::NoCluster | Isolation::DedicatedCluster => Ok(()),
        // After a trial, its lane has no CCM that could clean up. A CCM that does not start is judged by other checks.
        Isolation::AfterTheRun => {
            let all = lanes.iter().map(|lane| session.unless_interrupted(lane.ensure_ccm(Form::Replicas)));
            join_all(all).await;
            Ok(())
        }
        Isolation::Shared | Isolation::SharedCrash | Isolation::Quiet | Isolation::Alone => {
            session.unless_interrupted(session.ensure_ccm(Form::Replicas)).await
        }
    }
}

/// The verdict of the check's body. A panic counts as an error of the check.
async fn run_body(planned: &Planned, cx: &CheckCx) -> Verdict {
    let body = AssertUnwindSafe(planned.check.body(cx)).catch_unwind().await;
    let verdict = body.unwrap_or_else(|panic| {
        Err(CheckError::Error(format!("the check itself panicked: {}", words(&panic))))
    });
    let verdict = match verdict {
        Ok(()) => cx.met_its_faults().await,
        failed => failed,
    };
    match (verdict, cx.cannot_observe()) {
        // Without a request log of the cloud, reading it fails, which is not an error here.
        (Err(CheckError::Error(_)), Some(why)) => Err(CheckError::NotObservable(why)),
        (verdict, _) => verdict,
    }
}

/// A rule that can replace the outcome of the body's verdict. The rules are applied in this order, each at its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// The cluster or the cloud did not answer while the body waited: the result is then an error of the environment.
    EnvironmentFailed,
    /// The CCM used the cloud, and no call was seen: nothing that rests on the request log can be judged.
    CallsUnseen,
    /// A CCM that exits by itself cannot meet other requirements meanwhile. The check about that fails and blocks the
    /// others. If the CCM exited because the environment failed, the result is an error of the environment.
    CcmRestarted,
    /// The checks' own Pods need the cluster's Nodes. If the CCM deleted those, the check about that fails, and this one
    /// is blocked.
    NodesLost,
}

/// The rules' data about one attempt at a check.
struct Attempt<'a> {
    session: &'a Session,
    id: CheckId,
    /// When the check began, in the time of the run's events.
    began_ms: u64,
    /// When its body began.
    looked_from: Instant,
    /// Whether a failing cluster or CCM can have affected it: not if it needs neither, or only read what is already
    /// written.
    is_hindered: bool,
    /// Whether it judges the whole run.
    is_of_the_run: bool,
    /// Whether it failed because a replica exited.
    is_about_an_end: bool,
}

impl<'a> Attempt<'a> {
    fn of(
        session: &'a Session,
        planned: &Planned,
        verdict: &Verdict,
        began_ms: u64,
        looked_from: Instant,
    ) -> Attempt<'a> {
        let violation = match verdict {
            Err(CheckError::Violation(violation)) => Some(violation),
            _ => None,
        };
        let is_read = planned.check.timeless && violation.is_some_and(|violation| violation.waited.is_none());
        Attempt {
            session,
            id: planned.check.id,
            began_ms,
            looked_from,
            is_hindered: planned.check.isolation != Isolation::NoCluster && !is_read,
            is_of_the_run: planned.check.isolation == Isolation::AfterTheRun,
            is_about_an_end: violation
                .is_some_and(|violation| violation.subject.as_ref().is_some_and(|s| s.kind == REPLICA)),
        }
    }

    /// Replaces the outcome if the rule has a reason to.
    async fn decide(&self, rule: Rule, entry: &mut Entry) {
        if !self.is_hindered {
            return;
        }
        let decided = match (rule, &entry.outcome) {
            (Rule::EnvironmentFailed, Outcome::Fail { .. } | Outcome::Blocked { .. }) => {
                let stood = self.session.stood_since(self.looked_from).await;
                stood.err().map(|message| Outcome::Error { message })
            }
            (Rule::CallsUnseen, Outcome::Pass | Outcome::Fail { .. } | Outcome::Blocked { .. }) => {
                self.session.acted_unseen().await.map(|message| Outcome::Error { message })
            }
            (Rule::CcmRestarted, Outcome::Fail { .. }) if !self.is_of_the_run && !self.is_about_an_end => {
                self.restarted()
            }
            (Rule::NodesLost, Outcome::Error { .. }) if !self.is_of_the_run => self.lost_nodes(),
            _ => None,
        };
        if let Some(outcome) = decided {
            entry.outcome = outcome;
        }
    }

    fn restarted(&self) -> Option<Outcome> {
        match restarted(self.session, self.began_ms) {
            Ok(Some(Restarted::ByItself(seen))) => Some(self.blocked(Blocker::StaysUp, seen)),
            Ok(Some(Restarted::Cut(message))) => Some(Outcome::Error { message }),
            Ok(None) => None,
            Err(error) => {
                tracing::warn!(check = %self.id, %error, "cannot read the restarts of the CCM");
                None
            }
        }
    }

    fn lost_nodes(&self) -> Option<Outcome> {
        match self.session.lost_nodes() {
            Ok(seen) => seen.map(|seen| self.blocked(Blocker::KeepsNodes, seen)),
            Err(error) => {
                tracing::warn!(check = %self.id, %error, "cannot read the lost Nodes");
                None
            }
        }
    }

    fn blocked(&self, by: Blocker, seen: String) -> Outcome {
        outcome_of(self.id, Err(CheckError::Blocked { by, seen }))
    }
}

/// Takes the evidence of a failure or an error, and appends the likely causes to the text of a failure.
async fn take_evidence(
    session: &Session,
    planned: &Planned,
    cx: &CheckCx,
    entry: &mut Entry,
    events: &CheckEvents,
) {
    let (Outcome::Fail { message } | Outcome::Error { message }) = &entry.outcome else { return };
    let id = planned.check.id;
    let relative = format!("evidence/{id}");
    let folder = session.plan().output.join(&relative);
    let connects = planned.check.facilities.contains(Facility::HostPorts);
    let of_it = (entry.started.as_str(), connects);
    let taken = session.unless_gone(evidence::take(cx, message, of_it, &folder)).await;
    if let Outcome::Fail { message } = &mut entry.outcome {
        message.push_str(&hints(taken.as_deref().unwrap_or_default(), id.row()));
    }
    match taken {
        Ok(_) => {
            events.emit(Payload::EvidenceTaken { folder: relative.clone() });
            entry.evidence = Some(relative);
        }
        Err(why) => tracing::warn!(check = %id, why, "no evidence could be taken"),
    }
}

/// Undoes what the check has done. If that fails because the cluster or the cloud was unreachable, it is repeated once
/// they are back. Cloud resources are removed too if the attempt was aborted, or if the CCM could not remove them because
/// the cluster or the cloud was unreachable during the cleanup.
async fn clean_up(session: &Session, cx: &CheckCx, entry: &mut Entry) {
    let began = Instant::now();
    let mut cleaned = session.unless_gone(cx.clean_up()).await;
    if cleaned.is_err() && session.stood_since(began).await.is_err() {
        cleaned = session.unless_gone(cx.clean_up()).await;
    }
    match cleaned {
        Ok(()) => {}
        Err(why) if entry.outcome == Outcome::Pass => {
            let message = format!("the check passed, but its cleanup failed: {why}");
            entry.outcome = Outcome::Error { message };
        }
        Err(why) => tracing::warn!(check = %cx.id(), why, "cleanup after a failed check"),
    }
    let unreachable = cx.has_released_services() && session.stood_since(began).await.is_err();
    if (unreachable || matches!(entry.outcome, Outcome::Error { .. }))
        && let Err(why) = session.unless_gone(cx.remove_own_balancers()).await
    {
        tracing::warn!(check = %cx.id(), why, "resources of an aborted attempt remain in the cloud");
    }
}

/// The end of a failure's text: its likely causes, or, if none is known, a bug of a real CCM that the
/// same row of the contract finds.
fn hints(causes: &[String], row: &str) -> String {
    let lead = |at: usize| if at == 0 { "likely:   " } else { "          " };
    let causes = causes.iter().enumerate().map(|(at, cause)| format!("\n{} {cause}", lead(at)));
    let text: String = causes.collect();
    if !text.is_empty() {
        return text;
    }
    // The text of a CCM that does not start says why, in its own words.
    if [Blocker::StaysUp, Blocker::Boots].iter().any(|blocker| row_of(blocker.check()) == row) {
        return String::new();
    }
    bugs_of(row)
        .next()
        .map(|bug| format!("\nsame row:  {} was found by it, too: {}", bug.issue, bug.what))
        .unwrap_or_default()
}

/// Why the CCM's processes exited, as text.
enum Restarted {
    /// By a fault of their own.
    ByItself(String),
    /// Because a component that a leader needs to renew its Lease did not answer.
    Cut(String),
}

/// Ends of the CCM's processes in the check's lane since shortly before it began; `None` if there were none.
fn restarted(session: &Session, began_ms: u64) -> Result<Option<Restarted>, StreamError> {
    let events = session.events();
    if !events.is_begun_here() {
        // Another process watches the cluster.
        events.take_others_in()?;
    }
    // After an end, it takes about this long until a leader works again.
    let before = u64::try_from(session.limits().watch().as_millis()).unwrap_or_default();
    let fold = events.fold();
    let lane = events.lane().unwrap_or_default();
    let (mut own, mut cut) = (Vec::new(), None);
    let mut wrote = String::new();
    for end in fold.conduct().ends_since(lane, began_ms.saturating_sub(before)) {
        match session.excuse_of(end) {
            Some(excuse) => cut = Some(format!("{end} ended; {excuse}")),
            None => {
                own.push(end.to_string());
                if !end.last_lines.is_empty() {
                    let lines = end.last_lines.join("\n    ");
                    wrote = format!("\n  the last lines of replica {}:\n    {lines}", end.replica);
                }
            }
        }
    }
    Ok(match own.is_empty() {
        false => Some(Restarted::ByItself(format!("{}{wrote}", own.join(", ")))),
        true => cut.map(Restarted::Cut),
    })
}

fn outcome_of(id: CheckId, verdict: Verdict) -> Outcome {
    match verdict {
        Ok(()) => Outcome::Pass,
        Err(CheckError::Violation(violation)) => Outcome::Fail { message: violation.to_string() },
        Err(CheckError::Blocked { by, seen }) if by.check() == id.as_str() => {
            Outcome::Fail { message: by.broken(seen).to_string() }
        }
        Err(CheckError::Blocked { by, seen }) => {
            Outcome::Blocked { by: by.check().to_owned(), message: by.broken(seen).to_string() }
        }
        Err(CheckError::Error(message)) => Outcome::Error { message },
        Err(CheckError::NotObservable(detail)) => Outcome::Skip { reason: SkipReason::NotObservable, detail },
    }
}

/// The message of a panic.
fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_ends_with_its_likely_causes_or_a_bug_of_the_same_row() {
        let text =
            hints(&["a right is missing".to_owned(), "a call never returned".to_owned()], "NODE-LIFE-03");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines, ["", "likely:    a right is missing", "           a call never returned"]);
        let like = hints(&[], "NODE-LIFE-03");
        assert!(like.starts_with("\nsame row:  oci-cloud-controller-manager#57 was found"), "{like}");
        assert_eq!(hints(&[], "NODE-ADDR-09"), "");
    }
}
