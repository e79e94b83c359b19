//! Changes of the framework on which rows and claims are based.

use super::Contract;
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

impl Contract {
    /// The change with this name.
    pub fn change(&self, name: &str) -> Option<&Change> {
        self.changes.iter().find(|change| change.name == name)
    }

    /// From which version of the framework on something applies that is based on this change, as text.
    pub(super) fn since_in_words(&self, change: &str) -> String {
        let version = self.change(change).map_or(change, |change| change.version.as_str());
        format!("from framework {version} on")
    }

    /// The ids of rows and checks that are based on this change, for the page.
    #[cfg(test)]
    pub(super) fn based_on(&self, change: &Change) -> Vec<String> {
        let is_it = |since: &Option<String>| since.as_ref() == Some(&change.name);
        let of = |row: &super::Row| {
            let claims = row.claims.iter().filter(|claim| is_it(&claim.since)).map(|claim| claim.check(row));
            is_it(&row.since).then(|| row.id.clone()).into_iter().chain(claims).collect::<Vec<_>>()
        };
        self.rows().flat_map(|(_, row)| of(row)).collect()
    }
}
