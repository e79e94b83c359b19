//! The metadata of every kind: what the server keeps, and what it rejects.
//!
//! Source: `k8s.io/apimachinery/pkg/api/validation/objectmeta.go`.

use serde_json::Value;

use embedded_objects::cause::{Cause, quoted};
use embedded_objects::kinds::{self, Kind, NameForm};
use embedded_objects::rules::names::{self, Faults};
use embedded_objects::status::{self, Status};
use embedded_objects::value::{Edit as _, PathAccess as _};

/// How many bytes all annotations of an object may have.
const ANNOTATIONS_LIMIT: usize = 256 << 10;
/// The longest name of a field manager, in bytes.
const MANAGER: usize = 128;
/// Groups whose kinds accept finalizers without a domain: their validation is not based on that of the core group.
const ANY_FINALIZERS: [&str; 6] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "policy",
];

/// Sets the namespace of the request in an object; an empty one means a kind without namespaces.
///
/// # Errors
/// The Status for an object with another namespace.
pub fn place(object: &mut Value, namespace: &str) -> Result<(), Status> {
    let own = object.text("metadata.namespace").to_owned();
    if namespace.is_empty() {
        object.clear("metadata.namespace");
    } else if own.is_empty() {
        object.put("metadata.namespace", namespace);
    } else if own != namespace {
        return Err(status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

/// The faults in a name of this kind; a prefix of a generated name may end with a dash.
pub(super) fn name_faults(kind: &Kind, name: &str, prefix: bool) -> Faults {
    let masked = if prefix { names::masked(name) } else { name.to_owned() };
    match kind.name_form {
        NameForm::Subdomain => names::subdomain(&masked),
        NameForm::Label => names::label(&masked),
        NameForm::PathSegment if prefix => names::path_segment_prefix(name),
        NameForm::PathSegment => names::path_segment(name),
    }
}

/// The causes for the metadata of an object that is created.
pub(super) fn created(kind: &Kind, object: &Value) -> Vec<Cause> {
    any(object, kind.namespaced, |name, prefix| name_faults(kind, name, prefix))
}

/// The causes for the metadata of any object.
pub(super) fn any(object: &Value, namespaced: bool, faults: impl Fn(&str, bool) -> Faults) -> Vec<Cause> {
    let mut causes = Vec::new();
    let generate = object.text("metadata.generateName");
    if !generate.is_empty() {
        for fault in faults(generate, true) {
            causes.push(Cause::invalid("metadata.generateName", generate, fault));
        }
    }
    let name = object.text("metadata.name");
    if name.is_empty() {
        causes.push(Cause::required("metadata.name", "name or generateName is required"));
    } else {
        for fault in faults(name, false) {
            causes.push(Cause::invalid("metadata.name", name, fault));
        }
    }
    let namespace = object.text("metadata.namespace");
    if namespaced && namespace.is_empty() {
        causes.push(Cause::required("metadata.namespace", ""));
    } else if namespaced {
        for fault in names::label(namespace) {
            causes.push(Cause::invalid("metadata.namespace", namespace, fault));
        }
    } else if !namespace.is_empty() {
        causes.push(Cause::forbidden("metadata.namespace", "not allowed on this type"));
    }
    let generation = object.int("metadata.generation");
    if generation < 0 {
        let why = "must be greater than or equal to 0";
        causes.push(Cause::invalid("metadata.generation", generation, why));
    }
    causes.extend(labels(object.at("metadata.labels"), "metadata.labels"));
    causes.extend(annotations(object.at("metadata.annotations"), "metadata.annotations"));
    causes.extend(owners(object));
    causes.extend(finalizers(object));
    causes.extend(own_finalizers(object));
    causes.extend(managed_fields(object));
    causes
}

/// The causes for a change of metadata.
pub(super) fn changed(old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if old.has("metadata.deletionTimestamp") {
        let known = old.list("metadata.finalizers");
        let mut extra: Vec<&str> = new
            .list("metadata.finalizers")
            .iter()
            .filter(|finalizer| !known.contains(finalizer))
            .filter_map(Value::as_str)
            .collect();
        extra.sort_unstable();
        extra.dedup();
        if !extra.is_empty() {
            let listed: Vec<String> = extra.iter().map(|finalizer| quoted(finalizer)).collect();
            causes.push(Cause::forbidden(
                "metadata.finalizers",
                format!(
                    "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                    listed.join(", ")
                ),
            ));
        }
    }
    if new.text("metadata.resourceVersion").is_empty() {
        causes.push(Cause::invalid("metadata.resourceVersion", "", "must be specified for an update"));
    }
    let generation = new.int("metadata.generation");
    if generation < old.int("metadata.generation") {
        causes.push(Cause::invalid("metadata.generation", generation, "must not be decremented"));
    }
    for text in ["name", "namespace", "uid"] {
        let path = format!("metadata.{text}");
        if old.text(&path) != new.text(&path) {
            let value = new.text(&path);
            causes.push(Cause::invalid(path.clone(), value, "field is immutable"));
        }
    }
    for field in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        causes.extend(immutable(old, new, &format!("metadata.{field}")));
    }
    causes.extend(labels(new.at("metadata.labels"), "metadata.labels"));
    causes.extend(annotations(new.at("metadata.annotations"), "metadata.annotations"));
    causes.extend(owners(new));
    causes.extend(own_finalizers(new));
    causes.extend(managed_fields(new));
    causes
}

/// The causes for the finalizers of an object, if its kind checks their domains.
fn own_finalizers(object: &Value) -> Vec<Cause> {
    let looks =
        kinds::of(object).is_some_and(|kind| kind.kind != "Event" && !ANY_FINALIZERS.contains(&kind.group));
    if !looks {
        return Vec::new();
    }
    finalizer_names(object.list("metadata.finalizers"), |at| format!("metadata.finalizers[{at}]"))
}

/// Checks that finalizers are built-in or have a domain (`k8s.io/kubernetes/pkg/apis/core/validation`,
/// `validateKubeFinalizerName`).
pub(super) fn finalizer_names(list: &[Value], field: impl Fn(usize) -> String) -> Vec<Cause> {
    const STANDARD: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];
    let why = "name is neither a standard finalizer name nor is it fully qualified";
    let named = list.iter().enumerate().filter_map(|(at, finalizer)| Some((at, finalizer.as_str()?)));
    let wrong = named.filter(|(_, name)| !name.contains('/') && !STANDARD.contains(name));
    wrong.map(|(at, name)| Cause::invalid(field(at), name, why)).collect()
}

/// The cause for a change of an immutable field.
pub(crate) fn immutable(old: &Value, new: &Value, path: &str) -> Option<Cause> {
    let (before, after) = (old.at(path), new.at(path));
    (before != after).then(|| Cause::invalid(path, after.clone(), "field is immutable"))
}

/// Keeps fields that no update may set: identity, creation and deletion.
pub(super) fn carry_over(old: &Value, new: &mut Value) {
    if new.text("metadata.uid").is_empty() {
        new.put("metadata.uid", old.text("metadata.uid"));
    }
    for field in ["creationTimestamp", "deletionTimestamp"] {
        let path = format!("metadata.{field}");
        if old.has(&path) {
            new.put(&path, old.at(&path).clone());
        }
    }
    let grace = "metadata.deletionGracePeriodSeconds";
    if old.has(grace) && !new.has(grace) {
        new.put(grace, old.at(grace).clone());
    }
    new.clear("metadata.selfLink");
}

/// The causes for labels at a path.
pub(crate) fn labels(labels: &Value, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (key, value) in labels.as_object().into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        causes.extend(names::qualified(key).iter().map(|fault| Cause::invalid(path, key.as_str(), fault)));
        causes.extend(names::label_value(value).iter().map(|fault| Cause::invalid(path, value, fault)));
    }
    causes
}

/// The causes for annotations at a path.
pub(crate) fn annotations(annotations: &Value, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut size = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        let faults = names::qualified(&key.to_lowercase());
        causes.extend(faults.iter().map(|fault| Cause::invalid(path, key.as_str(), fault)));
        size += key.len() + value.as_str().map(str::len).unwrap_or_default();
    }
    if size > ANNOTATIONS_LIMIT {
        causes.push(Cause::too_long(path, ANNOTATIONS_LIMIT));
    }
    causes
}

fn owners(object: &Value) -> Vec<Cause> {
    let path = "metadata.ownerReferences";
    let mut causes = Vec::new();
    let mut controller: Option<String> = None;
    let owners = object.list(path);
    for owner in owners {
        let api_version = owner.text("apiVersion");
        let version = api_version.rsplit('/').next().unwrap_or_default();
        if version.is_empty() {
            let field = format!("{path}.apiVersion");
            causes.push(Cause::invalid(field, api_version, "version must not be empty"));
        }
        for name in ["kind", "name", "uid"] {
            if owner.text(name).is_empty() {
                causes.push(Cause::invalid(format!("{path}.{name}"), "", "must not be empty"));
            }
        }
        if api_version == "v1" && owner.text("kind") == "Event" {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            causes.push(Cause::invalid(path, owner.clone(), why));
        }
        if owner.truth("controller") {
            let this = format!("{}/{}", owner.text("kind"), owner.text("name"));
            match &controller {
                None => controller = Some(this),
                Some(first) => causes.push(Cause::invalid(
                    path,
                    Value::Array(owners.to_vec()),
                    format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                    ),
                )),
            }
        }
    }
    causes
}

fn finalizers(object: &Value) -> Vec<Cause> {
    let path = "metadata.finalizers";
    let list = object.list(path);
    let mut causes = Vec::new();
    for finalizer in list.iter().filter_map(Value::as_str) {
        let faults = names::qualified(finalizer);
        causes.extend(faults.iter().map(|fault| Cause::invalid(path, finalizer, fault)));
    }
    let has = |name: &str| list.iter().any(|finalizer| finalizer == name);
    if has("orphan") && has("foregroundDeletion") {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        causes.push(Cause::invalid(path, Value::Array(list.to_vec()), why));
    }
    causes
}

/// The causes for managedFields. A write without usable managedFields keeps the existing ones, so only usable
/// ones are checked.
fn managed_fields(object: &Value) -> Vec<Cause> {
    let entries = object.list("metadata.managedFields");
    let usable = entries.iter().all(|entry| {
        matches!(entry.text("operation"), "Apply" | "Update")
            && !entry.text("apiVersion").is_empty()
            && entry.text("fieldsType") == "FieldsV1"
    });
    let long =
        entries.iter().enumerate().filter(|(_, entry)| usable && entry.text("manager").len() > MANAGER);
    let path = |at| format!("metadata.managedFields[{at}].manager");
    long.map(|(at, _)| Cause::too_long(path(at), MANAGER)).collect()
}
