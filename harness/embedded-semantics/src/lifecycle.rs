//! The steps between a request's body and storage: defaults, preparation, allocation, validation.
//!
//! Source of the order: `k8s.io/apiserver/pkg/registry/rest/{create,update}.go` and `registry/generic/registry`.

mod autoscaler;
mod context;
mod custom;
mod definition;
mod endpoints;
mod event;
mod internal;
mod job;
mod meta;
mod node;
mod pod;
mod podspec;
mod rbac;
mod review;
mod service;
mod simple_kinds;
mod stored;
mod strategies;
mod strategy;
mod warnings;
mod workload;

use serde_json::Value;

pub use autoscaler::{autoscaler_from_v1, autoscaler_to_v1};
pub use context::Context;
pub use event::{event_from_core, event_to_core};
pub use meta::place;
pub use pod::{mount_token, tolerate_unready_nodes};
pub use review::review;
pub use warnings::{compares, deprecation, warnings, warnings_of_sent};

use crate::alloc::Allocator;
use embedded_objects::cause::Cause;
use embedded_objects::kinds::Kind;
use embedded_objects::rules::names;
use embedded_objects::status::{self, Status};
use embedded_objects::typed;
use embedded_objects::value::{Edit as _, PathAccess as _};

/// The longest part of a generateName that is kept, so that five more characters fit in a DNS label.
const GENERATED_PREFIX: usize = 58;

/// The object in a body: decoded into its type, with defaults.
///
/// # Errors
/// The Status for a body that does not fit the type.
pub fn decode(kind: &Kind, body: &Value) -> Result<Value, Status> {
    let mut object = decode_plain(kind, body)?;
    strategies::of(kind).default(&mut object);
    Ok(object)
}

fn decode_plain(kind: &Kind, body: &Value) -> Result<Value, Status> {
    if let Some(definition) = &kind.custom {
        return custom::decode(kind, definition, body);
    }
    let Some(ty) = kind.type_id() else {
        return Ok(body.clone());
    };
    let mut object = typed::decode(ty, body).map_err(|why| {
        status::bad_request(format!(
            "{0} in version {1:?} cannot be handled as a {0}: {why}",
            kind.kind, kind.version
        ))
    })?;
    object.put("apiVersion", kind.api_version());
    object.put("kind", kind.kind);
    Ok(object)
}

/// The object to store for a creation, without a resourceVersion. Its namespace is already set ([`place`]).
///
/// # Errors
/// The Status with which the API server rejects it. Then nothing stays allocated.
pub fn create(kind: &Kind, object: Value, cx: &mut Context<'_>) -> Result<Value, Status> {
    let mut object = decode(kind, &object)?;
    if !matches!(object.text("metadata.resourceVersion"), "" | "0") {
        return Err(status::unexplained("resourceVersion should not be set on objects to be created"));
    }
    for system in ["resourceVersion", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        object.clear(&format!("metadata.{system}"));
    }
    if object.text("metadata.name").is_empty() && !object.text("metadata.generateName").is_empty() {
        let prefix: String = object.text("metadata.generateName").chars().take(GENERATED_PREFIX).collect();
        object.put("metadata.name", format!("{prefix}{}", cx.suffix));
    }
    object.put("metadata.creationTimestamp", cx.now);
    object.put("metadata.uid", cx.uid);
    cx.allocator.begin();
    let created = prepare_created(kind, &mut object, cx);
    finish(cx, created.is_ok());
    created?;
    decode_plain(kind, &object)
}

fn prepare_created(kind: &Kind, object: &mut Value, cx: &mut Context<'_>) -> Result<(), Status> {
    let strategy = strategies::of(kind);
    strategy.allocate_create(object, cx)?;
    strategy.prepare_create(object, cx);
    let mut causes = meta::created(kind, object);
    causes.extend(strategy.validate_create(object, cx));
    causes.extend(custom::causes(kind, object));
    if causes.is_empty() { Ok(()) } else { Err(status::invalid(kind, object.text("metadata.name"), &causes)) }
}

/// Ends a write's allocations.
fn finish(cx: &mut Context<'_>, done: bool) {
    if done && !cx.dry_run {
        cx.allocator.commit();
    } else {
        cx.allocator.rollback();
    }
}

/// The object to store for an update of the object or of one of its subresources, with the old
/// resourceVersion. The store checks whether the new object's resourceVersion is stale.
///
/// # Errors
/// The Status with which the API server rejects it. Allocations are then as before.
pub fn update(
    kind: &Kind,
    sub: Option<&str>,
    old: &Value,
    new: Value,
    cx: &mut Context<'_>,
) -> Result<Value, Status> {
    let mut new = decode(kind, &new)?;
    let name = old.text("metadata.name").to_owned();
    if matches!(new.text("metadata.resourceVersion"), "" | "0") {
        if !kind.unconditional_update {
            let why = "must be specified for an update";
            let cause = Cause::invalid("metadata.resourceVersion", 0, why);
            return Err(status::invalid_of(kind.group, kind.plural, &name, &[cause]));
        }
        new.put("metadata.resourceVersion", old.text("metadata.resourceVersion"));
    }
    cx.allocator.begin();
    let updated = prepare_updated(kind, sub, old, &mut new, cx);
    finish(cx, updated.is_ok());
    updated?;
    decode_plain(kind, &new)
}

fn prepare_updated(
    kind: &Kind,
    sub: Option<&str>,
    old: &Value,
    new: &mut Value,
    cx: &mut Context<'_>,
) -> Result<(), Status> {
    let strategy = strategies::of(kind);
    if sub.is_none() {
        strategy.allocate_update(old, new, cx)?;
    }
    new.put("metadata.generation", old.at("metadata.generation").clone());
    strategy.prepare_update(sub, old, new, cx);
    meta::carry_over(old, new);
    let mut causes = meta::any(new, kind.namespaced, |name, prefix| {
        if prefix { names::path_segment_prefix(name) } else { names::path_segment(name) }
    });
    causes.extend(meta::changed(old, new));
    causes.extend(strategy.validate_update(kind, sub, old, new, cx));
    causes.extend(custom::causes(kind, new));
    if causes.is_empty() { Ok(()) } else { Err(status::invalid(kind, old.text("metadata.name"), &causes)) }
}

/// Releases the addresses and ports of an object after its removal.
pub fn released(kind: &Kind, object: &Value, allocator: &mut Allocator) {
    allocator.begin();
    strategies::of(kind).released(object, allocator);
    allocator.commit();
}

/// Allocates the addresses and ports of a stored object, when a store is filled from elsewhere. Those that
/// are in use already stay so.
pub fn restored(kind: &Kind, object: &Value, allocator: &mut Allocator) {
    allocator.begin();
    strategies::of(kind).restored(object, allocator);
    allocator.commit();
}
