//! An environment that is ready, the checks that are judged in it, and its cleanup.

use super::conclude::say_left_behind;
use super::planned::{Planned, arranged, plan_checks, selected};
use super::scheduler::Scheduler;
use super::subject::subject;
use futures::future::join_all;
use harness_config::{Choice, Keep, Offer, Problems, RunPlan};
use harness_core::check::{Isolation, chain};
use harness_core::events::{Events, Payload};
use harness_core::ledger::{Ledger, Outcome, SkipReason};
use harness_core::progress::Verbosity;
use harness_report::{CHECKS_STAGE, verdict_word};
use harness_session::Session;
use harness_session::up::{Environment, Leave};
use harness_testkit::Suite;
use std::cmp::Reverse;
use std::sync::Arc;
use tokio::runtime::Handle;

/// The input of the judging code.
pub struct Stand<'a> {
    /// The environments, one for each lane; at least one.
    pub lanes: &'a [Arc<Session>],
    /// Every check, and whether it runs here.
    pub planned: &'a [Planned],
    /// The runtime that drives the checks' bodies.
    pub handle: &'a Handle,
}

impl Stand<'_> {
    /// The first lane.
    pub fn session(&self) -> &Arc<Session> {
        &self.lanes[0]
    }

    /// The checks to run, each with its step, the longest first; and their turns, with this many at the same time in each
    /// lane.
    pub(super) fn work(&self, at_once: usize) -> (Vec<(Planned, usize)>, Scheduler) {
        let chosen = selected(self.planned);
        let plan = self.session().plan();
        let arranged = arranged(&chosen, self.lanes.len(), plan.profile.workers, plan.cluster.backend());
        let turns = Scheduler::of(&arranged, self.lanes.len(), at_once);
        let mut work: Vec<(Planned, usize)> = chosen.into_iter().zip(arranged.of).collect();
        work.sort_by_key(|(one, step)| (*step, Reverse(one.takes_s)));
        // Checks that watch the leader crash wait for each other, which works only if all may run at the same time.
        let watchers = work.iter().filter(|(one, _)| one.check.isolation == Isolation::SharedCrash).count();
        let together = if watchers < at_once { watchers } else { 1 };
        self.lanes.iter().for_each(|lane| lane.crashes().expect_participants(together));
        (work, turns)
    }
}

/// Code that judges the checks once the environment is ready.
pub trait Judging {
    /// Whether a check is left out, by the name of its test.
    fn leaves_out(&self, _name: &str) -> bool {
        false
    }

    /// Judges. Every check that is to run begins and ends with an event.
    fn judge(&mut self, stand: &Stand<'_>);

    /// Receives the reason if nothing can be judged.
    fn cannot(&mut self, _why: &str) {}

    /// Receives the results once the reports are written, and the exit code.
    fn ended(&mut self, _ledger: &Ledger, _code: u8) {}

    /// How much of the run is shown.
    fn verbosity(&self) -> Verbosity {
        Verbosity::Normal
    }

    /// Whether GitHub's annotations are written wherever the run is.
    fn annotates(&self) -> bool {
        false
    }
}

/// The checks of a plan, with those marked that the judging code leaves out.
///
/// # Errors
/// Those of [`plan_checks`].
pub(super) fn plan_for<C>(
    suites: &'static [Suite],
    plan: &RunPlan<C>,
    offer: &Offer,
    judging: &dyn Judging,
) -> Result<Vec<Planned>, Problems> {
    let mut planned = plan_checks(suites, plan, offer)?;
    for one in &mut planned {
        if one.choice == Choice::Selected && judging.leaves_out(&one.name()) {
            one.choice = Choice::Skip(SkipReason::Deselected, "left out by the test filter".to_owned());
        }
    }
    Ok(planned)
}

/// Judges one CCM in an environment that is ready: writes subject and plan to the stream, judges, and ends the run.
///
/// # Errors
/// Those of [`plan_checks`]; nothing has been judged then.
pub fn judge_subject(
    suites: &'static [Suite],
    lanes: &[Arc<Session>],
    reproduce: &str,
    judging: &mut dyn Judging,
    handle: &Handle,
) -> Result<(), Problems> {
    let Some(session) = lanes.first() else { return Ok(()) };
    let (plan, events) = (session.plan(), session.events().of_run());
    let offer = session.offer();
    let planned = plan_for(suites, plan, &offer, judging)?;
    events.emit(Payload::SubjectKnown(Box::new(subject(suites, plan, &planned, lanes, reproduce))));
    events.emit(Payload::ChecksPlanned { checks: planned.iter().map(Planned::event).collect() });
    let stage = events.stage(CHECKS_STAGE);
    judging.judge(&Stand { lanes, planned: &planned, handle });
    stage.end(true);
    Ok(())
}

/// Removes the environments, or keeps them if the plan says so for this result. Prints what could not be removed.
pub fn take_down(
    environments: Vec<Environment>,
    plan: &RunPlan,
    ledger: &Ledger,
    events: &Events,
    handle: &Handle,
) {
    let mut leave = leave_after(plan.keep, has_trouble(ledger));
    if leave == Leave::Everything && environments.iter().any(Environment::is_in_process) {
        handle.block_on(keep_up(&environments, ledger, events));
        leave = Leave::Nothing;
    }
    for environment in &environments {
        if leave == Leave::Everything {
            say_kept(environment, events);
        }
    }
    // All at the same time, so that an interrupted run takes only as long as the slowest.
    let down = environments.into_iter().map(|environment| environment.down(leave));
    handle.block_on(join_all(down)).into_iter().for_each(|outcome| say_left_behind(outcome, events));
}

/// Prints where a kept environment is.
pub(super) fn say_kept(environment: &Environment, events: &Events) {
    let Some(dir) = environment.dir() else { return };
    events.say(format!(
        "kept: cluster {}, kubeconfig {}; 'ccm-conformance clean' removes it",
        environment.run_id().name(),
        dir.path().join("kubeconfig").display(),
    ));
}

/// Whether an environment is kept, for a result with or without failures.
pub(super) fn leave_after(keep: Keep, has_trouble: bool) -> Leave {
    match keep {
        Keep::Always => Leave::Everything,
        Keep::OnFailure if has_trouble => Leave::Everything,
        Keep::OnFailure | Keep::Never => Leave::Nothing,
    }
}

/// Whether anything failed, the environment included.
fn has_trouble(ledger: &Ledger) -> bool {
    ledger.environment_error.is_some() || ledger.all().any(|entry| is_trouble(&entry.outcome))
}

/// Whether a check failed, was blocked, or ended with an error of the environment.
pub(super) fn is_trouble(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Fail { .. } | Outcome::Blocked { .. } | Outcome::Error { .. })
}

/// Keeps environments that live in this process running until the user ends it.
async fn keep_up(environments: &[Environment], ledger: &Ledger, events: &Events) {
    if !harness_core::output::err_is_terminal() {
        return events
            .say("not kept: an embedded cluster ends with this process, and there is no terminal from which to end it");
    }
    for dir in environments.iter().filter_map(Environment::dir) {
        events.say(format!("kept: export KUBECONFIG={}", dir.path().join("kubeconfig").display()));
    }
    // The verdict is printed once more at the end, as the last line.
    events.say(format!(
        "the result is complete: {}; press Ctrl-C to end the cluster",
        verdict_word(ledger.conformance())
    ));
    super::interrupt::kept_until_signal().await;
    // The terminal has shown `^C` without a line end.
    harness_core::output::err("");
}

/// Removes what the harness deployed from a cluster that outlives the run.
pub(super) fn leave_cluster(session: &Session, handle: &Handle) {
    if let Err(error) = handle.block_on(session.leave()) {
        session.events().say(format!("left in the cluster: {}", chain(&error)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_stays_after_trouble_where_that_is_wanted() {
        let good = Ledger::default();
        let bad = Ledger { environment_error: Some("no disk".to_owned()), ..Ledger::default() };
        for (keep, ledger, left) in [
            (Keep::OnFailure, &good, Leave::Nothing),
            (Keep::OnFailure, &bad, Leave::Everything),
            (Keep::Never, &bad, Leave::Nothing),
            (Keep::Always, &good, Leave::Everything),
        ] {
            assert_eq!(leave_after(keep, has_trouble(ledger)), left, "{keep:?}");
        }
    }
}
