//! Binding of a pod to a node.

use embedded_objects::kinds::{self, Kind};
use embedded_objects::status::{self, Status};
use embedded_semantics::lifecycle;
use serde_json::{Value, json};

use crate::http::call::Call;
use crate::http::reply::{Outcome, Reply};
use crate::managers;
use crate::write::Write;
use embedded_state::store::Key;
use embedded_state::{collection_of, with_type};

/// Answers a POST to `pods/NAME/binding` or to `bindings`.
pub(super) fn bind(call: &Call, _kind: &'static Kind) -> Outcome {
    call.form()?;
    let dry_run = call.dry_run("CreateOptions")?;
    let binding = call.object_as(("", "v1", "Binding"), "CreateOptions")?.object;
    let name = binding["metadata"]["name"].as_str().unwrap_or_default();
    if !call.name().is_empty() && call.name() != name {
        return Err(status::bad_request("name in URL does not match name in Binding object"));
    }
    let Some(kind) = kinds::find("", "v1", "bindings") else { return Err(status::no_such_resource()) };
    let binding = lifecycle::review(kind, &binding)?;
    let node = binding["target"]["name"].as_str().unwrap_or_default();
    let Some(pods) = kinds::find("", "v1", "pods") else { return Err(status::no_such_resource()) };
    let tx = call.api.store.begin();
    let manager = call.manager();
    let write = Write::of(call, &tx, dry_run, &manager);
    let record = tx
        .get(collection_of(pods), &Key::new(call.namespace(), name))
        .ok_or_else(|| status::not_found(pods, name))?;
    let old = with_type(pods, record.value());
    let conflict = |why: String| Err::<Reply, Status>(status::conflict_on("", "pods/binding", name, &why));
    for (field, is) in
        [("uid", old["metadata"]["uid"].clone()), ("resourceVersion", json!(record.revision().to_string()))]
    {
        let said = &binding["metadata"][field];
        if !matches!(said.as_str(), None | Some("")) && *said != is {
            let (said, is) = (said.as_str().unwrap_or_default(), is.as_str().unwrap_or_default());
            let what = if field == "uid" { "UID" } else { "ResourceVersion" };
            return conflict(format!(
                "Precondition failed: {what} in precondition: {said}, {what} in object meta: {is}"
            ));
        }
    }
    if !old["metadata"]["deletionTimestamp"].is_null() {
        return conflict(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    if let Some(assigned) = old["spec"]["nodeName"].as_str().filter(|node| !node.is_empty()) {
        return conflict(format!("pod {name} is already assigned to node {assigned:?}"));
    }
    if old["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
        return conflict(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    let mut pod = old.clone();
    pod["spec"]["nodeName"] = json!(node);
    for part in ["annotations", "labels"] {
        if let Some(given) = binding["metadata"][part].as_object() {
            for (key, value) in given {
                pod["metadata"][part][key.as_str()] = value.clone();
            }
        }
    }
    set_scheduled(&mut pod, &call.clock.seconds);
    managers::note(&mut pod, Some(&old), &write, pods, Some("binding"));
    if !dry_run {
        call.api.put(&tx, pods, pod);
    }
    Ok(Reply::object(status::created().body()).with_code(201))
}

/// Sets the pod's condition `PodScheduled`.
fn set_scheduled(pod: &mut Value, now: &str) {
    let condition =
        json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now});
    if pod["status"]["conditions"].as_array().is_none() {
        pod["status"]["conditions"] = json!([]);
    }
    let Some(conditions) = pod["status"]["conditions"].as_array_mut() else { return };
    match conditions.iter_mut().find(|one| one["type"] == "PodScheduled") {
        Some(one) if one["status"] == "True" => {}
        Some(one) => *one = condition,
        None => conditions.push(condition),
    }
}
