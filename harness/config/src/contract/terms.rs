//! What tables abbreviate: files of Kubernetes, and how long things may take.

use serde::Deserialize;
use std::collections::BTreeMap;

/// What tables abbreviate, each with its meaning.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// What the index of the pages says before its lists, in Markdown.
    pub about: String,
    /// The version of Kubernetes whose files `sources` are.
    pub kubernetes: String,
    /// Files, by their abbreviation.
    pub sources: BTreeMap<String, String>,
    /// How long is waited for something, or watched, by name.
    pub bounds: BTreeMap<String, String>,
}

impl Terms {
    /// A row's source with its files named in full.
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

    /// The bounds that a text names, with what they are.
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
