//! The checks of each version of the harness: a report is verified against the list of the version that created it.
//!
//! The lists are files of the program in `golden`, each for one version or for several with the same checks. That of the
//! version in work, `golden/VERSION.yaml`, is written by a test (`REWRITE_DOCUMENTS=1 cargo test -p ccm-conformance --test golden`) and
//! compared by the same test without the variable; those of released versions never change.

use harness_config::contract::ConformanceProfile;
use harness_config::yaml;
use harness_core::check::Level;
use harness_core::files;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// A cache of the lists: they are part of the program and never change.
static READ: Mutex<BTreeMap<String, Golden>> = Mutex::new(BTreeMap::new());

/// A check in a version of the harness.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoldenCheck {
    /// Its id.
    pub id: String,
    /// Its suite.
    pub suite: String,
    /// Its level for CCMs that use the framework.
    pub level: Level,
    /// Whether this level only applies to CCMs that use the framework; for others a MUST is a SHOULD, and a SHOULD is only
    /// recorded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub framework: bool,
    /// The first minor version of the framework to which the level applies; before that it is only recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u32>,
    /// Its claim.
    pub title: String,
}

impl GoldenCheck {
    /// Its level for a CCM with this version of the framework (`1.36`), or without the framework.
    pub fn level_for(&self, framework: Option<&str>) -> Level {
        let minor = framework.and_then(|version| version.strip_prefix("1.")?.parse::<u32>().ok());
        if self.since.is_some_and(|since| minor.is_some_and(|minor| minor < since)) {
            Level::Info
        } else if self.framework && framework.is_none() {
            self.level.softer()
        } else {
            self.level
        }
    }
}

/// The checks of one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Golden {
    /// The harness's version.
    pub version: String,
    /// Its profiles of conformance.
    pub profiles: Vec<ConformanceProfile>,
    /// Its checks, in the order of its reports.
    pub checks: Vec<GoldenCheck>,
}

/// A file of `golden`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GoldenFile {
    /// The versions that have these checks.
    versions: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    profiles: Vec<ConformanceProfile>,
    checks: Vec<GoldenCheck>,
}

impl Golden {
    /// The list of a version; `None` if this program does not know the version.
    ///
    /// # Errors
    /// The list is invalid.
    pub fn of(version: &str) -> Result<Option<Golden>, yaml::YamlError> {
        let mut read = READ.lock().expect("no holder of this lock panics");
        if read.is_empty() {
            for path in files::list(&files::built_in("golden")).unwrap_or_default() {
                let Ok(text) = files::read(&path) else { continue };
                let GoldenFile { versions, profiles, checks } = yaml::from_str(&text, &path)?;
                read.extend(versions.into_iter().map(|version| {
                    let golden = Golden {
                        version: version.clone(),
                        profiles: profiles.clone(),
                        checks: checks.clone(),
                    };
                    (version, golden)
                }));
            }
        }
        Ok(read.get(version).cloned())
    }

    /// The versions that this program knows.
    ///
    /// # Errors
    /// As [`Golden::of`].
    pub fn versions() -> Result<Vec<String>, yaml::YamlError> {
        Golden::of("")?;
        Ok(READ.lock().expect("no holder of this lock panics").keys().cloned().collect())
    }

    /// The text of a file with this list, for this version only.
    ///
    /// # Errors
    /// A text contains characters that YAML cannot represent.
    pub fn to_yaml(&self) -> Result<String, yaml::YamlError> {
        let Golden { version, profiles, checks } = self.clone();
        yaml::to_string(&GoldenFile { versions: vec![version], profiles, checks })
    }

    /// Identifies the set of checks: the first 12 digits of the SHA-256 of ids, levels and titles.
    pub fn check_set(&self) -> String {
        let mut hash = Sha256::new();
        for check in &self.checks {
            hash.update(format!("{} {} {}\n", check.id, check.level, check.title));
        }
        hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_one_file_have_the_same_checks() {
        assert_eq!(Golden::versions().expect("sound lists")[..2], ["0.1.0", "0.2.0"]);
        let of = |version: &str| Golden::of(version).expect("a sound list").expect("a known version");
        let (first, second) = (of("0.1.0"), of("0.2.0"));
        assert_eq!((first.version.as_str(), second.version.as_str()), ("0.1.0", "0.2.0"));
        assert_eq!(first.check_set(), second.check_set());
        assert!(Golden::of("0.0.0").expect("sound lists").is_none());
        let read: GoldenFile =
            yaml::from_str(&first.to_yaml().expect("plain data"), "golden".as_ref()).expect("as written");
        assert_eq!((read.versions, read.checks), (vec!["0.1.0".to_owned()], first.checks));
    }
}
