//! Finds the places of edits in the objects and applies them to the text.

use super::rbac::{account, rights_name};
use super::text::{Patch, append, apply, insert, remove_lines, set};
use crate::finding::Edit;
use bootstrap_manifests::manifest::{Node, Objects};
use bootstrap_manifests::workload::{Effect, fixed_image, workloads};

impl Edit {
    /// The changed texts by source; empty if nothing is left to do, `None` if the edit cannot be made in place.
    pub(crate) fn apply(&self, objects: &Objects) -> Option<Vec<(usize, String)>> {
        let object = objects.all.get(self.object())?;
        let text = &objects.sources[object.source].text;
        let spec = |path: &[String]| path.iter().try_fold(&object.node, |node, key| node.get(key));
        let patches = match self {
            Edit::Set { path, key, value, .. } => {
                let map = spec(path)?;
                if map.get(key).and_then(Node::scalar).as_deref() == Some(value) {
                    return Some(Vec::new());
                }
                vec![set(text, map, key, value)?]
            }
            Edit::Insert { path, container, keys, value, .. } => {
                let spec = spec(path)?;
                let map = match container {
                    Some(container) => containers(spec).nth(*container)?,
                    None => spec,
                };
                vec![insert(text, map, keys, value)?]
            }
            Edit::Tolerate { path, key, effect, .. } => tolerate(text, spec(path)?, key, *effect)?,
            Edit::DropHostIp { path, .. } => drop_host_ip(text, spec(path)?)?,
            Edit::DropNodeRequirement { path, label, .. } => drop_requirement(text, spec(path)?, label)?,
            Edit::Image { path, container, .. } => {
                let container = containers(spec(path)?).nth(*container)?;
                let image = container.text_at("image")?;
                if bootstrap_manifests::workload::image_fault(image).is_none() {
                    return Some(Vec::new());
                }
                vec![set(text, container, "image", &fixed_image(image)?)?]
            }
            Edit::Argument { path, flag, value, .. } => argument(text, spec(path)?, flag, value)?,
            Edit::ProbePath { path, kind, .. } => {
                let containers = spec(path)?.get("containers")?.items().iter();
                let gets: Vec<&Node> =
                    containers.filter_map(|container| container.at(&[kind.as_str(), "httpGet"])).collect();
                gets.iter().map(|get| set(text, get, "path", "/healthz")).collect::<Option<Vec<_>>>()?
            }
            Edit::FailOpen { webhook, .. } => {
                let webhook = object.node.get("webhooks")?.items().get(*webhook)?;
                vec![set(text, webhook, "failurePolicy", "Ignore")?]
            }
            Edit::Add { text: document, .. } => {
                let text = append_documents(objects, text, document)?;
                return Some(vec![(object.source, text)]);
            }
            Edit::Grant { path, text: rights, .. } => {
                return grant(objects, self.object(), spec(path)?, rights);
            }
        };
        if patches.is_empty() {
            return Some(Vec::new());
        }
        Some(vec![(object.source, apply(text, patches)?)])
    }
}

/// All containers of a Pod, those that initialise it first.
fn containers(spec: &Node) -> impl Iterator<Item = &Node> {
    ["initContainers", "containers"]
        .into_iter()
        .flat_map(|key| spec.get(key).map(Node::items).unwrap_or_default())
}

/// Completes the toleration that was intended, or adds one.
fn tolerate(text: &str, spec: &Node, key: &str, effect: Effect) -> Option<Vec<Patch>> {
    let items = spec.get("tolerations").map(Node::items).unwrap_or_default();
    let right_effect =
        |item: &&Node| item.text_at("effect").is_none_or(|own| Effect::parse(own) == Some(effect));
    let of_taint = || items.iter().filter(|item| item.text_at("key") == Some(key)).filter(right_effect);
    let exists = |item: &&Node| item.text_at("operator") == Some("Exists");
    if of_taint().filter(exists).any(|item| item.get("tolerationSeconds").is_none()) {
        return Some(Vec::new());
    }
    if let Some(limit) = of_taint().find(exists).and_then(|item| item.entry("tolerationSeconds")) {
        return Some(vec![remove_entry(text, limit.key_bytes.start, limit.value.bytes.end)?]);
    }
    if let Some(item) = of_taint().find(|item| !exists(item) && item.get("value").is_none()) {
        return Some(vec![set(text, item, "operator", "Exists")?]);
    }
    let effect = effect.to_string();
    let item = [("key", key), ("operator", "Exists"), ("effect", effect.as_str())];
    Some(vec![append(text, spec, "tolerations", &item)?])
}

/// Removes an entry of a map; `None` if its line also begins an item of a list.
fn remove_entry(text: &str, from: usize, to: usize) -> Option<Patch> {
    let line = text.get(..from)?.rfind('\n').map_or(0, |at| at + 1);
    if text.get(line..from)?.contains('-') {
        return None;
    }
    remove_lines(text, from, to)
}

fn drop_host_ip(text: &str, spec: &Node) -> Option<Vec<Patch>> {
    let mut patches = Vec::new();
    for key in ["initContainers", "containers"] {
        for container in spec.get(key).map(Node::items).unwrap_or_default() {
            let Some(entry) = container.entry("env") else { continue };
            let reads = |item: &&Node| {
                let path = item.at(&["valueFrom", "fieldRef"]).and_then(|field| field.text_at("fieldPath"));
                path.is_some_and(|path| path.starts_with("status.hostIP"))
            };
            let reading: Vec<&Node> = entry.value.items().iter().filter(reads).collect();
            if reading.is_empty() || entry.value.borrowed {
                continue;
            }
            if reading.len() == entry.value.items().len() {
                patches.push(remove_lines(text, entry.key_bytes.start, entry.value.bytes.end)?);
                continue;
            }
            for item in reading {
                patches.push(remove_lines(text, item.bytes.start, item.bytes.end)?);
            }
        }
    }
    Some(patches)
}

fn drop_requirement(text: &str, spec: &Node, label: &str) -> Option<Vec<Patch>> {
    let mut patches = Vec::new();
    if let Some(selector) = spec.entry("nodeSelector")
        && let Some(entry) = selector.value.entry(label)
    {
        let (from, to) = if selector.value.entries().len() == 1 {
            (selector.key_bytes.start, selector.value.bytes.end)
        } else {
            (entry.key_bytes.start, entry.value.bytes.end.max(entry.key_bytes.end))
        };
        patches.push(remove_lines(text, from, to)?);
    }
    let path =
        ["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"];
    for term in spec.at(&path).map(Node::items).unwrap_or_default() {
        let expressions = term.get("matchExpressions").map(Node::items).unwrap_or_default();
        let own: Vec<&Node> = expressions.iter().filter(|e| e.text_at("key") == Some(label)).collect();
        if !own.is_empty() && own.len() == expressions.len() {
            // The term would match nothing; only the author can decide which part of the affinity to remove.
            return None;
        }
        for expression in own {
            patches.push(remove_lines(text, expression.bytes.start, expression.bytes.end)?);
        }
    }
    (!patches.is_empty()).then_some(patches)
}

fn argument(text: &str, spec: &Node, flag: &str, value: &str) -> Option<Vec<Patch>> {
    let mut patches = Vec::new();
    for container in spec.get("containers")?.items() {
        for list in ["command", "args"] {
            for item in container.get(list).map(Node::items).unwrap_or_default() {
                let Some(word) = item.text() else { continue };
                let wanted = word.trim_start_matches('-').split('=').next() == Some(flag);
                if wanted && word.contains('=') && !item.borrowed {
                    let first = text.get(item.bytes.clone())?.chars().next();
                    let quote =
                        first.filter(|sign| ['"', '\''].contains(sign)).map(String::from).unwrap_or_default();
                    patches.push((item.bytes.clone(), format!("{quote}--{flag}={value}{quote}")));
                }
            }
        }
    }
    (!patches.is_empty()).then_some(patches)
}

/// Appends permissions to the end of the object's file, without those that are already there.
fn grant(objects: &Objects, at: usize, spec: &Node, rights: &str) -> Option<Vec<(usize, String)>> {
    let object = objects.all.get(at)?;
    let source = &objects.sources[object.source];
    let workload = workloads(objects, &[]).into_iter().find(|workload| workload.object == Some(at))?;
    let mut text = source.text.to_string();
    if workload.service_account == "default" {
        let patch = set(&text, spec, "serviceAccountName", account(&workload))?;
        text = apply(&text, vec![patch])?;
    }
    let usual = rights_name(account(&workload));
    let is_taken =
        |object: &bootstrap_manifests::manifest::Object| object.kind.contains("Role") && object.name == usual;
    // A role of that name that grants too little stays as its author wrote it.
    let rights = match objects.all.iter().any(is_taken) {
        true => rights.replace(&usual, &format!("{usual}:added")),
        false => rights.to_owned(),
    };
    Some(vec![(object.source, append_documents(objects, &text, &rights)?)])
}

/// Appends documents to a text, without those that the set already contains; `None` for JSON, which has only one
/// document.
fn append_documents(objects: &Objects, text: &str, documents: &str) -> Option<String> {
    if text.trim_start().starts_with('{') {
        return None;
    }
    let mut text = text.to_owned();
    for document in documents.split("---\n") {
        let read = Objects::read(vec![bootstrap_manifests::manifest::Source::new("rights", document)]);
        let new = read.all.first()?;
        let known = |own: &bootstrap_manifests::manifest::Object| {
            own.kind == new.kind && own.name == new.name && own.namespace == new.namespace
        };
        if objects.all.iter().any(known) {
            // A role of that name that grants too little must be reviewed by its author.
            if new.kind.ends_with("Role") {
                return None;
            }
            continue;
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str("---\n");
        text.push_str(document);
    }
    Some(text)
}
