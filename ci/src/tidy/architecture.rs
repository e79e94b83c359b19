//! The table of crates in docs/architecture.md is correct: it contains every crate in the folders below, with
//! the description from its manifest, after the crates that it uses.

use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The folders whose crates are in the table.
const FOLDERS: [&str; 3] = ["fake-cloud", "harness", "suites"];
/// The folder of the dialects, which have one row together.
const DIALECTS: &str = "fake-cloud/dialects";
/// The document with the table.
const DOCUMENT: &str = "docs/architecture.md";

/// A crate as its manifest describes it.
struct Package {
    description: String,
    uses: BTreeSet<String>,
}

/// Compares the table with the output of `cargo metadata`.
pub(super) fn check(root: &Path, metadata: &Value, findings: &mut Vec<String>) -> Result<()> {
    let text = std::fs::read_to_string(root.join(DOCUMENT)).with_context(|| format!("reading {DOCUMENT}"))?;
    compare(&text, &packages(root, metadata), findings);
    Ok(())
}

/// The crates in [`FOLDERS`], by name.
fn packages(root: &Path, metadata: &Value) -> BTreeMap<String, Package> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let package = |package: &Value| {
        let manifest = text(&package["manifest_path"]);
        if !FOLDERS.iter().any(|folder| Path::new(&manifest).starts_with(root.join(folder))) {
            return None;
        }
        let folder = Path::new(&manifest).parent().and_then(Path::parent);
        if folder == Some(root.join(DIALECTS).as_path()) {
            return None;
        }
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        let uses = dependencies.filter(|one| one["kind"].is_null()).map(|one| text(&one["name"])).collect();
        Some((text(&package["name"]), Package { description: text(&package["description"]), uses }))
    };
    metadata["packages"].as_array().into_iter().flatten().filter_map(package).collect()
}

fn compare(text: &str, packages: &BTreeMap<String, Package>, findings: &mut Vec<String>) {
    let mut above = BTreeSet::new();
    for (line, number) in text.lines().zip(1..) {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let (Some(name), Some(purpose)) = (cells.next(), cells.next()) else { continue };
        let name = name.trim_matches('`');
        let Some(package) = packages.get(name) else { continue };
        if purpose != package.description {
            let wanted = &package.description;
            findings.push(format!("{DOCUMENT}:{number}: the manifest of {name} describes it as: {wanted}"));
        }
        let below = package.uses.iter().filter(|used| packages.contains_key(*used) && !above.contains(*used));
        findings.extend(below.map(|used| {
            format!("{DOCUMENT}:{number}: {name} uses {used}, which has to stand above it in the table")
        }));
        above.insert(name.to_owned());
    }
    let absent = packages.keys().filter(|name| !above.contains(*name));
    findings.extend(absent.map(|name| format!("{DOCUMENT}: the table of crates lacks {name}")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_not_true_is_found() {
        let package = |description: &str, uses: &[&str]| Package {
            description: description.to_owned(),
            uses: uses.iter().map(|name| (*name).to_owned()).collect(),
        };
        let packages = BTreeMap::from([
            ("core".to_owned(), package("Base.", &["serde"])),
            ("cli".to_owned(), package("Commands.", &["core"])),
        ]);
        let found = |table: &str| {
            let mut findings = Vec::new();
            compare(table, &packages, &mut findings);
            findings
        };
        assert!(found("| `core` | Base. |\n| `cli` | Commands. |\n").is_empty());
        assert!(found("| `cli` | Commands. |\n| `core` | Base. |\n")[0].contains(":1: cli uses core"));
        assert!(found("| `core` | Bases. |\n| `cli` | Commands. |\n")[0].contains("describes it as: Base."));
        assert_eq!(found("| `core` | Base. |\n"), ["docs/architecture.md: the table of crates lacks cli"]);
    }
}
