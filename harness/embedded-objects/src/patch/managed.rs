//! The entries of managedFields: which manager wrote which fields, and how ordinary writes change that.
//!
//! Source: `k8s.io/apimachinery/pkg/util/managedfields`.

use serde_json::{Map, Value, json};

use super::owned::{self, Set};
use crate::cause::quoted;
use crate::kinds::Kind;
use crate::value::{Edit as _, PathAccess as _};

/// How a manager wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    /// By server-side apply.
    Apply,
    /// By any other write.
    Update,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

/// One entry.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) manager: String,
    pub(super) operation: Operation,
    pub(super) api_version: String,
    pub(super) sub: String,
    pub(super) time: String,
    pub(super) set: Set,
}

impl Entry {
    pub(super) fn is(&self, manager: &str, operation: Operation, sub: &str) -> bool {
        self.manager == manager && self.operation == operation && self.sub == sub
    }

    /// The manager as conflicts name it.
    pub(super) fn shown(&self) -> String {
        let mut text = quoted(&self.manager);
        if !self.sub.is_empty() {
            text.push_str(&format!(" with subresource {}", quoted(&self.sub)));
        }
        if self.operation == Operation::Update {
            text.push_str(&format!(" using {}", self.api_version));
            if !self.time.is_empty() {
                text.push_str(&format!(" at {}", self.time));
            }
        }
        text
    }
}

/// The entries of an object.
pub(super) fn read(object: &Value) -> Vec<Entry> {
    object
        .list("metadata.managedFields")
        .iter()
        .map(|entry| Entry {
            manager: entry.text("manager").to_owned(),
            operation: if entry.text("operation") == "Apply" { Operation::Apply } else { Operation::Update },
            api_version: entry.text("apiVersion").to_owned(),
            sub: entry.text("subresource").to_owned(),
            time: entry.text("time").to_owned(),
            set: owned::read(entry.at("fieldsV1")),
        })
        .collect()
}

/// Writes the entries that own any fields into an object, in the server's order.
pub(super) fn write(object: &mut Value, mut entries: Vec<Entry>) {
    entries.retain(|entry| !entry.set.is_empty());
    entries.sort_by(|a, b| {
        let key = |entry: &Entry| {
            (
                entry.operation,
                entry.time.clone(),
                entry.manager.clone(),
                entry.api_version.clone(),
                entry.sub.clone(),
            )
        };
        key(a).cmp(&key(b))
    });
    let written: Vec<Value> = entries
        .iter()
        .map(|entry| {
            let mut out = json!({"manager": entry.manager, "operation": entry.operation.name(),
                "apiVersion": entry.api_version, "fieldsType": "FieldsV1", "fieldsV1": owned::write(&entry.set)});
            if !entry.time.is_empty() {
                out.put("time", entry.time.as_str());
            }
            if !entry.sub.is_empty() {
                out.put("subresource", entry.sub.as_str());
            }
            out
        })
        .collect();
    if written.is_empty() {
        object.clear("metadata.managedFields");
    } else {
        object.put("metadata.managedFields", written);
    }
}

/// Removes fields that no manager owns: the object's identity and fields that the server maintains.
pub(super) fn strip(kind: &Kind, sub: &str, set: &mut Set) {
    let unmanaged = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "generation",
        "managedFields",
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ];
    // A write of the object does not change its status, and one of the status does not change the spec.
    let reset = match (kind.subresource("status"), sub) {
        (Some(_), "") => "f:status",
        (Some(_), "status") => "f:spec",
        _ => "",
    };
    set.retain(|path| match path.as_slice() {
        [first, ..] if first == reset => false,
        [first] => !["f:apiVersion", "f:kind", "f:metadata"].contains(&first.as_str()),
        [first, second, ..] if first == "f:metadata" => {
            !unmanaged.contains(&second.strip_prefix("f:").unwrap_or(second))
        }
        _ => true,
    });
}

/// The entries that a write contains: empty if it clears them with an empty list or one empty entry. `None`
/// if it contains none, or any invalid one: then the existing entries stay.
fn given(new: &Value) -> Option<Vec<Entry>> {
    let list = new.at("metadata.managedFields").as_array()?;
    let cleared = match list.as_slice() {
        [] => true,
        [only] => only.as_object().is_some_and(Map::is_empty),
        _ => false,
    };
    let usable = list.iter().all(|entry| {
        matches!(entry.text("operation"), "Apply" | "Update")
            && !entry.text("apiVersion").is_empty()
            && entry.text("fieldsType") == "FieldsV1"
            && (entry.at("fieldsV1").is_null() || entry.at("fieldsV1").is_object())
    });
    if cleared { Some(Vec::new()) } else { usable.then(|| read(new)) }
}

/// Updates managedFields after an ordinary write.
///
/// `old` is the object before, or null for a creation; `new` is the object that will be stored. The manager
/// owns what the write set or changed; removed fields have no owner. A write of the object may contain its
/// own entries, or clear them all with one empty entry.
pub fn note_update(kind: &Kind, manager: &str, old: &Value, new: &mut Value, time: &str, sub: Option<&str>) {
    let Some(ty) = kind.type_id() else { return };
    let sub = sub.unwrap_or_default();
    let mut entries = if sub.is_empty() { given(new) } else { None }.unwrap_or_else(|| read(old));
    let (before, after) = (owned::differing(ty, old, new), owned::differing(ty, new, old));
    let mut changed: Set = after
        .iter()
        .filter(|(path, value)| before.get(*path) != Some(value))
        .map(|(path, _)| path.clone())
        .collect();
    strip(kind, sub, &mut changed);
    // Whatever did not differ is still there.
    let gone = before.keys().any(|path| !still_there(path, &after));
    let all = if gone { owned::leaves(ty, new) } else { owned::Leaves::new() };
    for entry in &mut entries {
        let own = entry.is(manager, Operation::Update, sub);
        entry.set.retain(|path| (own || !changed.contains(path)) && (!gone || still_there(path, &all)));
    }
    if !changed.is_empty() {
        match entries.iter_mut().find(|entry| entry.is(manager, Operation::Update, sub)) {
            Some(entry) => {
                entry.set.extend(changed);
                time.clone_into(&mut entry.time);
                entry.api_version = kind.api_version();
            }
            None => entries.push(Entry {
                manager: manager.to_owned(),
                operation: Operation::Update,
                api_version: kind.api_version(),
                sub: sub.to_owned(),
                time: time.to_owned(),
                set: changed,
            }),
        }
    }
    write(new, entries);
}

/// Whether a field or one below it exists.
pub(super) fn still_there(path: &owned::Path, leaves: &owned::Leaves) -> bool {
    leaves.contains_key(path)
        || leaves.range(path.clone()..).next().is_some_and(|(found, _)| found.starts_with(path))
}
