//! Discovery documents, plain and aggregated, for the kinds that this server serves.
//!
//! `defined` are the custom resources of a server. A smaller server describes its kinds exactly as a full
//! server does; the groups are in the full server's order.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::kinds::{ALL, Kind, Subresource};

/// The API groups in the order in which a full server lists them.
const GROUPS: &[&str] = &[
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
];

/// The content type of the aggregated form.
pub const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// The content type of the aggregated form in YAML.
pub const AGGREGATED_YAML: &str = "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// The content type of the aggregated form in protobuf.
pub const AGGREGATED_PROTOBUF: &str =
    "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// `/api`. The address is that of the server: host and port.
pub fn api_versions(server_address: &str) -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [
        {"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}]})
}

/// `/apis`.
pub fn groups(defined: &[&'static Kind]) -> Value {
    let groups = group_names(defined).into_iter().map(|group| Value::Object(group_members(group, defined)));
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups.collect::<Vec<_>>()})
}

/// `/apis/<group>`.
pub fn group(name: &str, defined: &[&'static Kind]) -> Option<Value> {
    let name = group_names(defined).into_iter().find(|known| *known == name)?;
    let mut members = group_members(name, defined);
    members.insert("kind".to_owned(), "APIGroup".into());
    members.insert("apiVersion".to_owned(), "v1".into());
    Some(Value::Object(members))
}

/// The groups in the order in which a full server lists them: its own, then those of custom resources by name.
fn group_names(defined: &[&'static Kind]) -> Vec<&'static str> {
    let more: BTreeSet<&str> = defined.iter().map(|kind| kind.group).collect();
    GROUPS.iter().copied().chain(more.into_iter().filter(|group| !GROUPS.contains(group))).collect()
}

/// The versions of a group, the preferred one first.
fn versions(group: &str, defined: &[&'static Kind]) -> Vec<&'static str> {
    let kinds = ALL.iter().chain(defined.iter().copied()).filter(|kind| kind.group == group);
    let mut versions: Vec<&str> = kinds.map(|kind| kind.version).collect();
    versions.sort_by(|a, b| rank(b).cmp(&rank(a)).then_with(|| a.cmp(b)));
    versions.dedup();
    versions
}

/// The priority of a version: stable before beta before alpha, later before earlier, any other name last.
/// Source: `k8s.io/apimachinery/pkg/version`, `CompareKubeAwareVersionStrings`.
fn rank(version: &str) -> (u8, u64, u64) {
    let read = || {
        let rest = version.strip_prefix('v')?;
        let end = rest.find(|ch: char| !ch.is_ascii_digit()).unwrap_or(rest.len());
        let (major, stage) = rest.split_at(end);
        let number = |text: &str| text.parse::<u64>().ok();
        let major = number(major)?;
        Some(match (stage.strip_prefix("beta"), stage.strip_prefix("alpha")) {
            _ if stage.is_empty() => (3, major, 0),
            (Some(minor), _) => (2, major, number(minor)?),
            (_, Some(minor)) => (1, major, number(minor)?),
            _ => return None,
        })
    };
    read().unwrap_or_default()
}

fn group_members(name: &str, defined: &[&'static Kind]) -> Map<String, Value> {
    let named = |version| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    let versions: Vec<Value> = versions(name, defined).into_iter().map(named).collect();
    let mut members = Map::new();
    members.insert("name".to_owned(), name.into());
    members.insert("preferredVersion".to_owned(), versions.first().cloned().unwrap_or_default());
    members.insert("versions".to_owned(), versions.into());
    members
}

/// `/api/v1` for the empty group, `/apis/<group>/<version>` for the others.
pub fn resources(group: &str, version: &str, defined: &[&'static Kind]) -> Option<Value> {
    let mut listed = Vec::new();
    for kind in kinds_of(group, version, defined) {
        listed.push((kind.plural.to_owned(), resource(kind)));
        for sub in &kind.subresources {
            listed.push((format!("{}/{}", kind.plural, sub.name), subresource(kind, sub)));
        }
    }
    if listed.is_empty() {
        return None;
    }
    listed.sort_by(|a, b| a.0.cmp(&b.0));
    let resources: Vec<Value> = listed.into_iter().map(|(_, resource)| resource).collect();
    // The oldest document, the one of the core group, has no apiVersion.
    Some(if group.is_empty() {
        json!({"kind": "APIResourceList", "groupVersion": version, "resources": resources})
    } else {
        json!({"kind": "APIResourceList", "apiVersion": "v1",
            "groupVersion": format!("{group}/{version}"), "resources": resources})
    })
}

fn kinds_of(group: &str, version: &str, defined: &[&'static Kind]) -> impl Iterator<Item = &'static Kind> {
    let all = ALL.iter().chain(defined.iter().copied());
    all.filter(move |kind| kind.group == group && kind.version == version)
}

fn resource(kind: &Kind) -> Value {
    let mut members = json!({"name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced,
        "kind": kind.kind, "verbs": kind.verbs});
    let optional = [
        ("shortNames", json!(kind.short_names)),
        ("categories", json!(kind.categories)),
        ("storageVersionHash", json!(kind.storage_hash)),
    ];
    for (name, value) in optional {
        if value != json!([]) && value != json!("") {
            members[name] = value;
        }
    }
    members
}

fn subresource(kind: &Kind, sub: &Subresource) -> Value {
    let name = format!("{}/{}", kind.plural, sub.name);
    let mut members = json!({"name": name, "singularName": "", "namespaced": kind.namespaced,
        "kind": sub.kind, "verbs": sub.verbs});
    if !sub.group.is_empty() {
        members["group"] = sub.group.into();
        members["version"] = sub.version.into();
    }
    members
}

/// `/api` in the aggregated form.
pub fn aggregated_core() -> Value {
    aggregated(&[""], &[])
}

/// `/apis` in the aggregated form.
pub fn aggregated_groups(defined: &[&'static Kind]) -> Value {
    aggregated(&group_names(defined), defined)
}

fn aggregated(groups: &[&str], defined: &[&'static Kind]) -> Value {
    let version = |group: &str, version: &str| {
        let resources: Vec<Value> = kinds_of(group, version, defined).map(aggregated_resource).collect();
        json!({"version": version, "resources": resources, "freshness": "Current"})
    };
    let items: Vec<Value> = groups
        .iter()
        .map(|group| {
            let metadata = if group.is_empty() { json!({}) } else { json!({"name": group}) };
            let versions = versions(group, defined).into_iter().map(|name| version(group, name));
            json!({"metadata": metadata, "versions": versions.collect::<Vec<_>>()})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated_resource(kind: &'static Kind) -> Value {
    let mut members = json!({"resource": kind.plural,
        "responseKind": response(kind, "", "", kind.kind),
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular, "verbs": kind.verbs});
    if !kind.short_names.is_empty() {
        members["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        members["categories"] = json!(kind.categories);
    }
    if !kind.subresources.is_empty() {
        let subs = kind.subresources.iter().map(|sub| {
            json!({"subresource": sub.name, "verbs": sub.verbs,
                "responseKind": response(kind, sub.group, sub.version, sub.kind)})
        });
        members["subresources"] = subs.collect();
    }
    members
}

/// The kind of a resource's answers. A full server leaves its own group and version empty, and names those of
/// custom resources.
fn response(of: &Kind, group: &str, version: &str, kind: &str) -> Value {
    let own = of.custom.is_some() && group.is_empty();
    let (group, version) = if own { (of.group, of.version) } else { (group, version) };
    json!({"group": group, "version": version, "kind": kind})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_that_has_kinds_is_listed() {
        for kind in ALL.iter() {
            assert!(kind.group.is_empty() || GROUPS.contains(&kind.group), "{}", kind.group);
            assert!(resources(kind.group, kind.version, &[]).is_some());
        }
        assert_eq!(resources("apps", "v2", &[]), None);
        assert_eq!(group("nope", &[]), None);
        assert_eq!(group("apps", &[]).map(|group| group["kind"].clone()), Some(json!("APIGroup")));
    }

    #[test]
    fn the_version_to_prefer_is_the_most_settled_one() {
        let mut versions = ["foo", "v1alpha2", "v2beta1", "v10", "v1beta2", "v2", "v1alpha1"];
        versions.sort_by_key(|version| std::cmp::Reverse(rank(version)));
        assert_eq!(versions, ["v10", "v2", "v2beta1", "v1beta2", "v1alpha2", "v1alpha1", "foo"]);
    }
}
