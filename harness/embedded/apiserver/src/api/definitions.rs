//! The custom resources of one server: which definitions are established, and what is served for them.
//!
//! Follows the naming, establishing and finalizing controllers of `k8s.io/apiextensions-apiserver`. A real server runs them
//! moments after the write; here they are part of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use embedded_semantics::kinds::{self, Defined, Kind};
use embedded_semantics::patch;
use serde_json::{Value, json};

use super::clock::Clock;
use super::events::with_type;
use crate::store::{Record, Snapshot, Store};

/// The kind of definitions.
const GROUP: &str = "apiextensions.k8s.io";
const KIND: &str = "CustomResourceDefinition";

/// What one server serves besides the kinds that every one has. Other servers of this process have their own.
#[derive(Debug, Default)]
pub(crate) struct Definitions(RwLock<Established>);

#[derive(Debug, Default)]
struct Established {
    /// By the definition's name.
    definitions: BTreeMap<String, Defined>,
    /// The names of those that are on their way out, with their objects.
    terminating: BTreeSet<String>,
    served: Arc<Vec<&'static Kind>>,
}

/// Whether objects of this kind define others.
#[must_use]
pub(crate) fn is_definition(kind: &Kind) -> bool {
    kind.is(GROUP, KIND)
}

/// Whether every server serves this group and version: its own kinds come before custom ones.
fn is_taken(kind: &Kind) -> bool {
    kinds::ALL.iter().any(|known| known.group == kind.group && known.version == kind.version)
}

impl Definitions {
    /// The kinds that are served, in the order of their definitions' names.
    #[must_use]
    pub(crate) fn served(&self) -> Arc<Vec<&'static Kind>> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner).served)
    }

    /// The kind at a group, version and plural name.
    #[must_use]
    pub(super) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&'static Kind> {
        let established = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut served = established.served.iter();
        served.find(|kind| kind.plural == plural && kind.group == group && kind.version == version).copied()
    }

    /// The kind in whose form the objects of an established definition are kept.
    #[must_use]
    pub(crate) fn stored_kind(&self, definition: &str) -> Option<&'static Kind> {
        let established = self.0.read().unwrap_or_else(PoisonError::into_inner);
        established.definitions.get(definition).map(|defined| defined.stored)
    }

    /// Whether a definition is on its way out: its objects go, and none is made.
    #[must_use]
    pub(crate) fn is_terminating(&self, definition: &str) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).terminating.contains(definition)
    }

    /// Serves what a definition that was written defines, and says how its status has to change for that, if it does.
    pub(super) fn settle(&self, store: &Store, record: &Record, all: &Snapshot) -> Option<Value> {
        let written = with_type_of_definitions(record.value());
        let mut settled = written.clone();
        let taken = taken_names(&written, all);
        let (names, conflict) = accepted(&written, &taken);
        settled["status"]["acceptedNames"] = names;
        let now = Clock::now().seconds;
        let accepted = match &conflict {
            None => ("True", "NoConflicts", "no conflicts found"),
            Some((reason, why)) => ("False", *reason, why.as_str()),
        };
        set_condition(&mut settled, "NamesAccepted", accepted, &now);
        let terminating = !written["metadata"]["deletionTimestamp"].is_null();
        let name = record.key().name().to_owned();
        // Names once accepted stay, whatever others want to be called.
        if conflict.is_none() || condition(&written, "Established") == "True" {
            let defined = kinds::defined(&settled);
            let full = defined.as_ref().err().map(ToString::to_string);
            let established = match &full {
                None => ("True", "InitialNamesAccepted", "the initial names have been accepted"),
                Some(why) => ("False", "TooManyDefinitions", why.as_str()),
            };
            set_condition(&mut settled, "Established", established, &now);
            self.change(|established| {
                if let Ok(defined) = defined {
                    store.open(&defined.stored.collection);
                    established.definitions.insert(name.clone(), defined);
                }
            });
        } else {
            let not = ("False", "NotAccepted", "not all names are accepted");
            set_condition(&mut settled, "Established", not, &now);
        }
        if terminating {
            self.change(|established| {
                established.terminating.insert(name);
            });
        }
        finish(written, settled, &now)
    }

    /// Serves no longer what a definition defined; what objects are left are gone.
    pub(super) fn forget(&self, store: &Store, definition: &Value) {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        let mut gone = None;
        self.change(|established| {
            established.terminating.remove(name);
            gone = established.definitions.remove(name);
        });
        if let Some(gone) = gone {
            store.close(&gone.stored.collection);
        }
    }

    fn change(&self, change: impl FnOnce(&mut Established)) {
        let mut established = self.0.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut established);
        let served = established.definitions.values().flat_map(|defined| defined.served.iter().copied());
        established.served = Arc::new(served.filter(|kind| !is_taken(kind)).collect());
    }
}

fn with_type_of_definitions(object: Value) -> Value {
    match kinds::find(GROUP, "v1", "customresourcedefinitions") {
        Some(kind) => with_type(kind, object),
        None => object,
    }
}

/// The settled definition where it differs from the written one, with who owns its status.
fn finish(written: Value, mut settled: Value, now: &str) -> Option<Value> {
    if settled == written {
        return None;
    }
    let kind = kinds::of(&settled)?;
    patch::note_update(kind, "kube-apiserver", &written, &mut settled, now, Some("status"));
    Some(settled)
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn texts<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    value[field].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Names that other definitions of the same group have.
#[derive(Default)]
struct Taken {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

fn taken_names(definition: &Value, all: &Snapshot) -> Taken {
    let mut taken = Taken::default();
    let group = text(&definition["spec"], "group");
    let own = text(&definition["metadata"], "name");
    // Parsing every definition for every write of one is quadratic, but for those of the same group only.
    let others = all
        .iter(None, None)
        .filter(|other| other.key().name() != own && other.key().name().ends_with(&format!(".{group}")));
    for other in others {
        let other = other.value();
        if text(&other["spec"], "group") != group {
            continue;
        }
        let names = &other["status"]["acceptedNames"];
        let resources = [text(names, "plural"), text(names, "singular")];
        taken.resources.extend(resources.into_iter().chain(texts(names, "shortNames")).map(str::to_owned));
        taken.kinds.extend([text(names, "kind"), text(names, "listKind")].map(str::to_owned));
    }
    taken
}

/// The names of a definition that are free, and the last reason why one is not.
fn accepted(definition: &Value, taken: &Taken) -> (Value, Option<(&'static str, String)>) {
    let wanted = &definition["spec"]["names"];
    // What was accepted before stays where the wanted name is taken.
    let before = &definition["status"]["acceptedNames"];
    let mut names = wanted.clone();
    let mut conflict = None;
    let resources = [("plural", "PluralConflict"), ("singular", "SingularConflict")];
    let kinds = [("kind", "KindConflict"), ("listKind", "ListKindConflict")];
    let single = resources.map(|field| (field, &taken.resources)).into_iter();
    for ((field, reason), taken) in single.chain(kinds.map(|field| (field, &taken.kinds))) {
        let name = text(wanted, field);
        if !name.is_empty() && taken.contains(name) {
            conflict = Some((reason, format!("{name:?} is already in use")));
            names[field] = json!(text(before, field));
        }
    }
    if let Some(name) = texts(wanted, "shortNames").find(|name| taken.resources.contains(*name)) {
        conflict = Some(("ShortNamesConflict", format!("{name:?} is already in use")));
        names["shortNames"] = before["shortNames"].clone();
    }
    if let Some(names) = names.as_object_mut() {
        names.retain(|_, name| !name.is_null());
    }
    (names, conflict)
}

/// The status of a condition, empty where it has none.
fn condition<'a>(definition: &'a Value, name: &str) -> &'a str {
    let list = definition["status"]["conditions"].as_array().into_iter().flatten();
    list.filter(|one| one["type"] == name).map(|one| text(one, "status")).next().unwrap_or_default()
}

/// Puts a condition in place; it keeps its time where its status stays.
pub(crate) fn set_condition(
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
