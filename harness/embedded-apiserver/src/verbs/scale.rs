//! The `scale` subresource: the number of replicas, for every kind that has it.

use embedded_objects::kinds::Kind;
use embedded_objects::patch as patches;
use embedded_objects::select::Labels;
use embedded_objects::status::{self, Status};
use http::Method;
use serde_json::{Value, json};

use super::update::change;
use crate::http::call::Call;
use crate::http::reply::{Outcome, Reply};
use crate::write::Write;
use embedded_state::store::Key;
use embedded_state::{collection_of, from_stored};

/// Answers GET, PUT and PATCH of an object's scale.
pub(super) fn scale(call: &Call, kind: &'static Kind) -> Outcome {
    call.form()?;
    if call.method == Method::GET {
        let record = call.api.find(kind, call.namespace_of(kind), call.name())?;
        return Ok(Reply::object(scale_of(kind, &record.value())));
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
        patched(call, &scale_of(kind, &object))?
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
        use embedded_objects::cause::Cause;
        let cause = Cause::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
        return Err(status::invalid_of("autoscaling", "Scale", call.name(), &[cause]));
    }
    match &kind.custom {
        None => new["spec"]["replicas"] = json!(replicas),
        Some(custom) => {
            let path = custom.scale.as_ref().map_or("", |scale| scale.wanted.as_str());
            // If a value on the path is not an object, it stays, and the schema reports the fault.
            let place = path.split('.').try_fold(&mut new, |value, step| match value {
                Value::Null | Value::Object(_) => Some(&mut value[step]),
                _ => None,
            });
            if let Some(place) = place {
                *place = json!(replicas);
            }
        }
    }
    let changed = change(&write, kind, None, &old, new)?.into_value(kind);
    Ok(Reply::object(scale_of(kind, &changed)))
}

fn patched(call: &Call, scale: &Value) -> Result<Value, Status> {
    let media_type = call.content_type().split(';').next().unwrap_or_default().trim();
    let text = std::str::from_utf8(&call.body).map_err(|why| status::bad_request(why.to_string()))?;
    match media_type {
        "application/json-patch+json" => patches::json(scale, text),
        // A Scale has no lists, so both types merge in the same way.
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

/// The desired replicas, the current replicas, and the selector of an object.
fn facts(kind: &Kind, object: &Value) -> (Option<i64>, i64, String) {
    let at =
        |path: &str| path.split('.').try_fold(object, |value, step| value.get(step)).unwrap_or(&Value::Null);
    match kind.custom.as_ref().and_then(|custom| custom.scale.as_ref()) {
        Some(scale) => (
            at(&scale.wanted).as_i64(),
            at(&scale.there).as_i64().unwrap_or(0),
            scale.selector.as_deref().and_then(|path| at(path).as_str()).unwrap_or_default().to_owned(),
        ),
        None => (
            object["spec"]["replicas"].as_i64(),
            object["status"]["replicas"].as_i64().unwrap_or(0),
            Labels::of_object(&object["spec"]["selector"]).text(),
        ),
    }
}

/// The scale of an object.
fn scale_of(kind: &Kind, object: &Value) -> Value {
    let metadata = &object["metadata"];
    let mut kept = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if !metadata[field].is_null() {
            kept[field] = metadata[field].clone();
        }
    }
    let mut spec = json!({});
    let (wanted, there, selector) = facts(kind, object);
    if let Some(replicas) = wanted.filter(|replicas| *replicas != 0) {
        spec["replicas"] = json!(replicas);
    }
    let mut status = json!({"replicas": there});
    if !selector.is_empty() {
        status["selector"] = json!(selector);
    }
    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": kept, "spec": spec, "status": status})
}
