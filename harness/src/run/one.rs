//! One check from its turn to its entry in the ledger.

use super::Planned;
use super::arrange::ENOUGH_WORKERS;
use crate::ccm::Form;
use crate::check::{Sharing, Stop, Verdict};
use crate::cx::{Check, CheckCx};
use crate::events::{CheckEvents, Payload};
use crate::evidence;
use crate::ledger::{Entry, Outcome, SkipReason};
use crate::session::{Participant, Session};
use futures::FutureExt;
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
            Sharing::Shared | Sharing::Joint => Hold::Shared,
        }
    }

    /// For a check in a process of its own, where nothing else keeps it apart from strangers.
    pub fn in_any_order(check: &Check, workers: u32) -> Hold {
        if check.disturbs() && workers < ENOUGH_WORKERS { Hold::Alone } else { Hold::in_order(check.sharing) }
    }
}

/// Runs one check: its turn on the cluster, the CCM in the form it needs, body, evidence, cleanup, leaks. Its beginning, its
/// end and what becomes of it are told to the stream of events.
///
/// Blocks the thread while others hold the cluster.
pub async fn run_one(session: Arc<Session>, planned: &Planned, hold: Hold) -> Entry {
    let events = session.events().of_check(planned.check.id.as_str());
    let participant = (planned.check.sharing == Sharing::Joint).then(|| session.crashes().participant());
    let held = session.dir().hold_cluster(hold == Hold::Alone);
    let mut entry = planned.entry(Outcome::Pass);
    let secrets = session.secrets();
    entry.started = jiff::Timestamp::now().to_string();
    events.emit(Payload::CheckBegan { started: entry.started.clone() });
    let began = Instant::now();
    match held {
        Err(error) => entry.outcome = Outcome::Error { message: crate::check::chain(&error) },
        Ok(_) if session.is_interrupted() => {
            entry.outcome = Outcome::Error { message: "interrupted".to_owned() }
        }
        Ok(turn) => judge(session, planned, &mut entry, turn, participant, &events).await,
    }
    // A CCM's own words may stand in a message: its last log lines when it does not come up.
    if let Outcome::Fail { message } | Outcome::Error { message } = &mut entry.outcome {
        *message = secrets.redact(std::mem::take(message));
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

async fn judge(
    session: Arc<Session>,
    planned: &Planned,
    entry: &mut Entry,
    turn: File,
    participant: Option<Participant>,
    events: &CheckEvents,
) {
    if planned.check.sharing != Sharing::Cold
        && let Err(stop) = session.ensure_ccm(Form::Replicas).await
    {
        entry.outcome = outcome_of(Err(stop));
        return;
    }
    let cx = match CheckCx::new(planned.check.id, session.clone(), turn, participant).await {
        Ok(cx) => cx,
        Err(stop) => {
            entry.outcome = outcome_of(Err(stop));
            return;
        }
    };
    let body = AssertUnwindSafe(planned.check.body(&cx)).catch_unwind().await;
    let verdict = body
        .unwrap_or_else(|panic| Err(Stop::Error(format!("the check itself panicked: {}", words(&panic)))));
    entry.outcome = outcome_of(verdict);
    entry.budget_used_percent = cx.budget_used_percent();
    entry.facts = cx.facts();
    if let Outcome::Fail { message } | Outcome::Error { message } = &entry.outcome {
        let relative = format!("evidence/{}", planned.check.id);
        let folder = session.plan().output.join(&relative);
        match evidence::take(&cx, message, &folder).await {
            Ok(()) => {
                events.emit(Payload::EvidenceTaken { folder: relative.clone() });
                entry.evidence = Some(relative);
            }
            Err(why) => tracing::warn!(check = %planned.check.id, why, "no evidence could be taken"),
        }
    }
    let cleaned = cx.clean_up().await;
    let leaks = cx.leaks().await;
    if entry.outcome == Outcome::Pass {
        if let Err(stop) = leaks {
            entry.outcome = outcome_of(Err(stop));
        } else if let Err(why) = cleaned {
            entry.outcome =
                Outcome::Error { message: format!("the check passed, but its cleanup failed: {why}") };
        }
    } else if let Err(why) = cleaned {
        tracing::warn!(check = %planned.check.id, why, "cleanup after a failed check");
    }
}

fn outcome_of(verdict: Verdict) -> Outcome {
    match verdict {
        Ok(()) => Outcome::Pass,
        Err(Stop::Unmet(unmet)) => Outcome::Fail { message: unmet.to_string() },
        Err(Stop::Error(message)) => Outcome::Error { message },
        Err(Stop::NotObservable(detail)) => Outcome::Skip { reason: SkipReason::NotObservable, detail },
    }
}

/// A panic's message.
fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
