//! The ClusterRoles of a new cluster, for bindings to roles that no manifest contains, and roles that gather the rules of
//! others.

use crate::manifest::{Node, Object, Objects};
use crate::workload::{Selector, labels};

/// The roles of a new cluster, as the embedded API server has them.
const TEXT: &str = include_str!("../../../embedded-state/src/policy.txt");

/// A rule of a built-in role.
#[derive(Clone, Debug)]
pub(super) struct BuiltIn {
    verbs: &'static str,
    groups: &'static str,
    resources: &'static str,
    names: &'static str,
}

impl BuiltIn {
    /// Whether it grants group, resource and verb.
    pub(super) fn grants(&self, (group, resource, verb): (&str, &str, &str)) -> bool {
        let lists = |list: &str, what: &str| list.split_whitespace().any(|own| own == "*" || own == what);
        let group = if group.is_empty() { "core" } else { group };
        let named = self.names.is_empty()
            || (resource == "configmaps" && lists(self.names, "extension-apiserver-authentication"));
        self.groups != "url"
            && named
            && lists(self.verbs, verb)
            && lists(self.groups, group)
            && lists(self.resources, resource)
    }
}

/// The rules of a built-in role, `NAME` or `NAMESPACE/NAME`; `None` if a new cluster has no such role.
pub(super) fn built_in(name: &str) -> Option<Vec<BuiltIn>> {
    let mut lines = TEXT.lines();
    lines.find(|line| is_role(line, name))?;
    let mut rules: Vec<BuiltIn> = rules_below(lines);
    for label in gathered_labels(name) {
        let mut lines = TEXT.lines();
        while let Some(line) = lines.next() {
            if label_of(line) == Some(label) {
                rules.extend(rules_below(lines.clone()));
            }
        }
    }
    Some(rules)
}

/// The labels of the roles whose rules an aggregated built-in role has, also by way of other built-in roles: `admin` gathers
/// `edit`, which gathers `view`.
fn gathered_labels(name: &str) -> Vec<&'static str> {
    let of_role = |name: &str| {
        let head = TEXT.lines().find(|line| is_role(line, name));
        head.into_iter().flat_map(str::split_whitespace).filter_map(|word| word.strip_prefix("aggregates="))
    };
    let mut all: Vec<&'static str> = of_role(name).collect();
    let mut next = 0;
    while let Some(label) = all.get(next).copied() {
        next += 1;
        for line in TEXT.lines().filter(|line| label_of(line) == Some(label)) {
            for more in of_role(line.split_whitespace().nth(1).unwrap_or_default()) {
                if !all.contains(&more) {
                    all.push(more);
                }
            }
        }
    }
    all
}

/// The label of the role whose head is this line.
fn label_of(line: &'static str) -> Option<&'static str> {
    let is_head = line.starts_with("role ");
    line.split_whitespace().filter(|_| is_head).find_map(|word| word.strip_prefix("label="))
}

/// The rules that ClusterRoles of the manifests add to an aggregated built-in role.
pub(super) fn added<'o>(objects: &'o Objects, built_in: &str) -> Vec<&'o Node> {
    let gathered = gathered_labels(built_in);
    let is_gathered = |object: &&Object| {
        let labels = labels(object.node.at(&["metadata", "labels"]));
        gathered.iter().any(|label| labels.get(*label).is_some_and(|value| value == "true"))
    };
    objects.of_kind("ClusterRole").filter(is_gathered).flat_map(|role| rules_of(objects, role)).collect()
}

fn is_role(line: &str, name: &str) -> bool {
    let mut words = line.split_whitespace();
    !line.starts_with(' ') && words.next() == Some("role") && words.next() == Some(name)
}

fn rules_below(lines: std::str::Lines<'static>) -> Vec<BuiltIn> {
    let rule = |line: &'static str| {
        let mut parts = line.split('|').map(str::trim);
        let mut next = || parts.next().unwrap_or_default();
        BuiltIn { verbs: next(), groups: next(), resources: next(), names: next() }
    };
    lines.take_while(|line| line.starts_with(' ')).map(rule).collect()
}

/// The rules of a role of the manifests: its own, or those of all ClusterRoles that its aggregation rule selects.
pub(super) fn rules_of<'o>(objects: &'o Objects, role: &'o Object) -> Vec<&'o Node> {
    let own = |object: &'o Object| object.node.get("rules").map(Node::items).unwrap_or_default();
    let selectors =
        role.node.at(&["aggregationRule", "clusterRoleSelectors"]).map(Node::items).unwrap_or_default();
    if selectors.is_empty() {
        return own(role).iter().collect();
    }
    let selected = |object: &&Object| {
        let labels = labels(object.node.at(&["metadata", "labels"]));
        selectors
            .iter()
            .any(|one| Selector::read(Some(one)).is_some_and(|selector| selector.chooses(&labels)))
    };
    let others = objects.of_kind("ClusterRole").filter(|object| object.name != role.name);
    let gathered: Vec<&Node> = others.filter(selected).flat_map(own).collect();
    // The controller overwrites the rules that are written in an aggregated role, unless it has found none: then it applies
    // nothing, and those of kubectl stay.
    if gathered.is_empty() { own(role).iter().collect() } else { gathered }
}

#[cfg(test)]
mod tests {
    use super::built_in;

    #[test]
    fn built_in_roles_have_their_rules() {
        let grants = |role: &str, right: (&str, &str, &str)| {
            built_in(role).is_some_and(|rules| rules.iter().any(|rule| rule.grants(right)))
        };
        assert!(grants("system:node", ("", "nodes", "update")));
        assert!(grants("system:node", ("coordination.k8s.io", "leases", "create")));
        assert!(!grants("system:node", ("", "nodes", "delete")));
        assert!(!grants("view", ("", "nodes", "update")));
        assert!(grants("view", ("", "services", "watch")));
        assert!(grants("admin", ("", "services", "watch")), "admin gathers edit, which gathers view");
        assert!(built_in("system:unknown").is_none());
    }
}
