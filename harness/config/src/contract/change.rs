//! Changes of the framework on which rows and claims are based.

use serde::Deserialize;

/// A change of the framework `k8s.io/cloud-provider`. CCMs are judged by the version that they declare.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Its name in rows and claims.
    pub name: String,
    /// The version of the framework with the change, such as `1.36`.
    pub version: String,
    /// The change, as a sentence.
    pub change: String,
    /// The behaviour of older versions, as a sentence.
    pub older: String,
    /// The source.
    pub source: String,
}

/// From which version of the framework on something applies that is based on the change with this name, as text.
pub(super) fn since_in_words(changes: &[Change], name: &str) -> String {
    let change = changes.iter().find(|change| change.name == name);
    format!("from framework {} on", change.map_or(name, |change| change.version.as_str()))
}
