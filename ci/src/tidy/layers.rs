//! The layers of the harness: a module uses only those above it in the list.

use super::resolve::Uses;

/// Modules of the harness in reading order: one imports only from those above it.
const LAYERS: &[&str] = &[
    "backends",
    "check",
    "ledger",
    "secrets",
    "files",
    "bounded",
    "glob",
    "screen",
    "output",
    "processes",
    "owner",
    "probe",
    "events",
    "config",
    "image_credentials",
    "network_proxy",
    "csi_migration",
    "contract",
    "images",
    "reaper",
    "cluster",
    "cloud",
    "k8s",
    "ccm",
    "progress",
    "session",
    "proof",
    "cx",
    "evidence",
    "report",
    "run",
    "cli",
];

/// The crate whose layers these are.
const FOLDER: &str = "harness/src/";

/// Checks one crate.
pub(super) fn check(uses: &Uses, findings: &mut Vec<String>) {
    for (file, used) in uses {
        let Some(module) = module_of(file).filter(|module| *module != "lib") else { continue };
        let Some(own) = LAYERS.iter().position(|layer| *layer == module) else {
            findings
                .push(format!("{file}: module {module} has no place in the layers (ci/src/tidy/layers.rs)"));
            continue;
        };
        for (other, line) in used {
            let above = module_of(other)
                .filter(|name| LAYERS.iter().position(|layer| layer == name).is_some_and(|at| at > own));
            if let Some(name) = above {
                findings.push(format!("{file}:{line}: {module} uses {name}, which lies above it ({other})"));
            }
        }
    }
}

/// The module of the harness that a file belongs to.
fn module_of(file: &str) -> Option<&str> {
    file.strip_prefix(FOLDER)?.split(['/', '.']).next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn what_lies_above_may_not_be_used() {
        let used = |from: &str, to: &str| {
            let to = BTreeMap::from([(format!("{FOLDER}{to}"), 7)]);
            let mut findings = Vec::new();
            check(&Uses::from([(format!("{FOLDER}{from}"), to)]), &mut findings);
            findings
        };
        assert!(used("cli/run.rs", "probe/wait.rs").is_empty());
        assert!(used("probe/wait.rs", "probe/judge.rs").is_empty());
        let findings = used("probe/wait.rs", "cli/run.rs");
        assert_eq!(findings.len(), 1);
        assert!(findings[0].contains("harness/src/probe/wait.rs:7: probe uses cli"), "{findings:?}");
        assert!(used("elsewhere.rs", "cli/run.rs")[0].contains("no place in the layers"));
    }
}
