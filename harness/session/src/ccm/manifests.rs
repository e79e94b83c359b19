//! The CCM's manifests as data: documents, the workload among them, placeholders. Pure functions.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;

/// The manifests do not describe a CCM that can be deployed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ManifestError {
    /// There is no workload.
    #[error(
        "no CCM workload in the manifests: expected a Deployment, DaemonSet, StatefulSet or Pod, found {found}; name the right files under 'manifests' of the profile"
    )]
    NoWorkload {
        /// Kinds found.
        found: String,
    },
    /// More than one candidate.
    #[error("several workloads in the manifests ({found}); name the CCM under 'workload' of the profile")]
    Ambiguous {
        /// Candidates.
        found: String,
    },
    /// The same workload several times.
    #[error(
        "the manifests contain {what} {times} times; remove all but one, as each is applied over the one before"
    )]
    Repeated {
        /// Kind, namespace and name.
        what: String,
        /// How many times.
        times: usize,
    },
    /// The profile names a workload that does not exist.
    #[error("the manifests contain no workload {wanted}, only {found}")]
    Absent {
        /// The name in the profile.
        wanted: String,
        /// Candidates.
        found: String,
    },
    /// A document without kind, apiVersion or name.
    #[error("document {index} of the manifests has no {missing}: not a Kubernetes object")]
    NotAnObject {
        /// Position, from 1.
        index: usize,
        /// The missing field.
        missing: &'static str,
    },
    /// A container named by the profile is not in the workload.
    #[error("workload {workload} has no container {wanted}; it has {found}")]
    NoContainer {
        /// The workload.
        workload: String,
        /// The name in the profile.
        wanted: String,
        /// Containers there.
        found: String,
    },
}

/// An object's kind, namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct ObjectKey {
    /// Kind.
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{}/{}", self.kind, self.name)
        } else {
            write!(f, "{}/{} in {}", self.kind, self.name, self.namespace)
        }
    }
}

/// The profile's settings for the workload; empty fields are determined from the manifests.
#[derive(Clone, Debug, Default)]
pub struct WorkloadHint {
    /// Namespace.
    pub namespace: Option<String>,
    /// Name.
    pub name: Option<String>,
    /// Container within the Pod.
    pub container: Option<String>,
}

/// Parsed manifests with the CCM's workload found.
#[derive(Clone, Debug)]
pub struct Manifests {
    /// Every object, Lists unfolded, in the order of the files.
    pub documents: Vec<Value>,
    /// Position of the workload.
    pub workload: usize,
    /// Position of the CCM's container in the Pod.
    pub container: usize,
}

const WORKLOADS: [&str; 4] = ["Deployment", "DaemonSet", "StatefulSet", "Pod"];

impl Manifests {
    /// Unfolds Lists, drops empty documents, finds the workload and its container.
    ///
    /// # Errors
    /// A document is not a Kubernetes object, or the workload is missing or ambiguous.
    pub fn new(documents: Vec<Value>, hint: &WorkloadHint) -> Result<Manifests, ManifestError> {
        let mut flat = Vec::new();
        for document in documents {
            unfold(document, &mut flat);
        }
        Manifests::check(&flat)?;
        let workload = find_workload(&flat, hint)?;
        let container = find_container(&flat[workload], hint)?;
        Ok(Manifests { documents: flat, workload, container })
    }

    /// Whether all documents are Kubernetes objects, including those in Lists.
    ///
    /// # Errors
    /// The position of the first one that is not.
    pub fn check(documents: &[Value]) -> Result<(), ManifestError> {
        let mut flat = Vec::new();
        documents.iter().for_each(|document| unfold(document.clone(), &mut flat));
        for (index, document) in flat.iter().enumerate() {
            let missing = |missing| ManifestError::NotAnObject { index: index + 1, missing };
            document["apiVersion"].as_str().ok_or(missing("apiVersion"))?;
            document["kind"].as_str().ok_or(missing("kind"))?;
            document["metadata"]["name"].as_str().ok_or(missing("metadata.name"))?;
        }
        Ok(())
    }

    /// The image of the CCM's container, as the manifests write it.
    pub fn image(&self) -> Option<&str> {
        let workload = &self.documents[self.workload];
        let spec =
            if workload["kind"] == "Pod" { &workload["spec"] } else { &workload["spec"]["template"]["spec"] };
        spec["containers"][self.container]["image"].as_str()
    }

    /// The workload's key.
    pub fn workload_key(&self) -> ObjectKey {
        key_of(&self.documents[self.workload])
    }

    /// Whether they run more than one Pod of it; a DaemonSet does if there are machines for them.
    pub fn ask_for_several(&self) -> bool {
        let workload = &self.documents[self.workload];
        match workload["kind"].as_str() {
            Some("Pod") => false,
            Some("DaemonSet") => true,
            _ => workload["spec"]["replicas"].as_u64().unwrap_or(1) > 1,
        }
    }
}

fn unfold(document: Value, into: &mut Vec<Value>) {
    match document {
        Value::Null => {}
        Value::Object(mut map)
            if map.get("items").is_some_and(Value::is_array)
                && map.get("kind").and_then(Value::as_str).is_some_and(|k| k.ends_with("List")) =>
        {
            if let Some(Value::Array(items)) = map.remove("items") {
                items.into_iter().for_each(|item| unfold(item, into));
            }
        }
        other => into.push(other),
    }
}

/// An object's kind, namespace and name.
pub fn key_of(document: &Value) -> ObjectKey {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    ObjectKey {
        kind: text(&document["kind"]),
        namespace: text(&document["metadata"]["namespace"]),
        name: text(&document["metadata"]["name"]),
    }
}

fn find_workload(documents: &[Value], hint: &WorkloadHint) -> Result<usize, ManifestError> {
    let candidates: Vec<usize> = (0..documents.len())
        .filter(|i| documents[*i]["kind"].as_str().is_some_and(|kind| WORKLOADS.contains(&kind)))
        .collect();
    let names = |list: &[usize]| {
        let names: Vec<String> = list.iter().map(|i| key_of(&documents[*i]).to_string()).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    if candidates.is_empty() {
        let mut kinds: Vec<&str> = documents.iter().filter_map(|d| d["kind"].as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let found = if kinds.is_empty() { "no object at all".to_owned() } else { kinds.join(", ") };
        return Err(ManifestError::NoWorkload { found });
    }
    let fits = |i: &&usize| {
        let key = key_of(&documents[**i]);
        hint.name.as_ref().is_none_or(|name| *name == key.name)
            && hint.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
    };
    let fitting: Vec<usize> = candidates.iter().filter(fits).copied().collect();
    match fitting.as_slice() {
        [one] => Ok(*one),
        [] => Err(ManifestError::Absent {
            wanted: [hint.namespace.as_deref(), hint.name.as_deref()]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join("/"),
            found: names(&candidates),
        }),
        [first, others @ ..]
            if others.iter().all(|i| key_of(&documents[*i]) == key_of(&documents[*first])) =>
        {
            let what = key_of(&documents[*first]).to_string();
            Err(ManifestError::Repeated { what, times: fitting.len() })
        }
        several => Err(ManifestError::Ambiguous { found: names(several) }),
    }
}

fn find_container(workload: &Value, hint: &WorkloadHint) -> Result<usize, ManifestError> {
    let containers = pod_spec(workload)["containers"].as_array().cloned().unwrap_or_default();
    let names: Vec<String> =
        containers.iter().map(|c| c["name"].as_str().unwrap_or("unnamed").to_owned()).collect();
    let wanted = hint.container.clone();
    let position = match &wanted {
        None if !names.is_empty() => Some(0),
        None => None,
        Some(wanted) => names.iter().position(|name| name == wanted),
    };
    position.ok_or_else(|| ManifestError::NoContainer {
        workload: key_of(workload).to_string(),
        wanted: wanted.unwrap_or_else(|| "at all".to_owned()),
        found: if names.is_empty() { "none".to_owned() } else { names.join(", ") },
    })
}

/// The Pod spec of a workload document.
pub fn pod_spec(workload: &Value) -> &Value {
    if workload["kind"] == "Pod" { &workload["spec"] } else { &workload["spec"]["template"]["spec"] }
}

/// The Pod spec of a workload document, mutable.
pub(super) fn pod_spec_mut(workload: &mut Value) -> &mut Value {
    if workload["kind"] == "Pod" { &mut workload["spec"] } else { &mut workload["spec"]["template"]["spec"] }
}

/// The array in a field, created if there is none.
pub(super) fn array_at<'a>(value: &'a mut Value, field: &str) -> &'a mut Vec<Value> {
    if !value[field].is_array() {
        value[field] = json!([]);
    }
    value[field].as_array_mut().expect("made an array above")
}

/// Replaces `${NAME}` in every string scalar. Unknown names stay unchanged: they may belong to a script.
pub fn substitute(value: &mut Value, table: &BTreeMap<String, String>) {
    match value {
        Value::String(text) => {
            for (name, replacement) in table {
                let placeholder = format!("${{{name}}}");
                if text.contains(&placeholder) {
                    *text = text.replace(&placeholder, replacement);
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|item| substitute(item, table)),
        Value::Object(map) => map.values_mut().for_each(|item| substitute(item, table)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether any string scalar contains `${NAME}`.
pub fn mentions(value: &Value, name: &str) -> bool {
    match value {
        Value::String(text) => text.contains(&format!("${{{name}}}")),
        Value::Array(list) => list.iter().any(|item| mentions(item, name)),
        Value::Object(map) => map.values().any(|item| mentions(item, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// SHA-256 over the documents, as hexadecimal digits. Computed before tokens are filled in, so it is reproducible.
pub fn fingerprint(documents: &[Value]) -> String {
    let mut hash = Sha256::new();
    for document in documents {
        hash.update(document.to_string().as_bytes());
        hash.update(b"\n");
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(name: &str) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "kube-system"},
               "spec": {"template": {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}}})
    }

    #[test]
    fn one_pod_is_not_several() {
        let asks = |kind: &str, replicas: Value| {
            let mut workload = deployment("ccm");
            (workload["kind"], workload["spec"]["replicas"]) = (json!(kind), replicas);
            let documents = vec![workload];
            Manifests { documents, workload: 0, container: 0 }.ask_for_several()
        };
        assert!(
            asks("Deployment", json!(2)) && asks("StatefulSet", json!(3)) && asks("DaemonSet", json!(null))
        );
        assert!(
            !asks("Deployment", json!(1)) && !asks("Deployment", json!(null)) && !asks("Pod", json!(null))
        );
    }

    #[test]
    fn finds_the_workload_inside_lists_and_says_what_is_wrong() {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [deployment("ccm"), null]});
        let hint = WorkloadHint { container: Some("b".into()), ..WorkloadHint::default() };
        let found = Manifests::new(vec![Value::Null, list], &hint).expect("one workload");
        assert_eq!(
            (found.workload_key().to_string().as_str(), found.container),
            ("Deployment/ccm in kube-system", 1)
        );

        let none = Manifests::new(
            vec![json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})],
            &hint,
        );
        assert_eq!(none.expect_err("no workload"), ManifestError::NoWorkload { found: "Secret".into() });
        let two = Manifests::new(vec![deployment("x"), deployment("y")], &WorkloadHint::default());
        assert!(matches!(two, Err(ManifestError::Ambiguous { .. })));
        let nameless = Manifests::new(vec![json!({"apiVersion": "v1", "kind": "Secret"})], &hint);
        assert_eq!(
            nameless.expect_err("no name"),
            ManifestError::NotAnObject { index: 1, missing: "metadata.name" }
        );
    }

    #[test]
    fn substitutes_known_names_only() {
        let table = BTreeMap::from([("IMAGE".to_owned(), "x:1".to_owned())]);
        let mut value = json!({"a": ["${IMAGE}", "${OTHER}", 3]});
        assert!(mentions(&value, "IMAGE") && !mentions(&value, "TOKEN"));
        substitute(&mut value, &table);
        assert_eq!(value, json!({"a": ["x:1", "${OTHER}", 3]}));
    }
}
