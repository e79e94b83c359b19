//! The custom resources of one server: which definitions are established, and which kinds are served for them.
//!
//! Follows the naming, establishing and finalizing controllers of `k8s.io/apiextensions-apiserver`. A real
//! server runs them moments after the write; here they are part of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use embedded_objects::kinds::{self, Budget, Defined, Kind};
use embedded_objects::patch;
use serde_json::{Value, json};

use super::clock::Clock;
use super::events::with_type;
use super::names::{Given, Names, text};
use crate::store::{Record, Store};

/// The kind of definitions.
const GROUP: &str = "apiextensions.k8s.io";
const KIND: &str = "CustomResourceDefinition";

/// The kinds that one server has in addition to the built-in ones. Other servers in this process have their own.
#[derive(Debug, Default)]
pub struct Definitions(RwLock<Established>);

#[derive(Debug, Default)]
struct Established {
    /// The established definitions by name.
    definitions: BTreeMap<String, Defined>,
    /// The names of definitions that are being deleted, with their objects.
    terminating: BTreeSet<String>,
    served: Arc<Vec<&'static Kind>>,
    names: Names,
    budget: Budget,
}

/// The result for a definition that was written.
#[derive(Debug)]
pub(super) struct Settled {
    /// The definition with its new status, if the status has to change.
    pub(super) object: Option<Value>,
    /// The definitions that have to be settled again, because a name that they wait for is free.
    pub(super) stirred: Vec<String>,
}

/// Whether this is the kind of definitions.
#[must_use]
pub fn is_definition(kind: &Kind) -> bool {
    kind.is(GROUP, KIND)
}

/// Whether this group and version is built in: built-in kinds take precedence over custom ones.
fn is_taken(kind: &Kind) -> bool {
    kinds::ALL.iter().any(|known| known.group == kind.group && known.version == kind.version)
}

impl Definitions {
    /// The served kinds, ordered by the names of their definitions.
    #[must_use]
    pub fn served(&self) -> Arc<Vec<&'static Kind>> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner).served)
    }

    /// The kind with this group, version and plural name.
    #[must_use]
    pub(super) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&'static Kind> {
        let established = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut served = established.served.iter();
        served.find(|kind| kind.plural == plural && kind.group == group && kind.version == version).copied()
    }

    /// The kind in whose form the objects of an established definition are stored.
    #[must_use]
    pub fn stored_kind(&self, definition: &str) -> Option<&'static Kind> {
        let established = self.0.read().unwrap_or_else(PoisonError::into_inner);
        established.definitions.get(definition).map(|defined| defined.stored)
    }

    /// Whether a definition is being deleted: its objects are deleted, and no new ones can be created.
    #[must_use]
    pub fn is_terminating(&self, definition: &str) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).terminating.contains(definition)
    }

    /// Serves the kinds of a definition that was written.
    pub(super) fn settle(&self, store: &Store, record: &Record) -> Settled {
        let written = with_type_of_definitions(record.value());
        let mut settled = written.clone();
        let name = record.key().name().to_owned();
        let now = Clock::now().seconds;
        let mut stirred = Vec::new();
        self.change(|established| {
            let given = established.names.give(&written);
            settled["status"]["acceptedNames"] = given.names.clone();
            let accepted = match &given.conflict {
                None => ("True", "NoConflicts", "no conflicts found"),
                Some((reason, why)) => ("False", *reason, why.as_str()),
            };
            set_condition(&mut settled, "NamesAccepted", accepted, &now);
            established.establish(store, &name, &given, &mut settled, &now);
            if !written["metadata"]["deletionTimestamp"].is_null() {
                established.terminating.insert(name);
            }
            stirred = given.stirred;
        });
        Settled { object: finish(written, settled, &now), stirred }
    }

    /// Stops serving the kinds of a definition; its remaining objects are gone. Returns the definitions that
    /// wait for one of its names.
    pub(super) fn forget(&self, store: &Store, definition: &Value) -> Vec<String> {
        let name = text(&definition["metadata"], "name");
        let (mut gone, mut stirred) = (None, Vec::new());
        self.change(|established| {
            established.terminating.remove(name);
            gone = established.definitions.remove(name);
            stirred = established.names.release(definition);
        });
        if let Some(gone) = gone {
            store.close(&gone.stored.collection);
        }
        stirred
    }

    fn change(&self, change: impl FnOnce(&mut Established)) {
        let mut established = self.0.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut established);
        let served = established.definitions.values().flat_map(|defined| defined.served.iter().copied());
        established.served = Arc::new(served.filter(|kind| !is_taken(kind)).collect());
    }
}

impl Established {
    /// Serves a definition that has its names, and records that in its status. Accepted names stay, whatever
    /// other definitions want.
    fn establish(&mut self, store: &Store, name: &str, given: &Given, settled: &mut Value, now: &str) {
        if given.conflict.is_some() && !self.definitions.contains_key(name) {
            set_condition(
                settled,
                "Established",
                ("False", "NotAccepted", "not all names are accepted"),
                now,
            );
            return;
        }
        match kinds::defined(settled, &mut self.budget) {
            Ok(defined) => {
                store.open(&defined.stored.collection);
                self.definitions.insert(name.to_owned(), defined);
                let accepted = ("True", "InitialNamesAccepted", "the initial names have been accepted");
                set_condition(settled, "Established", accepted, now);
            }
            Err(full) => {
                // A definition that was already established continues unchanged.
                let served = self.definitions.contains_key(name);
                let why = if served { format!("{full}; served as it was before") } else { full.to_string() };
                let is = if served { "True" } else { "False" };
                set_condition(settled, "Established", (is, "TooManyDefinitions", &why), now);
            }
        }
    }
}

fn with_type_of_definitions(object: Value) -> Value {
    match kinds::find(GROUP, "v1", "customresourcedefinitions") {
        Some(kind) => with_type(kind, object),
        None => object,
    }
}

/// The settled definition if it differs from the written one, with the owner of its status.
fn finish(written: Value, mut settled: Value, now: &str) -> Option<Value> {
    if settled == written {
        return None;
    }
    let kind = kinds::of(&settled)?;
    patch::note_update(kind, "kube-apiserver", &written, &mut settled, now, Some("status"));
    Some(settled)
}

/// The status of a condition; empty if there is none.
fn condition<'a>(definition: &'a Value, name: &str) -> &'a str {
    let list = definition["status"]["conditions"].as_array().into_iter().flatten();
    list.filter(|one| one["type"] == name).map(|one| text(one, "status")).next().unwrap_or_default()
}

/// Sets a condition; its time does not change if its status does not change.
pub fn set_condition(
    definition: &mut Value,
    name: &str,
    (status, reason, message): (&str, &str, &str),
    now: &str,
) {
    let changed = condition(definition, name) != status;
    let conditions = &mut definition["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(list) = conditions.as_array_mut() else { return };
    let mut new = json!({"type": name, "status": status, "lastTransitionTime": now, "reason": reason, "message": message});
    match list.iter_mut().find(|one| one["type"] == name) {
        Some(old) => {
            if !changed {
                new["lastTransitionTime"] = old["lastTransitionTime"].clone();
            }
            *old = new;
        }
        None => list.push(new),
    }
}
