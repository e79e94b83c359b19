//! One environment for many processes: nextest starts a process per check and no one before or after them.
//!
//! The first of them starts a keeper, a process of its own, and all wait until it has the environment up. The keeper
//! watches nextest itself and takes everything down when that is gone, however it went.

use super::outcome::{subject, watch_signals, write_reports};
use super::run::{plan_all, prepare_output, unjudged};
use crate::check::chain;
use crate::config::{Choice, Keep, Offer, RunPlan};
use crate::cx::Suite;
use crate::events::Events;
use crate::ledger::{Entry, Ledger, Outcome, SkipReason};
use crate::probe::{ReadError, pause, poll};
use crate::progress::Terminal;
use crate::report::{exit, summary};
use crate::session::up::{Environment, Leave};
use crate::session::{FOLDER_PREFIX, RunDir, Session, StateError, settle};
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Set for the keeper: where the processes of its run meet.
const PLACE: &str = "CCM_CONFORMANCE_KEEPER_PLACE";
/// Set for the keeper: the process whose end ends the run.
const WATCHED: &str = "CCM_CONFORMANCE_KEEPER_WATCHES";
/// How long bringing the environment up may take, images compiled on the way included.
const UP_LIMIT: Duration = Duration::from_secs(1800);

/// What the keeper tells the others.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
enum News {
    /// The environment is up; the run's folder.
    Up { dir: PathBuf },
    /// It did not come up.
    Failed { why: String },
}

/// Where the processes of one nextest run meet.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    place: PathBuf,
}

impl Shared {
    /// The meeting place of the nextest run this process belongs to; `None` outside nextest.
    pub(super) fn of_nextest() -> Option<Shared> {
        if std::env::var("NEXTEST_EXECUTION_MODE").as_deref() != Ok("process-per-test") {
            return None;
        }
        let id = std::env::var("NEXTEST_RUN_ID").ok()?;
        let id: String = id.chars().filter(char::is_ascii_alphanumeric).collect();
        Some(Shared { place: std::env::temp_dir().join(format!("{FOLDER_PREFIX}nextest-{id}")) })
    }

    /// The folder of the environment; starts a keeper when there is none yet.
    pub(super) async fn environment(&self) -> Result<PathBuf, String> {
        self.start_keeper().map_err(|error| format!("starting the environment's keeper: {error}"))?;
        let meeting = RunDir::join(&self.place);
        let up = async |seen: &mut String| {
            *seen =
                format!("nothing from the keeper; its log is {}", self.place.join("keeper.log").display());
            match meeting.read::<News>("news.json") {
                Ok(None) => Ok(None),
                Ok(Some(News::Up { dir })) => Ok(Some(dir)),
                Ok(Some(News::Failed { why })) => Err(ReadError { text: why, fatal: true }),
                Err(error) => Err(ReadError::passing(chain(&error))),
            }
        };
        let interval = Duration::from_millis(100);
        poll("the shared environment is up", UP_LIMIT, interval, up).await.map_err(|error| error.text)
    }

    fn start_keeper(&self) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.place)?;
        let once = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.place.join("start.lock"))?;
        once.lock()?;
        let started = self.place.join("keeper.log");
        if started.exists() {
            return Ok(());
        }
        let log = OpenOptions::new().create(true).append(true).open(&started)?;
        Command::new(std::env::current_exe()?)
            .env(PLACE, &self.place)
            .env(WATCHED, std::os::unix::process::parent_id().to_string())
            .env_remove("NEXTEST_EXECUTION_MODE")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            // A group of its own: nextest ends the group of a test that is over.
            .process_group(0)
            .spawn()?;
        Ok(())
    }
}

/// Hands a check's entry in for the report.
pub(super) fn hand_in(dir: &RunDir, entry: &Entry) -> Result<(), StateError> {
    dir.write(&format!("entry-{}.json", entry.id), entry)
}

/// Whether this process was started as a keeper, and where.
pub(super) fn asked_to_keep() -> Option<PathBuf> {
    std::env::var_os(PLACE).map(PathBuf::from)
}

/// The keeper: environment up, wait for nextest's end, report, environment down.
pub(super) fn main(suites: &'static [Suite], plan: RunPlan, place: &Path) -> ExitCode {
    let events = Terminal::alone();
    let watched: Option<u32> = std::env::var(WATCHED).ok().and_then(|pid| pid.parse().ok());
    let (Some(watched), Ok(runtime)) = (watched, tokio::runtime::Runtime::new()) else {
        events.say("error: the keeper was started without a process to watch, or has no runtime");
        return ExitCode::from(exit::USAGE);
    };
    let code = runtime.block_on(keep(suites, Arc::new(plan), place, watched, &events));
    if let Err(error) = std::fs::remove_dir_all(place) {
        events.say(&format!("removing {}: {error}", place.display()));
    }
    ExitCode::from(code)
}

async fn keep(
    suites: &'static [Suite],
    plan: Arc<RunPlan>,
    place: &Path,
    watched: u32,
    events: &Events,
) -> u8 {
    let began = Instant::now();
    let cancel = CancellationToken::new();
    tokio::spawn(watch_signals(cancel.clone()));
    tokio::spawn(cancel_with(watched, cancel.clone()));
    let mut ledger = Ledger { started: jiff::Timestamp::now().to_string(), ..Ledger::default() };
    let (settled, chosen) = settle(plan.as_ref().clone()).await;
    let plan = Arc::new(settled);
    chosen.iter().for_each(|chosen| events.say(chosen));
    let mut environment = Environment::new(plan.clone());
    let meeting = RunDir::join(place);
    let up = match prepare_output(&plan) {
        Ok(()) => environment.up(events, &cancel).await.map_err(|error| chain(&error)),
        Err(error) => Err(format!("output folder {}: {error}", plan.output.display())),
    };
    ledger.stages = environment.stages();
    let news = match &up {
        Ok(session) => News::Up { dir: session.dir().path().to_owned() },
        Err(why) => News::Failed { why: why.clone() },
    };
    if let Err(error) = meeting.write("news.json", &news) {
        events.say(&chain(&error));
    }
    cancel.cancelled().await;
    let offer = Offer::declared(&plan.profile.capabilities);
    let planned = plan_all(suites, &plan, &offer).unwrap_or_default();
    ledger.entries = planned
        .iter()
        .map(|one| match &up {
            Err(why) => one.entry(unjudged(&one.choice, why)),
            Ok(session) => {
                handed_in(session, one.check.id.as_str()).unwrap_or_else(|| one.entry(not_run(&one.choice)))
            }
        })
        .collect();
    ledger.environment_error = up.as_ref().err().cloned();
    ledger.subject = subject(suites, &plan, up.as_ref().ok(), "cargo nextest run --test e2e");
    ledger.duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    write_reports(&plan, &ledger, events);
    events.say(&summary(&ledger));
    if let Ok(session) = &up
        && let Err(error) = session.leave().await
    {
        events.say(&format!("left in the cluster: {}", chain(&error)));
    }
    drop(up);
    let leave = if plan.keep == Keep::Always { Leave::Everything } else { Leave::Nothing };
    match environment.down(leave).await {
        Ok(()) => exit::CONFORMANT,
        Err(why) => {
            events.say(&format!("left behind ('ccm-conformance clean' tries again):\n{why}"));
            exit::ENVIRONMENT
        }
    }
}

fn handed_in(session: &Session, id: &str) -> Option<Entry> {
    session.dir().read(&format!("entry-{id}.json")).ok().flatten()
}

fn not_run(choice: &Choice) -> Outcome {
    match choice {
        Choice::Skip(reason, detail) => Outcome::Skip { reason: *reason, detail: detail.clone() },
        Choice::Selected => {
            Outcome::Skip { reason: SkipReason::Deselected, detail: "nextest did not run it".to_owned() }
        }
    }
}

/// Cancels when the process is gone.
async fn cancel_with(process: u32, cancel: CancellationToken) {
    let entry = PathBuf::from(format!("/proc/{process}"));
    while entry.exists() {
        pause(Duration::from_millis(300)).await;
    }
    cancel.cancel();
}
