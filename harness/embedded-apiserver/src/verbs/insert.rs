//! The creation of an object, up to the store.

use embedded_objects::kinds::Kind;
use embedded_objects::status::{self, Status};
use embedded_semantics::lifecycle;
use serde_json::Value;

use crate::admission;
use crate::managers;
use crate::write::{Write, check_size};
use embedded_state::store::Key;
use embedded_state::{Written, collection_of, to_stored};

/// Admits, prepares and stores an object.
///
/// # Errors
///
/// The rejection by admission, the kind's rules or the store.
pub(super) fn insert(
    write: &Write<'_>,
    kind: &'static Kind,
    namespace: &str,
    mut object: Value,
) -> Result<Written, Status> {
    let Write { api, tx, clock, .. } = *write;
    if !object.is_object() {
        return Err(status::bad_request(format!(
            "the object provided is unrecognized (must be of type {})",
            kind.kind
        )));
    }
    if kind.custom.is_some() && api.definitions.is_terminating(&kind.collection) {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(Status { message: why.to_owned(), ..status::method_not_supported(kind, "create") });
    }
    lifecycle::place(&mut object, namespace)?;
    admission::create(write, kind, &mut object)?;
    let mut object = api.prepare(kind, object, clock, write.dry_run)?;
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let checked = admission::validate(write, kind, None, &object).and_then(|()| {
        match tx.get(collection_of(kind), &Key::new(namespace, &name)) {
            Some(_) if !object["metadata"]["generateName"].is_null() && !named(&object, &name) => {
                Err(status::generated_name_taken(kind, &name))
            }
            Some(_) => Err(status::already_exists(kind, &name)),
            None => check_size(write, &object),
        }
    });
    if let Err(refused) = checked {
        if !write.dry_run {
            api.release(kind, &object);
        }
        return Err(refused);
    }
    managers::note(&mut object, None, write, kind, None);
    if write.dry_run {
        return Ok(Written::Pretended(object));
    }
    Ok(Written::Stored(api.put(tx, kind, to_stored(kind, object))))
}

/// Whether the name was given, not generated: a generated name begins with its prefix and is longer.
fn named(object: &Value, name: &str) -> bool {
    let prefix = object["metadata"]["generateName"].as_str().unwrap_or_default();
    prefix.is_empty() || !name.starts_with(prefix.get(..prefix.len().min(58)).unwrap_or(prefix))
}
