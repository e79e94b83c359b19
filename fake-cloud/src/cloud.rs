//! The running cloud: model, journal, faults, barriers and credentials behind one lock, and its clock.

use crate::admin::{Credential, Entry, Op, Outcome};
use crate::barriers::Barriers;
use crate::dialects::Dialect;
use crate::faults::Faults;
use crate::journal::Journal;
use crate::model::{Millis, Model};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

/// What the lock guards.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) model: Model,
    pub(crate) journal: Journal,
    pub(crate) faults: Faults,
    pub(crate) barriers: Barriers,
    /// Names by token.
    credentials: BTreeMap<String, String>,
    stale: Option<(Millis, Model)>,
}

impl State {
    pub(crate) fn put_credential(&mut self, credential: Credential) {
        self.credentials.retain(|_, name| *name != credential.name);
        self.credentials.insert(credential.token, credential.name);
    }

    pub(crate) fn delete_credential(&mut self, name: &str) -> bool {
        let before = self.credentials.len();
        self.credentials.retain(|_, held| held != name);
        self.credentials.len() != before
    }

    pub(crate) fn credential(&self, token: &str) -> Option<String> {
        self.credentials.get(token).cloned()
    }

    /// The model a call is answered from: for lists it may be an older one (contract CLOUD-08).
    pub(crate) fn answering(&mut self, op: Op, now: Millis) -> &mut Model {
        let stale = self.model.timing().stale;
        let is_list = matches!(op, Op::InstanceList | Op::LbList | Op::AuxRead | Op::RouteList);
        if stale == 0 || !is_list {
            return &mut self.model;
        }
        let taken = match self.stale.take() {
            Some((at, model)) if now.saturating_sub(at) < stale => (at, model),
            _ => (now, self.model.clone()),
        };
        &mut self.stale.insert(taken).1
    }
}

/// The running cloud.
pub(crate) struct Cloud {
    pub(crate) dialect: &'static dyn Dialect,
    state: Mutex<State>,
    began: Instant,
}

impl Cloud {
    pub(crate) fn new(dialect: &'static dyn Dialect) -> Cloud {
        Cloud { dialect, state: Mutex::default(), began: Instant::now() }
    }

    pub(crate) fn now(&self) -> Millis {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Writes a call down; the guard completes its entry, at the latest when it is dropped.
    pub(crate) fn begin(&self, state: &mut State, entry: impl FnOnce(u64) -> Entry) -> Under<'_> {
        Under { cloud: self, seq: state.journal.begin(entry), ended: false }
    }
}

/// A call under way. Dropped without an end it was abandoned by its caller.
pub(crate) struct Under<'a> {
    cloud: &'a Cloud,
    pub(crate) seq: u64,
    ended: bool,
}

impl Under<'_> {
    pub(crate) fn end(mut self, outcome: Outcome) {
        self.ended = true;
        let now = self.cloud.now();
        self.cloud.lock().journal.end(self.seq, now, outcome);
    }
}

impl Drop for Under<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let now = self.cloud.now();
            self.cloud.lock().journal.end(self.seq, now, Outcome::Abandoned);
        }
    }
}
