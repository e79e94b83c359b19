//! Signals that end a run, and the reaper that takes away what the run then cannot.

use super::last_word::{Due, LastWord};
use harness_clusters::reaper;
use harness_config::DesiredCluster;
use harness_core::probe::pause;
use harness_core::progress::Terminal;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Exit code of a run that was interrupted, as shells have it for SIGINT.
pub const INTERRUPTED: u8 = 130;
/// How long a run that was interrupted has to take everything down itself: its reaper then has the rest of the 10 s that are promised,
/// of which three kind clusters take it 6.
pub const ORDERLY: Duration = Duration::from_secs(4);
/// The same on a cluster of somebody else, which no reaper tidies up. Kubelets give a Pod 30 s.
const ORDERLY_AT_OTHERS: Duration = Duration::from_secs(24);
/// How long the last word of such a run may take: its reports are written in less than a second.
const LAST_WORD: Duration = Duration::from_secs(3);

/// The signals by which somebody ends a program: SIGINT, SIGTERM, SIGQUIT, and SIGHUP unless the program was told to outlive
/// its terminal (`nohup`).
#[derive(Debug)]
pub struct Signals(Vec<Signal>);

impl Signals {
    /// From now on they are heard, and no longer end the program by themselves.
    pub fn heard() -> Signals {
        let mut kinds = vec![SignalKind::interrupt(), SignalKind::terminate(), SignalKind::quit()];
        if !is_ignored(SignalKind::hangup()) {
            kinds.push(SignalKind::hangup());
        }
        Signals(kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect())
    }

    /// Ends at the next; never where none can be heard.
    pub async fn next(&mut self) {
        if self.0.is_empty() {
            return std::future::pending().await;
        }
        let each = self.0.iter_mut().map(|signal| Box::pin(signal.recv()));
        futures::future::select_all(each).await;
    }
}

/// Whether whoever started this program has it ignore a signal.
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (kind.as_raw_value() - 1) & 1 == 1
}

/// How long a run on such a cluster has to take everything down itself when it is interrupted.
pub fn orderly(desired: &DesiredCluster) -> Duration {
    match desired {
        DesiredCluster::Existing(_) => ORDERLY_AT_OTHERS,
        DesiredCluster::Own(_) | DesiredCluster::Absent => ORDERLY,
    }
}

/// Starts the reaper of this process, and has signals cancel the run, which is down within `orderly` or is ended; `last` is what
/// is done before that.
pub fn guard(runtime: &Handle, cancel: CancellationToken, orderly: Duration, last: LastWord) {
    start_reaper();
    runtime.spawn(watch_signals(cancel, orderly, last));
}

/// Starts the reaper of this process: nothing of what it makes outlives it. Without one `clean` is left.
pub fn start_reaper() {
    if let Err(error) = reaper::start() {
        let what =
            "no reaper: when this process is killed, 'ccm-conformance clean' has to remove what it leaves";
        Terminal::alone().say(format!("warning: {what} ({error})"));
    }
}

/// Cancels the run at the first signal. At the second, or when the run is not down in time, ends the process: what there is
/// then is its reaper's.
#[expect(
    clippy::exit,
    clippy::disallowed_methods,
    reason = "the second signal asks for exactly that, and what hangs has no other end"
)]
pub async fn watch_signals(cancel: CancellationToken, orderly: Duration, last: LastWord) {
    let events = Terminal::alone();
    let mut signals = Signals::heard();
    signals.next().await;
    events.say("interrupted: taking everything down (once more to leave that to the run's reaper)");
    cancel.cancel();
    let why = tokio::select! {
        () = signals.next() => "interrupted again".to_owned(),
        () = pause(orderly) => format!("not down within {} s", orderly.as_secs()),
    };
    // Should that hang, the process ends all the same.
    let _ = tokio::time::timeout(LAST_WORD, reports_written(last.due())).await;
    let stays: Vec<String> = reaper::holds().iter().map(|folder| folder.display().to_string()).collect();
    events.say(match stays.as_slice() {
        [] => format!("{why}: whatever stays 'ccm-conformance clean' removes"),
        stays => format!("{why}: left to the run's reaper, with their containers: {}", stays.join(", ")),
    });
    std::process::exit(i32::from(INTERRUPTED));
}

/// Ends when the reports of the run are written.
async fn reports_written(due: Due) {
    match due {
        Due::Nothing => {}
        Due::Write(word) => {
            // A panic in there has been shown by the panic hook; the process ends anyway.
            let _ = tokio::task::spawn_blocking(word).await;
        }
        Due::Wait(written) => written.cancelled().await,
    }
}
