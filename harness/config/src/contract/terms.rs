//! The abbreviations in the tables: files of Kubernetes, and time limits.

use serde::Deserialize;
use std::collections::BTreeMap;

/// The abbreviations in the tables, with their meaning.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// The text of the index before its lists, in Markdown.
    pub about: String,
    /// The version of Kubernetes that the files in `sources` belong to.
    pub kubernetes: String,
    /// Files, by their abbreviation.
    pub sources: BTreeMap<String, String>,
    /// The limits of waits and watches, by name.
    pub bounds: BTreeMap<String, String>,
}

impl Terms {
    /// A row's source with the full names of files.
    pub fn source(&self, text: &str) -> String {
        let part = |part: &str| {
            let part = part.trim();
            let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(part.len());
            match self.sources.get(&part[..end]) {
                Some(file) => format!("{file}{}", &part[end..]),
                None => part.to_owned(),
            }
        };
        text.split(';').map(part).collect::<Vec<_>>().join("; ")
    }

    /// The limits that a text names, with their values.
    pub fn bounds(&self, text: &str) -> Vec<(&str, &str)> {
        let named = |name: &str| {
            let mut places = text.match_indices(name);
            places.any(|(at, _)| {
                let next = text[at + name.len()..].chars().next();
                !next.is_some_and(|c| c.is_ascii_alphanumeric() || c == '-')
            })
        };
        self.bounds.iter().filter(|(name, _)| named(name)).map(|(a, b)| (a.as_str(), b.as_str())).collect()
    }
}
