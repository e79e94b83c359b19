//! Objects in the form in which they are stored. Events are one object under two groups, with other names for the same
//! members, stored in the core group's form. Custom resources in several versions differ in their apiVersion alone.

use embedded_semantics::kinds::{self, Kind};
use embedded_semantics::lifecycle::{event_from_core, event_to_core};
use serde_json::{Value, json};

/// Whether objects of this kind are Events in their newer form.
fn is_new_event(kind: &Kind) -> bool {
    kind.is("events.k8s.io", "Event")
}

/// The version in which objects of a custom resource are stored, where it is another.
fn other_version(kind: &Kind) -> Option<&'static Kind> {
    kind.custom.as_ref().and_then(|custom| custom.stored_as)
}

/// Whether objects of this kind are stored in the form in which they are served.
#[must_use]
pub(crate) fn is_stored_form(kind: &Kind) -> bool {
    !is_new_event(kind) && other_version(kind).is_none()
}

/// The kind in whose form objects of this kind are stored.
#[must_use]
pub(crate) fn stored_kind(kind: &'static Kind) -> &'static Kind {
    if is_new_event(kind) {
        return kinds::find("", "v1", "events").unwrap_or(kind);
    }
    other_version(kind).unwrap_or(kind)
}

/// An object as it is served, from how it is stored.
#[must_use]
pub(crate) fn from_stored(kind: &'static Kind, object: Value) -> Value {
    with_type(kind, if is_new_event(kind) { event_from_core(&object) } else { object })
}

/// An object as it is stored, from how it is served.
#[must_use]
pub(crate) fn to_stored(kind: &'static Kind, object: Value) -> Value {
    with_type(stored_kind(kind), if is_new_event(kind) { event_to_core(&object) } else { object })
}

/// An object with its kind and apiVersion.
#[must_use]
pub(crate) fn with_type(kind: &Kind, mut object: Value) -> Value {
    object["kind"] = json!(kind.kind);
    object["apiVersion"] = json!(kind.api_version());
    object
}
