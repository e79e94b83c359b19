//! The list of `--controllers`: which controllers of the framework run.

use std::fmt;

/// The controllers of the framework, by both of their names (`cloud-provider/names`).
const OF_FRAMEWORK: &[&str] = &[
    "cloud-node",
    "cloud-node-controller",
    "cloud-node-lifecycle",
    "cloud-node-lifecycle-controller",
    "node-ipam-controller",
    "node-route-controller",
    "nodeipam",
    "route",
    "service",
    "service-lb-controller",
];

/// The entries of `--controllers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controllers(Vec<String>);

impl Controllers {
    /// The entries of a list flag that may be given several times. Each is read like a line of CSV: what is in quotes is one
    /// name.
    pub fn of<'l>(lists: impl IntoIterator<Item = &'l str>) -> Controllers {
        let names = |list: &'l str| match list.strip_prefix('"').and_then(|list| list.strip_suffix('"')) {
            Some(one) if !one.contains('"') => vec![one.to_owned()],
            _ => list.split(',').map(|name| name.trim().to_owned()).collect(),
        };
        Controllers(lists.into_iter().flat_map(names).collect())
    }

    /// The entries, in order.
    pub fn entries(&self) -> &[String] {
        &self.0
    }

    /// Whether a controller with one of these names runs: the first entry that names it decides (`IsControllerEnabled`).
    pub fn run(&self, names: &[&str]) -> bool {
        let named = |entry: &&String| names.contains(&entry.strip_prefix('-').unwrap_or(entry));
        match self.0.iter().find(named) {
            Some(entry) => !entry.starts_with('-'),
            None => self.0.iter().any(|entry| entry == "*"),
        }
    }

    /// Whether all names are the framework's. A program with other names may mean anything by them.
    pub fn are_of_framework(&self) -> bool {
        self.0.iter().all(|entry| {
            let bare = entry.trim_start_matches('-');
            bare == "*" || bare.is_empty() || OF_FRAMEWORK.contains(&bare)
        })
    }
}

impl fmt::Display for Controllers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::Controllers;

    #[test]
    fn the_first_entry_that_names_a_controller_decides() {
        for (list, runs) in [
            ("*", true),
            ("cloud-node,service", false),
            ("*,-route", false),
            ("*, -node-route-controller", false),
            ("route", true),
            ("*,-service", true),
            ("-route,route", false),
            ("\"route,service\"", false),
        ] {
            assert_eq!(Controllers::of([list]).run(&["route", "node-route-controller"]), runs, "{list}");
        }
        assert!(Controllers::of(["service", "route"]).run(&["route"]), "given twice, it is one list");
    }

    #[test]
    fn names_of_other_programs_are_noticed() {
        assert!(Controllers::of(["*,-cloud-node-lifecycle"]).are_of_framework());
        assert!(!Controllers::of(["node,route"]).are_of_framework());
    }
}
