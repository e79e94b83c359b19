//! Turns documents into Kubernetes objects: opens lists, and reports what is not an object.

use super::node::{Node, Value};
use super::parse::{documents, shorten};
use super::placeholders::{name_in, placeholders};
use super::source::{Place, Problem, Severity, Source};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The namespace of an object that does not name one.
pub(super) const DEFAULT_NAMESPACE: &str = "default";

/// A Kubernetes object as it was written.
#[derive(Clone, Debug)]
pub struct Object {
    /// `apiVersion`.
    pub api_version: String,
    /// `kind`.
    pub kind: String,
    /// `metadata.namespace`, or `default`.
    pub namespace: String,
    /// `metadata.name`; empty if there is none.
    pub name: String,
    /// The whole object.
    pub node: Node,
    /// The index of its source.
    pub source: usize,
    /// The number of its document in that source, counted from 1.
    pub document: usize,
    /// The name of that source.
    pub file: Arc<str>,
}

impl Object {
    /// Returns a place in this object's file.
    pub fn place(&self, node: &Node) -> Place {
        Place { file: self.file.clone(), line: node.line, column: node.column }
    }

    /// Whether its kind belongs to an API group outside of Kubernetes.
    pub fn is_custom(&self) -> bool {
        custom(&self.api_version)
    }

    /// Whether it is another version of the same object.
    pub fn is_same(&self, other: &Object) -> bool {
        self.kind == other.kind && self.name == other.name && self.namespace == other.namespace
    }

    /// Why Kubernetes itself has no such kind, if that is so: it is misspelt, or a custom resource.
    fn unknown_kind(&self) -> Option<String> {
        let group = self.api_version.split_once('/').map_or("", |(group, _)| group);
        let own = match group {
            "" => CORE,
            "apps" => &["Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "ControllerRevision"],
            "batch" => &["Job", "CronJob"],
            "autoscaling" | "policy" | "extensions" => return None,
            other if other.ends_with(".k8s.io") => return None,
            other => {
                let kind = format!("{}.{other}", self.kind);
                return Some(format!("{} is a custom resource", object_name(&kind, &self.name)));
            }
        };
        let known = own.contains(&self.kind.as_str());
        (!known).then(|| format!("Kubernetes has no kind {} in {}", self.kind, self.api_version))
    }

    /// The place of the object's name, or of its beginning.
    pub fn at(&self) -> Place {
        let named = self.node.at(&["metadata", "name"]);
        self.place(named.unwrap_or(&self.node))
    }

    /// The place of a key below a map, or of the map.
    pub fn place_of(&self, map: &Node, key: &str) -> Place {
        match map.entry(key) {
            Some(entry) => Place { file: self.file.clone(), line: entry.line, column: entry.column },
            None => self.place(map),
        }
    }
}

/// Kinds of the core group.
const CORE: &[&str] = &[
    "ConfigMap",
    "Endpoints",
    "Event",
    "LimitRange",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodTemplate",
    "ReplicationController",
    "ResourceQuota",
    "Secret",
    "Service",
    "ServiceAccount",
];

/// Whether an API version belongs to a group outside of Kubernetes. Such groups may have kinds of the same names.
fn custom(api_version: &str) -> bool {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let own = ["", "apps", "batch", "autoscaling", "policy", "extensions"];
    !own.contains(&group) && !group.ends_with(".k8s.io")
}

/// Kind and name, as people write them.
pub fn object_name(kind: &str, name: &str) -> String {
    format!("{kind}/{name}")
}

/// A set of manifests.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    /// The texts.
    pub sources: Vec<Source>,
    /// The objects, in the order of the texts.
    pub all: Vec<Object>,
    /// The parts that could not be read.
    pub problems: Vec<Problem>,
    /// The first document of each source that is not an object, by its number, and its place: kubectl reads no further.
    pub ends: BTreeMap<usize, (usize, Place)>,
    /// Objects by kind.
    by_kind: HashMap<String, Vec<usize>>,
}

impl Objects {
    /// Reads texts.
    pub fn read(sources: Vec<Source>) -> Objects {
        let mut objects = Objects { sources, ..Objects::default() };
        for index in 0..objects.sources.len() {
            let source = objects.sources[index].clone();
            let (found, problems) = documents(&source);
            let empty = found.is_empty() && problems.is_empty();
            objects.problems.extend(problems);
            for (node, document) in found.into_iter().zip(1..) {
                objects.add(node, (index, document), &source, 0);
            }
            if empty {
                objects.problems.push(Problem {
                    place: Place { file: source.name.clone(), line: 1, column: 1 },
                    severity: Severity::Ignored,
                    what: String::from("contains no document"),
                    hint: String::from("remove it, or render the manifests into it"),
                });
            }
        }
        objects
    }

    fn add(&mut self, node: Node, at: (usize, usize), source: &Source, depth: usize) {
        let place = Place { file: source.name.clone(), line: node.line, column: node.column };
        let mut say = |severity, what: String, hint: &str| {
            self.problems.push(Problem { place: place.clone(), severity, what, hint: hint.to_owned() });
        };
        if !matches!(node.value, Value::Map(_)) {
            if depth == 0 && !node.is_null() {
                self.ends.entry(at.0).or_insert((at.1, place.clone()));
            }
            let what = format!("is not a Kubernetes object but {}", node.kind());
            return say(Severity::Ignored, what, "remove it from the manifests");
        }
        let (Some(api_version), Some(kind)) = (node.text_at("apiVersion"), node.text_at("kind")) else {
            if depth == 0 {
                self.ends.entry(at.0).or_insert((at.1, place.clone()));
            }
            let what = String::from("is not a Kubernetes object: apiVersion or kind is missing");
            return say(Severity::Ignored, what, "remove it from the manifests");
        };
        let (api_version, kind) = (api_version.to_owned(), kind.to_owned());
        if kind.ends_with("List") && node.get("items").is_some() {
            // `ExtractList` finds no items in it, and kubectl reads nothing of the outer list.
            if depth > 0 {
                let what = String::from("is a list inside a list, at which kubectl stops to read the file");
                return say(Severity::Unreadable, what, "write each object as a separate document");
            }
            // Items without a kind have that of the list.
            let own = kind.strip_suffix("List").filter(|own| !own.is_empty());
            for item in node.get("items").map(Node::items).unwrap_or_default() {
                let item = match own {
                    Some(own) => item.with_defaults(&[("apiVersion", &api_version), ("kind", own)]),
                    None => item.clone(),
                };
                self.add(item, at, source, depth + 1);
            }
            return;
        }
        // Custom resources may contain templates for other tools, such as those of Cluster API.
        if let Some(template) = unrendered(&kind, &node).filter(|_| !custom(&api_version)) {
            let place = Place { file: source.name.clone(), line: template.line, column: template.column };
            let text = shorten(template.text().unwrap_or_default());
            self.problems.push(Problem {
                place,
                severity: Severity::Unreadable,
                what: format!("the template is not rendered: {text}"),
                hint: String::from("render first: 'helm template ... | ccm-conformance bootstrap check -'"),
            });
            return;
        }
        let text = |path: &[&str]| node.at(path).and_then(Node::scalar);
        let name = text(&["metadata", "name"]).unwrap_or_default();
        if name.is_empty() && text(&["metadata", "generateName"]).is_none() {
            return say(Severity::Ignored, format!("the {kind} has no name"), "give it metadata.name");
        }
        for value in placeholders(&node).into_iter().filter(|_| !custom(&api_version)) {
            let name = name_in(value.text().unwrap_or_default());
            self.problems.push(Problem {
                place: Place { file: source.name.clone(), line: value.line, column: value.column },
                severity: Severity::Ignored,
                what: format!(
                    "the placeholder {name} is not filled in; it is read as if its value were right"
                ),
                hint: String::from("fill it in first: 'envsubst < FILE | ccm-conformance bootstrap check -'"),
            });
        }
        let namespace = text(&["metadata", "namespace"]).unwrap_or_else(|| String::from(DEFAULT_NAMESPACE));
        let file = source.name.clone();
        if !custom(&api_version) {
            self.by_kind.entry(kind.clone()).or_default().push(self.all.len());
        }
        let (source, document) = at;
        self.all.push(Object { api_version, kind, namespace, name, node, source, document, file });
    }

    /// What exists once the set is applied: without the refused objects, and of an object that comes several times only
    /// the last that is not refused. Numbers of objects stay the same.
    pub fn applied(&self, refused: &[usize]) -> Objects {
        let mut applied = self.clone();
        let is_there = |index: &usize| {
            let own = &self.all[*index];
            let later = (index + 1..self.all.len()).any(|later| {
                self.all[later].is_same(own) && !own.name.is_empty() && !refused.contains(&later)
            });
            !refused.contains(index) && !later
        };
        for indices in applied.by_kind.values_mut() {
            indices.retain(is_there);
        }
        applied
    }

    /// Objects of a kind of Kubernetes, with their numbers.
    pub fn numbered(&self, kind: &str) -> impl Iterator<Item = (usize, &Object)> {
        self.by_kind.get(kind).into_iter().flatten().map(|index| (*index, &self.all[*index]))
    }

    /// Objects of a kind of Kubernetes.
    pub fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Object> + use<'_> {
        self.by_kind.get(kind).into_iter().flatten().map(|index| &self.all[*index])
    }

    /// The definition, in this set, of an object's custom resource.
    pub fn definition_of(&self, object: &Object) -> Option<&Object> {
        let (group, version) = object.api_version.split_once('/')?;
        let served = |one: &Node| {
            one.text_at("name") == Some(version) && one.get("served").and_then(Node::bool) == Some(true)
        };
        self.of_kind("CustomResourceDefinition").find(|definition| {
            let at = |path: &[&str]| definition.node.at(path);
            at(&["spec", "group"]).and_then(Node::text) == Some(group)
                && at(&["spec", "names", "kind"]).and_then(Node::text) == Some(object.kind.as_str())
                && at(&["spec", "versions"]).map(Node::items).unwrap_or_default().iter().any(served)
        })
    }

    /// Why the kind of an object is unknown, if it is: it is misspelt, or a custom resource that the set does not define.
    pub fn unknown_kind(&self, object: &Object) -> Option<String> {
        object.unknown_kind().filter(|_| self.definition_of(object).is_none())
    }

    /// Adds an object at the end and returns its number.
    pub fn push(&mut self, object: Object) -> usize {
        let index = self.all.len();
        self.by_kind.entry(object.kind.clone()).or_default().push(index);
        self.all.push(object);
        index
    }

    /// Returns one object.
    pub fn find(&self, kind: &str, namespace: &str, name: &str) -> Option<&Object> {
        self.of_kind(kind).find(|object| object.namespace == namespace && object.name == name)
    }
}

/// The first string with a template action, except in objects that may contain templates as data.
fn unrendered<'n>(kind: &str, node: &'n Node) -> Option<&'n Node> {
    const DATA: &[&str] = &["ConfigMap", "Secret", "CustomResourceDefinition", "PrometheusRule"];
    if DATA.contains(&kind) {
        return None;
    }
    // Annotations are free text for other tools.
    let below = |entry: &'n super::node::Entry| (entry.key != "annotations").then_some(&entry.value);
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        match &node.value {
            Value::Text(text) if text.contains("{{") && text.contains("}}") => return Some(node),
            Value::List(items) => open.extend(items.iter().rev()),
            Value::Map(entries) => open.extend(entries.iter().rev().filter_map(below)),
            _ => {}
        }
    }
    None
}
