//! Whether the objects that a Pod template refers to exist: in the manifests, built into Kubernetes, or assumed.

use crate::manifest::{Node, Object, Objects};
use crate::workload::{Condition, Ref, Workload};
use std::collections::BTreeSet;

/// An object that exists according to the user although the manifests do not contain it: `KIND/NAME` or
/// `KIND/NAMESPACE/NAME`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assumed {
    entries: BTreeSet<(String, Option<String>, String)>,
}

impl Assumed {
    /// Parses an option's value.
    ///
    /// # Errors
    /// The value does not have this form; the error shows the form.
    pub fn parse(texts: &[String]) -> Result<Assumed, String> {
        let mut entries = BTreeSet::new();
        for text in texts {
            let parts: Vec<&str> = text.split('/').collect();
            if parts.iter().any(|part| part.is_empty()) {
                return Err(format!("invalid object '{text}': expected KIND/NAME, e.g. Secret/cloud-token"));
            }
            match parts[..] {
                [kind, name] => entries.insert((kind.to_lowercase(), None, name.to_owned())),
                [kind, namespace, name] => {
                    entries.insert((kind.to_lowercase(), Some(namespace.to_owned()), name.to_owned()))
                }
                _ => {
                    return Err(format!(
                        "invalid object '{text}': expected KIND/NAME, e.g. Secret/cloud-token"
                    ));
                }
            };
        }
        Ok(Assumed { entries })
    }

    /// Whether the user says that some object of this kind exists.
    pub fn any(&self, kind: &str) -> bool {
        self.entries.iter().any(|(own, ..)| *own == kind.to_lowercase())
    }

    /// Whether the user says that the object exists.
    pub fn holds(&self, kind: &str, namespace: &str, name: &str) -> bool {
        self.entries.iter().any(|(k, n, own)| {
            *k == kind.to_lowercase() && own == name && n.as_deref().is_none_or(|n| n == namespace)
        })
    }
}

/// The references of a workload to objects that do not exist.
pub fn missing(objects: &Objects, assumed: &Assumed, workload: &Workload) -> Vec<Ref> {
    let mut all: Vec<Ref> = Vec::new();
    let absent =
        |reference: &&Ref| !exists(objects, assumed, reference) && made_by(objects, reference).is_none();
    for reference in workload.refs.iter().filter(absent) {
        let whole = Ref { key: None, ..reference.clone() };
        // If the object does not exist, its keys need not be reported.
        let shown = if exists(objects, assumed, &whole) { reference.clone() } else { whole };
        let known = |own: &Ref| (own.kind, &own.name, &own.key) == (shown.kind, &shown.name, &shown.key);
        if !all.iter().any(known) {
            all.push(shown);
        }
    }
    all
}

/// The custom resource of the same name and namespace whose controller may create a Secret or a ConfigMap.
fn made_by<'o>(objects: &'o Objects, reference: &Ref) -> Option<&'o Object> {
    if !matches!(reference.kind, "Secret" | "ConfigMap")
        || objects.find(reference.kind, &reference.namespace, &reference.name).is_some()
    {
        return None;
    }
    objects.all.iter().find(|object| {
        let named = object.name == reference.name
            || [&["spec", "secretName"][..], &["spec", "target", "name"]]
                .iter()
                .any(|path| object.node.at(path).and_then(Node::text) == Some(reference.name.as_str()));
        object.is_custom() && object.namespace == reference.namespace && named
    })
}

/// Conditions on Secrets and ConfigMaps that the controllers of custom resources create.
pub fn made_by_others(objects: &Objects, assumed: &Assumed, workload: &Workload) -> Vec<Condition> {
    let absent = workload.refs.iter().filter(|reference| !exists(objects, assumed, reference));
    let made = absent.filter_map(|reference| {
        let object = made_by(objects, reference)?;
        let group = object.api_version.split_once('/').map_or("", |(group, _)| group);
        let words = format!(
            "the controller of {}.{group}/{} creates {}",
            object.kind,
            object.name,
            reference.title()
        );
        Some(Condition { words, place: reference.place.clone() })
    });
    let mut all: Vec<Condition> = Vec::new();
    for condition in made {
        if !all.iter().any(|known| known.words == condition.words) {
            all.push(condition);
        }
    }
    all
}

fn exists(objects: &Objects, assumed: &Assumed, reference: &Ref) -> bool {
    let (kind, name) = (reference.kind, reference.name.as_str());
    if assumed.holds(kind, &reference.namespace, name) || built_in(reference) || name.contains("${") {
        return true;
    }
    let here = |object: &&Object| {
        object.name == name && (reference.namespace.is_empty() || object.namespace == reference.namespace)
    };
    let found = objects.of_kind(kind).find(here);
    match (&reference.key, found) {
        (Some(key), Some(object)) => holds_key(&object.node, key, reference.of_variable),
        (None, found) => found.is_some(),
        (Some(_), None) => false,
    }
}

/// Whether an object has the key, for a variable or for a file. Variables are not read from `binaryData`.
fn holds_key(object: &Node, key: &str, of_variable: bool) -> bool {
    ["data", "stringData", "binaryData"]
        .iter()
        .filter(|field| !of_variable || **field != "binaryData")
        .any(|field| object.get(field).is_some_and(|map| map.get(key).is_some()))
}

/// Objects that a kubeadm cluster has from the start.
fn built_in(reference: &Ref) -> bool {
    const NAMESPACES: &[&str] = &["default", "kube-system", "kube-public", "kube-node-lease"];
    const CLASSES: &[&str] = &["system-cluster-critical", "system-node-critical"];
    const MAPS: &[&str] = &[
        "coredns",
        "extension-apiserver-authentication",
        "kube-proxy",
        "kubeadm-config",
        "kubelet-config",
        "kube-apiserver-legacy-service-account-token-tracking",
    ];
    let system = reference.namespace == "kube-system";
    match reference.kind {
        "Namespace" => NAMESPACES.contains(&reference.name.as_str()),
        "PriorityClass" => CLASSES.contains(&reference.name.as_str()),
        "ServiceAccount" => {
            reference.name == "default"
                || (system && ["coredns", "kube-proxy"].contains(&reference.name.as_str()))
        }
        // The root-ca-cert-publisher creates it in every namespace.
        "ConfigMap" => {
            reference.name == "kube-root-ca.crt" || (system && MAPS.contains(&reference.name.as_str()))
        }
        _ => false,
    }
}
