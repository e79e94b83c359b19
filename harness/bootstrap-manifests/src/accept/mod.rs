//! What the API server refuses in a set of manifests, by the rules of the embedded one: types of fields, names, values.
//!
//! Kinds that the embedded API server does not serve are checked only for what they share with other kinds: their
//! metadata and the Pods they create.

mod admission;
mod answer;
mod expressions;
mod form;
mod order;
mod orphans;
mod owners;
mod quotas;
mod rules;
mod twice;
mod versions;

use crate::dns;
use crate::manifest::{Node, Object, Objects};
use crate::workload::{WorkloadKind, template_path};
use embedded_objects::{kinds, schema};

pub use answer::{Answer, Refusal, UnknownField};
pub use orphans::orphan;

/// What is said of a version that newer clusters do not serve, before the version of Kubernetes.
pub const NO_LONGER_SERVED: &str = "is not served since Kubernetes";

/// The title of an object, such as `document 3, ConfigMap/name`.
pub fn title(object: &Object) -> String {
    let name = crate::manifest::object_name(&object.kind, &object.name);
    format!("document {} ({name})", object.document)
}

/// What the API server would answer if the set were applied.
pub fn answer(objects: &Objects) -> Answer {
    let mut answer = Answer::default();
    for (index, object) in objects.all.iter().enumerate() {
        one(objects, index, object, &mut answer);
    }
    order::check(objects, &mut answer);
    twice::check(objects, &mut answer);
    admission::check(objects, &mut answer);
    quotas::check(objects, &mut answer);
    answer
}

fn one(objects: &Objects, index: usize, object: &Object, answer: &mut Answer) {
    if objects.unknown_kind(object).is_some() || dns::is_patch(object) {
        return;
    }
    if let Some(right) = versions::instead_of(&object.api_version) {
        answer.refusals.push(Refusal {
            object: index,
            place: object.place_of(&object.node, "apiVersion"),
            what: format!("Kubernetes has no apiVersion {}", object.api_version),
            hint: format!("write apiVersion: {right}"),
        });
        return;
    }
    if let Some((version, served)) = no_longer_served(&object.api_version, &object.kind) {
        answer.refusals.push(Refusal {
            object: index,
            place: object.place_of(&object.node, "apiVersion"),
            what: format!("{} {NO_LONGER_SERVED} {version}", object.api_version),
            hint: format!("write apiVersion: {served}"),
        });
        return;
    }
    if is_off(&object.api_version, &object.kind) {
        answer.refusals.push(Refusal {
            object: index,
            place: object.place_of(&object.node, "apiVersion"),
            what: format!("{} is not served unless it is switched on (--runtime-config)", object.api_version),
            hint: String::from("write apiVersion: admissionregistration.k8s.io/v1"),
        });
        return;
    }
    let before = answer.refusals.len();
    let mut form = form::Form::new(index, object, answer);
    let own = kinds::by_kind(&object.api_version, &object.kind);
    match own.or_else(|| rules::defined(objects, object)) {
        Some(kind) if kind.stored() => {
            if let Some(ty) = kind.type_id() {
                form.walk(ty, &object.node, "");
            }
            // The rules about values assume that types are right.
            if answer.refusals.len() == before {
                rules::of_kind(index, object, kind, answer);
            }
            let workload = WorkloadKind::parse(&object.api_version, &object.kind);
            if let Some(kind) = workload.filter(|kind| *kind != WorkloadKind::Pod)
                && answer.refusals.len() == before
            {
                rules::of_pods(index, object, kind, answer);
                if kind == WorkloadKind::StatefulSet {
                    rules::of_service_name(index, object, answer);
                }
            }
        }
        _ => {
            metadata(&mut form, object);
            if let Some(kind) = WorkloadKind::parse(&object.api_version, &object.kind) {
                owners::walk(&mut form, kind, &object.node);
                template(&mut form, kind, &object.node);
                if answer.refusals.len() == before {
                    rules::of_template(index, object, kind, answer);
                    rules::of_pods(index, object, kind, answer);
                }
            }
        }
    }
}

/// Why the API server refuses the Pods of a workload, if it does.
pub(crate) fn refused_pods(index: usize, object: &Object, kind: WorkloadKind) -> Option<String> {
    let mut answer = Answer::default();
    rules::of_pods(index, object, kind, &mut answer);
    answer.refusals.into_iter().next().map(|refusal| refusal.what)
}

fn metadata(form: &mut form::Form<'_>, object: &Object) {
    if let (Some(ty), Some(node)) = (schema::find("meta/v1.ObjectMeta"), object.node.get("metadata")) {
        form.walk(ty, node, "metadata");
    }
}

fn template(form: &mut form::Form<'_>, kind: WorkloadKind, root: &Node) {
    let path = template_path(kind);
    if let (Some(ty), Some(node)) = (schema::find("core/v1.PodTemplateSpec"), root.at(path)) {
        form.walk(ty, node, &path.join("."));
    }
}

/// Whether a version of an admission policy is one that an API server does not serve by default, as all new betas.
fn is_off(api_version: &str, kind: &str) -> bool {
    let version = api_version.strip_prefix("admissionregistration.k8s.io/");
    version.is_some_and(|version| version != "v1") && kind.contains("AdmissionPolicy")
}

/// The version since which Kubernetes no longer serves an old version of a workload kind, and what it serves instead.
fn no_longer_served(api_version: &str, kind: &str) -> Option<(&'static str, &'static str)> {
    match (api_version, kind) {
        (
            "extensions/v1beta1" | "apps/v1beta1" | "apps/v1beta2",
            "Deployment" | "DaemonSet" | "ReplicaSet" | "StatefulSet",
        ) => Some(("1.16", "apps/v1")),
        ("batch/v1beta1" | "batch/v2alpha1", "CronJob") => Some(("1.25", "batch/v1")),
        ("rbac.authorization.k8s.io/v1beta1" | "rbac.authorization.k8s.io/v1alpha1", _) => {
            Some(("1.22", "rbac.authorization.k8s.io/v1"))
        }
        ("coordination.k8s.io/v1beta1", "Lease") => Some(("1.22", "coordination.k8s.io/v1")),
        ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition") => {
            Some(("1.22", "apiextensions.k8s.io/v1"))
        }
        ("scheduling.k8s.io/v1beta1" | "scheduling.k8s.io/v1alpha1", "PriorityClass") => {
            Some(("1.22", "scheduling.k8s.io/v1"))
        }
        ("storage.k8s.io/v1beta1", "StorageClass" | "CSIDriver" | "CSINode" | "VolumeAttachment") => {
            Some(("1.22", "storage.k8s.io/v1"))
        }
        ("networking.k8s.io/v1beta1", "Ingress" | "IngressClass") | ("extensions/v1beta1", "Ingress") => {
            Some(("1.22", "networking.k8s.io/v1"))
        }
        ("extensions/v1beta1", "NetworkPolicy") => Some(("1.16", "networking.k8s.io/v1")),
        ("node.k8s.io/v1beta1", "RuntimeClass") => Some(("1.25", "node.k8s.io/v1")),
        ("discovery.k8s.io/v1beta1", "EndpointSlice") => Some(("1.25", "discovery.k8s.io/v1")),
        ("policy/v1beta1", "PodDisruptionBudget") => Some(("1.25", "policy/v1")),
        (
            "admissionregistration.k8s.io/v1beta1",
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
        ) => Some(("1.22", "admissionregistration.k8s.io/v1")),
        _ => None,
    }
}
