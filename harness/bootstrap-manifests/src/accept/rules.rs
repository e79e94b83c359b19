//! The API server's rules about values, as implemented by the embedded one.

use super::answer::{Answer, Refusal};
use crate::manifest::{Node, Object, Objects};
use crate::workload::{Selector, WorkloadKind, labels, template_path};
use embedded_objects::kinds::{self, Kind};
use embedded_objects::rules::names;
use embedded_objects::status::Status;
use embedded_semantics::alloc::Allocator;
use embedded_semantics::lifecycle::{self, Context};
use serde_json::{Value, json};

/// Any time will do: no rule depends on it.
const NOW: (&str, &str) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000000Z");

/// Applies the rules of its kind to an object of a served kind.
pub(super) fn of_kind(index: usize, object: &Object, kind: &'static Kind, answer: &mut Answer) {
    let mut value = object.node.json();
    if kind.namespaced && value["metadata"]["namespace"].as_str().unwrap_or_default().is_empty() {
        value["metadata"]["namespace"] = json!(object.namespace);
    }
    if let Some(metadata) = value["metadata"].as_object_mut() {
        // kubectl leaves it out when it creates an object (cli-runtime, `Helper.CreateWithOptions`).
        metadata.remove("resourceVersion");
        // kubectl and the API server drop it (`EnsureObjectNamespaceMatchesRequestNamespace`).
        if !kind.namespaced {
            metadata.remove("namespace");
        }
    }
    if let Err(status) = created(kind, value) {
        causes(&status, &object.node, |field, what| {
            refuse(index, object, &object.node, (field, "", ""), what, answer);
        });
    }
}

/// Refuses the name of a Service that is not a label of DNS: it becomes the subdomain of the StatefulSet's Pods
/// (`ValidateStatefulSetSpec`).
pub(super) fn of_service_name(index: usize, object: &Object, answer: &mut Answer) {
    let Some(name) = object.node.at(&["spec", "serviceName"]).filter(|name| !name.is_placeholder()) else {
        return;
    };
    let text = name.text().unwrap_or_default();
    if let Some(fault) = names::label(text).first().filter(|_| !text.is_empty()) {
        answer.refusals.push(Refusal {
            object: index,
            place: object.place(name),
            what: format!("spec.serviceName: {text}: {fault}"),
            hint: match text.contains('.') {
                true => String::from("write the name of the Service without its namespace"),
                false => String::from("write the name of the Service as it is in its metadata"),
            },
        });
    }
}

/// Applies the rules for Pods to the Pods of a workload: some of them concern only Pods, and not their template.
pub(super) fn of_pods(index: usize, object: &Object, kind: WorkloadKind, answer: &mut Answer) {
    let path = template_path(kind);
    let (Some(pods), Some(template)) = (kinds::by_kind("v1", "Pod"), object.node.at(path)) else { return };
    let mut spec = template.get("spec").map(Node::json).unwrap_or_default();
    let of_template = |field: &str| template.at(&["metadata", field]).map(Node::json).unwrap_or_default();
    // The controller adds a volume for each claim.
    let claims = object.node.at(&["spec", "volumeClaimTemplates"]).map(Node::items).unwrap_or_default();
    let names = claims.iter().filter_map(|claim| claim.at(&["metadata", "name"])?.text());
    let volumes = names.map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}));
    let mut all = spec["volumes"].as_array().cloned().unwrap_or_default();
    all.extend(volumes);
    if spec.is_object() && !all.is_empty() {
        spec["volumes"] = Value::Array(all);
    }
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": spec, "metadata": {"name": "pod", "namespace":
        "default", "labels": of_template("labels"), "annotations": of_template("annotations"),
        "finalizers": of_template("finalizers")}});
    let prefix = path.join(".");
    if let Err(status) = created(pods, pod) {
        causes(&status, template, |field, what| {
            refuse(index, object, template, (field, &prefix, "."), what, answer);
        });
    }
}

/// Applies the rules that the embedded API server has no kind for: names, the template, the policy of Jobs.
pub(super) fn of_template(index: usize, object: &Object, kind: WorkloadKind, answer: &mut Answer) {
    name(index, object, answer);
    let path = template_path(kind);
    let Some(template) = object.node.at(path) else {
        let what = format!("{} is missing", path.join("."));
        let hint = "write the template of its Pods".to_owned();
        answer.refusals.push(Refusal { object: index, place: object.at(), what, hint });
        return;
    };
    let prefix = path.join(".");
    if kind == WorkloadKind::StatefulSet {
        let own = labels(template.at(&["metadata", "labels"]));
        let selector = Selector::read(object.node.at(&["spec", "selector"]));
        if !selector.is_some_and(|selector| selector.chooses(&own)) {
            answer.refusals.push(Refusal {
                object: index,
                place: object.place_of(object.node.get("spec").unwrap_or(&object.node), "selector"),
                what: String::from("`selector` does not match template `labels`"),
                hint: String::from("make selector and labels agree"),
            });
        }
    }
    let policy = template.at(&["spec", "restartPolicy"]).and_then(Node::text);
    let once = matches!(kind, WorkloadKind::Job | WorkloadKind::CronJob);
    if once && !matches!(policy, Some("OnFailure" | "Never")) {
        let spec = template.get("spec").unwrap_or(template);
        answer.refusals.push(Refusal {
            object: index,
            place: object.place_of(spec, "restartPolicy"),
            what: format!(
                "{prefix}.spec.restartPolicy: Unsupported value: \"{}\": supported values: \"OnFailure\", \"Never\"",
                policy.unwrap_or("Always")
            ),
            hint: String::from("write OnFailure"),
        });
    }
}

/// Names of workloads follow the same rules as those of all objects, so a ConfigMap with that name is tried.
fn name(index: usize, object: &Object, answer: &mut Answer) {
    let Some(plain) = kinds::by_kind("v1", "ConfigMap") else { return };
    let mut metadata = object.node.get("metadata").map(Node::json).unwrap_or_default();
    metadata["namespace"] = json!(object.namespace);
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.remove("resourceVersion");
    }
    let value = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    if let Err(status) = created(plain, value) {
        causes(&status, &object.node, |field, what| {
            refuse(index, object, &object.node, (field, "", ""), what, answer);
        });
    }
}

/// The kind of a custom resource that the manifests define; `None` if the definition itself is wrong, which is reported
/// for the definition.
pub(super) fn defined(objects: &Objects, object: &Object) -> Option<&'static Kind> {
    let own = objects.definition_of(object)?;
    let kind = kinds::by_kind(&own.api_version, &own.kind)?;
    let mut definition = created(kind, own.node.json()).ok()?;
    definition["status"]["acceptedNames"] = definition["spec"]["names"].clone();
    let served = kinds::defined(&definition, &mut kinds::Budget::default()).ok()?.served;
    served.into_iter().find(|kind| kind.api_version() == object.api_version)
}

fn created(kind: &'static Kind, value: Value) -> Result<Value, Status> {
    let Ok(mut allocator) = Allocator::new(&["10.96.0.0/16"]) else { return Ok(value) };
    let minor = crate::cluster::Version::DEFAULT.minor;
    let mut context = Context {
        now: NOW.0,
        now_micro: NOW.1,
        uid: "00000000-0000-0000-0000-000000000000",
        suffix: "bbbbb",
        allocator: &mut allocator,
        minor,
        dry_run: true,
    };
    lifecycle::create(kind, value, &mut context)
}

/// Each field error of a refusal; the whole text if there is none, unless it may be about a placeholder.
fn causes(status: &Status, root: &Node, mut tell: impl FnMut(&str, &str)) {
    let listed = status.details["causes"].as_array().map(Vec::as_slice).unwrap_or_default();
    if listed.is_empty() && !root.holds_placeholder() {
        tell("", &status.message);
    }
    for cause in listed {
        let text = |key: &str| cause[key].as_str().unwrap_or_default();
        tell(text("field"), text("message"));
    }
}

/// Records a refusal for the value concerned, unless that is a placeholder. A field that breaks several rules with the
/// same message is reported once.
fn refuse(
    index: usize,
    object: &Object,
    root: &Node,
    (field, prefix, dot): (&str, &str, &str),
    what: &str,
    answer: &mut Answer,
) {
    let node = root.nearest(field);
    // A volume with a placeholder cannot be checked, and then its mounts cannot either.
    let volumes = [&["spec", "volumes"][..], &["spec", "template", "spec", "volumes"]];
    let open = volumes.iter().any(|path| root.at(path).is_some_and(Node::holds_placeholder));
    if node.is_placeholder() || (open && field.contains("volumeMounts") && what.starts_with("Not found")) {
        return;
    }
    let what = if field.is_empty() { what.to_owned() } else { format!("{prefix}{dot}{field}: {what}") };
    let place = if std::ptr::eq(node, root) { object.at() } else { object.place(node) };
    if answer.refusals.iter().any(|known| known.object == index && known.what == what) {
        return;
    }
    let hint = String::from("'kubectl apply --dry-run=server' shows what a real cluster answers");
    answer.refusals.push(Refusal { object: index, place, what, hint });
}
