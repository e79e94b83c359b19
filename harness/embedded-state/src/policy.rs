//! The roles and bindings of a new cluster, read from `policy.txt`.

use serde_json::{Map, Value, json};

use crate::auth::rbac::Rule;

/// The text of the policy.
const TEXT: &str = include_str!("policy.txt");

const GROUP: &str = "rbac.authorization.k8s.io";

/// An object that a new cluster has.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The resource in the plural.
    pub resource: &'static str,
    /// The whole object.
    pub object: Value,
}

/// All roles and bindings of a new cluster.
#[must_use]
pub fn items() -> Vec<Item> {
    let mut items = Vec::new();
    for line in TEXT.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        match (line.starts_with(' '), words.next()) {
            (true, _) => add_rule(items.last_mut(), line),
            (false, Some("role")) => items.push(role(words)),
            (false, Some("bind")) => items.push(binding(words)),
            _ => {}
        }
    }
    let controllers: Vec<Item> = items.iter().filter_map(controller_binding).collect();
    items.extend(controllers);
    items
}

/// The rules of one cluster role.
#[must_use]
pub fn rules_of(role: &str) -> Vec<Rule> {
    let found = items()
        .into_iter()
        .find(|item| item.resource == "clusterroles" && item.object["metadata"]["name"] == role);
    found.and_then(|item| serde_json::from_value(item.object["rules"].clone()).ok()).unwrap_or_default()
}

fn object(kind: &str, name: &str) -> (Option<String>, Value) {
    let (namespace, name) = match name.split_once('/') {
        Some((namespace, name)) => (Some(namespace.to_owned()), name),
        None => (None, name),
    };
    let mut metadata = json!({
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    });
    if let Some(namespace) = &namespace {
        metadata["namespace"] = json!(namespace);
    }
    let kind = if namespace.is_some() { kind.to_owned() } else { format!("Cluster{kind}") };
    (namespace, json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": metadata}))
}

fn role<'a>(mut words: impl Iterator<Item = &'a str>) -> Item {
    let (namespace, mut object) = object("Role", words.next().unwrap_or_default());
    object["rules"] = json!([]);
    for word in words {
        match word.split_once('=') {
            Some(("label", key)) => object["metadata"]["labels"][key] = json!("true"),
            Some(("aggregates", key)) => {
                object["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {key: "true"}}]});
            }
            _ => {}
        }
    }
    Item { resource: if namespace.is_some() { "roles" } else { "clusterroles" }, object }
}

fn add_rule(item: Option<&mut Item>, line: &str) {
    let list = |text: &str| -> Value {
        text.split_whitespace().map(|word| if word == "core" { "" } else { word }).collect::<Vec<_>>().into()
    };
    let mut rule = Map::new();
    let mut parts = line.split('|').map(str::trim);
    rule.insert("verbs".into(), list(parts.next().unwrap_or_default()));
    match parts.next().unwrap_or_default() {
        "url" => {
            rule.insert("nonResourceURLs".into(), list(parts.next().unwrap_or_default()));
        }
        groups => {
            rule.insert("apiGroups".into(), list(groups));
            rule.insert("resources".into(), list(parts.next().unwrap_or_default()));
            if let Some(names) = parts.next() {
                rule.insert("resourceNames".into(), list(names));
            }
        }
    }
    if let Some(rules) = item.and_then(|item| item.object["rules"].as_array_mut()) {
        rules.push(Value::Object(rule));
    }
}

fn binding<'a>(mut words: impl Iterator<Item = &'a str>) -> Item {
    let (namespace, mut object) = object("RoleBinding", words.next().unwrap_or_default());
    let mut role = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let mut subjects = Vec::new();
    for word in words {
        if let Some(name) = word.strip_prefix("role=") {
            name.clone_into(&mut role);
        } else if let Some(name) = word.strip_prefix("user:") {
            subjects.push(json!({"kind": "User", "apiGroup": GROUP, "name": name}));
        } else if let Some(name) = word.strip_prefix("group:") {
            subjects.push(json!({"kind": "Group", "apiGroup": GROUP, "name": name}));
        } else if let Some((namespace, name)) =
            word.strip_prefix("account:").and_then(|word| word.split_once('/'))
        {
            subjects.push(json!({"kind": "ServiceAccount", "namespace": namespace, "name": name}));
        }
    }
    if !subjects.is_empty() {
        object["subjects"] = Value::Array(subjects);
    }
    let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
    object["roleRef"] = json!({"apiGroup": GROUP, "kind": kind, "name": role});
    if role == "cluster-admin" && object["metadata"]["name"] == "kubeadm:cluster-admins" {
        // kubeadm writes this one, not the server: it lacks the server's labels and annotations.
        object["metadata"] = json!({"name": "kubeadm:cluster-admins"});
    }
    Item { resource: if namespace.is_some() { "rolebindings" } else { "clusterrolebindings" }, object }
}

/// The binding of a controller's role to the service account with the same name.
fn controller_binding(item: &Item) -> Option<Item> {
    let name = item.object["metadata"]["name"].as_str()?;
    let account = name.strip_prefix("system:controller:").filter(|_| item.resource == "clusterroles")?;
    let account = format!("account:kube-system/{account}");
    Some(binding([name, account.as_str()].into_iter()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::attributes::Attributes;

    #[test]
    fn every_line_of_the_policy_is_understood() {
        for line in TEXT.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            let known = line.starts_with("role ") || line.starts_with("bind ");
            let rule = line.starts_with("  ") && (3..=4).contains(&line.split('|').count());
            assert!(known || rule, "{line}");
        }
        let items = items();
        let count = |resource| items.iter().filter(|item| item.resource == resource).count();
        assert_eq!(count("roles"), 7);
        assert!(count("clusterroles") > 60, "{}", count("clusterroles"));
        for item in items.iter().filter(|item| item.resource.ends_with("roles")) {
            let rules: Vec<Rule> = serde_json::from_value(item.object["rules"].clone()).expect("rules parse");
            let gathers = !item.object["aggregationRule"].is_null();
            assert_eq!(rules.is_empty(), gathers, "{}", item.object["metadata"]["name"]);
        }
    }

    #[test]
    fn no_role_has_a_rule_twice() {
        for item in items().iter().filter(|item| item.resource.ends_with("roles")) {
            let rules = item.object["rules"].as_array().expect("rules");
            for (at, rule) in rules.iter().enumerate() {
                assert!(!rules[..at].contains(rule), "{}: {rule}", item.object["metadata"]["name"]);
            }
        }
    }

    #[test]
    fn the_scheduler_may_watch_all_that_it_waits_for() {
        // The informers of kube-scheduler 1.36: if one of them is missing, it places no Pod.
        let informers = [
            (
                "",
                "nodes pods namespaces services replicationcontrollers persistentvolumes persistentvolumeclaims",
            ),
            ("apps", "replicasets statefulsets"),
            ("policy", "poddisruptionbudgets"),
            ("storage.k8s.io", "csinodes csidrivers csistoragecapacities volumeattachments storageclasses"),
            ("resource.k8s.io", "resourceclaims resourceslices deviceclasses"),
        ];
        let rules = [rules_of("system:kube-scheduler"), rules_of("system:volume-scheduler")].concat();
        for (group, resources) in informers {
            for resource in resources.split(' ') {
                for verb in ["list", "watch"] {
                    let request = Attributes {
                        verb: verb.to_owned(),
                        group: group.to_owned(),
                        resource: resource.to_owned(),
                        ..Attributes::default()
                    };
                    assert!(rules.iter().any(|rule| rule.allows(&request)), "{verb} {resource}.{group}");
                }
            }
        }
    }

    #[test]
    fn every_binding_grants_a_role_of_the_policy() {
        let items = items();
        for item in items.iter().filter(|item| item.resource.ends_with("bindings")) {
            let role = &item.object["roleRef"]["name"];
            let place = &item.object["metadata"]["namespace"];
            let found = items.iter().any(|other| {
                other.resource.ends_with("roles")
                    && other.object["metadata"]["name"] == *role
                    && other.object["metadata"]["namespace"] == *place
            });
            assert!(found, "{role}");
        }
    }
}
