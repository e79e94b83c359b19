//! Creation of objects.

use embedded_semantics::kinds::Kind;
use embedded_semantics::lifecycle;
use embedded_semantics::status::{self, Status};
use serde_json::Value;

use super::namespaces;
use crate::admission;
use crate::api::{Api, Clock, Written, shelf_of, to_stored};
use crate::auth::user::User;
use crate::http::call::Call;
use crate::http::reply::{Outcome, Reply};
use crate::managers;
use crate::store::{Key, Transaction};

/// Answers a POST to a collection.
pub(super) fn create(call: &Call, kind: &'static Kind) -> Outcome {
    call.form()?;
    let dry_run = call.dry_run("CreateOptions")?;
    let parsed = call.object(kind, "CreateOptions")?;
    let tx = call.api.store.begin();
    let manager = call.manager();
    let write = Write::of(call, &tx, dry_run, &manager);
    let written = create_object(&write, kind, call.namespace_of(kind), parsed.object)?;
    let mut warnings = parsed.warnings;
    warnings.extend(told(kind, None, &written));
    let mut reply = Reply::written(kind, written).with_code(201);
    reply.warnings = warnings;
    Ok(reply)
}

/// What the server warns of in an object that it has accepted.
pub(super) fn told(kind: &'static Kind, sub: Option<&str>, written: &Written) -> Vec<String> {
    match written {
        Written::Stored(record) => lifecycle::warnings(kind, sub, &record.value()),
        Written::Pretended(object) => lifecycle::warnings(kind, sub, object),
    }
}

/// What every write needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write<'a> {
    /// The server's state.
    pub api: &'a Api,
    /// The right to write.
    pub tx: &'a Transaction<'a>,
    /// Who writes.
    pub user: &'a User,
    /// When.
    pub clock: &'a Clock,
    /// Whether nothing shall be kept.
    pub dry_run: bool,
    /// Whose fields the written ones become.
    pub manager: &'a str,
}

impl<'a> Write<'a> {
    /// The write that a call asks for.
    pub(crate) fn of(call: &'a Call, tx: &'a Transaction<'a>, dry_run: bool, manager: &'a str) -> Self {
        Self { api: &call.api, tx, user: &call.user, clock: &call.clock, dry_run, manager }
    }
}

/// Admits, prepares and stores an object.
///
/// # Errors
///
/// What admission, the kind's rules or the store say against it.
pub(crate) fn create_object(
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
    lifecycle::place(&mut object, namespace)?;
    admission::create(write, kind, &mut object)?;
    let mut object = api.prepare(kind, object, clock, write.dry_run)?;
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let checked = admission::validate(write, kind, None, &object).and_then(|()| {
        match tx.get(shelf_of(kind), &Key::new(namespace, &name)) {
            Some(_) if !object["metadata"]["generateName"].is_null() && !named(&object, &name) => {
                Err(status::generated_name_taken(kind, &name))
            }
            Some(_) => Err(status::already_exists(kind, &name)),
            None => Ok(()),
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
    let record = api.put(tx, kind, to_stored(kind, object));
    if kind.kind == "Namespace" {
        namespaces::furnish(write, &name)?;
    }
    Ok(Written::Stored(record))
}

/// Whether the name was given rather than generated: generated ones begin with their prefix and are longer.
fn named(object: &Value, name: &str) -> bool {
    let prefix = object["metadata"]["generateName"].as_str().unwrap_or_default();
    prefix.is_empty() || !name.starts_with(prefix.get(..prefix.len().min(58)).unwrap_or(prefix))
}
