//! `run --watch`: the page of a run while it goes, for a browser of this machine.
//!
//! It is served on loopback by a thread of its own, at an address that nobody can guess, from the run's stream and its fold.
//! The page is the one of `report.html`; it asks once a second what is new, and where nobody looks it costs nothing. It
//! ends with the run.

mod live;
mod live_server;
#[cfg(test)]
mod tests;

use harness_clouds::fresh_token;
use harness_core::events::Events;
use live::Live;
use live_server::{LiveServer, Served};
use rustix::time::{ClockId, clock_gettime};
use std::fmt;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// A run that can be watched. Dropped, it cannot any more.
pub(super) struct Watched {
    url: String,
    over: watch::Sender<bool>,
    thread: JoinHandle<Result<Cost, String>>,
}

/// What it has cost that somebody watched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    served: Served,
    /// Processor time of the thread that served.
    spent: Duration,
    /// How long it did.
    lasted: Duration,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = 100.0 * self.spent.as_secs_f64() / self.lasted.as_secs_f64().max(f64::MIN_POSITIVE);
        write!(
            f,
            "watched: opened {} times, {} answers for {} ms of processor time, {share:.1} % of a core for {:.1} s",
            self.served.opened,
            self.served.answers,
            self.spent.as_millis(),
            self.lasted.as_secs_f64()
        )
    }
}

impl Watched {
    /// Serves the run of this stream, whose results are in this folder.
    ///
    /// # Errors
    /// In words: no port of loopback is free, or the system gives no random bits.
    pub(super) fn begin(events: &Events, output: &Path) -> Result<Watched, String> {
        let token = fresh_token().map_err(|error| error.to_string())?;
        let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        });
        let (address, listener) = bound.map_err(|error| format!("no port of 127.0.0.1: {error}"))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
        let url = format!("http://{address}/{token}/");
        let (over, is_over) = watch::channel(false);
        let server = LiveServer::new(address.port(), &token, Live::of(events, output), is_over);
        let serve = move || {
            let began = Instant::now();
            let served = runtime.block_on(server.serve(listener)).map_err(|error| error.to_string())?;
            let spent = Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
            Ok(Cost { served, spent, lasted: began.elapsed() })
        };
        let thread = std::thread::Builder::new().name("watch".to_owned()).spawn(serve);
        Ok(Watched { url, over, thread: thread.map_err(|error| format!("no thread: {error}"))? })
    }

    /// Where the page is. Whoever knows it may read it, so it is for the one who asked, and for no file.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The run has ended: pages that are open get the rest, while the environment is taken down.
    pub(super) fn run_ended(&self) {
        self.over.send_replace(true);
    }

    /// Ends it, once the open pages have the rest or had two seconds for it.
    ///
    /// # Errors
    /// In words, why nobody could watch.
    pub(super) fn end(self) -> Result<Cost, String> {
        self.run_ended();
        let Watched { over, thread, .. } = self;
        let cost = thread.join().unwrap_or_else(|_| Err("the thread that served it panicked".to_owned()));
        drop(over);
        cost
    }
}
