//! Runs one check, from its turn to its entry in the ledger.

use super::Planned;
use super::judge::judge;
use super::own_environment::{events_of, judge_apart};
use super::schedule::ENOUGH_WORKERS;
use harness_core::check::Isolation;
use harness_core::events::{CheckEvents, Payload};
use harness_core::ledger::{Entry, FIRST_TRY, INTERRUPTED, Outcome};
use harness_core::secrets;
use harness_session::Session;
use harness_testkit::Check;
use std::fs::File;
use std::sync::Arc;
use std::time::Instant;

/// How a check holds its lane's cluster; works between threads and processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Together with others that share it.
    Shared,
    /// Exclusively.
    Alone,
}

impl Hold {
    /// For a check whose process keeps its steps apart from others.
    pub fn in_order(isolation: Isolation) -> Hold {
        match isolation {
            Isolation::FreshCluster | Isolation::Alone => Hold::Alone,
            Isolation::NoCluster
            | Isolation::DedicatedCluster
            | Isolation::Shared
            | Isolation::Quiet
            | Isolation::SharedCrash
            | Isolation::AfterTheRun => Hold::Shared,
        }
    }

    /// For a check in a separate process, where nothing else keeps it apart from unrelated checks.
    pub fn in_any_order(check: &Check, workers: u32) -> Hold {
        let keeps_workers = check.disturbs() && workers < ENOUGH_WORKERS;
        let wants_calm = check.isolation == Isolation::Quiet;
        if keeps_workers || wants_calm || check.holds_up {
            Hold::Alone
        } else {
            Hold::in_order(check.isolation)
        }
    }
}

/// Runs one check in a lane: its turn on the cluster, the CCM in the form that it needs, body, evidence, cleanup. Start,
/// end and outcome are written to the stream of events. `lanes` are all lanes of the run, for a check that judges the
/// whole run.
///
/// Blocks the thread while others hold the cluster.
pub async fn run_one(lanes: &[Arc<Session>], session: Arc<Session>, planned: &Planned, hold: Hold) -> Entry {
    let is_own = planned.check.isolation == Isolation::DedicatedCluster;
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
        let reason = format!("the environment failed it: {}", secrets::redact(first));
        events.emit(Payload::CheckRepeated { why: reason.clone() });
        let evidence = entry.evidence.take();
        entry = attempt(lanes, session, planned, hold, &events).await;
        entry.evidence = entry.evidence.or(evidence);
        entry.facts.insert(FIRST_TRY.to_owned(), reason);
    }
    entry.started = started;
    // The message may contain text of the CCM: its last log lines if it does not start.
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

/// Whether a check that met an error of the environment is tried once more, as the error may have been temporary. Not if
/// the error persists, if others are involved in the check, or if what it judges is over.
fn may_be_judged_again(session: &Session, planned: &Planned) -> bool {
    let alone = !matches!(planned.check.isolation, Isolation::SharedCrash | Isolation::AfterTheRun);
    let stays = session.gone().is_some() || session.calls_are_unseen();
    alone && !planned.check.soaks && !session.is_interrupted() && !stays
}

/// One attempt at judging a check, which holds the cluster for its duration.
async fn attempt(
    lanes: &[Arc<Session>],
    session: Arc<Session>,
    planned: &Planned,
    hold: Hold,
    events: &CheckEvents,
) -> Entry {
    let participant =
        (planned.check.isolation == Isolation::SharedCrash).then(|| session.crashes().participant());
    // A check with its own environment does not block the lane's cluster.
    let is_own = planned.check.isolation == Isolation::DedicatedCluster;
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
        Ok(Some(turn)) => judge(lanes, session.clone(), planned, &mut entry, turn, participant, events).await,
        Ok(None) => {
            let in_it = async |own: Arc<Session>, turn: File, entry: &mut Entry| {
                judge(lanes, own, planned, entry, turn, None, events).await;
            };
            judge_apart(&session, planned.check.environment, &mut entry, in_it).await;
        }
    }
    // What broke while the run was being ended is not an error of the environment.
    if session.is_interrupted() && matches!(entry.outcome, Outcome::Error { .. }) {
        entry.outcome = Outcome::Error { message: INTERRUPTED.to_owned() };
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    use harness_core::check::Facility;

    #[test]
    fn a_disturbing_check_has_the_cluster_to_itself_across_processes() {
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
