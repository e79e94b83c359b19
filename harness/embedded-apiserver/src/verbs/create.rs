//! Creation of objects.

use embedded_objects::kinds::Kind;
use embedded_objects::status::Status;
use embedded_semantics::lifecycle;
use serde_json::Value;

use super::insert::insert;
use super::{namespaces, token};
use crate::http::call::Call;
use crate::http::reply::{Outcome, Reply};
use crate::write::Write;
use embedded_state::Written;
use embedded_state::store::Record;

/// Answers a POST to a collection.
pub(super) fn create(call: &Call, kind: &'static Kind) -> Outcome {
    call.form()?;
    let dry_run = call.dry_run("CreateOptions")?;
    let parsed = call.object(kind, "CreateOptions")?;
    let tx = call.api.store.begin();
    let manager = call.manager();
    let write = Write::of(call, &tx, dry_run, &manager);
    let mut warnings = parsed.warnings;
    warnings.extend(lifecycle::warnings_of_sent(kind, &parsed.object));
    let written = create_object(&write, kind, call.namespace_of(kind), parsed.object)?;
    warnings.extend(warnings_of(kind, None, None, &written));
    let mut reply = Reply::written(kind, written).with_code(201);
    reply.warnings = warnings;
    Ok(reply)
}

/// The server's warnings about an accepted object; `old` is its earlier version.
pub(super) fn warnings_of(
    kind: &'static Kind,
    sub: Option<&str>,
    old: Option<&Record>,
    written: &Written,
) -> Vec<String> {
    let old = old.map(|old| if lifecycle::compares(kind) { old.value() } else { Value::Null });
    match written {
        Written::Stored(record) => lifecycle::warnings(kind, sub, old.as_ref(), &record.value()),
        Written::Pretended(object) => lifecycle::warnings(kind, sub, old.as_ref(), object),
    }
}

/// Creates an object; for a namespace, also the default objects in it.
///
/// # Errors
///
/// The rejection by admission, the kind's rules or the store.
pub(crate) fn create_object(
    write: &Write<'_>,
    kind: &'static Kind,
    namespace: &str,
    mut object: Value,
) -> Result<Written, Status> {
    if kind.is("", "Secret") {
        token::fill(write.api, namespace, &mut object)?;
    }
    let written = insert(write, kind, namespace, object)?;
    if let Written::Stored(record) = &written
        && kind.is("", "Namespace")
    {
        namespaces::create_defaults(write, record.key().name())?;
    }
    Ok(written)
}
