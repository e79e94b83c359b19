//! `dev`: judges a CCM again whenever its program, its profile or its sources change.

mod changes;
mod event;
mod keys;
mod noise;
mod selection;

use super::arguments::DevOptions;
use super::compare::read;
use super::planning::planned;
use super::run::{not_passed, typed};
use changes::{Build, watched};
use event::Event;
use harness_clusters::Runs;
use harness_config::{BackendChoice, RunFile, RunPlan, WantedCluster};
use harness_core::files;
use harness_core::output::{self, first_of};
use harness_core::progress::Verbosity;
use harness_report::exit;
use harness_runner::{INTERRUPTED, PageServer, Run, Shown, ShownAs, Signals, Watch, exit_code_of};
use harness_testkit::Suite;
use keys::Keyboard;
use noise::Noise;
use notify::RecommendedWatcher;
use selection::Selection;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How long files must stay as they are before they are used: a compiler writes a program in several steps.
const SETTLED: Duration = Duration::from_millis(150);

/// Why judging stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopped {
    /// It is complete.
    Done,
    /// It could not begin: what was typed, the profile or the selection is wrong. With the exit code of `run`.
    Refused(u8),
    /// A file changed in the middle of it.
    ByChange,
    /// The user wants to end.
    ByUser,
}

/// Judges, and waits for a change, until the user ends it.
pub(super) fn dev(suites: &'static [Suite], options: &DevOptions) -> ExitCode {
    let (sender, events) = channel();
    let first = match typed(&options.shared) {
        Ok(typed) => typed,
        Err(code) => return code,
    };
    let build = options.build.clone().map(|command| Build { command, source: options.source.clone() });
    let mut session = DevSession {
        suites,
        options,
        first,
        build,
        sender,
        events,
        failed: Vec::new(),
        interrupted: false,
        is_built: true,
        page: None,
        noise: Noise::default(),
    };
    match session.prepare() {
        Ok(plan) => session.until_the_end(plan),
        Err(code) => code,
    }
}

/// Number of ids that a message names.
const SHOWN: usize = 8;

struct DevSession<'a> {
    suites: &'static [Suite],
    options: &'a DevOptions,
    /// What was typed.
    first: RunFile,
    build: Option<Build>,
    sender: Sender<Event>,
    events: Receiver<Event>,
    /// The checks that did not pass when they were last judged.
    failed: Vec<String>,
    /// Whether the user wants to end.
    interrupted: bool,
    /// Whether the first build succeeded, or nothing is built.
    is_built: bool,
    /// Serves the page of each round.
    page: Option<Arc<PageServer>>,
    noise: Noise,
}

impl DevSession<'_> {
    /// Checks the options, and reads which checks failed last. A program that is still to be built may be absent.
    fn prepare(&mut self) -> Result<RunPlan<WantedCluster>, ExitCode> {
        let backend = self.first.cluster.backend.get_or_insert(BackendChoice::Embedded);
        if *backend == BackendChoice::Auto {
            *backend = BackendChoice::Embedded;
        }
        let runs_programs =
            backend.named().is_some_and(|kind| harness_clusters::facts(kind).runs == Runs::Programs);
        if !runs_programs {
            output::err(&format!(
                "error: --cluster {backend}: 'dev' starts a new cluster for each change, which takes too long with this one; use \
                 '--cluster embedded', or 'ccm-conformance run --cluster {backend}'"
            ));
            return Err(ExitCode::from(exit::USAGE));
        }
        if self.options.shared.kubernetes().len() > 1 {
            output::err("error: --kubernetes: 'dev' judges on one version; 'run' takes several");
            return Err(ExitCode::from(exit::USAGE));
        }
        if self.first.certify == Some(true) {
            output::err(&format!(
                "error: --certify: {backend} is a simulation and cannot certify; leave it out"
            ));
            return Err(ExitCode::from(exit::USAGE));
        }
        if let Some(source) = self.build.as_ref().map(|build| &build.source).filter(|source| !source.exists())
        {
            output::err(&format!("error: --source {}: no file or folder has this path", source.display()));
            return Err(ExitCode::from(exit::USAGE));
        }
        let which_program = || {
            output::err("error: --build: which program does it build? name it with '--binary PATH'");
            ExitCode::from(exit::USAGE)
        };
        // A run file may name the program.
        if self.build.is_some() && self.first.binary.is_none() && self.options.shared.config.is_none() {
            return Err(which_program());
        }
        self.is_built = self.builds();
        let plan = planned(&self.options.shared.source(), self.first.clone())?;
        if self.build.is_some() && plan.binary.is_none() {
            return Err(which_program());
        }
        // A user who names checks wants those, and not what failed in another run.
        let names_checks = Selection::of(&self.first.select) == Selection::Typed;
        self.failed = if names_checks { Vec::new() } else { Self::failures(&plan) };
        Ok(plan)
    }

    /// The checks that did not pass in the report of the last run.
    fn failures(plan: &RunPlan<WantedCluster>) -> Vec<String> {
        read(&plan.output).map(|ledger| not_passed(&ledger)).unwrap_or_default()
    }

    fn until_the_end(mut self, plan: RunPlan<WantedCluster>) -> ExitCode {
        let _watcher = match self.listen(&plan) {
            Ok(watcher) => watcher,
            Err((code, why)) => {
                output::err(&format!("error: {why}"));
                return ExitCode::from(code);
            }
        };
        let keyboard = Keyboard::begin(self.sender.clone());
        // Also during a round: what is typed then is not shown in its lines.
        let _keys = keyboard.as_ref().map(Keyboard::one_by_one);
        self.page = served_page();
        let mut selection = Selection::of(&self.first.select);
        // A failed build has shown its output; the next change builds again.
        let mut stopped = if self.is_built { self.judge_all(&selection) } else { Stopped::Done };
        // A change of a file may repair what is wrong later, not what was typed.
        if let Stopped::Refused(code) = stopped {
            return ExitCode::from(code);
        }
        loop {
            // The next round could not be shown either.
            if let Some(broken) = output::broken() {
                // Other reasons are printed at the end of every command.
                if broken.unread {
                    output::err(&format!("error: {}", broken.why));
                }
                return ExitCode::from(exit::ENVIRONMENT);
            }
            match stopped {
                Stopped::ByUser => return ExitCode::from(INTERRUPTED),
                Stopped::ByChange => {}
                Stopped::Done | Stopped::Refused(_) => {
                    match self.next(&mut selection, keyboard.as_ref(), &plan) {
                        Next::Quit => return ExitCode::from(exit::CONFORMANT),
                        Next::Interrupted => return ExitCode::from(INTERRUPTED),
                        Next::Judge if self.builds() => {}
                        Next::JudgeFailed if self.builds() => {
                            stopped = self.judge_failed();
                            continue;
                        }
                        Next::JudgeNamed if self.builds() => {
                            stopped = self.judge(&selection);
                            continue;
                        }
                        Next::Judge | Next::JudgeFailed | Next::JudgeNamed => continue,
                    }
                }
            }
            stopped = self.judge_all(&selection);
        }
    }

    /// Begins to send file changes and signals.
    fn listen(&self, plan: &RunPlan<WantedCluster>) -> Result<RecommendedWatcher, (u8, String)> {
        let watcher = watched(plan, self.build.as_ref(), self.sender.clone())?;
        let failed = |what: &str, error: &std::io::Error| {
            (exit::ENVIRONMENT, format!("cannot start {what}: {}", files::why(error)))
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failed("the async runtime", &error))?;
        let sender = self.sender.clone();
        let listener = std::thread::Builder::new().name("signals".to_owned());
        let spawned = listener.spawn(move || {
            runtime.block_on(async {
                let mut signals = Signals::heard();
                loop {
                    signals.next().await;
                    if sender.send(Event::Interrupted).is_err() {
                        return;
                    }
                }
            });
        });
        spawned.map_err(|error| failed("a thread", &error))?;
        Ok(watcher)
    }

    /// Judges the checks that failed last, and the selected ones if those pass now.
    fn judge_all(&mut self, selection: &Selection) -> Stopped {
        if !self.failed.is_empty() && *selection != Selection::All {
            let stopped = self.judge_failed();
            if stopped != Stopped::Done || !self.failed.is_empty() {
                return stopped;
            }
            output::err("\nwhat failed before passes now; the other checks follow");
        }
        self.judge(selection)
    }

    /// Judges the checks that failed last, and no others.
    fn judge_failed(&mut self) -> Stopped {
        let before = self.failed.len();
        output::err(&format!("\nfirst the checks that failed last: {}", first_of(&self.failed, SHOWN)));
        let stopped = self.judge(&Selection::Failed(self.failed.clone()));
        if stopped == Stopped::Done && !self.failed.is_empty() {
            let failed = self.failed.len();
            output::err(&format!("\n{failed} of {before} checks that failed before still do not pass"));
        }
        stopped
    }

    /// Judges checks, until the end or a change.
    fn judge(&mut self, selection: &Selection) -> Stopped {
        let mut typed = self.first.clone();
        typed.select = selection.keys(&self.first.select);
        // The profile may have changed.
        let Ok(plan) = planned(&self.options.shared.source(), typed) else {
            return Stopped::Refused(exit::USAGE);
        };
        let shown = Shown {
            at_once: plan.jobs as usize,
            form: ShownAs::Text,
            verbosity: Verbosity::Normal,
            max_fail: None,
        };
        // A round that panicked has not let go of its results.
        if let Some(Err(why)) = self.page.as_ref().map(|page| page.settle()) {
            output::err(&format!("warning: the page of the last round is incomplete: {why}"));
        }
        let cancel = CancellationToken::new();
        let run = Run {
            suites: self.suites,
            plan: plan.clone(),
            reproduce: selection.reproduced(&std::env::args().skip(2).collect::<Vec<_>>()),
            watch: self.page.clone().map_or(Watch::No, Watch::By),
            cancel: cancel.clone(),
        };
        let sender = self.sender.clone();
        let judging = std::thread::spawn(move || {
            let judged = catch_unwind(AssertUnwindSafe(|| exit_code_of(run, &mut { shown })));
            // A panic has already been reported.
            let code = judged.unwrap_or(exit::ENVIRONMENT);
            // The receiver lives as long as the session.
            let _ = sender.send(Event::Ended(code));
        });
        let (mut changed, began) = (None, Instant::now());
        let code = loop {
            match self.events.recv() {
                Ok(Event::Ended(code)) => break code,
                Ok(Event::Changed(path)) => {
                    if self.noise.counts(&path) {
                        cancel.cancel();
                        changed.get_or_insert((path, began.elapsed()));
                    }
                }
                Ok(Event::Interrupted) => self.interrupted = true,
                Ok(Event::Key(_)) => {}
                Err(_) => break exit::ENVIRONMENT,
            }
        };
        // It has nothing left to do but to end.
        let _ = judging.join();
        if let Some((path, after)) = changed.filter(|_| !self.interrupted) {
            output::err(&format!("\n{} changed", path.display()));
            if self.noise.ended_a_round(&path, after) {
                output::err("it changes with every round, so its changes do not count any more");
            }
            self.settle();
            let stopped = if self.builds() { Stopped::ByChange } else { Stopped::Done };
            return if self.interrupted { Stopped::ByUser } else { stopped };
        }
        if self.interrupted {
            return Stopped::ByUser;
        }
        if code == exit::USAGE || code == exit::NOTHING_SELECTED {
            return Stopped::Refused(code);
        }
        self.failed = Self::failures(&plan);
        Stopped::Done
    }

    /// Builds, if there is a command for it; returns whether it succeeded. What the build writes does not count as a change.
    fn builds(&mut self) -> bool {
        let Some(build) = &self.build else { return true };
        let succeeds = build.succeeds();
        self.settle();
        succeeds
    }

    /// Waits until no file changes any more.
    fn settle(&mut self) {
        loop {
            match self.events.recv_timeout(SETTLED) {
                Ok(Event::Changed(_) | Event::Key(_) | Event::Ended(_)) => {}
                Ok(Event::Interrupted) => self.interrupted = true,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Waits for the user or a change.
    fn next(
        &mut self,
        selection: &mut Selection,
        keyboard: Option<&Keyboard>,
        plan: &RunPlan<WantedCluster>,
    ) -> Next {
        // Keys that were pressed during the run are not commands.
        let late: Vec<Event> =
            self.events.try_iter().filter(|event| !matches!(event, Event::Key(_))).collect();
        if self.interrupted || late.contains(&Event::Interrupted) {
            return Next::Interrupted;
        }
        if late.iter().any(|event| matches!(event, Event::Changed(path) if self.noise.counts(path))) {
            self.settle();
            return Next::Judge;
        }
        output::err(if keyboard.is_some() {
            "\nwaiting for a change; keys: a all checks, f those that failed, / other checks, Enter again, o open the page, q quit"
        } else {
            "\nwaiting for a change"
        });
        loop {
            match self.events.recv() {
                Ok(Event::Changed(path)) if self.noise.counts(&path) => {
                    self.settle();
                    output::err(&format!("{} changed", path.display()));
                }
                Ok(Event::Interrupted) | Err(_) => return Next::Interrupted,
                Ok(Event::Changed(_) | Event::Ended(_)) => continue,
                Ok(Event::Key(key)) => match key {
                    b'q' => return Next::Quit,
                    b'a' => *selection = Selection::All,
                    b'f' if self.failed.is_empty() => {
                        output::err("no check failed last");
                        continue;
                    }
                    b'f' => return Next::JudgeFailed,
                    b'\n' | b'\r' => {}
                    b'o' => {
                        match &self.page {
                            Some(page) => open(page.url()),
                            None => open(&plan.output.join("report.html").display().to_string()),
                        }
                        continue;
                    }
                    b'/' => match keyboard.and_then(|keyboard| keyboard.line(&self.events)) {
                        Some(line) if line.is_empty() => {}
                        Some(line) => {
                            *selection = Selection::Named(line);
                            return Next::JudgeNamed;
                        }
                        None => return Next::Interrupted,
                    },
                    _ => continue,
                },
            }
            return Next::Judge;
        }
    }
}

/// What happens after waiting.
enum Next {
    /// Build, if there is a command for it, and judge.
    Judge,
    /// The same, but only the checks that failed last.
    JudgeFailed,
    /// The same, but only the checks that the user has named.
    JudgeNamed,
    Quit,
    Interrupted,
}

/// Starts to serve the page of each round; prints its address.
fn served_page() -> Option<Arc<PageServer>> {
    match PageServer::open() {
        Ok(server) => {
            output::err(&format!("the page of each round: {}", server.url()));
            Some(Arc::new(server))
        }
        Err(why) => {
            output::err(&format!("warning: the page of a round is not served: {why}"));
            None
        }
    }
}

/// Opens a page in the user's browser.
fn open(page: &str) {
    let mut command = Command::new("xdg-open");
    command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(error) = command.spawn() {
        let why = files::why_not_started(&error);
        output::err(&format!("xdg-open: {why}; the page is {page}"));
    }
}
