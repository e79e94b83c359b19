//! `reap`: the reaper of a run. It reads from the run what the run has created, and removes that when the run
//! is gone.

use harness_clusters::images::Engine;
use harness_clusters::reaper::ReaperMessage;
use harness_clusters::remove_leftovers;
use harness_core::check::chain;
use harness_core::files;
use harness_core::output::{self, first_of};
use harness_core::probe::pause;
use harness_report::exit;
use harness_session::{FOLDER_PREFIX, RunDir};
use processes::Offspring;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, getppid, kill_process, setsid};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How often it looks for processes that the run has started.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// How long it looks for containers that an engine was still creating.
const LATE: Duration = Duration::from_secs(8);
/// The pause between two looks.
const AGAIN: Duration = Duration::from_millis(500);
/// How many times the processes of the run are ended: one that is killed may just have started another.
const ROUNDS: u32 = 10;

pub(super) fn reap(run: u32) -> ExitCode {
    // It kills what that process has started, so it serves no other process than the run that starts it.
    let parent = getppid().map(|parent| parent.as_raw_nonzero().get());
    let Some(run) = parent.filter(|parent| u32::try_from(*parent) == Ok(run)) else {
        say("error: 'reap' is started by a run; 'ccm-conformance clean' removes what ended runs left behind");
        return ExitCode::from(exit::USAGE);
    };
    // A signal that ends the run's session or group does not end its reaper.
    let _ = setsid();
    let (holdings, mut offspring) = listen(run);
    let own = holdings.has.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>();
    let stays = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(async {
            end(&mut offspring).await;
            take_away(&holdings).await
        }),
        Err(error) => vec![format!("cannot start the async runtime: {}", files::why(&error))],
    };
    if !own.is_empty() {
        say(&format!(
            "the run was ended before it had cleaned up; its reaper has removed: {}",
            first_of(&own, 2)
        ));
    }
    if stays.is_empty() {
        return ExitCode::SUCCESS;
    }
    say(&format!("left behind ('ccm-conformance clean' tries again):\n{}", stays.join("\n")));
    ExitCode::from(exit::ENVIRONMENT)
}

/// The resources of the run, as far as it has reported them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Holdings {
    has: BTreeSet<PathBuf>,
    uses_engine: bool,
}

impl Holdings {
    fn take(&mut self, line: &[u8]) {
        match serde_json::from_slice(line) {
            Ok(ReaperMessage::Has(folder)) => {
                self.has.insert(folder);
            }
            Ok(ReaperMessage::Released(folder)) => {
                self.has.remove(&folder);
            }
            Ok(ReaperMessage::UsesEngine) => self.uses_engine = true,
            Ok(ReaperMessage::Ended) => self.has.clear(),
            // The last line of a run that was killed may be incomplete.
            Err(_) => {}
        }
    }
}

/// Listens to the run until it is gone: returns its resources, and the processes that it has started.
fn listen(run: i32) -> (Holdings, Offspring) {
    let (mut holdings, mut offspring) = (Holdings::default(), Offspring::of(run));
    let mut stdin = std::io::stdin().lock();
    let (mut line, mut part) = (Vec::new(), [0; 4096]);
    loop {
        offspring.look();
        let ready = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&LOOK));
        if ready == Ok(0) || ready == Err(rustix::io::Errno::INTR) {
            continue;
        }
        match stdin.read(&mut part) {
            Ok(read) if read > 0 => {
                for &byte in &part[..read] {
                    if byte == b'\n' {
                        holdings.take(&line);
                        line.clear();
                    } else {
                        line.push(byte);
                    }
                }
            }
            _ => return (holdings, offspring),
        }
    }
}

/// Ends the processes that the run has started.
async fn end(offspring: &mut Offspring) {
    for _ in 0..ROUNDS {
        offspring.look();
        let living = offspring.all();
        if living.is_empty() {
            return;
        }
        for process in living {
            // It may have ended by now.
            let _ = Pid::from_raw(process.pid).map(|pid| kill_process(pid, Signal::KILL));
        }
        pause(Duration::from_millis(50)).await;
    }
}

/// Removes everything; returns what remains, and why.
async fn take_away(holdings: &Holdings) -> Vec<String> {
    let mut stays = Vec::new();
    if holdings.uses_engine && !holdings.has.is_empty() {
        let runs: BTreeSet<&str> = holdings.has.iter().filter_map(|folder| run_of(folder)).collect();
        stays.extend(containers_of(&runs).await.err());
    }
    for folder in &holdings.has {
        if let Err(error) = RunDir::clear(folder)
            && error.cause.kind() != std::io::ErrorKind::NotFound
        {
            stays.push(chain(&error));
        }
    }
    stays
}

/// The run that this folder belongs to.
fn run_of(folder: &Path) -> Option<&str> {
    folder.file_name()?.to_str()?.strip_prefix(FOLDER_PREFIX)
}

/// Removes the containers of these runs. Those that were being created appear late.
async fn containers_of(runs: &BTreeSet<&str>) -> Result<(), String> {
    let engine = Engine::connect().await.map_err(|error| chain(&error))?;
    let began = Instant::now();
    loop {
        let of_runs = |run: &harness_clusters::images::RunId| runs.contains(run.as_str());
        let removed = remove_leftovers(&engine, |thing| thing.run.as_ref().is_some_and(of_runs)).await;
        match removed {
            Ok(none) if none.is_empty() && began.elapsed() > LATE / 2 => return Ok(()),
            Err(error) if began.elapsed() > LATE => return Err(chain(&error)),
            _ => pause(AGAIN).await,
        }
    }
}

fn say(line: &str) {
    output::err(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_or_properly_ended_resources_are_not_reaped() {
        let mut holdings = Holdings::default();
        let mut tell =
            |message: &ReaperMessage| holdings.take(&serde_json::to_vec(message).expect("plain data"));
        let (one, other) = (PathBuf::from("/tmp/ccm-conformance-a"), PathBuf::from("/tmp/b"));
        tell(&ReaperMessage::Has(one.clone()));
        tell(&ReaperMessage::Has(other.clone()));
        tell(&ReaperMessage::Released(other));
        tell(&ReaperMessage::UsesEngine);
        holdings.take(b"{\"has\":\"/tm");
        assert_eq!(holdings, Holdings { has: BTreeSet::from([one.clone()]), uses_engine: true });
        assert_eq!(run_of(&one), Some("a"));
        holdings.take(&serde_json::to_vec(&ReaperMessage::Ended).expect("plain data"));
        assert!(holdings.has.is_empty());
    }
}
