//! One rule of a role: which requests it allows, and whether a set of rules covers another.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::auth::attributes::Attributes;

/// One rule of a Role or ClusterRole.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    /// Verbs; `*` for all.
    pub verbs: Vec<String>,
    /// API groups; `*` for all, the empty string for the core group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    /// Resources; `*` for all, `*/scale` for a subresource of all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// Names of objects; empty for all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// Paths that are not resources; `*` at the end stands for any rest.
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    pub non_resource_urls: Vec<String>,
}

impl Rule {
    /// A rule that allows everything.
    #[must_use]
    pub fn everything() -> Vec<Self> {
        let all = || vec!["*".to_owned()];
        vec![
            Self { verbs: all(), api_groups: all(), resources: all(), ..Self::default() },
            Self { verbs: all(), non_resource_urls: all(), ..Self::default() },
        ]
    }

    /// Whether this rule allows the request.
    #[must_use]
    pub fn allows(&self, request: &Attributes) -> bool {
        if !has(&self.verbs, &request.verb) {
            return false;
        }
        if !request.is_resource() {
            return self.non_resource_urls.iter().any(|pattern| path_matches(pattern, &request.path));
        }
        has(&self.api_groups, &request.group)
            && self.resources.iter().any(|one| resource_matches(one, request))
            && (self.resource_names.is_empty() || self.resource_names.contains(&request.name))
    }

    /// Splits the rule into the smallest rules that it consists of.
    fn atoms(&self) -> Vec<Self> {
        let one = |text: &String| vec![text.clone()];
        let mut atoms = Vec::new();
        for verb in &self.verbs {
            for group in &self.api_groups {
                for resource in &self.resources {
                    let base = Self {
                        verbs: one(verb),
                        api_groups: one(group),
                        resources: one(resource),
                        ..Self::default()
                    };
                    if self.resource_names.is_empty() {
                        atoms.push(base);
                    } else {
                        atoms.extend(
                            self.resource_names
                                .iter()
                                .map(|name| Self { resource_names: one(name), ..base.clone() }),
                        );
                    }
                }
            }
            atoms.extend(self.non_resource_urls.iter().map(|url| Self {
                verbs: one(verb),
                non_resource_urls: one(url),
                ..Self::default()
            }));
        }
        atoms
    }

    /// Whether this rule allows everything that the atom `other` allows.
    fn covers(&self, other: &Self) -> bool {
        let all = |mine: &[String], theirs: &[String]| {
            mine.iter().any(|one| one == "*") || theirs.iter().all(|one| mine.contains(one))
        };
        let resources = all(&self.resources, &other.resources)
            || other.resources.iter().all(|wanted| {
                self.resources.contains(wanted)
                    || wanted
                        .split_once('/')
                        .is_some_and(|(_, sub)| self.resources.contains(&format!("*/{sub}")))
            });
        let names = self.resource_names.is_empty()
            || (!other.resource_names.is_empty() && all(&self.resource_names, &other.resource_names));
        let urls = other
            .non_resource_urls
            .iter()
            .all(|wanted| self.non_resource_urls.iter().any(|mine| path_matches(mine, wanted)));
        all(&self.verbs, &other.verbs)
            && all(&self.api_groups, &other.api_groups)
            && resources
            && names
            && urls
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let shown: Vec<String> = parts
            .iter()
            .filter(|(_, values)| !values.is_empty())
            .map(|(name, values)| format!("{name}:{}", go_strings(values)))
            .collect();
        write!(f, "{{{}}}", shown.join(", "))
    }
}

/// The rules in `wanted` that `owned` does not cover, with the verbs for the same thing combined, sorted by
/// their text.
#[must_use]
pub(super) fn missing(owned: &[Rule], wanted: &[Rule]) -> Vec<Rule> {
    let mut missing: Vec<Rule> = Vec::new();
    for atom in wanted.iter().flat_map(Rule::atoms) {
        if owned.iter().any(|rule| rule.covers(&atom)) {
            continue;
        }
        let same = missing.iter_mut().find(|rule| {
            rule.api_groups == atom.api_groups
                && rule.resources == atom.resources
                && rule.resource_names == atom.resource_names
                && rule.non_resource_urls == atom.non_resource_urls
        });
        match same {
            Some(rule) => rule.verbs.extend(atom.verbs),
            None => missing.push(atom),
        }
    }
    missing.sort_by_key(ToString::to_string);
    missing
}

/// Strings as Go prints a slice of them with `%q`.
#[must_use]
pub(super) fn go_strings(values: &[String]) -> String {
    let quoted: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
    format!("[{}]", quoted.join(" "))
}

fn has(values: &[String], wanted: &str) -> bool {
    values.iter().any(|one| one == "*" || one == wanted)
}

fn resource_matches(pattern: &str, request: &Attributes) -> bool {
    if pattern == "*" {
        return true;
    }
    if request.subresource.is_empty() {
        return pattern == request.resource;
    }
    pattern.split_once('/').is_some_and(|(resource, sub)| {
        sub == request.subresource && (resource == "*" || resource == request.resource)
    })
}

fn path_matches(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => pattern == path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(verbs: &str, groups: &str, resources: &str, names: &str) -> Rule {
        let list = |text: &str| text.split_whitespace().map(|w| w.replace("core", "")).collect();
        Rule {
            verbs: list(verbs),
            api_groups: list(groups),
            resources: list(resources),
            resource_names: list(names),
            ..Rule::default()
        }
    }

    fn request(verb: &str, resource: &str, subresource: &str, name: &str) -> Attributes {
        Attributes {
            verb: verb.into(),
            resource: resource.into(),
            subresource: subresource.into(),
            name: name.into(),
            ..Attributes::default()
        }
    }

    #[test]
    fn a_rule_for_a_resource_says_nothing_about_its_subresources() {
        let nodes = rule("patch", "core", "nodes", "");
        assert!(nodes.allows(&request("patch", "nodes", "", "n")));
        assert!(!nodes.allows(&request("patch", "nodes", "status", "n")));
        assert!(rule("*", "*", "*/status", "").allows(&request("patch", "nodes", "status", "n")));
        assert!(rule("*", "*", "*", "").allows(&request("patch", "nodes", "status", "n")));
    }

    #[test]
    fn a_rule_for_names_does_not_allow_a_list() {
        let lease = rule("get list", "core", "leases", "ccm");
        assert!(lease.allows(&request("get", "leases", "", "ccm")));
        assert!(!lease.allows(&request("list", "leases", "", "")));
    }

    #[test]
    fn missing_rights_are_listed_with_their_verbs_together() {
        let owned = [rule("get list", "core", "nodes", "")];
        let wanted =
            [rule("get list patch update", "core", "nodes", ""), rule("get", "core", "secrets", "a")];
        let texts: Vec<String> = missing(&owned, &wanted).iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                r#"{APIGroups:[""], Resources:["nodes"], Verbs:["patch" "update"]}"#,
                r#"{APIGroups:[""], Resources:["secrets"], ResourceNames:["a"], Verbs:["get"]}"#,
            ]
        );
    }

    #[test]
    fn an_owner_of_all_rights_lacks_none() {
        assert_eq!(missing(&Rule::everything(), &Rule::everything()), []);
        assert_eq!(missing(&[rule("*", "*", "*", "")], &Rule::everything()).len(), 1);
    }
}
