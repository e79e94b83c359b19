//! The audit log: every request with its user and its result.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;

use crate::auth::attributes::Attributes;

/// How many requests are kept; the oldest are discarded first.
const KEEP: usize = 262_144;

/// One answered request. A watch is entered when its stream begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When the request came.
    pub at: Timestamp,
    /// The user's name, empty for a rejected credential.
    pub user: String,
    /// The name of the user who impersonated `user`.
    pub impersonated_by: Option<String>,
    /// The target of the request: verb, group, resource, subresource, namespace, name, path.
    pub request: Attributes,
    /// The query after the `?`.
    pub query: String,
    /// The HTTP status of the answer.
    pub code: u16,
    /// Whether authorization allowed it; later steps may still have rejected it.
    pub authorized: bool,
    /// The user agent of the client.
    pub user_agent: String,
}

/// The log. Cloning it gives another handle to the same log.
#[derive(Clone, Debug)]
pub struct Audit(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    entries: Mutex<Entries>,
    written: tokio::sync::watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Entries {
    kept: VecDeque<Arc<Entry>>,
    forgotten: u64,
}

impl Default for Audit {
    fn default() -> Self {
        Self(Arc::new(Inner { entries: Mutex::default(), written: tokio::sync::watch::Sender::new(0) }))
    }
}

impl Audit {
    /// Adds an entry.
    pub fn write(&self, entry: Entry) {
        let written = {
            let mut entries = self.0.entries.lock().unwrap_or_else(PoisonError::into_inner);
            entries.kept.push_back(Arc::new(entry));
            if entries.kept.len() > KEEP {
                entries.kept.pop_front();
                entries.forgotten += 1;
            }
            entries.forgotten + entries.kept.len() as u64
        };
        self.0.written.send_replace(written);
    }

    /// All entries that are kept, oldest first.
    #[must_use]
    pub fn entries(&self) -> Vec<Arc<Entry>> {
        let entries = self.0.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.kept.iter().cloned().collect()
    }

    /// A reader of all entries that are kept, oldest first, and of later ones.
    #[must_use]
    pub fn watch(&self) -> Reader {
        Reader { log: self.clone(), written: self.0.written.subscribe(), next: 0 }
    }
}

/// Reads the log as it grows.
#[derive(Debug)]
pub struct Reader {
    log: Audit,
    written: tokio::sync::watch::Receiver<u64>,
    next: u64,
}

impl Reader {
    /// The entries since the last call that are still kept; possibly none.
    pub fn try_next(&mut self) -> Vec<Arc<Entry>> {
        self.written.mark_unchanged();
        let entries = self.log.0.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let first = usize::try_from(self.next.saturating_sub(entries.forgotten)).unwrap_or(usize::MAX);
        self.next = entries.forgotten + entries.kept.len() as u64;
        entries.kept.iter().skip(first).cloned().collect()
    }

    /// Waits until there is something to read. May be dropped at any time without losing an entry.
    pub async fn next(&mut self) -> Vec<Arc<Entry>> {
        loop {
            let entries = self.try_next();
            if !entries.is_empty() {
                return entries;
            }
            if self.written.changed().await.is_err() {
                // The sender is in the log that this reader holds, so this does not happen.
                return Vec::new();
            }
        }
    }
}
