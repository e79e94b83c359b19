//! One check from its turn to its entry in the ledger.

use super::Planned;
use super::arrange::ENOUGH_WORKERS;
use super::own::{events_of, judge_apart, leave_after_check};
use futures::FutureExt;
use futures::future::join_all;
use harness_config::contract::bugs_of;
use harness_core::check::{Blocker, CheckId, Facility, Sharing, Stop, Verdict};
use harness_core::events::{CheckEvents, Payload, REPLICA, StreamError};
use harness_core::ledger::{Entry, FIRST_TRY, INTERRUPTED, Outcome, SkipReason};
use harness_core::secrets;
use harness_session::ccm::Form;
use harness_session::up::Leave;
use harness_session::{Participant, Session};
use harness_testkit::evidence;
use harness_testkit::{Check, CheckCx};
use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

/// How a check holds its lane's cluster, between threads and processes alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Beside others that hold it so.
    Shared,
    /// Alone.
    Alone,
}

impl Hold {
    /// For a check whose steps are kept apart from others by its process.
    pub fn in_order(sharing: Sharing) -> Hold {
        match sharing {
            Sharing::Cold | Sharing::Exclusive => Hold::Alone,
            Sharing::Apart
            | Sharing::Own
            | Sharing::Shared
            | Sharing::Calm
            | Sharing::Joint
            | Sharing::Standing => Hold::Shared,
        }
    }

    /// For a check in a process of its own, where nothing else keeps it apart from strangers.
    pub fn in_any_order(check: &Check, workers: u32) -> Hold {
        let keeps_workers = check.disturbs() && workers < ENOUGH_WORKERS;
        let wants_calm = check.sharing == Sharing::Calm;
        if keeps_workers || wants_calm || check.holds_up {
            Hold::Alone
        } else {
            Hold::in_order(check.sharing)
        }
    }
}

/// Runs one check in a lane: its turn on the cluster, the CCM in the form it needs, body, evidence, cleanup. Its beginning,
/// its end and what becomes of it are told to the stream of events. `lanes` are all there are, for a check that judges the
/// whole run.
///
/// Blocks the thread while others hold the cluster.
pub async fn run_one(lanes: &[Arc<Session>], session: Arc<Session>, planned: &Planned, hold: Hold) -> Entry {
    let is_own = planned.check.sharing == Sharing::Own;
    let stream = if is_own { events_of(&session) } else { session.events().clone() };
    let events = stream.of_check(planned.check.id.as_str());
    let started = jiff::Timestamp::now().to_string();
    events.emit(Payload::CheckBegan { started: started.clone() });
    let began = Instant::now();
    let mut entry = attempt(lanes, session.clone(), planned, hold, &events).await;
    if let Outcome::Error { message } = &entry.outcome
        && may_be_judged_again(&session, planned)
    {
        let first = message.lines().next().unwrap_or_default().to_owned();
        let evidence = entry.evidence.take();
        entry = attempt(lanes, session, planned, hold, &events).await;
        entry.evidence = entry.evidence.or(evidence);
        let told = format!("the environment failed it: {}", secrets::redact(first));
        entry.facts.insert(FIRST_TRY.to_owned(), told);
    }
    entry.started = started;
    // A CCM's own words may stand in a message: its last log lines when it does not come up.
    if let Outcome::Fail { message } | Outcome::Blocked { message, .. } | Outcome::Error { message } =
        &mut entry.outcome
    {
        *message = secrets::redact(std::mem::take(message));
    }
    entry.duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    events.emit(Payload::CheckEnded {
        ended: entry.outcome.clone(),
        duration_ms: entry.duration_ms,
        budget_used_percent: entry.budget_used_percent,
        facts: entry.facts.clone(),
    });
    entry
}

/// Whether a check that met an error of the environment is judged once more: what hindered it may have been a moment. Not where
/// the error stays, nor where others take part in what it does, or what it judges is over.
fn may_be_judged_again(session: &Session, planned: &Planned) -> bool {
    let alone = !matches!(planned.check.sharing, Sharing::Joint | Sharing::Standing);
    alone && !planned.check.soaks && !session.is_interrupted() && session.gone().is_none()
}

/// One try at judging a check, which holds the cluster for as long.
async fn attempt(
    lanes: &[Arc<Session>],
    session: Arc<Session>,
    planned: &Planned,
    hold: Hold,
    events: &CheckEvents,
) -> Entry {
    let participant = (planned.check.sharing == Sharing::Joint).then(|| session.crashes().participant());
    // Who has an environment of its own keeps nobody off the lane's.
    let is_own = planned.check.sharing == Sharing::Own;
    let held = (!is_own).then(|| session.dir().hold_cluster(hold == Hold::Alone)).transpose();
    let mut entry = planned.entry(Outcome::Pass);
    entry.started = jiff::Timestamp::now().to_string();
    match held {
        Err(error) => entry.outcome = Outcome::Error { message: harness_core::check::chain(&error) },
        Ok(_) if session.is_interrupted() => {
            entry.outcome = Outcome::Error { message: INTERRUPTED.to_owned() }
        }
        Ok(_) if session.gone().is_some() => {
            let message = session.gone().unwrap_or_default().to_owned();
            entry.outcome = Outcome::Error { message };
        }
        Ok(Some(turn)) => judge(lanes, session, planned, &mut entry, turn, participant, events).await,
        Ok(None) => {
            let in_it = async |own: Arc<Session>, turn: File, entry: &mut Entry| {
                judge(&[], own, planned, entry, turn, None, events).await;
            };
            judge_apart(&session, planned.check.environment, &mut entry, in_it).await;
        }
    }
    entry
}

async fn judge(
    lanes: &[Arc<Session>],
    session: Arc<Session>,
    planned: &Planned,
    entry: &mut Entry,
    turn: File,
    participant: Option<Participant>,
    events: &CheckEvents,
) {
    let id = planned.check.id;
    let began_ms = session.events().now_ms();
    match planned.check.sharing {
        Sharing::Cold | Sharing::Apart | Sharing::Own => {}
        // A lane whose last step was a trial has nobody who tidies up what that left. A CCM that does not come up is judged by
        // others.
        Sharing::Standing => {
            let all = lanes.iter().map(|lane| session.unless_interrupted(lane.ensure_ccm(Form::Replicas)));
            join_all(all).await;
        }
        Sharing::Shared | Sharing::Joint | Sharing::Calm | Sharing::Exclusive => {
            if let Err(stop) = session.unless_interrupted(session.ensure_ccm(Form::Replicas)).await {
                entry.outcome = outcome_of(id, Err(stop));
                return;
            }
        }
    }
    let cx = match CheckCx::new(id, session.clone(), turn, participant).await {
        Ok(cx) => cx.with_lanes(lanes).soaking(planned.check.soaks),
        Err(stop) => {
            entry.outcome = outcome_of(id, Err(stop));
            return;
        }
    };
    let looked_from = tokio::time::Instant::now();
    let body = AssertUnwindSafe(planned.check.body(&cx)).catch_unwind().await;
    let verdict = body
        .unwrap_or_else(|panic| Err(Stop::Error(format!("the check itself panicked: {}", words(&panic)))));
    // Where the cloud keeps no journal, a look into it is no error of anybody's.
    let verdict = match (verdict, cx.cannot_observe()) {
        (Err(Stop::Error(_)), Some(why)) => Err(Stop::NotObservable(why)),
        (verdict, _) => verdict,
    };
    let about_an_end = matches!(&verdict, Err(Stop::Unmet(unmet)) if unmet.subject.as_ref().is_some_and(|s| s.kind == REPLICA));
    let is_read =
        planned.check.timeless && matches!(&verdict, Err(Stop::Unmet(unmet)) if unmet.waited.is_none());
    entry.outcome = outcome_of(id, verdict);
    // Who needs neither cluster nor CCM is not hindered by them, nor who has read what is written.
    let hindered = planned.check.sharing != Sharing::Apart && !is_read;
    // What another check is about, and this one could not do without, may have failed for the same reason.
    if matches!(entry.outcome, Outcome::Fail { .. } | Outcome::Blocked { .. })
        && hindered
        && let Err(message) = session.stood_since(looked_from).await
    {
        entry.outcome = Outcome::Error { message };
    }
    entry.budget_used_percent = cx.budget_used_percent();
    entry.facts = cx.facts();
    if session.gone().is_some() {
        // There is nothing to take evidence of, and nothing to undo.
        return;
    }
    if let Outcome::Fail { message } | Outcome::Error { message } = &entry.outcome {
        let relative = format!("evidence/{id}");
        let folder = session.plan().output.join(&relative);
        let connects = planned.check.facilities.contains(Facility::HostPorts);
        let of_it = (entry.started.as_str(), connects);
        let taken = session.unless_gone(evidence::take(&cx, message, of_it, &folder)).await;
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
    if matches!(entry.outcome, Outcome::Fail { .. })
        && planned.check.sharing != Sharing::Standing
        && hindered
        && !about_an_end
    {
        // Who restarts keeps no promise meanwhile: that is told once, by the check that is about it.
        match restarted(&session, began_ms) {
            Ok(Some(Restarted::ByItself(seen))) => {
                entry.outcome = outcome_of(id, Err(Stop::Blocked { by: Blocker::StaysUp, seen }))
            }
            Ok(Some(Restarted::Cut(message))) => entry.outcome = Outcome::Error { message },
            Ok(None) => {}
            Err(error) => tracing::warn!(check = %id, %error, "restarts of the CCM cannot be told"),
        }
    }
    if planned.check.sharing == Sharing::Own
        && leave_after_check(session.plan(), &entry.outcome) == Leave::Nothing
    {
        cx.leaves_it_to_its_environment();
    }
    clean_up(&session, &cx, entry).await;
    if matches!(entry.outcome, Outcome::Error { .. })
        && planned.check.sharing != Sharing::Standing
        && hindered
    {
        // Machinery that lacks its Nodes cannot work: that is the fault of who has deleted them.
        match session.lost_nodes() {
            Ok(Some(seen)) => {
                entry.outcome = outcome_of(id, Err(Stop::Blocked { by: Blocker::KeepsNodes, seen }));
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(check = %id, %error, "what became of the Nodes cannot be told"),
        }
    }
}

/// Undoes what the check has made. What could not be undone because cluster or cloud were away is undone once they are back, and
/// what an aborted attempt has made in the cloud goes as well.
async fn clean_up(session: &Session, cx: &CheckCx, entry: &mut Entry) {
    let began = tokio::time::Instant::now();
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
    if matches!(entry.outcome, Outcome::Error { .. })
        && let Err(why) = session.unless_gone(cx.remove_own_balancers()).await
    {
        tracing::warn!(check = %cx.id(), why, "what an aborted attempt left in the cloud stays there");
    }
}

/// What ends the text of a failure: its likely causes, and the bug of a real CCM that it is like.
fn hints(causes: &[String], row: &str) -> String {
    let lead = |at: usize| if at == 0 { "likely:   " } else { "          " };
    let causes = causes.iter().enumerate().map(|(at, cause)| format!("\n{} {cause}", lead(at)));
    let like = bugs_of(row).next().map(|bug| format!("\nresembles: {}: {}", bug.issue, bug.what));
    causes.chain(like).collect()
}

/// Why the CCM's processes ended, in words.
enum Restarted {
    /// By their own fault.
    ByItself(String),
    /// For the silence of somebody without whom nobody keeps a Lease.
    Cut(String),
}

/// Ends of the CCM's processes in the check's lane since it began or shortly before; `None` when there were none.
fn restarted(session: &Session, began_ms: u64) -> Result<Option<Restarted>, StreamError> {
    let events = session.events();
    if !events.is_begun_here() {
        // Another process watches the cluster.
        events.take_others_in()?;
    }
    // Until a leader works again after an end takes about so long.
    let before = u64::try_from(session.limits().watch().as_millis()).unwrap_or_default();
    let fold = events.fold();
    let lane = events.lane().unwrap_or_default();
    let (mut own, mut cut) = (Vec::new(), None);
    for end in fold.conduct().ends_since(lane, began_ms.saturating_sub(before)) {
        match session.excuse_of(end) {
            Some(excuse) => cut = Some(format!("{end} ended; {excuse}")),
            None => own.push(end.to_string()),
        }
    }
    Ok(match own.is_empty() {
        false => Some(Restarted::ByItself(own.join(", "))),
        true => cut.map(Restarted::Cut),
    })
}

fn outcome_of(id: CheckId, verdict: Verdict) -> Outcome {
    match verdict {
        Ok(()) => Outcome::Pass,
        Err(Stop::Unmet(unmet)) => Outcome::Fail { message: unmet.to_string() },
        Err(Stop::Blocked { by, seen }) if by.check() == id.as_str() => {
            Outcome::Fail { message: by.broken(seen).to_string() }
        }
        Err(Stop::Blocked { by, seen }) => {
            Outcome::Blocked { by: by.check().to_owned(), message: by.broken(seen).to_string() }
        }
        Err(Stop::Error(message)) => Outcome::Error { message },
        Err(Stop::NotObservable(detail)) => Outcome::Skip { reason: SkipReason::NotObservable, detail },
    }
}

/// A panic's message.
fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_ends_with_its_likely_causes_and_the_bug_that_it_is_like() {
        let text =
            hints(&["a right is missing".to_owned(), "a call never returned".to_owned()], "NODE-LIFE-03");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..3], ["", "likely:    a right is missing", "           a call never returned"]);
        assert!(lines[3].starts_with("resembles: oci-cloud-controller-manager#57: "), "{text}");
        assert_eq!(hints(&[], "NODE-ADDR-09"), "");
    }

    use harness_core::check::Facility;

    #[test]
    fn who_disturbs_holds_the_cluster_alone_in_a_process_of_its_own() {
        let check = Check::own("A-01", "claims", "source", |_| Box::pin(async { Ok(()) }));
        let (few, many) = (1, ENOUGH_WORKERS);
        assert_eq!(Hold::in_any_order(&check, few), Hold::Shared);
        let faulty = check.with(&[Facility::Faults]);
        assert_eq!(Hold::in_any_order(&faulty, few), Hold::Alone);
        assert_eq!(Hold::in_any_order(&faulty, many), Hold::Shared, "there are workers for others");
        let serial = faulty.holds_up_a_loop();
        assert_eq!(Hold::in_any_order(&serial, many), Hold::Alone, "no number of workers helps");
    }
}
