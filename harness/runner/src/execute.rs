//! The main sequence of every run.

use super::capacity::lane_count;
use super::certify::certifies;
use super::conclude::{conclude, open, say_left_behind, say_verdict};
use super::final_report::FinalReport;
use super::interrupt::{INTERRUPTED, guard, orderly};
use super::limits::enough_files;
use super::planned::Planned;
use super::ready_environment::{Judging, judge_subject, leave_cluster, plan_for, take_down};
use super::subject::subject;
use super::watch::{Watch, Watched};
use futures::future::{join_all, try_join_all};
use harness_config::{Candidate, Choice, Offer, Problems, RunPlan, WantedCluster, is_asked_for};
use harness_core::check::chain;
use harness_core::events::{Events, Payload};
use harness_core::files;
use harness_core::ledger::upgrades_from;
use harness_core::output;
use harness_core::progress::Terminal;
use harness_report::exit;
use harness_session::up::{Environment, Leave, Prepared, startable};
use harness_session::{Session, SessionError, expected_boot, load_manifests, settle, unfilled};
use harness_testkit::Suite;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// A run.
pub struct Run {
    /// All suites.
    pub suites: &'static [Suite],
    /// The plan: what is tested, where and how.
    pub plan: RunPlan<WantedCluster>,
    /// The command that repeats this run.
    pub reproduce: String,
    /// Whether the run's page is served on loopback while the run is in progress.
    pub watch: Watch,
    /// Interrupts the run when cancelled.
    pub cancel: CancellationToken,
}

/// Plans, creates the environment, judges the checks, writes the reports, and removes the environment.
///
/// # Expected flow
/// Mistakes in the user's input are reported before anything is started, with exit code 2. Then the stream of events
/// begins. From there on both reports are written however the run ends, also if the environment could not be created.
pub fn execute(run: Run, judging: &mut dyn Judging) -> ExitCode {
    ExitCode::from(exit_code_of(run, judging))
}

/// Like [`execute`], but returns the exit code as a number, for callers with several runs.
pub fn exit_code_of(run: Run, judging: &mut dyn Judging) -> u8 {
    match begin(run, judging) {
        Ok(begun) => begun.finish(judging),
        Err(refusal) => {
            judging.cannot(&refusal.why);
            fail(refusal.code, &refusal.shown)
        }
    }
}

/// Why a run does not start.
struct Refusal {
    code: u8,
    /// The reason, for the judging code.
    why: String,
    /// The message, for the terminal.
    shown: String,
}

impl Refusal {
    fn new(code: u8, why: impl ToString) -> Refusal {
        let why = why.to_string();
        Refusal { code, shown: format!("error: {why}"), why }
    }
}

/// A run whose stream of events has begun.
struct Begun {
    suites: &'static [Suite],
    plan: Arc<RunPlan>,
    planned: Vec<Planned>,
    reproduce: String,
    /// Which cluster was chosen and why, if the user did not choose one.
    chosen: Option<String>,
    runtime: Runtime,
    last: FinalReport,
    events: Events,
    watched: Option<Watched>,
    cancel: CancellationToken,
}

/// The result of creating the lanes.
type Up = Result<Vec<Arc<Session>>, SessionError>;

/// Why no check is selected: the reasons of those that the options ask for, the most frequent first.
fn nothing_selected(planned: &[Planned], asked: &[bool]) -> String {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for (one, asked) in planned.iter().zip(asked) {
        // What the user did not ask for is left out for that reason, whatever else there is.
        if let Choice::Skip(_, why) = &one.choice
            && (*asked || why.starts_with("a quick run"))
        {
            *reasons.entry(why).or_default() += 1;
        }
    }
    let mut reasons: Vec<(&str, usize)> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, count)| Reverse(*count));
    if reasons.is_empty() {
        return "no check is selected: the options leave out all of them; 'ccm-conformance plan' with the same options shows \
                the reason for each"
            .to_owned();
    }
    let shown = reasons.iter().take(3).map(|(why, count)| format!("{count} because {why}"));
    format!(
        "no check is selected: {}; 'ccm-conformance plan' with the same options shows the reason for each",
        shown.collect::<Vec<_>>().join(", ")
    )
}

/// Checks everything that can be refused before anything is started.
fn begin(run: Run, judging: &dyn Judging) -> Result<Begun, Refusal> {
    let Run { suites, plan, reproduce, watch, cancel } = run;
    let planned = plan_for(suites, &plan, &Offer::declared(&plan.profile), judging)
        .map_err(|problems| Refusal::new(exit::USAGE, problems))?;
    if !planned.iter().any(|one| one.choice == Choice::Selected) {
        let candidates =
            suites.iter().flat_map(|suite| suite.checks().map(|check| Candidate::of(suite, check)));
        let asked: Vec<bool> = candidates.map(|one| is_asked_for(&one, &plan.selection)).collect();
        return Err(Refusal::new(exit::NOTHING_SELECTED, nothing_selected(&planned, &asked)));
    }
    enough_files().map_err(|why| Refusal::new(exit::ENVIRONMENT, why))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        Refusal::new(exit::ENVIRONMENT, format!("cannot start the async runtime: {}", files::why(&error)))
    })?;
    let last = FinalReport::default();
    guard(runtime.handle(), cancel.clone(), orderly(plan.cluster.desired()), last.clone());
    let (plan, chosen) = runtime.block_on(settle(plan));
    certifies(suites, &plan, &planned).map_err(|problems| Refusal::new(exit::USAGE, problems))?;
    // The results of an earlier run stay if this one cannot start.
    if let Err(error) = startable(&plan)
        && error.is_usage()
    {
        return Err(Refusal::new(exit::USAGE, chain(&error)));
    }
    let events = open(&plan, judging.verbosity()).map_err(|error| {
        Refusal::new(exit::USAGE, format!("output folder {}: {}", plan.output.display(), files::why(&error)))
    })?;
    let watched = Watched::begin(&watch, &events, &plan.output).map_err(|why| {
        let shown = format!("error: the run cannot be watched: {why}");
        Refusal { code: exit::ENVIRONMENT, why, shown }
    })?;
    // Not in the stream: streams are given to others, and everyone who knows the address can read the page.
    if let Some(Watched::Alone(server)) = &watched {
        Terminal::alone().say(format!("watch it at {}", server.url()));
    }
    let plan = Arc::new(plan);
    Ok(Begun { suites, plan, planned, reproduce, chosen, runtime, last, events, watched, cancel })
}

impl Begun {
    /// Creates the environment, judges the checks, writes the reports, and removes the environment.
    fn finish(self, judging: &mut dyn Judging) -> u8 {
        let Begun { plan, planned, events, runtime, .. } = &self;
        let prepared = Prepared::new(plan.clone());
        let mut environments: Vec<Environment> =
            (0..lane_count(plan, planned)).map(|lane| Environment::new(prepared.clone(), lane)).collect();
        introduce(&environments, plan, self.chosen.clone(), events);
        let subject = subject(self.suites, plan, planned, &[], &self.reproduce);
        events.emit(Payload::SubjectKnown(Box::new(subject)));
        events.emit(Payload::ChecksPlanned { checks: planned.iter().map(Planned::event).collect() });
        self.last.set({
            let (plan, events, annotates) = (plan.clone(), events.clone(), judging.annotates());
            move || {
                events.interrupt();
                let (ledger, _) = conclude(&plan, &events, annotates);
                say_verdict(&ledger);
            }
        });
        let up = runtime.block_on(all_up(&mut environments, events, &self.cancel));
        if let Err(error) = &up
            && error.is_usage()
        {
            let why = chain(error);
            judging.cannot(&why);
            events.say(format!("error: {why}"));
            drop(up);
            let down = environments.into_iter().map(|environment| environment.down(Leave::Nothing));
            let outcomes = runtime.block_on(join_all(down));
            outcomes.into_iter().for_each(|outcome| say_left_behind(outcome, events));
            return exit::USAGE;
        }
        self.judge(up, judging);
        self.end(environments, judging)
    }

    /// Judges the checks in the environments that exist, and reports those that could not be created.
    fn judge(&self, up: Up, judging: &mut dyn Judging) {
        let Begun { events, runtime, .. } = self;
        match up {
            Err(error) => {
                let message = chain(&error);
                judging.cannot(&message);
                events.say(match error {
                    SessionError::Interrupted => "interrupted before the environment was up".to_owned(),
                    _ => format!("error: the environment did not come up: {message}"),
                });
                events.emit(Payload::EnvironmentFailed { message });
            }
            Ok(sessions) => {
                let handle = runtime.handle();
                if let Err(problems) = judge_subject(self.suites, &sessions, &self.reproduce, judging, handle)
                {
                    // The same selection was already checked before the cluster existed.
                    let message = format!("the checks could not be planned: {problems}");
                    events.emit(Payload::EnvironmentFailed { message });
                }
                sessions.iter().for_each(|session| leave_cluster(session, handle));
            }
        }
    }

    /// Writes the reports, removes the environments, and prints the verdict.
    fn end(self, environments: Vec<Environment>, judging: &mut dyn Judging) -> u8 {
        let Begun { plan, events, runtime, last, watched, cancel, .. } = self;
        if !last.take() {
            // Then the code that ends the process is already writing the reports, and ends it afterwards.
            loop {
                std::thread::park();
            }
        }
        let (ledger, code) = conclude(&plan, &events, judging.annotates());
        last.written();
        watched.iter().for_each(Watched::run_ended);
        take_down(environments, &plan, &ledger, &events, runtime.handle());
        // After an interrupt the run does not wait for open pages: they were informed before the cleanup.
        match watched.filter(|watched| !cancel.is_cancelled() || watched.goes_on()).map(Watched::end) {
            None | Some(Ok(None)) => {}
            Some(Ok(Some(cost))) if cost.was_opened() => events.say_detail(format!("  {cost}")),
            Some(Ok(Some(_))) => {}
            Some(Err(why)) => events.say(format!("warning: the run could not be watched: {why}")),
        }
        let code = match output::broken() {
            // A reader of the output cannot see how the run ended.
            Some(broken) => {
                if broken.unread && !cancel.is_cancelled() {
                    events.say(format!(
                        "error: {}: lines of checks are missing there, so the exit code is {}; the report has all of them",
                        broken.why,
                        exit::ENVIRONMENT
                    ));
                }
                exit::ENVIRONMENT
            }
            None if cancel.is_cancelled() => INTERRUPTED,
            None => code,
        };
        judging.ended(&ledger, code);
        say_verdict(&ledger);
        code
    }
}

/// Creates all lanes at the same time; returns the error of the first one that fails. The first lane reports its stages;
/// the others are reported as a single stage.
async fn all_up(
    environments: &mut [Environment],
    events: &Events,
    cancel: &CancellationToken,
) -> Result<Vec<Arc<Session>>, SessionError> {
    let Some((first, others)) = environments.split_first_mut() else { return Ok(Vec::new()) };
    let without_stages = events.without_stages();
    let rest = async {
        if others.is_empty() {
            return Ok(Vec::new());
        }
        let stage = events.stage("the other clusters");
        let all = try_join_all(others.iter_mut().map(|other| other.up(&without_stages, cancel))).await;
        stage.end(all.is_ok());
        all
    };
    let (session, mut all) = tokio::try_join!(first.up(events, cancel), rest)?;
    all.insert(0, session);
    Ok(all)
}

/// Prints which run this is, which cluster it uses, what is expected of the boot, and slips in the manifests.
fn introduce(environments: &[Environment], plan: &RunPlan, chosen: Option<String>, events: &Events) {
    let Some(first) = environments.first() else { return };
    let lanes = match environments.len() {
        1 => String::new(),
        count => format!(" on {count} clusters"),
    };
    events.say_detail(format!("run {}{lanes}", first.run()));
    let old = upgrades_from(&plan.settings);
    old.iter().for_each(|old| events.say_detail(format!("  upgrade from {old}")));
    chosen.iter().for_each(|chosen| events.say_detail(format!("  {chosen}")));
    if let Some(expected) = expected_boot(&plan.profile, plan.cluster.desired()) {
        events.say_detail(format!("  expected from the manifests: {}", expected.replace('\n', "\n    ")));
    }
    // Manifests that cannot be read are reported when they are deployed.
    if let Ok(Some(manifests)) = load_manifests(plan) {
        unfilled(&plan.profile, &manifests).iter().for_each(|why| events.say(format!("warning: {why}")));
    }
}

/// Prints what is wrong with the user's input.
pub fn refuse(problems: &Problems) -> ExitCode {
    ExitCode::from(fail(exit::USAGE, &format!("error: {problems}")))
}

fn fail(code: u8, why: &str) -> u8 {
    output::err(why);
    code
}

#[cfg(test)]
mod tests {
    use super::super::ready_environment::Stand;
    use super::*;
    use harness_config::{RunFile, SelectKeys, Source, plan};

    /// Judges nothing and stores the reason.
    #[derive(Default)]
    struct Reasons(Vec<String>);

    impl Judging for Reasons {
        fn judge(&mut self, _stand: &Stand<'_>) {
            panic!("there is nothing to judge");
        }

        fn cannot(&mut self, why: &str) {
            self.0.push(why.to_owned());
        }
    }

    fn executed(only: Option<&str>) -> (String, Vec<String>, bool) {
        let folder = tempfile::tempdir().expect("a folder");
        let select = SelectKeys { only: only.map(|only| vec![only.to_owned()]), ..SelectKeys::default() };
        let mut plan = plan(&Source::Defaults, RunFile { select, ..RunFile::default() }).expect("a plan");
        plan.output = folder.path().join("results");
        let (cancel, reproduce) = (CancellationToken::new(), String::new());
        let mut reasons = Reasons::default();
        let code = execute(Run { suites: &[], plan, reproduce, watch: Watch::No, cancel }, &mut reasons);
        (format!("{code:?}"), reasons.0, folder.path().join("results").exists())
    }

    #[test]
    fn a_wrong_plan_is_refused_and_nothing_is_started() {
        let (code, reasons, made) = executed(Some("NODE-LIVE-*"));
        assert_eq!(code, format!("{:?}", ExitCode::from(exit::USAGE)));
        assert!(matches!(reasons.as_slice(), [why] if why.contains("NODE-LIVE-*")), "{reasons:?}");
        assert!(!made, "no output folder");
    }

    #[test]
    fn a_run_of_nothing_says_so() {
        let (code, reasons, _) = executed(None);
        assert_eq!(code, format!("{:?}", ExitCode::from(exit::NOTHING_SELECTED)));
        assert!(matches!(reasons.as_slice(), [why] if why.contains("no check is selected")), "{reasons:?}");
    }
}
