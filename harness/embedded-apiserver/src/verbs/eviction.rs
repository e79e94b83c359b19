//! Eviction of a pod: a deletion that may be refused. Disruption budgets are not served, so it never is.

use embedded_objects::kinds::Kind;
use embedded_objects::status;
use serde_json::{Value, json};

use super::deletion::{DeleteOptions, check_preconditions, delete_object};
use crate::http::call::Call;
use crate::http::reply::{Outcome, Reply};
use crate::write::Write;
use embedded_state::{from_stored, to_stored};

/// Answers a POST to `pods/NAME/eviction`.
pub(super) fn evict(call: &Call, kind: &'static Kind) -> Outcome {
    call.form()?;
    let eviction = call.object_as(("policy", "v1", "Eviction"), "CreateOptions")?.object;
    if eviction["metadata"]["name"] != call.name() {
        return Err(status::bad_request("name in URL does not match name in Eviction object"));
    }
    let given =
        if eviction["deleteOptions"].is_null() { json!({}) } else { eviction["deleteOptions"].clone() };
    let options: DeleteOptions =
        serde_json::from_value(given).map_err(|why| status::bad_request(why.to_string()))?;
    let dry_run = call.dry_run("CreateOptions")? || options.is_dry_run()?;
    let tx = call.api.store.begin();
    let write = Write::of(call, &tx, dry_run, "");
    let mut record = call.api.find(kind, call.namespace(), call.name())?;
    let mut options = options;
    if !dry_run {
        check_preconditions(kind, &record, &options)?;
        let mut pod = from_stored(kind, record.value());
        note_disruption(&mut pod, &call.clock.seconds);
        record = call.api.put(&tx, kind, to_stored(kind, pod));
        options.expect_version(record.revision());
    }
    delete_object(&write, kind, &record, &options)?;
    Ok(Reply::object(status::created().body()).with_code(201))
}

/// Records in the Pod why it is deleted, so that its workload does not count it as failed.
fn note_disruption(pod: &mut Value, now: &str) {
    let noted = json!({"type": "DisruptionTarget", "status": "True", "lastProbeTime": null, "lastTransitionTime": now,
        "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"});
    if !pod["status"]["conditions"].is_array() {
        pod["status"]["conditions"] = json!([]);
    }
    let Some(conditions) = pod["status"]["conditions"].as_array_mut() else { return };
    match conditions.iter_mut().find(|condition| condition["type"] == noted["type"]) {
        Some(known) => {
            let since = known["lastTransitionTime"].clone();
            let lasts = known["status"] == noted["status"];
            *known = noted;
            if lasts {
                known["lastTransitionTime"] = since;
            }
        }
        None => conditions.push(noted),
    }
}
