//! Eviction of a pod: a deletion that asks first. Disruption budgets are not served, so none objects.

use embedded_semantics::kinds::Kind;
use embedded_semantics::status;
use serde_json::json;

use super::deletion::{DeleteOptions, delete_object};
use crate::http::call::Call;
use crate::http::reply::{Outcome, Reply};
use crate::write::Write;

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
    let record = call.api.find(kind, call.namespace(), call.name())?;
    delete_object(&write, kind, &record, &options)?;
    Ok(Reply::object(status::created().body()).with_code(201))
}
