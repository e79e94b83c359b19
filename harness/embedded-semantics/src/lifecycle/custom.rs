//! Custom resources: the schema of their definition contains all their rules.
//!
//! Source: `k8s.io/apiextensions-apiserver/pkg/registry/customresource/strategy.go`.

use serde_json::{Map, Value};

use super::Context;
use super::strategy::Strategy;
use embedded_objects::cause::Cause;
use embedded_objects::kinds::{Custom, Kind};
use embedded_objects::status::{self, Status};
use embedded_objects::structural;
use embedded_objects::typed;
use embedded_objects::value::{Edit as _, PathAccess as _};

/// The custom resource in a body: with defaults, and without fields that its schema does not have.
///
/// # Errors
/// The Status for invalid metadata, or for defaults that make it too large.
pub(super) fn decode(kind: &Kind, custom: &Custom, body: &Value) -> Result<Value, Status> {
    let mut object = if body.is_object() { body.clone() } else { Value::Object(Map::new()) };
    if let Some(meta) = embedded_objects::schema::find("meta/v1.ObjectMeta") {
        let metadata = typed::decode(meta, object.at("metadata")).map_err(|why| {
            status::bad_request(format!(
                "{0} in version {1:?} cannot be handled as a {0}: {why}",
                kind.kind, kind.version
            ))
        })?;
        object.put("metadata", metadata);
    }
    object.put("apiVersion", kind.api_version());
    object.put("kind", kind.kind);
    // Defaults can make an object larger than any body; etcd would not accept it.
    structural::default(&custom.schema, &mut object)
        .map_err(|structural::TooLarge| status::unexplained("etcdserver: request is too large"))?;
    structural::prune(&custom.schema, &mut object);
    Ok(object)
}

/// The members of an object other than its head and its status.
fn own(object: &Value, has_status: bool) -> Map<String, Value> {
    let mut own = object.as_object().cloned().unwrap_or_default();
    let status = has_status.then_some("status");
    for name in ["apiVersion", "kind", "metadata"].into_iter().chain(status) {
        own.remove(name);
    }
    own
}

/// The hooks of custom resources, with or without the status subresource.
pub(super) struct Resource {
    pub(super) has_status: bool,
}

impl Strategy for Resource {
    fn prepare_create(&self, object: &mut Value, _cx: &mut Context<'_>) {
        if self.has_status {
            object.clear("status");
        }
        object.put("metadata.generation", 1);
    }

    fn prepare_update(&self, sub: Option<&str>, old: &Value, new: &mut Value, _cx: &mut Context<'_>) {
        if sub == Some("status") {
            // Besides the status, an update of the status changes only managedFields and the resourceVersion.
            let mut whole = old.clone();
            match new.clear("status") {
                Some(status) => whole.put("status", status),
                None => drop(whole.clear("status")),
            }
            for kept in ["apiVersion", "kind", "metadata.managedFields", "metadata.resourceVersion"] {
                whole.put(kept, new.at(kept).clone());
            }
            if !new.has("metadata.managedFields") {
                whole.clear("metadata.managedFields");
            }
            *new = whole;
            return;
        }
        if self.has_status {
            match old.get("status") {
                Some(status) => new.put("status", status.clone()),
                None => drop(new.clear("status")),
            }
        }
        if own(old, self.has_status) != own(new, self.has_status) {
            new.put("metadata.generation", old.int("metadata.generation") + 1);
        }
    }
}

/// The causes from the definition of an object, if it is a custom resource.
pub(super) fn causes(kind: &Kind, object: &Value) -> Vec<Cause> {
    let Some(custom) = &kind.custom else { return Vec::new() };
    structural::validate(&custom.schema, &custom.patterns, object)
}
