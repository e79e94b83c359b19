//! One environment for many processes: nextest starts one process per check, and none before or after them.
//!
//! The first of them starts a keeper, which is a separate process, and all wait until it has started the
//! environment. The keeper watches nextest itself and cleans up when nextest has ended, in whatever way.

use harness_config::{RunPlan, WantedCluster};
use harness_core::check::{Isolation, chain};
use harness_core::events::Payload;
use harness_core::files;
use harness_core::ledger::{Outcome, SkipReason};
use harness_core::output;
use harness_core::owner::Liveness;
use harness_core::probe::{ReadError, pause, poll};
use harness_report::exit;
use harness_runner::{Hold, Judging, Run, Stand, Watch, execute, run_one};
use harness_session::{FOLDER_PREFIX, RunDir};
use harness_testkit::Suite;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Set for the keeper: the folder that the processes of its run share.
const PLACE: &str = "CCM_CONFORMANCE_KEEPER_PLACE";
/// Set for the keeper: the process whose end ends the run.
const WATCHED: &str = "CCM_CONFORMANCE_KEEPER_WATCHES";
/// How long the start of the environment may take, including images that have to be compiled.
const UP_LIMIT: Duration = Duration::from_secs(1800);

/// A message of the keeper to the others.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
enum KeeperMessage {
    /// The environment is up.
    Up(KeptEnvironment),
    /// It did not start.
    Failed { why: String },
}

/// An environment that is kept for other processes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct KeptEnvironment {
    /// The folder of each lane.
    pub(super) lanes: Vec<PathBuf>,
    /// The stream of the run's events.
    pub(super) events: PathBuf,
    /// When the run began.
    pub(super) began: Timestamp,
}

/// The folder that the processes of one nextest run share.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    place: PathBuf,
}

impl Shared {
    /// The folder of the nextest run that this process belongs to; `None` outside nextest.
    pub(super) fn of_nextest() -> Option<Shared> {
        if std::env::var("NEXTEST_EXECUTION_MODE").as_deref() != Ok("process-per-test") {
            return None;
        }
        let id = std::env::var("NEXTEST_RUN_ID").ok()?;
        let id: String = id.chars().filter(char::is_ascii_alphanumeric).collect();
        Some(Shared { place: std::env::temp_dir().join(format!("{FOLDER_PREFIX}nextest-{id}")) })
    }

    /// The environment; starts a keeper if there is none yet.
    pub(super) async fn environment(&self) -> Result<KeptEnvironment, String> {
        self.start_keeper().map_err(|error| format!("starting the environment's keeper: {error}"))?;
        let meeting = RunDir::join(&self.place);
        let up = async |seen: &mut String| {
            *seen =
                format!("nothing from the keeper; its log is {}", self.place.join("keeper.log").display());
            match meeting.read::<KeeperMessage>("news.json") {
                Ok(None) => Ok(None),
                Ok(Some(KeeperMessage::Up(kept))) => Ok(Some(kept)),
                Ok(Some(KeeperMessage::Failed { why })) => Err(ReadError { text: why, fatal: true }),
                Err(error) => Err(ReadError::passing(chain(&error))),
            }
        };
        let interval = Duration::from_millis(100);
        poll("the shared environment is up", UP_LIMIT, interval, up).await.map_err(|error| error.text)
    }

    /// Creates the shared folder and starts the keeper; only the first process does this.
    fn start_keeper(&self) -> Result<(), String> {
        let name = self.place.file_name().unwrap_or_default().to_string_lossy();
        let run = name.strip_prefix(FOLDER_PREFIX).unwrap_or(&name);
        let meeting = match RunDir::create(run) {
            Ok(meeting) => meeting,
            Err(error) if error.cause.kind() == ErrorKind::AlreadyExists => {
                return match RunDir::liveness(&self.place) {
                    // An existing folder is trusted.
                    Liveness::Unknown(why) => Err(format!("{}: {why}", self.place.display())),
                    Liveness::Lives(_) | Liveness::Gone => Ok(()),
                };
            }
            Err(error) => return Err(chain(&error)),
        };
        self.spawn_keeper(meeting).map_err(|error| files::why(&error))
    }

    fn spawn_keeper(&self, meeting: RunDir) -> std::io::Result<()> {
        let log = OpenOptions::new()
            .create_new(true)
            .append(true)
            .mode(0o600)
            .open(self.place.join("keeper.log"))?;
        Command::new(std::env::current_exe()?)
            .env(PLACE, &self.place)
            .env(WATCHED, std::os::unix::process::parent_id().to_string())
            .env_remove("NEXTEST_EXECUTION_MODE")
            // The lock that marks the folder as used is passed to the keeper as its standard input, which it
            // does not read.
            .stdin(meeting.into_lock().map_or_else(Stdio::null, Stdio::from))
            .stdout(log.try_clone()?)
            .stderr(log)
            // A process group of its own: nextest ends the group of a finished test.
            .process_group(0)
            .spawn()?;
        Ok(())
    }
}

/// Whether this process was started as a keeper, and for which folder.
pub(super) fn asked_to_keep() -> Option<PathBuf> {
    std::env::var_os(PLACE).map(PathBuf::from)
}

/// The keeper: a run whose checks are judged by other processes, until nextest has ended.
pub(super) fn main(suites: &'static [Suite], plan: RunPlan<WantedCluster>, place: &Path) -> ExitCode {
    let Some(watched) = std::env::var(WATCHED).ok().and_then(|pid| pid.parse().ok()) else {
        output::err("error: the keeper was started without a process to watch");
        return ExitCode::from(exit::USAGE);
    };
    let cancel = CancellationToken::new();
    let mut keeper = Keeper { meeting: RunDir::join(place), watched, cancel: cancel.clone() };
    let reproduce = "cargo nextest run --test e2e".to_owned();
    let code = execute(Run { suites, plan, reproduce, watch: Watch::No, cancel }, &mut keeper);
    if let Err(error) = std::fs::remove_dir_all(place) {
        output::err(&format!("removing {}: {}", place.display(), files::why(&error)));
    }
    code
}

/// Manages the environment for the other processes.
struct Keeper {
    meeting: RunDir,
    /// The process of nextest.
    watched: u32,
    cancel: CancellationToken,
}

impl Judging for Keeper {
    fn judge(&mut self, stand: &Stand<'_>) {
        let events = stand.session().events();
        let Some(path) = events.path().and_then(|path| std::path::absolute(path).ok()) else {
            return self.tell(&KeeperMessage::Failed { why: "the run's events are kept nowhere".to_owned() });
        };
        let lanes = stand.lanes.iter().map(|session| session.dir().path().to_owned()).collect();
        self.tell(&KeeperMessage::Up(KeptEnvironment { lanes, events: path, began: events.began() }));
        stand.handle.block_on(async {
            tokio::select! {
                () = gone(self.watched) => {}
                () = self.cancel.cancelled() => {}
            }
        });
        if let Err(error) = events.take_others_in() {
            events.say(format!("error: {}", chain(&error)));
        }
        // No other process could find out that all others had ended.
        let unended = events.fold().unended();
        for one in stand.planned.iter().filter(|one| one.check.isolation == Isolation::AfterTheRun) {
            if unended.contains(&one.check.id.to_string()) && !self.cancel.is_cancelled() {
                let (session, hold) = (stand.session().clone(), Hold::in_order(one.check.isolation));
                stand.handle.block_on(run_one(stand.lanes, session, one, hold));
            }
        }
        for id in events.fold().unended() {
            let detail = "nextest did not run it".to_owned();
            let ended = Outcome::Skip { reason: SkipReason::Deselected, detail };
            let (duration_ms, budget_used_percent, facts) = (0, None, BTreeMap::new());
            let ended = Payload::CheckEnded { ended, duration_ms, budget_used_percent, facts };
            events.of_check(&id).emit(ended);
        }
    }

    /// Every process of nextest learns the reason; the last of them has to read it before the folder is removed.
    fn cannot(&mut self, why: &str) {
        self.tell(&KeeperMessage::Failed { why: why.to_owned() });
        match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime.block_on(gone(self.watched)),
            Err(error) => {
                output::err(&format!("cannot start the async runtime: {}", files::why(&error)));
            }
        }
    }
}

impl Keeper {
    fn tell(&self, news: &KeeperMessage) {
        if let Err(error) = self.meeting.write("news.json", news) {
            output::err(&chain(&error));
        }
    }
}

/// Ends when the process is gone.
async fn gone(process: u32) {
    let entry = PathBuf::from(format!("/proc/{process}"));
    while entry.exists() {
        pause(Duration::from_millis(300)).await;
    }
}
