//! Everything from outside is pinned: actions by commit, tools by version, crates by the lock file.

use std::collections::{BTreeMap, BTreeSet};

/// Checks that each external action is pinned by a commit, with its version in a comment, and is the same
/// everywhere.
pub(super) fn actions(texts: &BTreeMap<String, String>, findings: &mut Vec<String>) {
    let mut pins: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in texts {
        for (line, number) in text.lines().zip(1..) {
            let Some(used) = line.trim_start().trim_start_matches("- ").strip_prefix("uses: ") else {
                continue;
            };
            if used.starts_with("./") {
                continue;
            }
            match pinned(used) {
                Some((action, pin)) => {
                    pins.entry(action).or_default().insert(pin);
                }
                None => findings.push(format!(
                    "{path}:{number}: '{used}' is not pinned: write OWNER/NAME@COMMIT # vMAJOR.MINOR.PATCH"
                )),
            }
        }
    }
    for (action, pins) in pins.iter().filter(|(_, pins)| pins.len() > 1) {
        let pins: Vec<&str> = pins.iter().map(String::as_str).collect();
        findings.push(format!("{action} is pinned differently: {}", pins.join(" and ")));
    }
}

/// The action, and its commit and version, from `OWNER/NAME@COMMIT # vMAJOR.MINOR.PATCH`.
fn pinned(used: &str) -> Option<(&str, String)> {
    let (action, pin) = used.split_once('@')?;
    let (commit, version) = pin.split_once(" # v")?;
    let is_commit = commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    (action.contains('/') && is_commit && is_version(version))
        .then(|| (action, format!("{commit} # v{version}")))
}

fn is_version(text: &str) -> bool {
    let numbers: Vec<&str> = text.split('.').collect();
    numbers.len() == 3 && numbers.iter().all(|number| number.parse::<u32>().is_ok())
}

/// Checks that `cargo xtask` does not change the lock file. Otherwise later checks would examine what it has
/// just written.
pub(super) fn alias(cargo: &str, findings: &mut Vec<String>) {
    let alias = cargo.lines().find(|line| line.starts_with("xtask = "));
    if !alias.is_some_and(|alias| alias.contains("run --locked ")) {
        findings.push(".cargo/config.toml: the alias 'xtask' is not 'run --locked ..'".to_owned());
    }
}

/// Checks that each tool that Cargo installs has a version, the same wherever it is named, and `--locked`.
pub(super) fn tools(texts: &BTreeMap<String, String>, findings: &mut Vec<String>) {
    let mut versions: BTreeMap<&str, BTreeMap<&str, String>> = BTreeMap::new();
    for (path, text) in texts {
        for (line, number) in text.lines().zip(1..) {
            for command in line.split("cargo install ").skip(1) {
                let mut words = command
                    .split_whitespace()
                    .map(|word| word.trim_end_matches(['`', '"', ')', ',', ';', '.']));
                let locked = words.next() == Some("--locked");
                let tool = words.next();
                // The lock file of the checkout contains the versions.
                if locked && tool == Some("--path") {
                    continue;
                }
                match tool
                    .and_then(|tool| tool.split_once('@'))
                    .filter(|(_, version)| locked && is_version(version))
                {
                    Some((tool, version)) => {
                        versions.entry(tool).or_default().insert(version, format!("{path}:{number}"));
                    }
                    None => findings.push(format!(
                        "{path}:{number}: a tool without a version or --locked: write \
                         'cargo install --locked NAME@MAJOR.MINOR.PATCH'"
                    )),
                }
            }
        }
    }
    for (tool, versions) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
        let all: Vec<String> =
            versions.iter().map(|(version, place)| format!("{version} ({place})")).collect();
        findings.push(format!("{tool} has different versions: {}", all.join(", ")));
    }
}
