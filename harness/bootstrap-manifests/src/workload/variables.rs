//! Environment variables that come from ConfigMaps or from the Pod itself, and `$(NAME)` in command lines, as the kubelet
//! replaces it.

use super::kind::spec_path;
use super::pods::Workload;
use crate::manifest::{Node, Object, Objects, Place};

/// Fills in the variables of a workload whose values are in the manifests, and replaces them in its command lines. A
/// variable without a known value stays as it is written.
pub(super) fn fill(objects: &Objects, workload: &mut Workload) {
    let Some(object) = workload.object.map(|index| &objects.all[index]) else { return };
    let Some(spec) = object.node.at(spec_path(workload.kind)) else { return };
    let nodes = ["initContainers", "containers"]
        .into_iter()
        .flat_map(|list| spec.get(list).map(Node::items).unwrap_or_default());
    for (container, node) in workload.containers.iter_mut().zip(nodes) {
        let variables = node.get("env").map(Node::items).unwrap_or_default();
        // One that is left out replaces none of `envFrom`.
        let is_set = |name: &str| {
            variables
                .iter()
                .any(|item| item.text_at("name") == Some(name) && !is_left_out(objects, object, item))
        };
        container.env_names.retain(|name| is_set(name));
        let mut all: Vec<(String, String, Place)> = Vec::new();
        // What a variable may use: those of `envFrom` come first, also where one in `env` replaces them later.
        let mut before: Vec<(String, String, Place)> = Vec::new();
        for item in node.get("envFrom").map(Node::items).unwrap_or_default() {
            let prefix = item.text_at("prefix").unwrap_or_default();
            let name = item.at(&["configMapRef", "name"]).and_then(Node::text);
            let map = name.and_then(|name| objects.find("ConfigMap", &object.namespace, name));
            for entry in map.and_then(|map| map.node.get("data")).map(Node::entries).unwrap_or_default() {
                let name = format!("{prefix}{}", entry.key);
                let stated = container.env_names.contains(&name);
                let Some(value) = entry.value.scalar() else { continue };
                before.push((name.clone(), value.clone(), object.place(item)));
                if !stated {
                    all.push((name, value, object.place(item)));
                }
            }
        }
        // The value of a variable may use those before it.
        for item in variables {
            let name = item.text_at("name").unwrap_or_default().to_owned();
            let written = item.get("value").and_then(Node::scalar).map(|value| expanded(&value, &before));
            let value =
                written.or_else(|| item.get("valueFrom").and_then(|from| value_of(objects, object, from)));
            if let Some(value) = value {
                before.push((name.clone(), value.clone(), object.place(item)));
                all.push((name, value, object.place(item)));
            }
        }
        container.env = all;
        for (argument, _) in &mut container.arguments {
            *argument = expanded(argument, &container.env);
        }
    }
}

/// Whether the kubelet leaves a variable out, as its ConfigMap does not have the key and need not have it.
fn is_left_out(objects: &Objects, object: &Object, variable: &Node) -> bool {
    let Some(key) = variable.at(&["valueFrom", "configMapKeyRef"]) else { return false };
    let map = key.text_at("name").and_then(|name| objects.find("ConfigMap", &object.namespace, name));
    let has = |map: &Object| key.text_at("key").is_some_and(|key| map.node.at(&["data", key]).is_some());
    key.get("optional").and_then(Node::bool) == Some(true) && map.is_some_and(|map| !has(map))
}

/// The value of `valueFrom`, if the manifests show it.
pub(super) fn value_of(objects: &Objects, object: &Object, from: &Node) -> Option<String> {
    if let Some(key) = from.get("configMapKeyRef") {
        let map = objects.find("ConfigMap", &object.namespace, key.text_at("name")?)?;
        return map.node.at(&["data", key.text_at("key")?])?.scalar();
    }
    match from.at(&["fieldRef", "fieldPath"])?.text()? {
        "metadata.namespace" => Some(object.namespace.clone()),
        "spec.serviceAccountName" => {
            let spec =
                object.node.at(spec_path(super::WorkloadKind::parse(&object.api_version, &object.kind)?))?;
            spec.text_at("serviceAccountName").map(str::to_owned)
        }
        path => own_label(object, path),
    }
}

/// Labels that controllers and the API server add to Pods, by the beginning of the last part of their keys.
const ADDED: [&str; 8] = [
    "controller-uid",
    "job-name",
    "job-completion-index",
    "pod-template-",
    "controller-revision-hash",
    "pod-",
    "zone",
    "region",
];

/// Whether a controller or the API server may add a label with this key to Pods.
pub fn is_added_label(key: &str) -> bool {
    let last = key.rsplit('/').next().unwrap_or_default();
    ADDED.iter().any(|part| last.starts_with(part))
}

/// A label or an annotation of the template, or nothing if there is none.
pub(super) fn own_label(object: &Object, path: &str) -> Option<String> {
    let (field, key) = path.strip_prefix("metadata.")?.split_once("['")?;
    let key = key.strip_suffix("']")?;
    let kind = super::WorkloadKind::parse(&object.api_version, &object.kind)?;
    let template = object.node.at(super::template_path(kind))?;
    let own = template.at(&["metadata", field, key]).and_then(Node::scalar);
    let is_added = field == "labels" && is_added_label(key);
    own.or_else(|| (!is_added).then(String::new))
}

/// A text with `$(NAME)` replaced; `$$` is an escaped dollar sign.
pub fn expanded<P>(text: &str, env: &[(String, String, P)]) -> String {
    if !text.contains('$') {
        return text.to_owned();
    }
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        result.push_str(before);
        if let Some(after) = from.strip_prefix("$$") {
            result.push('$');
            rest = after;
            continue;
        }
        let named = from.strip_prefix("$(").and_then(|inside| inside.split_once(')'));
        let value = named.and_then(|(name, after)| {
            let (_, value, _) = env.iter().rev().find(|(own, ..)| own == name)?;
            Some((value, after))
        });
        match value {
            Some((value, after)) => {
                result.push_str(value);
                rest = after;
            }
            None => {
                result.push('$');
                rest = &from[1..];
            }
        }
    }
    result.push_str(rest);
    result
}

#[cfg(test)]
mod tests {
    use super::expanded;

    #[test]
    fn variables_are_replaced_as_the_kubelet_does() {
        let env = [("A", "one"), ("B", "two")].map(|(name, value)| (name.to_owned(), value.to_owned(), ()));
        assert_eq!(expanded("--x=$(A)-$(B)", &env), "--x=one-two");
        assert_eq!(expanded("$$(A) $(C) ${A} $", &env), "$(A) $(C) ${A} $");
    }
}
