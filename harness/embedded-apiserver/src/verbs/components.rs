//! ComponentStatuses, the old way to show the state of the control plane. They are not stored, but made for
//! each answer.

use embedded_objects::kinds::Kind;
use embedded_objects::status;
use serde_json::{Value, json};

use crate::http::call::Call;
use crate::http::reply::{Outcome, Reply};

/// The components of a control plane, ordered by name.
const COMPONENTS: [&str; 3] = ["controller-manager", "etcd-0", "scheduler"];

/// Whether a kind is ComponentStatus.
pub(super) fn is_component(kind: &Kind) -> bool {
    kind.is("", "ComponentStatus")
}

/// Answers with one component. All components live as long as this process, so they are always healthy.
pub(super) fn get(call: &Call, kind: &'static Kind) -> Outcome {
    call.form()?;
    if !COMPONENTS.contains(&call.name()) {
        return Err(status::not_found(kind, call.name()));
    }
    Ok(Reply::object(component(call.name())))
}

/// Answers with all components.
pub(super) fn list(call: &Call, kind: &'static Kind) -> Outcome {
    call.form()?;
    let wanted = |name: &&&str| call.name().is_empty() || call.name() == **name;
    let items: Vec<Value> = COMPONENTS.iter().filter(wanted).map(|name| component(name)).collect();
    Ok(Reply::object(json!({
        "kind": kind.list_kind, "apiVersion": kind.api_version(), "metadata": {}, "items": items,
    })))
}

fn component(name: &str) -> Value {
    json!({"kind": "ComponentStatus", "apiVersion": "v1", "metadata": {"name": name},
        "conditions": [{"type": "Healthy", "status": "True", "message": "ok"}]})
}
