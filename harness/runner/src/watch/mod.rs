//! `run --watch` and `dev`: the page of a run in progress, for a browser on this machine.
//!
//! A separate thread serves it on loopback, at an address that cannot be guessed, from the run's stream and its fold. It
//! is the page of `report.html`, which asks for updates once a second; without viewers it costs nothing. It ends with the
//! run, or with the last one of several.

mod live;
mod live_server;
#[cfg(test)]
mod tests;

use harness_clouds::fresh_token;
use harness_core::events::Events;
use harness_core::files;
use live::Live;
use live_server::{LiveServer, Served, Shown};
use rustix::time::{ClockId, clock_gettime};
use std::fmt;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// Whether the page of a run in progress is served, and by what.
#[derive(Clone, Debug, Default)]
pub enum Watch {
    /// It is not served.
    #[default]
    No,
    /// By a server of its own, until the run has ended.
    Own,
    /// By one that shows several runs, one after the other.
    By(Arc<PageServer>),
}

/// Serves the pages of runs at one address of this machine. An open page follows from one run to the next.
#[derive(Debug)]
pub struct PageServer {
    url: String,
    server: Arc<LiveServer>,
    shown: watch::Sender<Shown>,
    thread: JoinHandle<Result<Cost, String>>,
}

/// A run that can be watched.
pub(super) enum Watched {
    Alone(PageServer),
    OneOfSeveral(Arc<PageServer>),
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

impl Cost {
    /// Whether a browser has opened the page.
    pub(super) fn was_opened(&self) -> bool {
        self.served.opened > 0
    }
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

impl PageServer {
    /// A server that shows nothing yet.
    ///
    /// # Errors
    /// A message: no port of loopback is free, or the system provides no random numbers.
    pub fn open() -> Result<PageServer, String> {
        let token = fresh_token().map_err(|error| error.to_string())?;
        let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        });
        let (address, listener) =
            bound.map_err(|error| format!("no free port on 127.0.0.1: {}", files::why(&error)))?;
        let runtime = runtime()?;
        let url = format!("http://{address}/{token}/");
        let (shown, is_shown) = watch::channel(Shown::default());
        let server = LiveServer::new(address.port(), &token, is_shown);
        let serving = server.clone();
        let serve = move || {
            let began = Instant::now();
            let served = runtime.block_on(serving.serve(listener)).map_err(|error| files::why(&error))?;
            let spent = Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
            Ok(Cost { served, spent, lasted: began.elapsed() })
        };
        let thread = std::thread::Builder::new().name("watch".to_owned()).spawn(serve);
        let thread = thread.map_err(|error| format!("cannot start a thread: {}", files::why(&error)))?;
        Ok(PageServer { url, server, shown, thread })
    }

    /// The address of the page. Everyone who knows it can read the page, so it is shown only to the user and never
    /// written to a file.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Shows the run of this stream, whose results are in this folder.
    fn shows(&self, events: &Events, output: &Path, is_one_of_several: bool) {
        let live = Live::of(events, output);
        self.server.begins();
        self.shown.send_modify(|shown| {
            let number = shown.number + 1;
            *shown = Shown { number, live: Some(Arc::new(live)), is_one_of_several, ..Shown::default() };
        });
    }

    /// Ends the run that is shown, once open pages have the rest of it, or after two seconds. It is shown until the next one
    /// begins.
    ///
    /// # Errors
    /// A message: what pages need of it cannot be kept.
    pub fn settle(&self) -> Result<(), String> {
        let live = self.shown.borrow().live.clone();
        let Some(live) = live.filter(|live| !live.is_settled()) else { return Ok(()) };
        self.shown.send_modify(|shown| shown.is_over = true);
        runtime()?.block_on(self.server.taken());
        live.settle().map_err(|error| files::why(&error))
    }

    /// Stops serving once open pages have the rest, or after two seconds.
    fn close(self) -> Result<Cost, String> {
        let PageServer { shown, thread, .. } = self;
        shown.send_modify(|shown| (shown.is_over, shown.closes) = (true, true));
        let cost = thread.join().unwrap_or_else(|_| Err("the thread that served it panicked".to_owned()));
        drop(shown);
        cost
    }
}

fn runtime() -> Result<Runtime, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("cannot start the async runtime: {}", files::why(&error)))
}

impl Watched {
    /// Serves the run of this stream, whose results are in this folder; `None` if it is not watched.
    ///
    /// # Errors
    /// Those of [`PageServer::open`].
    pub(super) fn begin(watch: &Watch, events: &Events, output: &Path) -> Result<Option<Watched>, String> {
        let watched = match watch {
            Watch::No => return Ok(None),
            Watch::Own => Watched::Alone(PageServer::open()?),
            Watch::By(server) => Watched::OneOfSeveral(server.clone()),
        };
        watched.server().shows(events, output, watched.goes_on());
        Ok(Some(watched))
    }

    /// What serves it.
    pub(super) fn server(&self) -> &PageServer {
        match self {
            Watched::Alone(server) => server,
            Watched::OneOfSeveral(server) => server,
        }
    }

    /// Whether other runs follow, for which the server stays.
    pub(super) fn goes_on(&self) -> bool {
        matches!(self, Watched::OneOfSeveral(_))
    }

    /// Records that the run has ended: open pages get the rest while the environment is removed.
    pub(super) fn run_ended(&self) {
        let closes = !self.goes_on();
        self.server().shown.send_modify(|shown| (shown.is_over, shown.closes) = (true, closes));
    }

    /// Stops serving the run once the open pages have the rest, or after two seconds. Returns the cost of a server that
    /// ends with it.
    ///
    /// # Errors
    /// A message saying why the page could not be served.
    pub(super) fn end(self) -> Result<Option<Cost>, String> {
        match self {
            Watched::Alone(server) => server.close().map(Some),
            Watched::OneOfSeveral(server) => server.settle().map(|()| None),
        }
    }
}
