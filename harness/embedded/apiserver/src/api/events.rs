//! Events: one object under two groups, with other names for the same members. They are stored in the core group's form.

use embedded_semantics::kinds::{self, Kind};
use embedded_semantics::lifecycle::{event_from_core, event_to_core};
use serde_json::{Value, json};

/// Whether objects of this kind are stored in the form in which they are served.
#[must_use]
pub(crate) fn is_stored_form(kind: &Kind) -> bool {
    !(kind.kind == "Event" && kind.group == "events.k8s.io")
}

/// The kind in whose form objects of this kind are stored.
#[must_use]
pub(crate) fn stored_kind(kind: &'static Kind) -> &'static Kind {
    if is_stored_form(kind) { kind } else { kinds::find("", "v1", "events").unwrap_or(kind) }
}

/// An object as it is served, from how it is stored.
#[must_use]
pub(crate) fn from_stored(kind: &'static Kind, object: Value) -> Value {
    with_type(kind, if is_stored_form(kind) { object } else { event_from_core(&object) })
}

/// An object as it is stored, from how it is served.
#[must_use]
pub(crate) fn to_stored(kind: &'static Kind, object: Value) -> Value {
    with_type(stored_kind(kind), if is_stored_form(kind) { object } else { event_to_core(&object) })
}

/// An object with its kind and apiVersion.
#[must_use]
pub(crate) fn with_type(kind: &Kind, mut object: Value) -> Value {
    object["kind"] = json!(kind.kind);
    object["apiVersion"] = json!(kind.api_version());
    object
}
