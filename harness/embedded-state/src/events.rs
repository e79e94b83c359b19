//! Conversions between the stored and the served form of objects. Events are one object in two groups, with
//! different names for the same members, stored in the form of the core group. Autoscalers are one object in
//! two versions, stored in the newer. Custom resources with several versions differ only in their apiVersion.

use embedded_objects::kinds::{self, Kind};
use embedded_semantics::lifecycle::{autoscaler_from_v1, autoscaler_to_v1, event_from_core, event_to_core};
use serde_json::{Value, json};

/// Whether objects of this kind are Events in their newer form.
fn is_new_event(kind: &Kind) -> bool {
    kind.is("events.k8s.io", "Event")
}

/// Whether objects of this kind are autoscalers in their older form.
fn is_old_autoscaler(kind: &Kind) -> bool {
    kind.is("autoscaling", "HorizontalPodAutoscaler") && kind.version == "v1"
}

/// Whether the metadata of objects of this kind is served as it is stored.
#[must_use]
pub fn is_stored_metadata(kind: &Kind) -> bool {
    !is_old_autoscaler(kind)
}

/// The version in which objects of a custom resource are stored, if it is another one.
fn other_version(kind: &Kind) -> Option<&'static Kind> {
    kind.custom.as_ref().and_then(|custom| custom.stored_as)
}

/// Whether objects of this kind are served in the form in which they are stored.
#[must_use]
pub fn is_stored_form(kind: &Kind) -> bool {
    !is_new_event(kind) && !is_old_autoscaler(kind) && other_version(kind).is_none()
}

/// The kind in whose form objects of this kind are stored.
#[must_use]
pub(crate) fn stored_kind(kind: &'static Kind) -> &'static Kind {
    if is_new_event(kind) {
        return kinds::find("", "v1", "events").unwrap_or(kind);
    }
    if is_old_autoscaler(kind) {
        return kinds::find("autoscaling", "v2", "horizontalpodautoscalers").unwrap_or(kind);
    }
    other_version(kind).unwrap_or(kind)
}

/// Converts a stored object to the served form.
#[must_use]
pub fn from_stored(kind: &'static Kind, object: Value) -> Value {
    let served = match kind {
        _ if is_new_event(kind) => event_from_core(&object),
        _ if is_old_autoscaler(kind) => autoscaler_to_v1(&object),
        _ => object,
    };
    with_type(kind, served)
}

/// Converts a served object to the stored form.
#[must_use]
pub fn to_stored(kind: &'static Kind, object: Value) -> Value {
    let stored = match kind {
        _ if is_new_event(kind) => event_to_core(&object),
        _ if is_old_autoscaler(kind) => autoscaler_from_v1(&object),
        _ => object,
    };
    with_type(stored_kind(kind), stored)
}

/// An object with its kind and apiVersion.
#[must_use]
pub fn with_type(kind: &Kind, mut object: Value) -> Value {
    object["kind"] = json!(kind.kind);
    object["apiVersion"] = json!(kind.api_version());
    object
}
