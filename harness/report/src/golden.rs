//! The checks that each version of the harness has: a report is held against the list of the version that made it.
//!
//! The lists are files of the program, `golden/VERSION.yaml`. That of the version in work is written by a test
//! (`REWRITE_DOCUMENTS=1 cargo test -p suites --test golden`) and compared by the same test without the variable; those of
//! released versions never change.

use harness_config::contract::ConformanceProfile;
use harness_config::yaml;
use harness_core::check::Level;
use harness_core::files;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The lists that were read already: they are parts of the program and never change.
static READ: Mutex<BTreeMap<String, Golden>> = Mutex::new(BTreeMap::new());

/// A check as a version of the harness has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoldenCheck {
    /// Its id.
    pub id: String,
    /// Its suite.
    pub suite: String,
    /// How binding it is for CCMs of the framework.
    pub level: Level,
    /// Whether it binds CCMs of the framework only; for others a MUST is a SHOULD, and a SHOULD is recorded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub framework: bool,
    /// The minor version of the framework before which it is recorded and not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u32>,
    /// Its claim.
    pub title: String,
}

impl GoldenCheck {
    /// How binding it is for a CCM built on this version of the framework (`1.36`), or on none.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Golden {
    /// The harness's version.
    pub version: String,
    /// Its profiles of conformance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<ConformanceProfile>,
    /// Its checks, in the order of its reports.
    pub checks: Vec<GoldenCheck>,
}

impl Golden {
    /// The list of a version; `None` for one that this program does not know.
    ///
    /// # Errors
    /// The list is broken.
    pub fn of(version: &str) -> Result<Option<Golden>, yaml::YamlError> {
        let mut read = READ.lock().expect("no holder of this lock panics");
        if let Some(golden) = read.get(version) {
            return Ok(Some(golden.clone()));
        }
        let path = files::built_in(&format!("golden/{version}.yaml"));
        let Ok(text) = files::read(&path) else { return Ok(None) };
        let golden: Golden = yaml::from_str(&text, &path)?;
        read.insert(version.to_owned(), golden.clone());
        Ok(Some(golden))
    }

    /// The versions that this program knows.
    pub fn versions() -> Vec<String> {
        let listed = files::list(&files::built_in("golden")).unwrap_or_default();
        let name = |file: &std::path::PathBuf| Some(file.file_stem()?.to_string_lossy().into_owned());
        listed.iter().filter_map(name).collect()
    }

    /// Identifies the set of checks: SHA-256 over ids, levels and titles, first 12 digits.
    pub fn check_set(&self) -> String {
        let mut hash = Sha256::new();
        for check in &self.checks {
            hash.update(format!("{} {} {}\n", check.id, check.level, check.title));
        }
        hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
    }
}
