//! Dependabot covers every folder with pinned versions.

use serde_json::Value;
use std::collections::BTreeSet;

/// Dependabot's configuration.
pub(super) const DEPENDABOT: &str = ".github/dependabot.yml";
/// Files with pinned versions, and Dependabot's name for their kind.
const KINDS: &[(&str, &str)] = &[
    ("action.yml", "github-actions"),
    ("Cargo.lock", "cargo"),
    ("requirements.txt", "pip"),
    ("rust-toolchain.toml", "rust-toolchain"),
];

/// Checks that every folder with such a file is listed with its kind. Workflows are listed as the root folder.
pub(super) fn check(document: &Value, tracked: &[String], findings: &mut Vec<String>) {
    let updates: Vec<&Value> = document["updates"].as_array().into_iter().flatten().collect();
    let mut due = BTreeSet::from([("github-actions", "/".to_owned())]);
    for path in tracked {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let kind = KINDS.iter().find(|(file, _)| *file == name);
        due.extend(kind.map(|(_, kind)| (*kind, format!("/{folder}"))));
    }
    for (kind, folder) in due {
        let of_kind = updates.iter().filter(|update| update["package-ecosystem"] == kind);
        let mut folders = of_kind.flat_map(|update| {
            update["directories"].as_array().into_iter().flatten().chain([&update["directory"]])
        });
        if !folders.any(|listed| *listed == folder) {
            findings
                .push(format!("{DEPENDABOT}: 'package-ecosystem: {kind}' does not list the folder {folder}"));
        }
    }
}
