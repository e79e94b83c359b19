//! The names of custom resources: each is assigned once, and none that built-in resources have.
//!
//! Follows the naming controller of `k8s.io/apiextensions-apiserver`
//! (`pkg/controller/status/naming_controller.go`). Assigned names are stored here, because clients can write
//! anything into a definition's status.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use embedded_objects::kinds::{self, Kind};
use serde_json::{Value, json};

/// The kind of a name: resources and kinds do not conflict with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Of {
    Resource,
    Kind,
}

/// The fields with one name, and the reason for a conflict about each.
const SINGLE: [(&str, Of, &str); 4] = [
    ("plural", Of::Resource, "PluralConflict"),
    ("singular", Of::Resource, "SingularConflict"),
    ("kind", Of::Kind, "KindConflict"),
    ("listKind", Of::Kind, "ListKindConflict"),
];

/// A name in its group.
type Name = (String, Of, String);

/// The names of the custom resources of one server.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The definition that has each name.
    holders: HashMap<Name, String>,
    /// The accepted names of each definition.
    accepted: BTreeMap<String, Value>,
    /// The waiting definitions, and the names that they wait for.
    waiting: BTreeMap<String, BTreeSet<Name>>,
}

/// The names that a definition was assigned.
#[derive(Debug)]
pub(super) struct Given {
    /// Its names from now on (`acceptedNames`).
    pub(super) names: Value,
    /// Why it did not get all names that it wants: reason and message.
    pub(super) conflict: Option<(&'static str, String)>,
    /// The definitions that wait for a name that it has lost.
    pub(super) stirred: Vec<String>,
}

pub(super) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn texts<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    value[field].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Whether a built-in resource has the name, in any version.
fn is_built_in((group, of, name): &Name) -> bool {
    let has = |kind: &Kind| match of {
        Of::Resource => {
            kind.plural == name || kind.singular == name || kind.short_names.contains(&name.as_str())
        }
        Of::Kind => kind.kind == name || kind.list_kind == *name,
    };
    kinds::ALL.iter().any(|kind| kind.group == group && has(kind))
}

/// All names that a definition was assigned.
fn names_in(group: &str, given: &Value) -> BTreeSet<Name> {
    let single = SINGLE.iter().map(|(field, of, _)| (*of, text(given, field)));
    let short = texts(given, "shortNames").map(|name| (Of::Resource, name));
    let named = single.chain(short).filter(|(_, name)| !name.is_empty());
    named.map(|(of, name)| (group.to_owned(), of, name.to_owned())).collect()
}

impl Names {
    /// Assigns a definition the names that it wants, if they are free. If a wanted name is taken, the old one
    /// stays.
    pub(super) fn give(&mut self, definition: &Value) -> Given {
        let (own, group) = (text(&definition["metadata"], "name"), text(&definition["spec"], "group"));
        let wanted = &definition["spec"]["names"];
        let before = self.accepted.get(own).cloned().unwrap_or(Value::Null);
        let mut names = wanted.clone();
        let (mut conflict, mut missed) = (None, BTreeSet::new());
        let mut refused = |of: Of, name: &str, reason: &'static str| {
            let name = (group.to_owned(), of, name.to_owned());
            let taken = is_built_in(&name) || self.holders.get(&name).is_some_and(|holder| holder != own);
            if taken {
                conflict = Some((reason, format!("{:?} is already in use", name.2)));
                missed.insert(name);
            }
            taken
        };
        for (field, of, reason) in SINGLE {
            let name = text(wanted, field);
            if !name.is_empty() && refused(of, name, reason) {
                names[field] = json!(text(&before, field));
            }
        }
        let refusals =
            texts(wanted, "shortNames").filter(|name| refused(Of::Resource, name, "ShortNamesConflict"));
        if refusals.count() > 0 {
            names["shortNames"] = before["shortNames"].clone();
        }
        if let Some(names) = names.as_object_mut() {
            names.retain(|_, name| !name.is_null());
        }
        if missed.is_empty() {
            self.waiting.remove(own);
        } else {
            self.waiting.insert(own.to_owned(), missed);
        }
        let stirred = self.hold(own, group, &names);
        Given { names, conflict, stirred }
    }

    /// Removes all names of a definition; returns the definitions that wait for one of them.
    pub(super) fn release(&mut self, definition: &Value) -> Vec<String> {
        let (own, group) = (text(&definition["metadata"], "name"), text(&definition["spec"], "group"));
        self.waiting.remove(own);
        let stirred = self.hold(own, group, &Value::Null);
        self.accepted.remove(own);
        stirred
    }

    /// Replaces the names of a definition; returns the definitions that wait for a name that it has lost.
    fn hold(&mut self, own: &str, group: &str, names: &Value) -> Vec<String> {
        let now = names_in(group, names);
        let before = self.accepted.insert(own.to_owned(), names.clone()).unwrap_or(Value::Null);
        let freed: BTreeSet<Name> = names_in(group, &before).difference(&now).cloned().collect();
        for name in &freed {
            self.holders.remove(name);
        }
        self.holders.extend(now.into_iter().map(|name| (name, own.to_owned())));
        let waits = |(_, missed): &(&String, &BTreeSet<Name>)| !missed.is_disjoint(&freed);
        self.waiting.iter().filter(waits).map(|(name, _)| name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(plural: &str, group: &str, kind: &str, short: &[&str]) -> Value {
        json!({"metadata": {"name": format!("{plural}.{group}")}, "spec": {"group": group, "names": {
            "plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List"),
            "shortNames": short}}})
    }

    fn reason(given: &Given) -> &'static str {
        given.conflict.as_ref().map(|(reason, _)| *reason).unwrap_or_default()
    }

    #[test]
    fn a_name_of_a_built_in_resource_is_never_given() {
        let mut names = Names::default();
        let mut check = |plural: &str, group: &str, kind: &str, short: &[&str], expected: &str| {
            let given = names.give(&definition(plural, group, kind, short));
            assert_eq!(reason(&given), expected, "{plural}.{group}");
        };
        let rbac = "rbac.authorization.k8s.io";
        check("clusterroles", rbac, "Mine", &[], "PluralConflict");
        check("mine", rbac, "ClusterRole", &[], "ListKindConflict");
        check("others", rbac, "Other", &["role"], "ShortNamesConflict");
        check("lists", rbac, "RoleList", &[], "KindConflict");
        check("policies", "networking.k8s.io", "Policy", &["netpol"], "ShortNamesConflict");
        check("events", "events.k8s.io", "Happening", &[], "PluralConflict");
        check("customresourcedefinitions", "apiextensions.k8s.io", "Mine", &["crd"], "ShortNamesConflict");
        check("tokenreviews", "authentication.k8s.io", "Mine", &[], "PluralConflict");
        check("clusterroles", "example.com", "ClusterRole", &["role"], "");
    }

    #[test]
    fn a_waiter_is_notified_when_the_name_is_free() {
        let mut names = Names::default();
        let (first, second) =
            (definition("a", "x.com", "Thing", &["t"]), definition("b", "x.com", "Thing", &["t"]));
        assert!(names.give(&first).conflict.is_none());
        let given = names.give(&second);
        assert_eq!(reason(&given), "ShortNamesConflict");
        assert_eq!(given.names, json!({"plural": "b", "singular": "", "kind": "", "listKind": ""}));
        assert!(names.give(&definition("c", "y.com", "Thing", &["t"])).conflict.is_none());
        // The loss of one name among several is also reported.
        let stirred = names.give(&definition("a", "x.com", "Thing", &[])).stirred;
        assert_eq!(stirred, ["b.x.com"]);
        assert_eq!(reason(&names.give(&second)), "ListKindConflict");
        assert_eq!(names.release(&first), ["b.x.com"]);
        let given = names.give(&second);
        assert!(given.conflict.is_none() && given.stirred.is_empty(), "{given:?}");
        assert!(names.release(&second).is_empty());
    }
}
