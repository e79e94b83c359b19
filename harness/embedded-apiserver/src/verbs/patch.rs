//! PATCH with its four types.

use embedded_objects::cause::Cause;
use embedded_objects::kinds::Kind;
use embedded_objects::patch::{self, Applier};
use embedded_objects::status::{self, Status};
use embedded_semantics::lifecycle;
use serde_json::Value;

use super::create::{create_object, warnings_of};
use super::update::{change, change_by};
use crate::http::body;
use crate::http::call::Call;
use crate::http::reply::{Outcome, Reply};
use crate::write::Write;
use embedded_state::store::Key;
use embedded_state::{collection_of, from_stored};

/// The content types for patches of custom resources, as the rejection of other types lists them. Lists of
/// custom resources have no keys to merge by.
const ACCEPTED_CUSTOM: [&str; 4] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
    "application/apply-patch+cbor",
];

/// Computes the whole object from the old one and the text of a patch.
type Change = fn(&Kind, &Value, &str) -> Result<Value, Status>;

/// Answers a PATCH of an object or one of its subresources.
pub(super) fn patch(call: &Call, kind: &'static Kind, sub: Option<&str>) -> Outcome {
    call.form()?;
    let media_type = call.content_type().split(';').next().unwrap_or_default().trim();
    let dry_run = call.dry_run("PatchOptions")?;
    let (patch_form, change_of): (patch::Form, Change) = match media_type {
        "application/json-patch+json" => (patch::Form::Json, |_, old, text| patch::json(old, text)),
        "application/merge-patch+json" => (patch::Form::Merge, |_, old, text| patch::merge(old, text)),
        "application/strategic-merge-patch+json" if kind.custom.is_none() => {
            (patch::Form::Strategic, patch::strategic)
        }
        "application/apply-patch+yaml" => return apply(call, kind, sub, dry_run),
        _ if kind.custom.is_some() => return Err(status::unsupported_media_type(&ACCEPTED_CUSTOM)),
        // A kind that is not custom has a router in front of it.
        _ => return Err(status::unsupported_patch()),
    };
    if call.query.get("force").is_some() {
        let cause = Cause::forbidden("force", "may not be specified for non-apply patch");
        return Err(status::invalid_of("meta.k8s.io", "PatchOptions", "", &[cause]));
    }
    let text = std::str::from_utf8(&call.body).map_err(|why| status::bad_request(why.to_string()))?;
    let tx = call.api.store.begin();
    let manager = call.manager();
    let write = Write::of(call, &tx, dry_run, &manager);
    let old = tx
        .get(collection_of(kind), &Key::new(call.namespace_of(kind), call.name()))
        .ok_or_else(|| status::not_found(kind, call.name()))?;
    let new = change_of(kind, &from_stored(kind, old.value()), text)?;
    let mut warnings = patch::fit(kind, patch_form, text, &new, call.field_validation("PatchOptions")?)?;
    check_identity(&new, call.name())?;
    let written = change(&write, kind, sub, &old, new)?;
    warnings.extend(warnings_of(kind, sub, Some(&old), &written));
    let mut reply = Reply::written(kind, written);
    reply.warnings = warnings;
    Ok(reply)
}

/// Answers a server-side apply: the applied fields belong to the manager, and a missing object is created.
fn apply(call: &Call, kind: &'static Kind, sub: Option<&str>, dry_run: bool) -> Outcome {
    let manager = call.query.text("fieldManager").unwrap_or_default();
    if manager.is_empty() {
        let cause = Cause::required("fieldManager", "is required for apply patch");
        return Err(status::invalid_of("meta.k8s.io", "PatchOptions", "", &[cause]));
    }
    let mode = call.field_validation("PatchOptions")?;
    let mut applied = body::applied(&call.body, mode)?;
    lifecycle::place(&mut applied.object, call.namespace_of(kind))?;
    let force = call.query.flag("force") == Some(true);
    let applier = Applier { manager, force, sub, time: &call.clock.seconds };
    let tx = call.api.store.begin();
    let write = Write::of(call, &tx, dry_run, "");
    let live = tx.get(collection_of(kind), &Key::new(call.namespace_of(kind), call.name()));
    let mut warnings = applied.warnings;
    let (written, code) = match &live {
        Some(old) => {
            let whole = from_stored(kind, old.value());
            let mut new = patch::apply(kind, Some(&whole), &applied.object, applier)?;
            check_identity(&new, call.name())?;
            let managed = new["metadata"]["managedFields"].clone();
            // The version in an apply is a condition; without one it applies to the current version.
            if new["metadata"]["resourceVersion"].is_null() {
                new["metadata"]["resourceVersion"] = whole["metadata"]["resourceVersion"].clone();
            }
            let note = |object: &mut Value, _: &Value| object["metadata"]["managedFields"] = managed;
            (change_by(&write, kind, sub, old, new, note)?, 200)
        }
        None if sub.is_some() => return Err(status::not_found(kind, call.name())),
        None => {
            let new = patch::apply(kind, None, &applied.object, applier)?;
            check_identity(&new, call.name())?;
            warnings.extend(lifecycle::warnings_of_sent(kind, &new));
            (create_object(&write, kind, call.namespace_of(kind), new)?, 201)
        }
    };
    warnings.extend(warnings_of(kind, sub, live.as_deref(), &written));
    let mut reply = Reply::written(kind, written).with_code(code);
    reply.warnings = warnings;
    Ok(reply)
}

/// Checks that a patch does not turn the object into another one.
pub(super) fn check_identity(new: &Value, name: &str) -> Result<(), Status> {
    let said = new["metadata"]["name"].as_str().unwrap_or_default();
    if said != name {
        return Err(status::bad_request(format!(
            "the name of the object ({said}) does not match the name on the URL ({name})"
        )));
    }
    Ok(())
}
