//! PATCH in its four kinds.

use embedded_semantics::kinds::Kind;
use embedded_semantics::patch;
use embedded_semantics::status::{self, Status};
use http::header;
use serde_json::Value;

use super::create::Write;
use super::update::change;
use crate::api::{from_stored, shelf_of};
use crate::http::call::{Call, text_header};
use crate::http::reply::{Outcome, Reply};
use crate::store::Key;

/// The content types of patches, as the refusal of any other lists them.
const ACCEPTED: [&str; 5] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/apply-patch+cbor",
];

/// Answers a PATCH of an object or one of its subresources.
pub(super) fn patch(call: &Call, kind: &'static Kind, sub: Option<&str>) -> Outcome {
    call.form()?;
    let media_type = text_header(&call.headers, &header::CONTENT_TYPE).split(';').next().unwrap_or_default().trim();
    let dry_run = call.dry_run("PatchOptions")?;
    let change_of: fn(&Kind, &Value, &str) -> Result<Value, Status> = match media_type {
        "application/json-patch+json" => |_, old, text| patch::json(old, text),
        "application/merge-patch+json" => |_, old, text| patch::merge(old, text),
        _ => return Err(status::unsupported_media_type(&ACCEPTED)),
    };
    let text = std::str::from_utf8(&call.body).map_err(|why| status::bad_request(why.to_string()))?;
    let tx = call.api.store.begin();
    let write = Write { api: &call.api, tx: &tx, user: &call.user, clock: &call.clock, dry_run, manager: &call.manager() };
    let old = tx
        .get(shelf_of(kind), &Key::new(call.namespace_of(kind), call.name()))
        .ok_or_else(|| status::not_found(kind, call.name()))?;
    let new = change_of(kind, &from_stored(kind, old.value()), text)?;
    check_identity(&new, call.name())?;
    Ok(Reply::written(kind, change(&write, kind, sub, &old, new)?))
}

/// A patch may not make another object of the object.
pub(super) fn check_identity(new: &Value, name: &str) -> Result<(), Status> {
    let said = new["metadata"]["name"].as_str().unwrap_or_default();
    if said != name {
        return Err(status::bad_request(format!(
            "the name of the object ({said}) does not match the name on the URL ({name})"
        )));
    }
    Ok(())
}
