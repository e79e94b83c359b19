//! Parsed roles and bindings, and the decisions based on them.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::rule::Rule;
use crate::auth::attributes::{Attributes, Decision};
use crate::auth::user::User;
use crate::store::{Key, Store};

/// The collections of roles and bindings.
pub(super) const COLLECTIONS: [&str; 4] = [
    "clusterroles.rbac.authorization.k8s.io",
    "clusterrolebindings.rbac.authorization.k8s.io",
    "roles.rbac.authorization.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
];

/// All roles and bindings at one moment.
#[derive(Debug, Default)]
pub struct Policy {
    cluster_roles: HashMap<String, ClusterRole>,
    roles: HashMap<Key, ClusterRole>,
    cluster_bindings: Vec<Binding>,
    bindings: Vec<Binding>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClusterRole {
    #[serde(deserialize_with = "null_as_default")]
    rules: Vec<Rule>,
    aggregation_rule: Option<AggregationRule>,
    #[serde(skip)]
    labels: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AggregationRule {
    cluster_role_selectors: Vec<Selector>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Selector {
    match_labels: BTreeMap<String, String>,
}

/// A RoleBinding or ClusterRoleBinding.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Binding {
    #[serde(skip)]
    key: Option<Key>,
    #[serde(deserialize_with = "null_as_default")]
    subjects: Vec<Subject>,
    role_ref: RoleRef,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Subject {
    kind: String,
    name: String,
    namespace: String,
}

/// The role that a binding grants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RoleRef {
    /// `rbac.authorization.k8s.io`.
    pub api_group: String,
    /// `Role` or `ClusterRole`.
    pub kind: String,
    /// The name.
    pub name: String,
}

fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

impl Subject {
    fn is(&self, user: &User, namespace: &str) -> bool {
        match self.kind.as_str() {
            "User" => user.name == self.name,
            "Group" => user.in_group(&self.name),
            "ServiceAccount" => {
                let of = if self.namespace.is_empty() { namespace } else { &self.namespace };
                user.as_service_account() == Some((of, self.name.as_str()))
            }
            _ => false,
        }
    }

    fn described(&self) -> String {
        match self.kind.as_str() {
            "ServiceAccount" => format!("{} {:?}", self.kind, format!("{}/{}", self.name, self.namespace)),
            kind => format!("{kind} {:?}", self.name),
        }
    }
}

impl Policy {
    /// Reads all roles and bindings. Invalid ones grant nothing.
    #[must_use]
    pub fn read(store: &Store) -> Self {
        let [cluster_roles, cluster_bindings, roles, bindings] = COLLECTIONS;
        let mut policy = Self::default();
        for (key, labels, mut role) in parse::<ClusterRole>(store, cluster_roles) {
            role.labels = labels;
            policy.cluster_roles.insert(key.name().to_owned(), role);
        }
        policy.roles = parse(store, roles).into_iter().map(|(key, _, role)| (key, role)).collect();
        let with_key = |(key, _, binding): (Key, _, Binding)| Binding { key: Some(key), ..binding };
        policy.cluster_bindings = parse(store, cluster_bindings).into_iter().map(with_key).collect();
        policy.bindings = parse(store, bindings).into_iter().map(with_key).collect();
        policy
    }

    /// Whether the user is allowed to do this, and the binding that allows it.
    #[must_use]
    pub fn decide(&self, user: &User, request: &Attributes) -> Decision {
        let mut amiss = Vec::new();
        for granted in self.granted(user, &request.namespace) {
            match granted {
                Ok((binding, subject, rules)) => {
                    if rules.iter().any(|rule| rule.allows(request)) {
                        return Decision::Allow(reason(binding, subject));
                    }
                }
                Err(problem) => amiss.push(problem),
            }
        }
        amiss.dedup();
        Decision::NoOpinion(match amiss.as_slice() {
            [] => String::new(),
            [one] => format!("RBAC: {one}"),
            many => format!("RBAC: [{}]", many.join(", ")),
        })
    }

    /// All rules that apply to the user in a namespace (at the cluster scope if it is empty).
    #[must_use]
    pub fn rules_for(&self, user: &User, namespace: &str) -> Vec<Rule> {
        let granted = self.granted(user, namespace).filter_map(Result::ok);
        granted.flat_map(|(_, _, rules)| rules.into_iter().cloned()).collect()
    }

    /// The rules of a role, `None` if there is no such role.
    #[must_use]
    pub fn rules_of(&self, role: &RoleRef, namespace: &str) -> Option<Vec<&Rule>> {
        match role.kind.as_str() {
            "ClusterRole" => self.cluster_role(&role.name),
            _ => Some(self.roles.get(&Key::new(namespace, &role.name))?.rules.iter().collect()),
        }
    }

    fn granted<'a>(
        &'a self,
        user: &'a User,
        namespace: &'a str,
    ) -> impl Iterator<Item = Result<(&'a Binding, &'a Subject, Vec<&'a Rule>), String>> {
        let local = self.bindings.iter().filter(move |binding| {
            !namespace.is_empty() && binding.key.as_ref().is_some_and(|key| key.namespace() == namespace)
        });
        self.cluster_bindings.iter().chain(local).filter_map(move |binding| {
            let of = binding.key.as_ref().map_or("", Key::namespace);
            let subject = binding.subjects.iter().find(|subject| subject.is(user, of))?;
            let role = &binding.role_ref;
            Some(self.rules_of(role, of).map(|rules| (binding, subject, rules)).ok_or_else(|| {
                let kind = role.kind.to_lowercase();
                format!("{kind}.rbac.authorization.k8s.io {:?} not found", role.name)
            }))
        })
    }

    /// A cluster role's own rules, and those of the roles that it aggregates.
    fn cluster_role(&self, name: &str) -> Option<Vec<&Rule>> {
        let mut gathered = Vec::new();
        let mut seen = Vec::new();
        let mut open = vec![name];
        while let Some(next) = open.pop() {
            if seen.contains(&next) {
                continue;
            }
            seen.push(next);
            let role = self.cluster_roles.get(next)?;
            gathered.extend(&role.rules);
            for selector in role.aggregation_rule.iter().flat_map(|rule| &rule.cluster_role_selectors) {
                let chosen = |role: &ClusterRole| {
                    selector
                        .match_labels
                        .iter()
                        .all(|(key, value)| role.labels[key.as_str()] == value.as_str())
                };
                open.extend(
                    self.cluster_roles.iter().filter(|(_, r)| chosen(r)).map(|(name, _)| name.as_str()),
                );
            }
        }
        Some(gathered)
    }
}

fn reason(binding: &Binding, subject: &Subject) -> String {
    let (kind, name) = match &binding.key {
        Some(key) if !key.namespace().is_empty() => {
            ("RoleBinding", format!("{}/{}", key.name(), key.namespace()))
        }
        Some(key) => ("ClusterRoleBinding", key.name().to_owned()),
        None => ("ClusterRoleBinding", String::new()),
    };
    let RoleRef { kind: role_kind, name: role, .. } = &binding.role_ref;
    format!("RBAC: allowed by {kind} {name:?} of {role_kind} {role:?} to {}", subject.described())
}

fn parse<T: DeserializeOwned>(store: &Store, collection: &'static str) -> Vec<(Key, Value, T)> {
    let snapshot = store.snapshot(collection);
    let records = snapshot.iter(None, None);
    records
        .filter_map(|record| {
            Some((record.key().clone(), record.labels().clone(), serde_json::from_slice(record.json()).ok()?))
        })
        .collect()
}
