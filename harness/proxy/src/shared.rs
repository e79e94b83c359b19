//! The state that all connections of a proxy share.

use crate::answers::ErrorForms;
use crate::bounds::Bounds;
use crate::name_index::NameIndex;
use crate::rewrite::Rewrites;
use crate::table::Table;
use crate::upstream::Upstream;
use fake_cloud_driver::{Entry, Inventory, Outcome};
use fake_cloud_recording::barriers::Barriers;
use fake_cloud_recording::credentials::{Credentials, Secret};
use fake_cloud_recording::faults::Faults;
use fake_cloud_recording::journal::Journal;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// An observer of calls that have ended.
pub type Ended = Arc<dyn Fn(&Entry) + Send + Sync>;
/// A receiver of messages for the user.
pub type OnMessage = Arc<dyn Fn(String) + Send + Sync>;

/// The mutable state.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) journal: Journal,
    pub(crate) faults: Faults,
    /// Ids of the faults that the driver owns, from before it is asked for them until they are cleared.
    pub(crate) handed_on: BTreeSet<u64>,
    pub(crate) barriers: Barriers,
    pub(crate) book: NameIndex,
    pub(crate) credentials: Credentials,
    /// Messages about the cloud that the user has already got.
    reported: BTreeSet<String>,
}

/// The driver of the cloud behind the proxy.
#[derive(Debug)]
pub(crate) struct Behind {
    pub(crate) api: Upstream,
    pub(crate) token: Secret,
}

/// One proxy, shared by all its connections.
pub(crate) struct Shared {
    pub(crate) table: Table,
    pub(crate) errors: ErrorForms,
    pub(crate) rewrites: Rewrites,
    pub(crate) upstream: Upstream,
    pub(crate) behind: Option<Behind>,
    pub(crate) token: Secret,
    /// `http` or `https`: the scheme for clients.
    pub(crate) scheme: &'static str,
    /// URL of the first port.
    pub(crate) endpoint: String,
    /// Notified when a call has arrived.
    pub(crate) arrivals: Notify,
    pub(crate) bounds: Bounds,
    pub(crate) ended: Option<Ended>,
    pub(crate) on_message: OnMessage,
    pub(crate) started: Instant,
    pub(crate) state: Mutex<State>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("upstream", &self.upstream).finish_non_exhaustive()
    }
}

impl Shared {
    /// The locked state; it must only be held without waiting for anything.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // A panic ended only its own call; the others continue.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time since the start.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Shows a message to the user once.
    pub(crate) fn tell_once(&self, what: String) {
        if self.state().reported.insert(what.clone()) {
            (self.on_message)(what);
        }
    }

    /// Ends a call in the journal; only the first end counts.
    pub(crate) fn close(&self, seq: u64, outcome: Outcome) {
        let mut state = self.state();
        let is_open = state.journal.get(seq).is_some_and(|entry| entry.took_ms.is_none());
        if !is_open {
            return;
        }
        state.journal.close(seq, self.now(), outcome);
        let entry = self.ended.as_ref().and_then(|_| state.journal.get(seq).cloned());
        drop(state);
        if let (Some(ended), Some(entry)) = (&self.ended, &entry) {
            ended(entry);
        }
    }

    /// Adds the cloud's inventory from its driver; `asked` are the names for which it was requested, when the book was at
    /// `since`.
    pub(crate) fn learn(&self, inventory: &Inventory, asked: &[String], since: u64) {
        self.state().book.replace(inventory, asked, since);
    }
}
