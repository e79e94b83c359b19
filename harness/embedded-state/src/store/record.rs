//! One stored object, and one change of it.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::Value;

/// The key of an object within its kind: the namespace (empty for kinds without one) and the name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    namespace: Box<str>,
    name: Box<str>,
}

impl Key {
    /// The object `name` in `namespace`; an empty namespace means none.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The namespace, empty for kinds without one.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// One version of one object: its JSON without `kind` and `apiVersion`, and the values for selectors.
///
/// Parsed JSON takes ten times the memory of its text, so only the text is kept.
#[derive(Debug)]
pub struct Record {
    pub(super) key: Key,
    pub(super) revision: u64,
    pub(super) json: Bytes,
    pub(super) labels: Value,
    pub(super) fields: Vec<(&'static str, Value)>,
    pub(super) encoded: OnceLock<Bytes>,
}

impl Record {
    /// The key of the object.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The revision of the write that created this version.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The object as a JSON map without `kind` and `apiVersion`, as in lists.
    #[must_use]
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// The labels: a map of texts, or null.
    #[must_use]
    pub fn labels(&self) -> &Value {
        &self.labels
    }

    /// The values for field selectors, by path. Missing members are omitted.
    #[must_use]
    pub fn fields(&self) -> &[(&'static str, Value)] {
        &self.fields
    }

    /// The text of one selectable field; empty if it is missing.
    #[must_use]
    pub fn field(&self, path: &str) -> &str {
        self.fields
            .iter()
            .find(|(one, _)| *one == path)
            .and_then(|(_, value)| value.as_str())
            .unwrap_or_default()
    }

    /// The object as a value, without `kind` and `apiVersion`.
    #[must_use]
    pub fn value(&self) -> Value {
        // The text was written by serde_json from a value, so it parses.
        serde_json::from_slice(&self.json).unwrap_or_default()
    }

    /// The result of [`Record::encoded`], if it exists already.
    #[must_use]
    pub fn known_encoding(&self) -> Option<Bytes> {
        self.encoded.get().cloned()
    }

    /// The object in an encoding of the caller's choice, which must always be the same. It is encoded once,
    /// unless that fails.
    ///
    /// # Errors
    /// The error of `encode`.
    pub fn encoded<E>(&self, encode: impl FnOnce() -> Result<Bytes, E>) -> Result<Bytes, E> {
        if let Some(known) = self.encoded.get() {
            return Ok(known.clone());
        }
        // Two concurrent callers make the same.
        let bytes = encode()?;
        Ok(self.encoded.get_or_init(|| bytes).clone())
    }
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The object was created or changed.
    Put,
    /// The object was removed.
    Removed,
}

/// One change of one object.
#[derive(Debug)]
pub struct Event {
    /// The kind of the change.
    pub change: Change,
    /// The object after the change; for a removal, its last state with the revision of the removal.
    pub record: Arc<Record>,
    /// The object before the change.
    pub previous: Option<Arc<Record>>,
    /// The event as a line of a JSON watch stream, for watchers whose selection does not change by it.
    pub(super) line: OnceLock<Bytes>,
}

impl Event {
    /// The event as a line for watchers whose selection does not change by it; made once by `encode`.
    pub fn line(&self, encode: impl FnOnce() -> Bytes) -> &Bytes {
        self.line.get_or_init(encode)
    }
}
