//! Events: one object under two groups, with other names for the same members.
//!
//! They are stored in the core group's form. Source: `k8s.io/kubernetes/pkg/apis/events/v1` (conversion).

use embedded_semantics::kinds::{self, Kind};
use serde_json::Value;

use super::objects::with_type;

/// Members by their names in the core group and in `events.k8s.io`.
const RENAMED: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Whether objects of this kind are stored in the form in which they are served.
#[must_use]
pub fn is_stored_form(kind: &Kind) -> bool {
    !(kind.kind == "Event" && kind.group == "events.k8s.io")
}

/// The kind in whose form objects of this kind are stored.
#[must_use]
pub fn stored_kind(kind: &'static Kind) -> &'static Kind {
    if is_stored_form(kind) { kind } else { kinds::find("", "v1", "events").unwrap_or(kind) }
}

/// An object as it is served, from how it is stored.
#[must_use]
pub fn from_stored(kind: &'static Kind, object: Value) -> Value {
    let object = if is_stored_form(kind) { object } else { rename(object, |(core, other)| (core, other)) };
    with_type(kind, object)
}

/// An object as it is stored, from how it is served.
#[must_use]
pub fn to_stored(kind: &'static Kind, object: Value) -> Value {
    if is_stored_form(kind) {
        return object;
    }
    with_type(stored_kind(kind), rename(object, |(core, other)| (other, core)))
}

fn rename(
    mut object: Value,
    direction: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str),
) -> Value {
    if let Some(map) = object.as_object_mut() {
        for (from, to) in RENAMED.map(direction) {
            if let Some(value) = map.remove(from) {
                map.insert(to.to_owned(), value);
            }
        }
    }
    object
}
