//! An environment that stands, what is judged in it, and how it is left.

use super::planned::{Planned, plan_checks};
use super::subject::subject;
use crate::check::chain;
use crate::config::{Choice, Keep, Offer, Problems, RunPlan};
use crate::cx::Suite;
use crate::events::{Events, Payload};
use crate::ledger::{Ledger, Outcome, SkipReason};
use crate::report::CHECKS_STAGE;
use crate::session::Session;
use crate::session::up::{Environment, Leave};
use std::io::IsTerminal;
use std::sync::Arc;
use tokio::runtime::Handle;

/// What whoever judges gets.
pub struct Stand<'a> {
    /// The environment.
    pub session: &'a Arc<Session>,
    /// Every check, and whether it runs here.
    pub planned: &'a [Planned],
    /// The runtime that drives the checks' bodies.
    pub handle: &'a Handle,
}

/// Who judges the checks once the environment stands.
pub trait Judging {
    /// Whether a check that would run is left out, by the name of its test.
    fn leaves_out(&self, _name: &str) -> bool {
        false
    }

    /// Judges. Every check that is to run begins and ends with an event.
    fn judge(&mut self, stand: &Stand<'_>);

    /// Is told why nothing can be judged, when that is so.
    fn cannot(&mut self, _why: &str) {}
}

/// The checks of a plan, those left out that the judging leaves out.
///
/// # Errors
/// As [`plan_checks`].
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

/// Judges one CCM in an environment that stands: tells the stream what is tested and what is planned, lets judge, and ends
/// the run.
///
/// # Errors
/// As [`plan_checks`]; nothing has been judged then.
pub fn judge_subject(
    suites: &'static [Suite],
    session: &Arc<Session>,
    reproduce: &str,
    judging: &mut dyn Judging,
    handle: &Handle,
) -> Result<(), Problems> {
    let (plan, events) = (session.plan(), session.events());
    let offer = session.offer();
    let planned = plan_for(suites, plan, &offer, judging)?;
    events.emit(Payload::SubjectKnown(Box::new(subject(suites, plan, Some(session), reproduce))));
    events.emit(Payload::ChecksPlanned { checks: planned.iter().map(Planned::event).collect() });
    let stage = events.stage(CHECKS_STAGE);
    judging.judge(&Stand { session, planned: &planned, handle });
    stage.end(true);
    Ok(())
}

/// Takes the environment down, or leaves it as the plan wants it after such a result.
///
/// # Errors
/// What could not be removed, one line each.
pub fn take_down(
    environment: Environment,
    plan: &RunPlan,
    ledger: &Ledger,
    events: &Events,
    handle: &Handle,
) -> Result<(), String> {
    if leave_after(plan.keep, ledger) == Leave::Nothing {
        return handle.block_on(environment.down(Leave::Nothing));
    }
    if environment.is_in_process() {
        handle.block_on(keep_up(&environment, events));
        return handle.block_on(environment.down(Leave::Nothing));
    }
    if let Some(dir) = environment.dir() {
        events.say(format!(
            "kept: cluster {}, kubeconfig {}; 'ccm-conformance clean' removes it",
            environment.run_id().name(),
            dir.path().join("kubeconfig").display(),
        ));
    }
    handle.block_on(environment.down(Leave::Everything))
}

/// How an environment is left after such a result.
fn leave_after(keep: Keep, ledger: &Ledger) -> Leave {
    match keep {
        Keep::Always => Leave::Everything,
        Keep::OnFailure if has_trouble(ledger) => Leave::Everything,
        Keep::OnFailure | Keep::Never => Leave::Nothing,
    }
}

/// Whether anything failed, the environment included.
fn has_trouble(ledger: &Ledger) -> bool {
    let troubled = |outcome: &Outcome| matches!(outcome, Outcome::Fail { .. } | Outcome::Error { .. });
    ledger.environment_error.is_some() || ledger.entries.iter().any(|entry| troubled(&entry.outcome))
}

/// Keeps an environment up that lives in this process, for somebody to look at, as long as they want.
async fn keep_up(environment: &Environment, events: &Events) {
    let kubeconfig = environment.dir().map(|dir| dir.path().join("kubeconfig").display().to_string());
    if std::io::stderr().is_terminal() {
        events.say(format!("kept: export KUBECONFIG={}; Ctrl-C ends it", kubeconfig.unwrap_or_default()));
        super::interrupted().await;
    } else {
        events.say("not kept: an embedded cluster ends with this process, and nobody sits at it to end it");
    }
}

/// Takes what the harness deployed away from a cluster that outlives the run.
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
            assert_eq!(leave_after(keep, ledger), left, "{keep:?}");
        }
    }
}
