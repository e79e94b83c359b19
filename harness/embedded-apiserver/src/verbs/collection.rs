//! Deletion of all objects that a selector matches.

use std::sync::Arc;

use embedded_objects::kinds::Kind;
use embedded_objects::status::Status;
use serde_json::json;

use super::deletion::{DeleteOptions, delete_object};
use super::list::namespace_of_list;
use super::list_options::ListOptions;
use crate::http::call::Call;
use crate::http::reply::{Content, Outcome, Reply};
use crate::write::Write;
use embedded_state::store::Record;
use embedded_state::{Selection, collection_of};

/// Answers a DELETE of a collection with the list of the matching objects.
pub(super) fn delete(call: &Call, kind: &'static Kind) -> Outcome {
    call.form()?;
    ListOptions::parse(&call.query, false)?;
    let selection = Selection::parse(kind, &call.query, None)?;
    let options = DeleteOptions::read(call)?;
    let dry_run = options.is_dry_run()?;
    let tx = call.api.store.begin();
    let write = Write::of(call, &tx, dry_run, "");
    let snapshot = call.api.store.snapshot(collection_of(kind));
    let meant: Vec<Arc<Record>> = snapshot
        .iter(namespace_of_list(call, kind), None)
        .filter(|record| selection.matches(record))
        .cloned()
        .collect();
    for record in &meant {
        delete_object(&write, kind, record, &options).map(drop).or_else(ignore_absent)?;
    }
    let metadata = json!({"resourceVersion": snapshot.revision().to_string()});
    Ok(Reply { code: 200, content: Content::List(kind, meant, metadata), warnings: Vec::new() })
}

/// Ignores that an object is already gone.
fn ignore_absent(status: Status) -> Result<(), Status> {
    if status.code == 404 { Ok(()) } else { Err(status) }
}
