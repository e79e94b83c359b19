//! The updates for the page of a run in progress.

use super::super::page::{demands, evidence};
use harness_core::events::Events;
use harness_core::ledger::Ledger;
use harness_core::secrets;
use harness_report::{Demands, live_head};
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Minimum interval between two folds of the stream for viewers.
pub(super) const PACE: Duration = Duration::from_secs(1);
/// How much of the stream goes into one answer, in bytes; more than its longest line.
const AT_ONCE: u64 = 8 << 20;
/// Name of the final page.
const REPORT: &str = "report.html";

/// A run in progress, or one that has ended.
pub(super) struct Live {
    source: Mutex<Source>,
    folder: PathBuf,
    head: Mutex<Option<Head>>,
}

/// Where the data of a run comes from.
#[derive(Clone)]
enum Source {
    /// Its stream, which keeps the folder locked.
    Running(Events),
    /// What is left of it: the results, and the file of the stream.
    Ended { ledger: Arc<Ledger>, stream: Option<PathBuf> },
}

/// The state of the run as a whole.
#[derive(Clone)]
struct Head {
    at: Instant,
    /// The number of events in it.
    events: u64,
    text: Arc<RawValue>,
    digest: String,
    demands: Arc<Demands>,
}

/// The updates for a page.
pub(super) struct PageUpdate {
    /// The answer: a line of JSON, then lines of the stream.
    pub(super) text: String,
    /// Whether there are any.
    pub(super) is_any: bool,
}

#[derive(Serialize)]
struct FirstLine<'a> {
    next: u64,
    digest: &'a str,
    ended: bool,
    /// The number of the run.
    run: u64,
    /// Whether another run may follow.
    goes_on: bool,
    kept: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    demands: Option<&'a Demands>,
}

impl Live {
    pub(super) fn of(events: &Events, folder: &Path) -> Live {
        let source = Mutex::new(Source::Running(events.clone()));
        Live { source, folder: folder.to_owned(), head: Mutex::new(None) }
    }

    /// Keeps what pages still need of a run that has ended, and lets go of its stream.
    ///
    /// # Errors
    /// The results cannot be written as JSON.
    pub(super) fn settle(&self) -> std::io::Result<()> {
        let Source::Running(events) = self.source() else { return Ok(()) };
        self.head(true)?;
        let ledger = Arc::new(events.fold().ledger_so_far());
        let stream = events.path();
        *self.source.lock().expect("no holder of this lock panics") = Source::Ended { ledger, stream };
        Ok(())
    }

    /// Whether it keeps only what pages need.
    pub(super) fn is_settled(&self) -> bool {
        matches!(self.source(), Source::Ended { .. })
    }

    fn source(&self) -> Source {
        self.source.lock().expect("no holder of this lock panics").clone()
    }

    /// The updates for a page that has the stream up to a byte and a head with this digest. `is_over` means that the run
    /// has ended, so this is the rest. The last argument is the number of the run, and whether another one may follow.
    ///
    /// # Errors
    /// The stream cannot be read.
    pub(super) fn news(
        &self,
        from: u64,
        seen: &str,
        is_over: bool,
        (run, goes_on): (u64, bool),
    ) -> std::io::Result<PageUpdate> {
        let head = self.head(is_over)?;
        let (lines, next, is_all) = self.lines(from)?;
        let is_new = head.digest != seen;
        let first = FirstLine {
            next,
            digest: &head.digest,
            ended: is_over && is_all,
            run,
            goes_on,
            kept: self.folder.join(REPORT).display().to_string(),
            head: is_new.then_some(head.text.as_ref()),
            demands: is_new.then_some(head.demands.as_ref()),
        };
        let text = serde_json::to_string(&first)? + "\n" + &lines;
        Ok(PageUpdate { text: secrets::redact(text), is_any: is_new || !lines.is_empty() })
    }

    /// The evidence of a check that failed, as JSON; `None` if there is none.
    pub(super) fn evidence(&self, id: &str) -> Option<String> {
        let ledger = match self.source() {
            Source::Running(events) => Arc::new(events.fold().ledger_so_far()),
            Source::Ended { ledger, .. } => ledger,
        };
        let of_check = ledger.all().filter(|entry| entry.id == id);
        let files = evidence(of_check, &self.folder).remove(id)?;
        serde_json::to_string(&files).ok().map(secrets::redact)
    }

    fn head(&self, is_over: bool) -> std::io::Result<Head> {
        let mut kept = self.head.lock().expect("no holder of this lock panics");
        let stream = match (self.source(), kept.as_ref()) {
            (Source::Running(stream), _) => stream,
            (Source::Ended { .. }, Some(head)) => return Ok(head.clone()),
            (Source::Ended { .. }, None) => return Err(std::io::Error::other("its results were not kept")),
        };
        let events = stream.cost().events;
        let is_fresh = |head: &&Head| head.events == events || (!is_over && head.at.elapsed() < PACE);
        if let Some(head) = kept.as_ref().filter(is_fresh) {
            return Ok(head.clone());
        }
        let fold = stream.fold();
        let ledger = fold.ledger_so_far();
        let unended = fold.unended();
        let text = live_head(&ledger, (!fold.is_ended()).then_some(unended.as_slice()))?;
        let demands = match kept.take() {
            Some(head) if !head.demands.is_empty() => head.demands,
            _ => Arc::new(demands(&[&ledger]).map_err(std::io::Error::other)?),
        };
        let digest = Sha256::digest(&text).iter().take(8).fold(String::new(), |mut digest, byte| {
            write!(digest, "{byte:02x}").expect("writing to memory cannot fail");
            digest
        });
        let text = Arc::from(RawValue::from_string(text)?);
        Ok(kept.insert(Head { at: Instant::now(), events, text, digest, demands }).clone())
    }

    /// Whole lines of the stream from a byte on, the position of their end, and whether these are all.
    fn lines(&self, from: u64) -> std::io::Result<(String, u64, bool)> {
        let path = match self.source() {
            Source::Running(events) => events.path(),
            Source::Ended { stream, .. } => stream,
        };
        let Some(path) = path else { return Ok((String::new(), 0, true)) };
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let from = from.min(length);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(AT_ONCE).read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        bytes.truncate(whole);
        let next = from + whole as u64;
        Ok((String::from_utf8_lossy(&bytes).into_owned(), next, next >= length))
    }
}
