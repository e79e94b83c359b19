//! Prevents privilege escalation: users can only grant rights that they have.

use serde_json::Value;

use super::policy::{Policy, RoleRef};
use super::rule::{Rule, go_strings, missing};
use crate::auth::attributes::Attributes;
use crate::auth::user::{MASTERS, User};

/// The reason why a role or binding may not be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Escalation {
    /// It grants more than its author has; in the API server's words.
    Forbidden(String),
    /// It is a binding to a missing role, given by the role's resource and name.
    NoRole(&'static str, String),
}

/// Checks a role or binding that `user` wants to write into `namespace` (empty for the cluster-wide kinds).
///
/// # Errors
///
/// [`Escalation`], if the user is not in `system:masters`, may neither `escalate` nor `bind` it, and lacks a
/// right that it grants.
pub fn check(
    policy: &Policy,
    user: &User,
    resource: &str,
    namespace: &str,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), Escalation> {
    let binding = match resource {
        "clusterroles" | "roles" => false,
        "clusterrolebindings" | "rolebindings" => true,
        _ => return Ok(()),
    };
    let grants =
        |one: &Value| ["rules", "aggregationRule", "roleRef", "subjects"].map(|part| one[part].clone());
    let unchanged = old.is_some_and(|old| grants(old) == grants(object));
    if unchanged || user.in_group(MASTERS) {
        return Ok(());
    }
    let may = |verb: &str, resource: &str, name: &str| {
        let request = Attributes {
            verb: verb.into(),
            group: "rbac.authorization.k8s.io".into(),
            resource: resource.into(),
            namespace: namespace.into(),
            name: name.into(),
            ..Attributes::default()
        };
        policy.decide(user, &request).is_allowed()
    };
    let wanted: Vec<Rule> = if binding {
        let role: RoleRef = serde_json::from_value(object["roleRef"].clone()).unwrap_or_default();
        let (resource, full) = match role.kind.as_str() {
            "ClusterRole" => ("clusterroles", "clusterroles.rbac.authorization.k8s.io"),
            _ => ("roles", "roles.rbac.authorization.k8s.io"),
        };
        if may("bind", resource, &role.name) {
            return Ok(());
        }
        let Some(rules) = policy.rules_of(&role, namespace) else {
            return Err(Escalation::NoRole(full, role.name));
        };
        rules.into_iter().cloned().collect()
    } else {
        if may("escalate", resource, object["metadata"]["name"].as_str().unwrap_or_default()) {
            return Ok(());
        }
        serde_json::from_value(object["rules"].clone()).unwrap_or_default()
    };
    let owned = policy.rules_for(user, namespace);
    let lacking = missing(&owned, &wanted);
    if !lacking.is_empty() {
        let texts: Vec<String> = lacking.iter().map(ToString::to_string).collect();
        return Err(Escalation::Forbidden(format!(
            "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            user.name,
            go_strings(&user.groups),
            texts.join("\n")
        )));
    }
    let aggregates = |one: &Value| {
        one["aggregationRule"]["clusterRoleSelectors"]
            .as_array()
            .is_some_and(|selectors| !selectors.is_empty())
    };
    if (aggregates(object) || old.is_some_and(aggregates)) && !missing(&owned, &Rule::everything()).is_empty()
    {
        return Err(Escalation::Forbidden(
            "must have cluster-admin privileges to use the aggregationRule".into(),
        ));
    }
    Ok(())
}
