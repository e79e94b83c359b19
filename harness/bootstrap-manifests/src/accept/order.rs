//! The order of documents: kubectl creates the objects of a file one after another, and an object is refused if what it
//! needs at its creation comes further down.

use super::answer::{Answer, Refusal};
use crate::manifest::{Node, Object, Objects};
use crate::workload::{WorkloadKind, spec_path};

/// Namespaces that every cluster has.
const BUILT_IN: &[&str] = &["default", "kube-system", "kube-public", "kube-node-lease"];

/// Refuses objects that come too early in their file.
pub(super) fn check(objects: &Objects, answer: &mut Answer) {
    for (index, object) in objects.all.iter().enumerate() {
        let refusal = behind_the_end(objects, index, object)
            .or_else(|| without_namespace(objects, index, object))
            .or_else(|| bare_pod(objects, index, object));
        answer.refusals.extend(refusal);
    }
}

/// An object after a document that is not an object (cli-runtime, `StreamVisitor.Visit`).
fn behind_the_end(objects: &Objects, index: usize, object: &Object) -> Option<Refusal> {
    let (end, place) = objects.ends.get(&object.source)?;
    (object.document > *end).then(|| Refusal {
        object: index,
        place: place.clone(),
        what: format!(
            "kubectl reads the file only up to line {}, where a document without apiVersion and kind begins",
            place.line
        ),
        hint: String::from("remove that document, or give it apiVersion and kind"),
    })
}

/// The object of this kind and name, if it comes further down in the same file and nowhere before.
fn later<'o>(
    objects: &'o Objects,
    index: usize,
    (kind, namespace, name): (&str, Option<&str>, &str),
) -> Option<&'o Object> {
    let own = &objects.all[index];
    let same = |object: &Object| {
        object.kind == kind
            && object.name == name
            && namespace.is_none_or(|namespace| object.namespace == namespace)
    };
    if objects.all[..index].iter().any(same) {
        return None;
    }
    objects.all[index + 1..].iter().find(|object| same(object) && object.source == own.source)
}

fn without_namespace(objects: &Objects, index: usize, object: &Object) -> Option<Refusal> {
    let written = object.node.at(&["metadata", "namespace"])?;
    if BUILT_IN.contains(&object.namespace.as_str()) || cluster_wide(&object.kind) {
        return None;
    }
    let namespace = later(objects, index, ("Namespace", None, &object.namespace))?;
    Some(Refusal {
        object: index,
        place: object.place(written),
        what: format!(
            "Namespace/{} does not exist yet: it comes further down, in document {}",
            object.namespace, namespace.document
        ),
        hint: String::from("move the Namespace to the beginning of the file, or apply the file twice"),
    })
}

/// Kinds of Kubernetes without a namespace; a namespace in their metadata is dropped.
pub(super) fn cluster_wide(kind: &str) -> bool {
    kind.starts_with("Cluster")
        || matches!(
            kind,
            "Namespace"
                | "Node"
                | "PersistentVolume"
                | "PriorityClass"
                | "RuntimeClass"
                | "StorageClass"
                | "CSIDriver"
                | "IngressClass"
                | "CustomResourceDefinition"
                | "APIService"
                | "ValidatingWebhookConfiguration"
                | "MutatingWebhookConfiguration"
                | "ValidatingAdmissionPolicy"
                | "ValidatingAdmissionPolicyBinding"
                | "MutatingAdmissionPolicy"
                | "MutatingAdmissionPolicyBinding"
        )
}

/// No controller repeats the creation of a bare Pod, so its account and classes must exist before it.
fn bare_pod(objects: &Objects, index: usize, object: &Object) -> Option<Refusal> {
    let kind = WorkloadKind::parse(&object.api_version, &object.kind)?;
    let spec = object.node.at(spec_path(kind)).filter(|_| kind == WorkloadKind::Pod)?;
    let needs = [
        ("serviceAccountName", "ServiceAccount"),
        ("serviceAccount", "ServiceAccount"),
        ("priorityClassName", "PriorityClass"),
        ("runtimeClassName", "RuntimeClass"),
    ];
    needs.iter().find_map(|(field, kind)| {
        let node = spec.get(field)?;
        let name = node.text().filter(|name| !name.is_empty())?;
        let namespace = (*kind == "ServiceAccount").then_some(object.namespace.as_str());
        let needed = later(objects, index, (kind, namespace, name))?;
        Some(refuse(index, object, node, format!("{kind}/{name}"), needed.document))
    })
}

fn refuse(index: usize, object: &Object, node: &Node, needed: String, document: usize) -> Refusal {
    Refusal {
        object: index,
        place: object.place(node),
        what: format!("{needed} does not exist yet: it comes further down, in document {document}"),
        hint: format!("move {needed} above the Pod: no controller creates the Pod again"),
    }
}
