//! Nothing can be created in a namespace that is missing or being deleted, and some namespaces cannot be deleted.

use embedded_objects::kinds::{self, Kind};
use embedded_objects::status::{self, Status};
use serde_json::Value;

use embedded_state::store::Key;
use embedded_state::{Api, collection_of};

/// Namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

pub(super) fn creation(api: &Api, kind: &'static Kind, object: &Value) -> Result<(), Status> {
    if !kind.namespaced {
        return Ok(());
    }
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let (name, namespace) = (text("name"), text("namespace"));
    let Some(namespaces) = kinds::find("", "v1", "namespaces") else { return Ok(()) };
    let Some(found) = api.store.get(collection_of(namespaces), &Key::new("", namespace)) else {
        return Err(status::not_found(namespaces, namespace));
    };
    if found.field("status.phase") == "Terminating" {
        return Err(status::namespace_terminating(kind, name, namespace));
    }
    Ok(())
}

pub(super) fn deletion(kind: &'static Kind, object: &Value) -> Result<(), Status> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if kind.is("", "Namespace") && IMMORTAL.contains(&name) {
        return Err(status::forbidden(kind, name, "this namespace may not be deleted"));
    }
    Ok(())
}
