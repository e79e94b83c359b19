//! YAML in and out: the only code that names a YAML crate.
//!
//! Reads the same YAML as `kubectl apply`, in the same way: plain `yes`, `no`, `on`, `off`, `y` and `n` are
//! booleans, `0644` is octal and `1_000` a number, as in YAML 1.1 (`sigs.k8s.io/yaml`,
//! `goyaml.v2/resolve.go`). Two differences, both on the strict side: a key given twice is an error, and so
//! are `.inf` and `.nan`, which JSON cannot represent. A key that looks like a boolean stays text (`kubectl`
//! turns a plain key `on` into `true`).
//!
//! A text field gets the text as it was written: `version: 1.30` is `1.30`, never `1.3`.

use serde::de::{DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_saphyr::Spanned;
use std::fmt;
use std::path::{Path, PathBuf};

/// A text that is not the expected YAML.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {what}", file.display(), place(*line, *column))]
pub struct YamlError {
    /// The file, as it was named.
    pub file: PathBuf,
    /// Line, counted from 1; 0 if the fault has no place.
    pub line: u64,
    /// Column, counted from 1; 0 if the fault has no place.
    pub column: u64,
    /// The fault, without its place.
    pub what: String,
}

fn place(line: u64, column: u64) -> String {
    if line == 0 { String::new() } else { format!(":{line}:{column}") }
}

/// Reads one document into `T`. `file` is named in errors and not read.
///
/// # Errors
/// The text is not YAML, contains more than one document, repeats a key or does not fit `T`.
pub fn from_str<T: DeserializeOwned>(text: &str, file: &Path) -> Result<T, YamlError> {
    serde_saphyr::from_str_with_options(text, options()).map_err(|e| error(text, file, &e))
}

/// Reads every document of a manifest; empty ones are left out. `file` is named in errors and not read.
///
/// # Errors
/// The text is not YAML or repeats a key.
pub fn from_str_multi(text: &str, file: &Path) -> Result<Vec<Value>, YamlError> {
    serde_saphyr::from_multiple_with_options(text, options()).map_err(|e| error(text, file, &e))
}

/// Writes one document. Texts that another parser could take for a number or a boolean are quoted, lines are
/// never folded, and texts with several lines become literal blocks if YAML allows it.
///
/// # Errors
/// `value` contains something that YAML cannot represent.
pub fn to_string<T: Serialize>(value: &T) -> Result<String, YamlError> {
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    serde_saphyr::to_string_with_options(value, options).map_err(|e| YamlError {
        file: PathBuf::from("YAML output"),
        line: 0,
        column: 0,
        what: e.to_string(),
    })
}

/// The limit for the expansion of aliases, in the parser's events: more than any manifest has, and read in
/// under a second.
const MOST_UNFOLDED: usize = 100_000;

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        legacy_octal_numbers: true,
        with_snippet: false,
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MOST_UNFOLDED },
    }
}

/// The number of the first line that is indented with a tab, which YAML does not allow.
fn line_with_a_tab(text: &str) -> Option<usize> {
    let is = |line: &str| line.chars().take_while(|sign| sign.is_whitespace()).any(|sign| sign == '\t');
    text.lines().position(|line| is(line) && !line.trim().is_empty()).map(|at| at + 1)
}

fn error(text: &str, file: &Path, error: &serde_saphyr::Error) -> YamlError {
    let (line, column) = error.location().map_or((0, 0), |at| (at.line(), at.column()));
    let what = match error.without_snippet() {
        serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the key '{key}' is given twice")
        }
        serde_saphyr::Error::DuplicateMappingKey { key: None, .. } => String::from("a key is given twice"),
        serde_saphyr::Error::MultipleDocuments { .. } => {
            String::from("another document begins here ('---'), and this file must contain only one")
        }
        other => {
            let said = other.to_string();
            match said.rsplit_once(" at line ") {
                Some((what, _)) => what.to_owned(),
                None => said,
            }
        }
    };
    let tab = line_with_a_tab(text)
        .filter(|_| !what.contains("tabs"))
        .map(|at| format!("; line {at} is indented with a tab; use spaces"));
    let near = usize::try_from(line).unwrap_or_default().saturating_sub(2);
    let mut near = text.lines().skip(near).take(2);
    let is_cut = what.contains("flow mapping") && near.any(|line| line.contains("${"));
    let quote = is_cut.then(|| "; quote '${...}': its brace ends the mapping".to_owned());
    let what = what + &tab.or(quote).unwrap_or_default();
    YamlError { file: file.to_owned(), line, column, what }
}

/// A value with its place in the text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    /// Line, counted from 1.
    pub(crate) line: u64,
    /// The value.
    pub(crate) tree: Tree,
}

/// A value as it was written: plain scalars keep their spelling.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tree {
    /// Nothing, `~` or `null`, and which of them.
    Null(String),
    /// A boolean.
    Bool(bool),
    /// A number and how it was written.
    Number(serde_json::Number, String),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// Keys, each with its line, in the order of the file.
    Map(Vec<(String, Node)>),
}

impl Tree {
    /// Merges another tree into this one: tables are merged, everything else is replaced.
    pub(crate) fn overlay(&mut self, other: Tree) {
        match (self, other) {
            (Tree::Map(mine), Tree::Map(others)) => {
                for (key, value) in others {
                    match mine.iter_mut().find(|(known, _)| *known == key) {
                        Some((_, node)) => node.tree.overlay(value.tree),
                        None => mine.push((key, value)),
                    }
                }
            }
            (mine, other) => *mine = other,
        }
    }
}

/// Reads one document with places; an empty text is `Null`.
///
/// # Errors
/// As [`from_str`].
pub(crate) fn tree(text: &str, file: &Path) -> Result<Node, YamlError> {
    let raw: Option<Spanned<Raw>> = from_str(text, file)?;
    Ok(raw.map_or(Node { line: 1, tree: Tree::Null(String::new()) }, |raw| node(&raw, text)))
}

impl From<Value> for Tree {
    /// Converts a value that came from no text: lines are 0.
    fn from(value: Value) -> Tree {
        let node = |value| Node { line: 0, tree: Tree::from(value) };
        match value {
            Value::Null => Tree::Null(String::new()),
            Value::Bool(value) => Tree::Bool(value),
            Value::Number(value) => Tree::Number(value.clone(), value.to_string()),
            Value::String(value) => Tree::Text(value),
            Value::Array(items) => Tree::List(items.into_iter().map(node).collect()),
            Value::Object(map) => Tree::Map(map.into_iter().map(|(key, value)| (key, node(value))).collect()),
        }
    }
}

/// Values as the deserialiser passes them; [`node`] adds the spelling.
enum Raw {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    Text(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<String>, Spanned<Raw>)>),
}

fn node(raw: &Spanned<Raw>, text: &str) -> Node {
    let tree = match &raw.value {
        Raw::Null => Tree::Null(spelling(raw, text).unwrap_or_default()),
        Raw::Bool(value) => Tree::Bool(*value),
        Raw::Number(value) => {
            Tree::Number(value.clone(), spelling(raw, text).unwrap_or_else(|| value.to_string()))
        }
        Raw::Text(value) => Tree::Text(value.clone()),
        Raw::List(items) => Tree::List(items.iter().map(|item| node(item, text)).collect()),
        Raw::Map(entries) => Tree::Map(
            entries
                .iter()
                .map(|(key, value)| {
                    let inner = node(value, text);
                    (key.value.clone(), Node { line: key.referenced.line(), tree: inner.tree })
                })
                .collect(),
        ),
    };
    Node { line: raw.referenced.line(), tree }
}

fn spelling(raw: &Spanned<Raw>, text: &str) -> Option<String> {
    let span = raw.defined.span();
    let start = usize::try_from(span.byte_offset()?).ok()?;
    let length = usize::try_from(span.byte_len()?).ok()?;
    text.get(start..start.checked_add(length)?).map(|s| s.trim().to_owned()).filter(|s| !s.is_empty())
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        Raw::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Raw, E> {
        serde_json::Number::from_f64(value).map(Raw::Number).ok_or_else(|| E::custom("a number without end"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Raw, E> {
        Ok(Raw::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Raw::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Raw, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Raw::Map(map))
    }
}
