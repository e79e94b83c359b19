//! Emits events: to the file, to the ledger, and to listeners.

use super::event::{Event, Payload, RunBegan, SCHEMA};
use super::file;
use super::fold::Fold;
use crate::files;
use crate::ledger::{INTERRUPTED, Outcome};
use crate::secrets;
use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// A listener for events: the terminal, a test.
pub trait Sink: Send {
    /// Takes the next event.
    fn take(&mut self, event: &Event);
}

/// The stream of one run. Clones are the same stream.
#[derive(Clone)]
pub struct Events {
    inner: Arc<Inner>,
    stages: bool,
    lane: Option<u32>,
}

struct Inner {
    began: Timestamp,
    begun_here: bool,
    state: Mutex<State>,
    /// The folder of a stream that this process began: it is locked for other runs as long as this is open.
    _folder: Option<File>,
}

struct State {
    file: Option<(PathBuf, File)>,
    /// Why the file does not contain all events, if so.
    unwritten: Option<String>,
    fold: Fold,
    sinks: Vec<Box<dyn Sink>>,
    /// The keys of messages that are shown once.
    said_once: BTreeSet<String>,
    count: u64,
    cost: Duration,
    /// Whether only the end of the run and messages are still accepted.
    is_sealed: bool,
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("began", &self.inner.began).finish_non_exhaustive()
    }
}

impl Events {
    fn new(began: Timestamp, file: Option<(PathBuf, File)>, sinks: Vec<Box<dyn Sink>>) -> Events {
        Events::of(began, true, file, sinks, None)
    }

    fn of(
        began: Timestamp,
        begun_here: bool,
        file: Option<(PathBuf, File)>,
        sinks: Vec<Box<dyn Sink>>,
        folder: Option<File>,
    ) -> Events {
        let state = State {
            file,
            unwritten: None,
            fold: Fold::default(),
            sinks,
            said_once: BTreeSet::new(),
            count: 0,
            cost: Duration::ZERO,
            is_sealed: false,
        };
        Events {
            inner: Arc::new(Inner { began, begun_here, state: Mutex::new(state), _folder: folder }),
            stages: true,
            lane: None,
        }
    }

    /// Locks a folder for one stream, until the result is closed.
    ///
    /// # Errors
    /// Another run in progress has it, or it cannot be opened.
    pub fn lock_folder(path: &Path) -> std::io::Result<File> {
        let folder = File::open(path)?;
        match folder.try_lock() {
            Ok(()) => Ok(folder),
            Err(TryLockError::Error(error)) => Err(error),
            Err(TryLockError::WouldBlock) => Err(std::io::Error::new(
                std::io::ErrorKind::ResourceBusy,
                "another run is writing its results there; choose another folder with '--out', or wait for that run",
            )),
        }
    }

    /// Begins the stream of a run: a new file, which replaces an existing one, in a folder that was locked for it.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn begin(path: &Path, sinks: Vec<Box<dyn Sink>>, folder: File) -> std::io::Result<Events> {
        // All processes of the run append to the file.
        let removed = std::fs::remove_file(path);
        if let Err(error) = removed
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return Err(error);
        }
        let file = OpenOptions::new().append(true).create_new(true).open(path)?;
        let began = Timestamp::now();
        let events = Events::of(began, true, Some((path.to_owned(), file)), sinks, Some(folder));
        events.emit(Payload::RunBegan(RunBegan {
            schema: SCHEMA.to_owned(),
            started: began.to_string(),
            harness_version: env!("CARGO_PKG_VERSION").to_owned(),
        }));
        Ok(events)
    }

    /// Joins a stream that another process of the run has begun.
    ///
    /// # Errors
    /// The file does not exist.
    pub fn join(path: &Path, began: Timestamp) -> std::io::Result<Events> {
        let file = OpenOptions::new().append(true).open(path)?;
        Ok(Events::of(began, false, Some((path.to_owned(), file)), Vec::new(), None))
    }

    /// A stream without a file: for work that is not a run.
    pub fn unrecorded(sinks: Vec<Box<dyn Sink>>) -> Events {
        Events::new(Timestamp::now(), None, sinks)
    }

    /// When the run began.
    pub fn began(&self) -> Timestamp {
        self.inner.began
    }

    /// Whether this process began the stream. Only that process records events of cluster and cloud, which every process
    /// observes.
    pub fn is_begun_here(&self) -> bool {
        self.inner.begun_here
    }

    /// The stream's file; `None` if it has none.
    pub fn path(&self) -> Option<PathBuf> {
        self.lock().file.as_ref().map(|(path, _)| path.clone())
    }

    /// Records an event of the run as a whole.
    pub fn emit(&self, payload: Payload) {
        self.take(None, payload);
    }

    /// Shows a message to the user.
    pub fn say(&self, line: impl Into<String>) {
        self.emit(Payload::Said { text: line.into(), detail: false });
    }

    /// Shows a message to the user, unless the run is to be quiet.
    pub fn say_detail(&self, line: impl Into<String>) {
        self.emit(Payload::Said { text: line.into(), detail: true });
    }

    /// Shows a message to the user, unless one with this key was shown before.
    pub fn say_once(&self, key: &str, line: impl Into<String>) {
        let is_new = self.lock().said_once.insert(key.to_owned());
        if is_new {
            self.say(line);
        }
    }

    /// Marks all checks that have not ended as interrupted. Afterwards only the end of the run and messages are accepted:
    /// the run is ended while it is still in progress.
    pub fn interrupt(&self) {
        let at_ms = self.now_ms();
        let mut state = self.lock();
        for id in state.fold.unended() {
            let event = Payload::CheckEnded {
                ended: Outcome::Error { message: INTERRUPTED.to_owned() },
                duration_ms: 0,
                budget_used_percent: None,
                facts: BTreeMap::new(),
            };
            state.take(Event { at_ms, lane: None, check: Some(id), event });
        }
        state.is_sealed = true;
    }

    /// The same stream without stages: for work that runs several times in parallel.
    pub fn without_stages(&self) -> Events {
        Events { stages: false, ..self.clone() }
    }

    /// The same stream, for events of the run as a whole.
    pub fn of_run(&self) -> Events {
        Events { lane: None, ..self.clone() }
    }

    /// The same stream, for events of the lane with that number.
    pub fn of_lane(&self, lane: u32) -> Events {
        Events { lane: Some(lane), ..self.clone() }
    }

    /// Begins a stage. It ends when the result is dropped, as failed unless it was ended before.
    pub fn stage(&self, name: &str) -> StageGuard {
        if self.stages {
            self.emit(Payload::StageBegan { stage: name.to_owned() });
        }
        StageGuard { events: self.clone(), stage: name.to_owned(), began: Instant::now(), ok: false }
    }

    /// The stream for the events of one check.
    pub fn of_check(&self, id: &str) -> CheckEvents {
        CheckEvents { events: self.clone(), id: id.to_owned() }
    }

    /// The result of this process's events so far.
    pub fn fold(&self) -> Fold {
        self.lock().fold.clone()
    }

    /// How often a replica of the CCM in this lane has exited so far without a check causing it.
    pub fn unmade_ends(&self) -> usize {
        self.lock().fold.conduct().ends_since(self.lane.unwrap_or_default(), 0).count()
    }

    /// The current time of events: milliseconds since the run began.
    pub fn now_ms(&self) -> u64 {
        u64::try_from(Timestamp::now().duration_since(self.inner.began).as_millis()).unwrap_or(0)
    }

    /// The lane of these events; `None` for those of the run.
    pub fn lane(&self) -> Option<u32> {
        self.lane
    }

    /// Includes the events of the run's other processes: the result is then read from the file.
    ///
    /// # Errors
    /// The file cannot be read any more.
    pub fn take_others_in(&self) -> Result<(), file::StreamError> {
        let mut state = self.lock();
        if let Some((path, _)) = &state.file {
            state.fold = Fold::of(&file::read(path)?);
        }
        Ok(())
    }

    /// Whether all events are in the file.
    ///
    /// # Errors
    /// Why one is not, with the file.
    pub fn written(&self) -> Result<(), String> {
        self.lock().unwritten.clone().map_or(Ok(()), Err)
    }

    /// The cost of the events that this process has emitted so far.
    pub fn cost(&self) -> Cost {
        let state = self.lock();
        Cost { events: state.count, spent: state.cost, process: processor_time(ClockId::ProcessCPUTime) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().expect("no holder of this lock panics")
    }

    fn take(&self, check: Option<&str>, payload: Payload) {
        let began = processor_time(ClockId::ThreadCPUTime);
        let at_ms = self.now_ms();
        let event = Event { at_ms, lane: self.lane, check: check.map(str::to_owned), event: payload };
        let mut state = self.lock();
        state.take(event);
        state.cost += processor_time(ClockId::ThreadCPUTime).saturating_sub(began);
    }
}

/// The cost of a stream for the process that emits it: writing the events, folding them, and showing them to its sinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// How many events it has emitted.
    pub events: u64,
    /// Processor time spent on them.
    pub spent: Duration,
    /// Processor time of the whole process, an embedded cluster and its cloud included.
    pub process: Duration,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// From this share of the processor time on, in percent, a user may want to know what the stream costs.
        const MUCH: f64 = 5.0;
        let share = 100.0 * self.spent.as_secs_f64() / self.process.as_secs_f64().max(f64::MIN_POSITIVE);
        if share < MUCH {
            return write!(f, "{} events", self.events);
        }
        write!(
            f,
            "{} events for {} ms of processor time, {share:.1} % of {:.1} s",
            self.events,
            self.spent.as_millis(),
            self.process.as_secs_f64()
        )
    }
}

fn processor_time(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}

impl State {
    fn take(&mut self, event: Event) {
        if self.is_sealed && !matches!(event.event, Payload::RunEnded { .. } | Payload::Said { .. }) {
            return;
        }
        let mut line = event.line();
        let mut event = event;
        if let Some(clean) = secrets::redacted(&line) {
            // The replacement of a secret needs no escape, so the line stays valid. If a key contained a secret, its
            // position may have changed; the event determines the form of its line.
            line = clean;
            if let Ok(clean) = serde_json::from_str::<Event>(&line) {
                line = clean.line();
                event = clean;
            }
        }
        if self.fold.is_ended() && !event.is_message() {
            // The end of the run ends its record: events during the cleanup are not written.
            return self.sinks.iter_mut().for_each(|sink| sink.take(&event));
        }
        if let Some((path, file)) = &mut self.file
            && self.unwritten.is_none()
            && let Err(error) = file.write_all(line.as_bytes())
        {
            self.unwritten = Some(format!("{} could not be written: {}", path.display(), files::why(&error)));
        }
        self.count += 1;
        self.fold.take_line(&event, &line);
        self.sinks.iter_mut().for_each(|sink| sink.take(&event));
    }
}

/// The stream for the events of one check.
#[derive(Clone, Debug)]
pub struct CheckEvents {
    events: Events,
    id: String,
}

impl CheckEvents {
    /// Records an event of the check.
    pub fn emit(&self, payload: Payload) {
        self.events.take(Some(&self.id), payload);
    }
}

/// A stage in progress.
#[derive(Debug)]
pub struct StageGuard {
    events: Events,
    stage: String,
    began: Instant,
    ok: bool,
}

impl StageGuard {
    /// Ends it.
    pub fn end(mut self, ok: bool) {
        self.ok = ok;
    }
}

impl Drop for StageGuard {
    fn drop(&mut self) {
        let took_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        if self.events.stages {
            self.events.emit(Payload::StageEnded { stage: self.stage.clone(), took_ms, ok: self.ok });
        }
    }
}

#[cfg(test)]
mod tests;
