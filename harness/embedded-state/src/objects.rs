//! Reads and writes objects: the operations on the store and the kinds' own rules that every verb needs.

use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use embedded_objects::kinds::Kind;
use embedded_objects::status::{self, Status};
use embedded_objects::wire;
use embedded_semantics::lifecycle::{self, Context};
use serde_json::Value;

use super::clock::{Clock, suffix, unique_id};
use super::collections::collection_of;
use super::definitions;
use super::events::{stored_kind, with_type};
use super::selection::fields_of;
use super::state::Api;
use crate::store::{Draft, Key, Record, Transaction};

/// An object that was written, or would have been in a dry run.
#[derive(Debug)]
pub enum Written {
    /// The object is in the store.
    Stored(Arc<Record>),
    /// The object is not in the store.
    Pretended(Value),
}

impl Written {
    /// The whole object.
    #[must_use]
    pub fn into_value(self, kind: &Kind) -> Value {
        match self {
            Self::Stored(record) => with_type(kind, record.value()),
            Self::Pretended(value) => with_type(kind, value),
        }
    }
}

/// The text of an object without its kind and apiVersion, with its members in the order of a real server.
fn bare_text(object: &Value) -> Bytes {
    let text = wire::json(object);
    let text = text.trim_end();
    let part = |name: &str| object[name].as_str().unwrap_or_default();
    let head = format!(r#"{{"kind":"{}","apiVersion":"{}","#, part("kind"), part("apiVersion"));
    match text.strip_prefix(&head) {
        Some(rest) => format!("{{{rest}").into(),
        // Custom resources have no particular order.
        None => {
            let mut bare = object.clone();
            if let Some(members) = bare.as_object_mut() {
                members.retain(|name, _| name != "kind" && name != "apiVersion");
            }
            bare.to_string().into()
        }
    }
}

/// Writes an object unchanged.
fn put(tx: &Transaction<'_>, kind: &'static Kind, object: Value) -> Arc<Record> {
    let fields = fields_of(&object);
    tx.put(collection_of(kind), Draft::new(with_type(stored_kind(kind), object), bare_text, fields))
}

impl Api {
    /// One stored object.
    ///
    /// # Errors
    ///
    /// 404 if it does not exist.
    pub fn find(&self, kind: &'static Kind, namespace: &str, name: &str) -> Result<Arc<Record>, Status> {
        self.store
            .get(collection_of(kind), &Key::new(namespace, name))
            .ok_or_else(|| status::not_found(kind, name))
    }

    /// Calls `decide` with the input that the kinds' rules need.
    pub fn decide<T>(
        &self,
        clock: &Clock,
        uid: &str,
        dry_run: bool,
        decision: impl FnOnce(&mut Context<'_>) -> T,
    ) -> T {
        let mut allocator = self.allocator.lock().unwrap_or_else(PoisonError::into_inner);
        decision(&mut Context {
            now: &clock.seconds,
            now_micro: &clock.micros,
            uid,
            suffix: &suffix(),
            allocator: &mut allocator,
            minor: self.version().minor,
            dry_run,
        })
    }

    /// Prepares an object for its creation; nothing is written.
    ///
    /// # Errors
    ///
    /// The rejection by the kind's rules.
    pub fn prepare(&self, kind: &Kind, object: Value, clock: &Clock, dry_run: bool) -> Result<Value, Status> {
        self.decide(clock, &unique_id(), dry_run, |cx| lifecycle::create(kind, object, cx))
    }

    /// Writes a prepared object, new or changed.
    pub fn put(&self, tx: &Transaction<'_>, kind: &'static Kind, object: Value) -> Arc<Record> {
        let record = put(tx, kind, object);
        if definitions::is_definition(kind) {
            // The work of a controller in a real server, which comes moments later; the answer shows the
            // object as it was written.
            self.settle(tx, kind, vec![record.key().name().to_owned()]);
        }
        record
    }

    /// Settles definitions, and those that wait for a name that becomes free.
    fn settle(&self, tx: &Transaction<'_>, kind: &'static Kind, mut names: Vec<String>) {
        while let Some(name) = names.pop() {
            let Some(record) = tx.get(collection_of(kind), &Key::new("", &name)) else { continue };
            let settled = self.definitions.settle(&self.store, &record);
            if let Some(object) = settled.object {
                put(tx, kind, object);
            }
            names.extend(settled.stirred);
        }
    }

    /// Removes an object, whose last state is `object`, and releases its addresses and ports.
    pub fn remove(&self, tx: &Transaction<'_>, kind: &'static Kind, object: Value) -> Arc<Record> {
        self.release(kind, &object);
        let stirred = match definitions::is_definition(kind) {
            true => self.definitions.forget(&self.store, &object),
            false => Vec::new(),
        };
        let fields = fields_of(&object);
        let last = Draft::new(with_type(stored_kind(kind), object), bare_text, fields);
        let record = tx.remove(collection_of(kind), last);
        self.settle(tx, kind, stirred);
        record
    }

    /// Releases the addresses and ports of an object.
    pub fn release(&self, kind: &Kind, object: &Value) {
        let mut allocator = self.allocator.lock().unwrap_or_else(PoisonError::into_inner);
        lifecycle::released(kind, object, &mut allocator);
    }
}
