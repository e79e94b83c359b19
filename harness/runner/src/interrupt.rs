//! Signals that end a run, and the reaper that removes what the run then leaves behind.

use super::final_report::{Due, FinalReport};
use harness_clusters::reaper;
use harness_config::DesiredCluster;
use harness_core::output::first_of;
use harness_core::probe::pause;
use harness_core::progress::Terminal;
use harness_core::screen;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Whether the run has ended and its cluster is kept: the next signal then ends that, and interrupts nothing.
static KEPT: AtomicBool = AtomicBool::new(false);

/// Exit code of an interrupted run; the one that shells use for SIGINT.
pub const INTERRUPTED: u8 = 130;
/// How long an interrupted run may take for its own cleanup. Its reaper has the rest of the promised 10 s; for three kind
/// clusters it needs 6 s.
pub const ORDERLY: Duration = Duration::from_secs(4);
/// The same on an existing cluster, which no reaper cleans up. Kubelets give a Pod 30 s.
const ORDERLY_AT_OTHERS: Duration = Duration::from_secs(24);
/// How long such a run may take to write its reports, which takes less than a second.
const LAST_WORD: Duration = Duration::from_secs(3);

/// The signals with which users end a program: SIGINT, SIGTERM, SIGQUIT, and SIGHUP unless the program was started to
/// outlive its terminal (`nohup`).
#[derive(Debug)]
pub struct Signals(Vec<Signal>);

impl Signals {
    /// Starts to listen for the signals, which then no longer end the program by default.
    pub fn heard() -> Signals {
        let mut kinds = vec![SignalKind::interrupt(), SignalKind::terminate(), SignalKind::quit()];
        if !is_ignored(SignalKind::hangup()) {
            kinds.push(SignalKind::hangup());
        }
        Signals(kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect())
    }

    /// Returns at the next signal; never if no signal can be received.
    pub async fn next(&mut self) {
        if self.0.is_empty() {
            return std::future::pending().await;
        }
        let each = self.0.iter_mut().map(|signal| Box::pin(signal.recv()));
        futures::future::select_all(each).await;
    }
}

/// Whether the program was started with this signal ignored.
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (kind.as_raw_value() - 1) & 1 == 1
}

/// Returns at the next signal, which does not count as an interruption of the run: its result is known.
pub(super) async fn kept_until_signal() {
    let mut signals = Signals::heard();
    KEPT.store(true, Ordering::SeqCst);
    signals.next().await;
}

/// How long an interrupted run on such a cluster may take for its own cleanup.
pub fn orderly(desired: &DesiredCluster) -> Duration {
    match desired {
        DesiredCluster::Existing(_) => ORDERLY_AT_OTHERS,
        DesiredCluster::Own(_) | DesiredCluster::Absent => ORDERLY,
    }
}

/// Starts the reaper of this process, and lets signals cancel the run. A run that is not cleaned up within `orderly` is
/// ended; `last` is done before that.
pub fn guard(runtime: &Handle, cancel: CancellationToken, orderly: Duration, last: FinalReport) {
    start_reaper();
    runtime.spawn(watch_signals(cancel, orderly, last));
}

/// Starts the reaper of this process, which removes everything that the process leaves behind. Without it only `clean`
/// does so.
pub fn start_reaper() {
    if let Err(error) = reaper::start() {
        let what = "the reaper could not be started: if this process is killed, run 'ccm-conformance clean' to remove what it \
             leaves behind";
        Terminal::alone().say(format!("warning: {what} ({error})"));
    }
}

/// Cancels the run at the first signal. At the second one, or if the run does not end in time, ends the process; the
/// reaper then removes what is left.
#[expect(
    clippy::exit,
    clippy::disallowed_methods,
    reason = "the second signal asks for exactly that, and what hangs has no other end"
)]
pub async fn watch_signals(cancel: CancellationToken, orderly: Duration, last: FinalReport) {
    let events = Terminal::alone();
    let mut signals = Signals::heard();
    signals.next().await;
    while KEPT.swap(false, Ordering::SeqCst) {
        signals.next().await;
    }
    events.say("interrupted: cleaning up (interrupt again to leave that to the run's reaper)");
    cancel.cancel();
    let why = tokio::select! {
        () = signals.next() => "interrupted again".to_owned(),
        () = pause(orderly) => format!("cleanup did not end within {} s", orderly.as_secs()),
    };
    let stays: Vec<String> = reaper::holds().iter().map(|folder| folder.display().to_string()).collect();
    events.say(match stays.as_slice() {
        [] => format!("{why}: run 'ccm-conformance clean' to remove what is left"),
        stays => format!(
            "{why}: a process of the run removes the rest within seconds, also containers if there are any; its records are \
             in: {}",
            first_of(stays, 2)
        ),
    });
    // The verdict is the last line of a run. If that hangs, the process ends anyway.
    let _ = tokio::time::timeout(LAST_WORD, reports_written(last.due())).await;
    screen::leave();
    std::process::exit(i32::from(INTERRUPTED));
}

/// Returns when the reports of the run are written.
async fn reports_written(due: Due) {
    match due {
        Due::Nothing => {}
        Due::Write(word) => {
            // The panic hook has already reported a panic in there; the process ends anyway.
            let _ = tokio::task::spawn_blocking(word).await;
        }
        Due::Wait(written) => written.cancelled().await,
    }
}
