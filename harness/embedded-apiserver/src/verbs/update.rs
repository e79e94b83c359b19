//! Changes of objects: PUT, and the common part of every change.

use std::sync::Arc;

use embedded_objects::kinds::Kind;
use embedded_objects::status::{self, Status};
use embedded_semantics::lifecycle;
use serde_json::Value;

use super::create::{create_object, warnings_of};
use super::deletion;
use crate::admission;
use crate::http::call::Call;
use crate::http::reply::{Outcome, Reply};
use crate::managers;
use crate::write::{Write, check_size};
use embedded_state::store::{Key, Record};
use embedded_state::{Written, collection_of, from_stored, to_stored};

/// Answers a PUT to an object or one of its subresources.
pub(super) fn update(call: &Call, kind: &'static Kind, sub: Option<&str>) -> Outcome {
    call.form()?;
    let dry_run = call.dry_run("UpdateOptions")?;
    let parsed = call.object(kind, "UpdateOptions")?;
    let mut object = parsed.object;
    check_name(&object, call.name())?;
    lifecycle::place(&mut object, call.namespace_of(kind))?;
    let tx = call.api.store.begin();
    let manager = call.manager();
    let write = Write::of(call, &tx, dry_run, &manager);
    let mut warnings = parsed.warnings;
    let live = tx.get(collection_of(kind), &Key::new(call.namespace_of(kind), call.name()));
    let (written, created) = match &live {
        Some(old) => {
            check_uid(kind, old, &object)?;
            (change(&write, kind, sub, old, object)?, false)
        }
        None if kind.create_on_update && sub.is_none() => {
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("resourceVersion");
            }
            (create_object(&write, kind, call.namespace_of(kind), object)?, true)
        }
        None => return Err(status::not_found(kind, call.name())),
    };
    warnings.extend(warnings_of(kind, sub, live.as_deref(), &written));
    let mut reply = Reply::written(kind, written).with_code(if created { 201 } else { 200 });
    reply.warnings = warnings;
    Ok(reply)
}

fn check_name(object: &Value, name: &str) -> Result<(), Status> {
    let said = object["metadata"]["name"].as_str().unwrap_or_default();
    if said.is_empty() {
        return Err(status::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )));
    }
    if said != name {
        return Err(status::bad_request(format!(
            "the name of the object ({said}) does not match the name on the URL ({name})"
        )));
    }
    Ok(())
}

/// Checks the uid of a PUT, which applies only to the object with that uid. For a patch, another uid is a
/// change of an immutable field.
fn check_uid(kind: &Kind, old: &Record, new: &Value) -> Result<(), Status> {
    let said = new["metadata"]["uid"].as_str().unwrap_or_default();
    let old_value = old.value();
    let is = old_value["metadata"]["uid"].as_str().unwrap_or_default();
    if said.is_empty() || said == is {
        return Ok(());
    }
    let why = format!("Precondition failed: UID in precondition: {said}, UID in object meta: {is}");
    Err(status::conflict(kind, old.key().name(), &why))
}

/// Whether only the times in managedFields differ: such a write changes nothing.
fn same_but_for_times(new: &Value, old: &Value) -> bool {
    same_members(new, old, |name, new, old| match name {
        "metadata" => same_members(new, old, |name, new, old| match name {
            "managedFields" => same_entries(new, old),
            _ => new == old,
        }),
        _ => new == old,
    })
}

fn same_members(new: &Value, old: &Value, same: impl Fn(&str, &Value, &Value) -> bool) -> bool {
    match (new.as_object(), old.as_object()) {
        (Some(new), Some(old)) => {
            new.len() == old.len()
                && new.iter().all(|(name, value)| old.get(name).is_some_and(|other| same(name, value, other)))
        }
        _ => new == old,
    }
}

fn same_entries(new: &Value, old: &Value) -> bool {
    let (Some(new), Some(old)) = (new.as_array(), old.as_array()) else { return new == old };
    let same =
        |new: &Value, old: &Value| same_members(new, old, |name, new, old| name == "time" || new == old);
    new.len() == old.len() && new.iter().zip(old).all(|(new, old)| same(new, old))
}

/// Replaces the object `old` by `new`, which is complete and in the served form.
///
/// # Errors
///
/// 409 if `new` is based on another version; the rejection by admission or the kind's rules.
pub(super) fn change(
    write: &Write<'_>,
    kind: &'static Kind,
    sub: Option<&str>,
    old: &Arc<Record>,
    new: Value,
) -> Result<Written, Status> {
    change_by(write, kind, sub, old, new, |object, old| managers::note(object, Some(old), write, kind, sub))
}

/// The same as [`change`], with a given way to record managed fields.
pub(super) fn change_by(
    write: &Write<'_>,
    kind: &'static Kind,
    sub: Option<&str>,
    old: &Arc<Record>,
    mut new: Value,
    note: impl FnOnce(&mut Value, &Value),
) -> Result<Written, Status> {
    let name = old.key().name();
    let old_value = from_stored(kind, old.value());
    let version = new["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
    let old_uid = old_value["metadata"]["uid"].as_str().unwrap_or_default();
    if !matches!(version.as_str(), "" | "0") && version != old.revision().to_string() {
        version.parse::<u64>().map_err(|_| {
            status::unexplained(format!("strconv.ParseUint: parsing {version:?}: invalid syntax"))
        })?;
        return Err(status::stale(kind, name));
    }
    admission::update(write, kind, sub, &old_value, &mut new)?;
    let mut object = write.api.decide(write.clock, old_uid, write.dry_run, |cx| {
        lifecycle::update(kind, sub, &old_value, new, cx)
    })?;
    admission::validate(write, kind, Some(&old_value), &object)?;
    note(&mut object, &old_value);
    if same_but_for_times(&object, &old_value) {
        return Ok(Written::Stored(Arc::clone(old)));
    }
    check_size(write, &object)?;
    if write.dry_run {
        return Ok(Written::Pretended(object));
    }
    if deletion::ends_with(kind, &old_value, &object) {
        let record = write.api.remove(write.tx, kind, to_stored(kind, object.clone()));
        drop(record);
        deletion::after_removal(write, kind);
        // The answer shows the object as the update left it, at its version before the removal.
        object["metadata"]["resourceVersion"] = old.revision().to_string().into();
        return Ok(Written::Pretended(object));
    }
    Ok(Written::Stored(write.api.put(write.tx, kind, to_stored(kind, object))))
}
