//! The effect of a deletion on an object: removal at once, after a grace period, or when its finalizers are gone.
//!
//! Follows `k8s.io/apiserver/pkg/registry/rest/delete.go` and `registry/generic/registry/store.go`.

use std::sync::Arc;

use embedded_objects::cause::Cause;
use embedded_objects::kinds::{self, Kind};
use embedded_objects::status::{self, Status};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::http::body;
use crate::http::call::{Call, check_dry_run};
use crate::write::Write;
use embedded_state::store::{Key, Record};
use embedded_state::{collection_of, from_stored, is_definition, set_condition, to_stored};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer that keeps a definition until its objects are gone.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The options of a deletion.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DeleteOptions {
    /// Seconds until the object may be removed.
    pub grace_period_seconds: Option<i64>,
    /// Which object is meant.
    pub preconditions: Option<Preconditions>,
    /// What happens to the objects that it owns.
    pub propagation_policy: Option<String>,
    /// The same in its older form.
    pub orphan_dependents: Option<bool>,
    /// Whether this is a dry run.
    pub dry_run: Option<Vec<String>>,
}

/// Conditions that the object has to meet for the deletion.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Preconditions {
    /// Its unique id.
    pub uid: Option<String>,
    /// Its version.
    pub resource_version: Option<String>,
}

impl DeleteOptions {
    /// Reads the options from the body, or, without a body, from the parameters.
    pub(super) fn read(call: &Call) -> Result<Self, Status> {
        let mut options = if call.body.is_empty() {
            Self {
                grace_period_seconds: call.query.number("gracePeriodSeconds").map_err(status::bad_request)?,
                propagation_policy: call.query.text("propagationPolicy").map(str::to_owned),
                orphan_dependents: call.query.flag("orphanDependents"),
                dry_run: Some(call.query.all("dryRun").map(str::to_owned).collect()),
                preconditions: None,
            }
        } else {
            let given = body::options(&call.body, call.content_type(), "DeleteOptions")?;
            serde_json::from_value(given).map_err(|why| status::bad_request(why.to_string()))?
        };
        // A negative period means the minimum.
        options.grace_period_seconds =
            options.grace_period_seconds.map(|seconds| if seconds < 0 { 1 } else { seconds });
        options.check()?;
        Ok(options)
    }

    fn check(&self) -> Result<(), Status> {
        let policies = ["Background", "Foreground", "Orphan"];
        let policy = self.propagation_policy.as_deref();
        let cause = match policy {
            Some(_) if self.orphan_dependents.is_some() => Cause::invalid(
                "propagationPolicy",
                policy.unwrap_or_default(),
                "orphanDependents and deletionPropagation cannot be both set",
            ),
            Some(policy) if !policies.contains(&policy) => Cause::not_supported(
                "propagationPolicy",
                policy,
                &["Foreground", "Background", "Orphan", "nil"],
            ),
            _ => return Ok(()),
        };
        Err(status::invalid_of("meta.k8s.io", "DeleteOptions", "", &[cause]))
    }

    /// Whether this is a dry run.
    pub(super) fn is_dry_run(&self) -> Result<bool, Status> {
        check_dry_run(self.dry_run.as_deref().unwrap_or_default(), "DeleteOptions")
    }

    /// Replaces the expected version, if there is one, by this one: the deletion itself has written the
    /// object in between.
    pub(super) fn expect_version(&mut self, revision: u64) {
        if let Some(preconditions) = &mut self.preconditions
            && preconditions.resource_version.is_some()
        {
            preconditions.resource_version = Some(revision.to_string());
        }
    }

    /// The finalizers of an object after this deletion has begun.
    fn finalizers(&self, kind: &Kind, object: &Value) -> Vec<String> {
        let old = finalizers(object);
        let has = |name: &str| old.iter().any(|one| one == name);
        let (orphan, foreground) = match (self.orphan_dependents, self.propagation_policy.as_deref()) {
            (Some(orphan), _) => (orphan, false),
            (None, Some("Orphan")) => (true, false),
            (None, Some("Foreground")) => (false, true),
            (None, Some(_)) => (false, false),
            (None, None) if has(ORPHAN) || has(FOREGROUND) => (has(ORPHAN), !has(ORPHAN)),
            // Without a policy, the Pods of a Job stay, as with the first clients.
            (None, None) => (kind.is("batch", "Job") || kind.is("", "ReplicationController"), false),
        };
        let mut new: Vec<String> =
            old.iter().filter(|one| !matches!(one.as_str(), ORPHAN | FOREGROUND)).cloned().collect();
        new.extend(orphan.then(|| ORPHAN.to_owned()));
        new.extend(foreground.then(|| FOREGROUND.to_owned()));
        new
    }
}

fn finalizers(object: &Value) -> Vec<String> {
    let list = object["metadata"]["finalizers"].as_array();
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn grace(object: &Value) -> Option<i64> {
    object["metadata"]["deletionGracePeriodSeconds"].as_i64()
}

/// The result of a deletion.
pub(super) enum Deleted {
    /// The object is gone; this was its last state.
    Gone(Value),
    /// The object stays for now, in this state.
    Stays(Value),
}

/// Whether an update from `old` to `new` removes the object, because its deletion waited only for the finalizers.
pub(super) fn ends_with(kind: &Kind, old: &Value, new: &Value) -> bool {
    let waits = |object: &Value| object["spec"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
    !old["metadata"]["deletionTimestamp"].is_null()
        && finalizers(new).is_empty()
        && matches!(grace(old), None | Some(0))
        && !(kind.is("", "Namespace") && waits(new))
}

/// Deletes an object, or begins to.
///
/// # Errors
///
/// 409 if it is not the expected object.
pub(super) fn delete_object(
    write: &Write<'_>,
    kind: &'static Kind,
    record: &Arc<Record>,
    options: &DeleteOptions,
) -> Result<Deleted, Status> {
    let mut object = from_stored(kind, record.value());
    check_preconditions(kind, record, options)?;
    crate::admission::delete(write, kind, &object)?;
    if kind.is("", "Namespace") {
        if object["metadata"]["deletionTimestamp"].is_null() {
            object["metadata"]["deletionTimestamp"] = json!(write.clock.seconds);
            object["status"]["phase"] = json!("Terminating");
            let after = options.finalizers(kind, &object);
            set_finalizers(&mut object, after);
            return Ok(stays(write, kind, object));
        }
        if object["spec"]["finalizers"].as_array().is_some_and(|list| !list.is_empty()) {
            return Ok(Deleted::Stays(object));
        }
    }
    let defines = is_definition(kind);
    if defines && object["metadata"]["deletionTimestamp"].is_null() {
        let mut kept = finalizers(&object);
        if !kept.iter().any(|one| one == CLEANUP) {
            kept.push(CLEANUP.to_owned());
        }
        set_finalizers(&mut object, kept);
        let pending = (
            "True",
            "InstanceDeletionPending",
            "CustomResourceDefinition marked for deletion; CustomResource deletion will occur as soon as possible",
        );
        set_condition(&mut object, "Terminating", pending, &write.clock.seconds);
    }
    let graceful = if kind.is("", "Pod") {
        match begin_grace(write, &mut object, options) {
            Grace::Pending => return Ok(Deleted::Stays(object)),
            Grace::Seconds(seconds) => Some(seconds),
            Grace::None => None,
        }
    } else {
        None
    };
    let before = finalizers(&object);
    let after = options.finalizers(kind, &object);
    if before != after {
        set_finalizers(&mut object, after.clone());
    }
    if !after.is_empty() && graceful.is_none() {
        mark_deleting(write, &mut object);
        if object == from_stored(kind, record.value()) {
            return Ok(Deleted::Stays(object));
        }
        let stays = stays(write, kind, object);
        if defines && !write.dry_run {
            sweep(write, kind, record.key().name())?;
        }
        return Ok(stays);
    }
    if !after.is_empty() || graceful.is_some_and(|seconds| seconds > 0) {
        return Ok(stays(write, kind, object));
    }
    if write.dry_run {
        return Ok(Deleted::Gone(object));
    }
    write.api.remove(write.tx, kind, to_stored(kind, object.clone()));
    after_removal(write, kind);
    Ok(Deleted::Gone(object))
}

/// Deletes the objects of a definition that is being deleted; the definition is removed with the last of them.
fn sweep(write: &Write<'_>, kind: &'static Kind, definition: &str) -> Result<(), Status> {
    if let Some(defined) = write.api.definitions.stored_kind(definition) {
        for record in write.tx.snapshot(collection_of(defined)).iter(None, None) {
            delete_object(write, defined, record, &DeleteOptions::default())?;
        }
    }
    finish_definition(write, kind, definition);
    Ok(())
}

/// Removes a definition that was waiting for the removed object.
pub(super) fn after_removal(write: &Write<'_>, kind: &'static Kind) {
    if kind.custom.is_some()
        && write.api.definitions.is_terminating(&kind.collection)
        && let Some(definitions) = kinds::find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    {
        finish_definition(write, definitions, &kind.collection);
    }
}

/// Removes the finalizer of a definition without objects; if it has no other finalizers, the definition is removed.
fn finish_definition(write: &Write<'_>, kind: &'static Kind, name: &str) {
    let left = write.api.definitions.stored_kind(name);
    if left.is_some_and(|kind| write.tx.snapshot(collection_of(kind)).iter(None, None).next().is_some()) {
        return;
    }
    let Some(record) = write.tx.get(collection_of(kind), &Key::new("", name)) else { return };
    let mut object = from_stored(kind, record.value());
    let mut kept = finalizers(&object);
    kept.retain(|one| one != CLEANUP);
    let last = kept.is_empty();
    set_finalizers(&mut object, kept);
    let done = ("False", "InstanceDeletionCompleted", "removed all instances");
    set_condition(&mut object, "Terminating", done, &write.clock.seconds);
    if last {
        write.api.remove(write.tx, kind, object);
    } else {
        write.api.put(write.tx, kind, object);
    }
}

fn stays(write: &Write<'_>, kind: &'static Kind, object: Value) -> Deleted {
    if write.dry_run {
        return Deleted::Stays(object);
    }
    let record = write.api.put(write.tx, kind, to_stored(kind, object));
    Deleted::Stays(from_stored(kind, record.value()))
}

fn set_finalizers(object: &mut Value, finalizers: Vec<String>) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        if finalizers.is_empty() {
            metadata.remove("finalizers");
        } else {
            metadata.insert("finalizers".into(), finalizers.into());
        }
    }
}

fn raise_generation(object: &mut Value) {
    if let Some(generation) = object["metadata"]["generation"].as_i64().filter(|generation| *generation > 0) {
        object["metadata"]["generation"] = json!(generation + 1);
    }
}

fn mark_deleting(write: &Write<'_>, object: &mut Value) {
    if object["metadata"]["deletionTimestamp"].is_null() {
        raise_generation(object);
        object["metadata"]["deletionTimestamp"] = json!(write.clock.seconds);
    }
    object["metadata"]["deletionGracePeriodSeconds"] = json!(0);
}

enum Grace {
    /// The object has no grace period.
    None,
    /// The object is already being deleted, and this request does not make it faster.
    Pending,
    /// The object has this many seconds from now; zero means at once.
    Seconds(i64),
}

/// The grace period of a pod: the requested one, otherwise its own; none if no process of it runs.
fn begin_grace(write: &Write<'_>, pod: &mut Value, options: &DeleteOptions) -> Grace {
    if let Some(deleted) = pod["metadata"]["deletionTimestamp"].as_str().map(str::to_owned) {
        let pending = match grace(pod) {
            None | Some(0) => return Grace::None,
            Some(pending) => pending,
        };
        let Some(asked) = options.grace_period_seconds.filter(|asked| *asked < pending) else {
            return Grace::Pending;
        };
        let (at, seconds) = shortened(write, &deleted, pending, asked);
        pod["metadata"]["deletionTimestamp"] = json!(at);
        pod["metadata"]["deletionGracePeriodSeconds"] = json!(seconds);
        return Grace::Seconds(seconds);
    }
    let own = pod["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(0);
    let mut seconds = options.grace_period_seconds.unwrap_or(if own < 0 { 1 } else { own });
    let unscheduled = pod["spec"]["nodeName"].as_str().unwrap_or_default().is_empty();
    if unscheduled || matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded")) {
        seconds = 0;
    }
    pod["metadata"]["deletionTimestamp"] = json!(write.clock.seconds_later(seconds));
    pod["metadata"]["deletionGracePeriodSeconds"] = json!(seconds);
    raise_generation(pod);
    Grace::Seconds(seconds)
}

/// The end of a shortened grace period: counted from its beginning, but not in the past.
fn shortened(write: &Write<'_>, end: &str, pending: i64, asked: i64) -> (String, i64) {
    let moved = end
        .parse::<jiff::Timestamp>()
        .ok()
        .and_then(|end| end.checked_add(jiff::SignedDuration::from_secs(asked - pending)).ok())
        .unwrap_or(write.clock.at);
    if moved >= write.clock.at {
        return (embedded_state::Clock::at(moved).seconds, asked);
    }
    (write.clock.seconds.clone(), if asked == 0 { 0 } else { 1 })
}

/// Checks that an object is the expected one.
///
/// # Errors
///
/// 409 if it is not.
pub(super) fn check_preconditions(
    kind: &Kind,
    record: &Record,
    options: &DeleteOptions,
) -> Result<(), Status> {
    let Some(preconditions) = &options.preconditions else { return Ok(()) };
    let object = record.value();
    let (name, uid) = (record.key().name(), object["metadata"]["uid"].as_str().unwrap_or_default());
    let conflict = |what: &str, said: &str, is: &str, perhaps: &str| {
        let why = format!(
            "the {what} in the precondition ({said}) does not match the {what} in record ({is}). The object might have been {perhaps}"
        );
        Err(status::conflict_on(kind.group, kind.kind, name, &why))
    };
    if let Some(said) = preconditions.uid.as_deref().filter(|said| *said != uid) {
        return conflict("UID", said, uid, "deleted and then recreated");
    }
    let version = record.revision().to_string();
    if let Some(said) = preconditions.resource_version.as_deref().filter(|said| *said != version) {
        return conflict("ResourceVersion", said, &version, "modified");
    }
    Ok(())
}
