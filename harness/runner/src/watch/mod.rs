//! `run --watch`: the page of a run in progress, for a browser on this machine.
//!
//! A separate thread serves it on loopback, at an address that cannot be guessed, from the run's stream and its fold. It
//! is the page of `report.html`, which asks for updates once a second; without viewers it costs nothing. It ends with the
//! run.

mod live;
mod live_server;
#[cfg(test)]
mod tests;

use harness_clouds::fresh_token;
use harness_core::events::Events;
use harness_core::files;
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

/// The cost of serving the page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    served: Served,
    /// Processor time of the serving thread.
    spent: Duration,
    /// How long it ran.
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
    /// A message: no port of loopback is free, or the system provides no random numbers.
    pub(super) fn begin(events: &Events, output: &Path) -> Result<Watched, String> {
        let token = fresh_token().map_err(|error| error.to_string())?;
        let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        });
        let (address, listener) =
            bound.map_err(|error| format!("no free port on 127.0.0.1: {}", files::why(&error)))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime =
            runtime.map_err(|error| format!("cannot start the async runtime: {}", files::why(&error)))?;
        let url = format!("http://{address}/{token}/");
        let (over, is_over) = watch::channel(false);
        let server = LiveServer::new(address.port(), &token, Live::of(events, output), is_over);
        let serve = move || {
            let began = Instant::now();
            let served = runtime.block_on(server.serve(listener)).map_err(|error| files::why(&error))?;
            let spent = Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
            Ok(Cost { served, spent, lasted: began.elapsed() })
        };
        let thread = std::thread::Builder::new().name("watch".to_owned()).spawn(serve);
        Ok(Watched {
            url,
            over,
            thread: thread.map_err(|error| format!("cannot start a thread: {}", files::why(&error)))?,
        })
    }

    /// The address of the page. Everyone who knows it can read the page, so it is shown only to the user and never
    /// written to a file.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Records that the run has ended: open pages get the rest while the environment is removed.
    pub(super) fn run_ended(&self) {
        self.over.send_replace(true);
    }

    /// Stops serving once the open pages have the rest, or after two seconds.
    ///
    /// # Errors
    /// A message saying why the page could not be served.
    pub(super) fn end(self) -> Result<Cost, String> {
        self.run_ended();
        let Watched { over, thread, .. } = self;
        let cost = thread.join().unwrap_or_else(|_| Err("the thread that served it panicked".to_owned()));
        drop(over);
        cost
    }
}
