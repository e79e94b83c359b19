//! The `scale` subresource: how many replicas, whatever the kind.

use embedded_semantics::kinds::Kind;
use embedded_semantics::patch as patches;
use embedded_semantics::select::Labels;
use embedded_semantics::status::{self, Status};
use http::Method;
use serde_json::{Value, json};

use super::update::change;
use crate::api::{collection_of, from_stored};
use crate::http::call::Call;
use crate::http::reply::{Outcome, Reply};
use crate::store::Key;
use crate::write::Write;

/// Answers GET, PUT and PATCH of an object's scale.
pub(super) fn scale(call: &Call, kind: &'static Kind) -> Outcome {
    call.form()?;
    if call.method == Method::GET {
        let record = call.api.find(kind, call.namespace_of(kind), call.name())?;
        return Ok(Reply::object(scale_of(&record.value())));
    }
    let dry_run = call.dry_run(if call.method == Method::PUT { "UpdateOptions" } else { "PatchOptions" })?;
    let tx = call.api.store.begin();
    let manager = call.manager();
    let write = Write::of(call, &tx, dry_run, &manager);
    let old = tx
        .get(collection_of(kind), &Key::new(call.namespace_of(kind), call.name()))
        .ok_or_else(|| status::not_found(kind, call.name()))?;
    let object = from_stored(kind, old.value());
    let wanted = if call.method == Method::PUT {
        call.object_as(("autoscaling", "v1", "Scale"), "UpdateOptions")?.object
    } else {
        patched(call, &scale_of(&object))?
    };
    let replicas = match &wanted["spec"]["replicas"] {
        Value::Null => 0,
        given => {
            given.as_i64().ok_or_else(|| status::bad_request("spec.replicas of a Scale is a whole number"))?
        }
    };
    let mut new = object;
    if let Some(version) =
        wanted["metadata"]["resourceVersion"].as_str().filter(|version| !version.is_empty())
    {
        new["metadata"]["resourceVersion"] = json!(version);
    }
    if replicas < 0 {
        use embedded_semantics::cause::Cause;
        let cause = Cause::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
        return Err(status::invalid_of("autoscaling", "Scale", call.name(), &[cause]));
    }
    new["spec"]["replicas"] = json!(replicas);
    let changed = change(&write, kind, None, &old, new)?.into_value(kind);
    Ok(Reply::object(scale_of(&changed)))
}

fn patched(call: &Call, scale: &Value) -> Result<Value, Status> {
    let media_type = call.content_type().split(';').next().unwrap_or_default().trim();
    let text = std::str::from_utf8(&call.body).map_err(|why| status::bad_request(why.to_string()))?;
    match media_type {
        "application/json-patch+json" => patches::json(scale, text),
        // A Scale has no lists, so both merge alike.
        "application/merge-patch+json" | "application/strategic-merge-patch+json" => {
            patches::merge(scale, text)
        }
        _ => Err(status::unsupported_media_type(&[
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/strategic-merge-patch+json",
            "application/apply-patch+yaml",
        ])),
    }
}

/// The scale of an object.
fn scale_of(object: &Value) -> Value {
    let metadata = &object["metadata"];
    let mut kept = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if !metadata[field].is_null() {
            kept[field] = metadata[field].clone();
        }
    }
    let mut spec = json!({});
    if let Some(replicas) = object["spec"]["replicas"].as_i64().filter(|replicas| *replicas != 0) {
        spec["replicas"] = json!(replicas);
    }
    let mut status = json!({"replicas": object["status"]["replicas"].as_i64().unwrap_or(0)});
    let selector = Labels::of_object(&object["spec"]["selector"]).text();
    if !selector.is_empty() {
        status["selector"] = json!(selector);
    }
    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": kept, "spec": spec, "status": status})
}
