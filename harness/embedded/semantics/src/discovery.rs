//! Discovery documents, plain and aggregated, of the kinds this server serves.
//!
//! A smaller server describes what it serves exactly as a full one does; the groups stand in the full server's order.

use serde_json::{Map, Value, json};

use crate::kinds::{ALL, Kind, Subresource};

/// The API groups in the order in which a full server lists them.
const GROUPS: &[&str] = &[
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
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
];

/// The content type of the aggregated form.
pub const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// `/api`. The address is the server's own, host and port.
pub fn api_versions(server_address: &str) -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [
        {"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}]})
}

/// `/apis`.
pub fn groups() -> Value {
    let groups: Vec<Value> = GROUPS.iter().map(|group| group_members(group)).map(Value::Object).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/<group>`.
pub fn group(name: &str) -> Option<Value> {
    let name = GROUPS.iter().find(|known| **known == name)?;
    let mut members = group_members(name);
    members.insert("kind".to_owned(), "APIGroup".into());
    members.insert("apiVersion".to_owned(), "v1".into());
    Some(Value::Object(members))
}

fn group_members(name: &str) -> Map<String, Value> {
    // Of each group one version is served.
    let version = ALL.iter().find(|kind| kind.group == name).map_or("v1", |kind| kind.version);
    let version = json!({"groupVersion": format!("{name}/{version}"), "version": version});
    let mut members = Map::new();
    members.insert("name".to_owned(), name.into());
    members.insert("versions".to_owned(), json!([version.clone()]));
    members.insert("preferredVersion".to_owned(), version);
    members
}

/// `/api/v1` for the empty group, `/apis/<group>/<version>` for the others.
pub fn resources(group: &str, version: &str) -> Option<Value> {
    let mut listed = Vec::new();
    for kind in kinds_of(group, version) {
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
    // The oldest document, that of the core group, carries no apiVersion.
    Some(if group.is_empty() {
        json!({"kind": "APIResourceList", "groupVersion": version, "resources": resources})
    } else {
        json!({"kind": "APIResourceList", "apiVersion": "v1",
            "groupVersion": format!("{group}/{version}"), "resources": resources})
    })
}

fn kinds_of(group: &str, version: &str) -> impl Iterator<Item = &'static Kind> {
    ALL.iter().filter(move |kind| kind.group == group && kind.version == version)
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
    aggregated(&[""])
}

/// `/apis` in the aggregated form.
pub fn aggregated_groups() -> Value {
    aggregated(GROUPS)
}

fn aggregated(groups: &[&str]) -> Value {
    let items: Vec<Value> = groups
        .iter()
        .map(|group| {
            let metadata = if group.is_empty() { json!({}) } else { json!({"name": group}) };
            let resources: Vec<Value> = kinds_of(group, "v1").map(aggregated_resource).collect();
            json!({"metadata": metadata,
                "versions": [{"version": "v1", "resources": resources, "freshness": "Current"}]})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated_resource(kind: &'static Kind) -> Value {
    // The group and version are those of the list around it, so the full server leaves them empty.
    let mut members = json!({"resource": kind.plural,
        "responseKind": {"group": "", "version": "", "kind": kind.kind},
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
                "responseKind": {"group": sub.group, "version": sub.version, "kind": sub.kind}})
        });
        members["subresources"] = subs.collect();
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_that_has_kinds_is_listed() {
        for kind in ALL.iter() {
            assert!(kind.group.is_empty() || GROUPS.contains(&kind.group), "{}", kind.group);
            assert!(resources(kind.group, kind.version).is_some());
        }
        assert_eq!(resources("apps", "v2"), None);
        assert_eq!(group("nope"), None);
        assert_eq!(group("apps").map(|group| group["kind"].clone()), Some(json!("APIGroup")));
    }
}
