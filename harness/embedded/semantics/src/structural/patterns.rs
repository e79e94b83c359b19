//! The patterns of a schema, each read once.
//!
//! They are written for Go's `regexp`, whose language is nearly that of the library here.

use std::collections::BTreeMap;

use regex::{Regex, RegexBuilder};
use serde_json::Value;

use crate::value::Look as _;

/// What a pattern may take in memory, bytes: the least of these that suffices counts.
const SIZES: [usize; 4] = [1 << 14, 1 << 16, 1 << 18, 1 << 22];
/// What the patterns of one schema may take together, bytes.
const MOST: usize = 16 << 20;

/// The patterns of a schema by their text. One that cannot be read here, or is too large, is not among them: it holds for
/// every text, and whoever writes the definition is warned ([`Patterns::unread`]).
#[derive(Debug, Default)]
pub(crate) struct Patterns {
    read: BTreeMap<String, Regex>,
    unread: BTreeMap<String, String>,
    /// What they take in memory, bytes.
    weight: usize,
}

impl Patterns {
    /// Those of a schema.
    pub(crate) fn of(schema: &Value) -> Self {
        let mut patterns = Self::default();
        patterns.gather(schema);
        patterns
    }

    fn gather(&mut self, schema: &Value) {
        let Some(parts) = schema.as_object() else { return };
        let pattern = schema.text("pattern");
        if !pattern.is_empty() && !self.read.contains_key(pattern) && !self.unread.contains_key(pattern) {
            self.add(pattern);
        }
        for (name, part) in parts {
            match (name.as_str(), part) {
                ("properties", Value::Object(named)) => named.values().for_each(|inner| self.gather(inner)),
                ("items" | "additionalProperties" | "not", inner) => self.gather(inner),
                ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => {
                    all.iter().for_each(|inner| self.gather(inner))
                }
                _ => {}
            }
        }
    }

    fn add(&mut self, pattern: &str) {
        let mut failed = "the patterns of this schema are too large together".to_owned();
        let mut tried = 0;
        for size in SIZES.into_iter().filter(|size| self.weight + size <= MOST) {
            tried = SIZES[2];
            match RegexBuilder::new(pattern).size_limit(size).dfa_size_limit(size).build() {
                Ok(regex) => {
                    self.weight += size;
                    self.read.insert(pattern.to_owned(), regex);
                    return;
                }
                Err(regex::Error::CompiledTooBig(_)) => failed = format!("it takes more than {size} bytes"),
                Err(why) => {
                    failed = why.to_string();
                    break;
                }
            }
        }
        // To find one too large costs time.
        self.weight += tried;
        self.unread.insert(pattern.to_owned(), failed);
    }

    /// What they take in memory, bytes.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    /// Whether a text is what a pattern says.
    pub(super) fn matches(&self, pattern: &str, text: &str) -> bool {
        self.read.get(pattern).is_none_or(|regex| regex.is_match(text))
    }

    /// The patterns that no text is held to, with the reason.
    pub(crate) fn unread(&self) -> impl Iterator<Item = (&str, &str)> {
        self.unread.iter().map(|(pattern, why)| (pattern.as_str(), why.as_str()))
    }
}

impl PartialEq for Patterns {
    fn eq(&self, other: &Self) -> bool {
        self.read.keys().eq(other.read.keys()) && self.unread == other.unread
    }
}

impl Eq for Patterns {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patterns_are_read_wherever_they_stand_and_bounded() {
        let text = |pattern: &str| json!({"type": "string", "pattern": pattern});
        let schema = json!({"type": "object", "properties": {
            "pattern": text("^[a-z]+$"),
            "list": {"type": "array", "items": text("^\\p{L}.{1,200}$")},
            "map": {"type": "object", "additionalProperties": {"anyOf": [text("^(?i)x$"), {"not": text("[0-9]")}]}},
            "large": text("^(\\w{1,300}){1,300}$"), "long": text("^.{1,1024}$"), "wrong": text("["), "again": text("[0-9]")}});
        let patterns = Patterns::of(&schema);
        let read: Vec<&String> = patterns.read.keys().collect();
        assert_eq!(
            read,
            ["[0-9]", "^(?i)x$", "^.{1,1024}$", "^[a-z]+$", "^\\p{L}.{1,200}$"],
            "{:?}",
            patterns.unread
        );
        let unread: Vec<&str> = patterns.unread().map(|(pattern, _)| pattern).collect();
        assert_eq!(unread, ["[", "^(\\w{1,300}){1,300}$"]);
        assert!(patterns.matches("^[a-z]+$", "abc") && !patterns.matches("^[a-z]+$", "1"));
        assert!(patterns.matches("[", "anything"));
    }

    #[test]
    fn many_patterns_take_no_more_than_they_may() {
        let named: serde_json::Map<String, Value> = (0..400)
            .map(|at| (at.to_string(), json!({"type": "string", "pattern": format!("^{at}.{{1,100}}$")})))
            .collect();
        let patterns = Patterns::of(&json!({"type": "object", "properties": named}));
        assert!(patterns.weight() < MOST + SIZES[3], "{}", patterns.weight());
        let (read, unread) = (patterns.read.len(), patterns.unread.len());
        assert!(read > 8 && unread > 0 && read + unread == 400, "{read} and {unread}");
    }
}
