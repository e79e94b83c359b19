//! The updates for the page of a run in progress.

use super::super::page::{demands, evidence};
use harness_core::events::Events;
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

/// A run in progress.
pub(super) struct Live {
    events: Events,
    folder: PathBuf,
    head: Mutex<Option<Head>>,
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
    kept: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    demands: Option<&'a Demands>,
}

impl Live {
    pub(super) fn of(events: &Events, folder: &Path) -> Live {
        Live { events: events.clone(), folder: folder.to_owned(), head: Mutex::new(None) }
    }

    /// The updates for a page that has the stream up to a byte and a head with this digest. `is_over` means that the run
    /// has ended, so this is the rest.
    ///
    /// # Errors
    /// The stream cannot be read.
    pub(super) fn news(&self, from: u64, seen: &str, is_over: bool) -> std::io::Result<PageUpdate> {
        let head = self.head(is_over)?;
        let (lines, next, is_all) = self.lines(from)?;
        let is_new = head.digest != seen;
        let first = FirstLine {
            next,
            digest: &head.digest,
            ended: is_over && is_all,
            kept: self.folder.join(REPORT).display().to_string(),
            head: is_new.then_some(head.text.as_ref()),
            demands: is_new.then_some(head.demands.as_ref()),
        };
        let text = serde_json::to_string(&first)? + "\n" + &lines;
        Ok(PageUpdate { text: secrets::redact(text), is_any: is_new || !lines.is_empty() })
    }

    /// The evidence of a check that failed, as JSON; `None` if there is none.
    pub(super) fn evidence(&self, id: &str) -> Option<String> {
        let ledger = self.events.fold().ledger_so_far();
        let of_check = ledger.all().filter(|entry| entry.id == id);
        let files = evidence(of_check, &self.folder).remove(id)?;
        serde_json::to_string(&files).ok().map(secrets::redact)
    }

    fn head(&self, is_over: bool) -> std::io::Result<Head> {
        let mut kept = self.head.lock().expect("no holder of this lock panics");
        let events = self.events.cost().events;
        let is_fresh = |head: &&Head| head.events == events || (!is_over && head.at.elapsed() < PACE);
        if let Some(head) = kept.as_ref().filter(is_fresh) {
            return Ok(head.clone());
        }
        let fold = self.events.fold();
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
        let Some(path) = self.events.path() else { return Ok((String::new(), 0, true)) };
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
