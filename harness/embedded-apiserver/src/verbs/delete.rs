//! Deletion of one object.

use embedded_objects::kinds::Kind;
use embedded_objects::status;

use super::deletion::{DeleteOptions, Deleted, delete_object};
use crate::http::call::Call;
use crate::http::reply::{Outcome, Reply};
use crate::write::Write;

/// Answers a DELETE of an object.
pub(super) fn delete(call: &Call, kind: &'static Kind) -> Outcome {
    call.form()?;
    let options = DeleteOptions::read(call)?;
    let dry_run = options.is_dry_run()?;
    let tx = call.api.store.begin();
    let write = Write::of(call, &tx, dry_run, "");
    let record = call.api.find(kind, call.namespace_of(kind), call.name())?;
    Ok(match delete_object(&write, kind, &record, &options)? {
        Deleted::Stays(object) => {
            let accepted = options.orphan_dependents == Some(false);
            Reply::object(object).with_code(if accepted { 202 } else { 200 })
        }
        Deleted::Gone(object) if kind.returns_deleted => Reply::object(object),
        Deleted::Gone(object) => {
            let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
            Reply::object(status::deleted(kind, call.name(), uid).body())
        }
    })
}
