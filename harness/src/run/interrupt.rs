//! Signals that end a run.

use crate::progress::Terminal;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Exit code of a run that was interrupted, as shells have it for SIGINT.
pub const INTERRUPTED: u8 = 130;

/// Waits for SIGINT or SIGTERM; for ever where neither can be heard.
pub async fn interrupted() {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

/// Cancels the run at the first SIGINT or SIGTERM; at the second gives up cleaning, too.
#[expect(
    clippy::exit,
    clippy::disallowed_methods,
    reason = "the second signal asks for exactly that: no cleanup"
)]
pub async fn watch_signals(cancel: CancellationToken) {
    let events = Terminal::alone();
    interrupted().await;
    events.say("interrupted: taking everything down (once more to leave it behind)");
    cancel.cancel();
    interrupted().await;
    events.say("left behind: 'ccm-conformance clean' removes it");
    std::process::exit(i32::from(INTERRUPTED));
}
