//! Compares a file with its schema.
//!
//! This finds all faults of form at once, with line and key path, and passes on the valid part. Typed
//! deserialisation comes after it and therefore finds no more faults.

use super::formats;
use super::problem::{KNOWN_KEYS, Origin, Problem, Problems, did_you_mean, nearest};
use super::schema::{join, keys, paths, required, words};
use super::yaml::{Node, Tree};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// The line of each key path in a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Places(BTreeMap<String, u64>);

impl Places {
    /// The line of `key`, or of the nearest table around it that exists.
    pub(crate) fn line(&self, key: &str) -> Option<u64> {
        let mut path = key;
        loop {
            if let Some(line) = self.0.get(path) {
                return Some(*line);
            }
            path = &path[..path.rfind(['.', '['])?];
        }
    }

    /// Whether the file has the key.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }
}

/// Compares a file with its schema. Returns the valid part and its lines; invalid values, and keys without a
/// value, are left out. Settings of the command line (no `file`) need not have the required keys.
pub(crate) fn walk(
    root: &Node,
    schema: &Value,
    file: Option<&Path>,
    problems: &mut Problems,
) -> (Map<String, Value>, Places) {
    let mut walk = Walk { file, root: schema, problems, places: Places::default() };
    let sound = match walk.table(root, schema, "") {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    };
    (sound, walk.places)
}

struct Walk<'a> {
    file: Option<&'a Path>,
    root: &'a Value,
    problems: &'a mut Problems,
    places: Places,
}

impl Walk<'_> {
    fn report(&mut self, line: Option<u64>, path: &str, what: String) {
        let origin = match self.file {
            Some(file) => Origin::File { path: file.to_owned(), line },
            None => Origin::CommandLine,
        };
        self.problems.0.push(Problem { origin, key: path.to_owned(), what });
    }

    fn problem(&mut self, node: &Node, path: &str, what: String) -> Option<Value> {
        self.report(Some(node.line), path, what);
        None
    }

    fn value(&mut self, node: &Node, schema: &Value, path: &str) -> Option<Value> {
        self.places.0.insert(path.to_owned(), node.line);
        match type_of(schema) {
            "object" if schema.get("propertyNames").is_some() => self.free_table(node, schema, path),
            "object" => self.table(node, schema, path),
            "array" => self.list(node, schema, path),
            _ => without_nul(&node.tree)
                .and_then(|()| scalar(&node.tree, schema))
                .map_err(|what| self.problem(node, path, what))
                .ok(),
        }
    }

    fn table(&mut self, node: &Node, schema: &Value, path: &str) -> Option<Value> {
        let none = Vec::new();
        let entries = match &node.tree {
            Tree::Map(entries) => entries,
            Tree::Null(_) => &none,
            other => return self.problem(node, path, wrong_type(&expected_keys(schema), other)),
        };
        let mut sound = Map::new();
        for (name, value) in entries {
            let inner = join(path, name);
            match keys(schema).find(|(key, _)| key == name) {
                Some((_, of_key)) if matches!(value.tree, Tree::Null(_)) => {
                    self.absent(value, of_key, &inner)
                }
                Some((_, of_key)) => {
                    if let Some(value) = self.value(value, of_key, &inner) {
                        sound.insert(name.clone(), value);
                    }
                }
                None => {
                    let what = self.unknown(name, schema);
                    self.problem(value, &inner, what);
                }
            }
        }
        if self.file.is_some() {
            let given = |key: &str| entries.iter().any(|(name, node)| name == key && !is_null(node));
            let missing: Vec<&str> = required(schema).filter(|key| !given(key)).collect();
            for key in missing {
                let of_key = &schema["properties"][key];
                let say = match (of_key["x-missing"].as_str(), of_key["const"].as_str()) {
                    (Some(say), _) => format!("; {say}"),
                    (None, Some(only)) => format!("; write '{key}: {only}'"),
                    (None, None) => String::new(),
                };
                let inner = join(path, key);
                self.report(self.places.line(&inner), &inner, format!("is missing{say}"));
            }
        }
        Some(Value::Object(sound))
    }

    /// A key without a value counts as absent, unless `null` may have been meant as a text.
    fn absent(&mut self, node: &Node, schema: &Value, path: &str) {
        self.places.0.insert(path.to_owned(), node.line);
        let text = type_of(schema) == "string" && words(schema).is_empty();
        if let Tree::Null(word) = &node.tree
            && text
            && word.eq_ignore_ascii_case("null")
        {
            let what = format!("'{word}' means no value; quote it to mean the text, or leave the key out");
            self.problem(node, path, what);
        }
    }

    fn unknown(&self, name: &str, schema: &Value) -> String {
        let known: Vec<&str> = keys(schema).map(|(key, _)| key).collect();
        if let Some(near) = nearest(name, &known) {
            return format!("unknown key; did you mean '{near}'?");
        }
        let elsewhere = paths(self.root).into_iter().map(|(path, ..)| path);
        match elsewhere.into_iter().find(|path| path.rsplit('.').next() == Some(name)) {
            Some(path) => format!("unknown key here; did you mean '{path}'?"),
            None => format!("unknown key{KNOWN_KEYS}{}", known.join(", ")),
        }
    }

    fn list(&mut self, node: &Node, schema: &Value, path: &str) -> Option<Value> {
        let Tree::List(items) = &node.tree else {
            return self.problem(node, path, wrong_type(&expected_list(schema), &node.tree));
        };
        // Words of a fixed choice may be repeated without effect.
        let choice = !words(&schema["items"]).is_empty();
        for (at, item) in items.iter().enumerate() {
            if let Tree::Text(word) = &item.tree
                && choice
                && items[..at].iter().any(|before| matches!(&before.tree, Tree::Text(one) if one == word))
            {
                self.problem(item, &format!("{path}[{at}]"), format!("'{word}' is listed twice"));
            }
        }
        let items = items.iter().enumerate();
        let sound =
            items.filter_map(|(at, item)| self.value(item, &schema["items"], &format!("{path}[{at}]")));
        Some(Value::Array(sound.collect()))
    }

    fn free_table(&mut self, node: &Node, schema: &Value, path: &str) -> Option<Value> {
        let Tree::Map(entries) = &node.tree else {
            return self.problem(node, path, wrong_type(KEYS_AND_VALUES, &node.tree));
        };
        let mut sound = Map::new();
        for (name, value) in entries {
            let inner = join(path, name);
            if let Err(why) = key_of_free_table(name, &schema["propertyNames"]) {
                self.problem(value, &inner, why);
            } else if let Some(value) = self.value(value, &schema["additionalProperties"], &inner) {
                sound.insert(name.clone(), value);
            }
        }
        Some(Value::Object(sound))
    }
}

fn key_of_free_table(name: &str, schema: &Value) -> Result<(), String> {
    let known = words(schema);
    if known.is_empty() {
        return formats::check(schema["format"].as_str().unwrap_or_default(), name);
    }
    if known.contains(&name) {
        return Ok(());
    }
    Err(match nearest(name, &known) {
        Some(near) => format!("unknown key; did you mean '{near}'?"),
        None => format!("unknown key{KNOWN_KEYS}{}", known.join(", ")),
    })
}

/// Checks for NUL, which no argument, variable or path can contain.
fn without_nul(tree: &Tree) -> Result<(), String> {
    match tree {
        Tree::Text(text) if text.contains('\0') => Err("holds a NUL, which no text here may".to_owned()),
        _ => Ok(()),
    }
}

fn scalar(tree: &Tree, schema: &Value) -> Result<Value, String> {
    let known = words(schema);
    match (tree, type_of(schema)) {
        (Tree::Bool(value), "boolean") => Ok(Value::from(*value)),
        (Tree::Number(number, _), "integer" | "number") => {
            let whole = type_of(schema) == "number" || number.is_u64();
            let bound = |key: &str| schema[key].as_f64();
            let value = number.as_f64().unwrap_or(f64::NAN);
            let inside = bound("minimum").is_none_or(|least| value >= least)
                && bound("maximum").is_none_or(|most| value <= most);
            if whole && inside {
                Ok(Value::Number(number.clone()))
            } else {
                Err(format!("{number} is out of range; {}", expected(schema)))
            }
        }
        (Tree::Text(text), "string") if !known.is_empty() => match known.contains(&text.as_str()) {
            true => Ok(Value::from(text.clone())),
            false => Err(format!("'{text}' is none of {}{}", known.join(", "), did_you_mean(text, &known))),
        },
        // A number counts as the text that was written.
        (Tree::Text(text) | Tree::Number(_, text), "string") if known.is_empty() => {
            if let Some(only) = schema["const"].as_str().filter(|only| only != text) {
                return Err(format!("'{text}' is not understood here; write '{only}'"));
            }
            if schema.get("minLength").is_some() && text.trim().is_empty() {
                return Err(format!("'{text}' is empty"));
            }
            formats::check(schema["format"].as_str().unwrap_or_default(), text)
                .map_err(|why| format!("'{text}': {why}"))?;
            Ok(Value::from(text.clone()))
        }
        (tree, _) => Err(wrong_type(&expected(schema), tree)),
    }
}

fn type_of(schema: &Value) -> &str {
    // Words with descriptions are a choice of constants, which are texts.
    schema["type"].as_str().unwrap_or("string")
}

fn is_null(node: &Node) -> bool {
    matches!(node.tree, Tree::Null(_))
}

fn expected(schema: &Value) -> String {
    let range = match &schema["maximum"] {
        Value::Null => format!("from {} on", schema["minimum"]),
        most => format!("from {} to {most}", schema["minimum"]),
    };
    match type_of(schema) {
        "boolean" => String::from("true or false"),
        "integer" => format!("a whole number {range}"),
        "number" => format!("a number {range}"),
        _ if words(schema).is_empty() => String::from("text"),
        _ => format!("one of {}", words(schema).join(", ")),
    }
}

const KEYS_AND_VALUES: &str = "keys and values";

/// What a table must contain: the first keys that it can have.
fn expected_keys(schema: &Value) -> String {
    const SHOWN: usize = 3;
    let names: Vec<&str> = keys(schema).take(SHOWN).map(|(key, _)| key).collect();
    match names.as_slice() {
        [] => KEYS_AND_VALUES.to_owned(),
        names => format!("{KEYS_AND_VALUES} (such as {})", names.join(", ")),
    }
}

/// What a list looks like: the example of its schema, or one item.
fn expected_list(schema: &Value) -> String {
    let example = schema["examples"][0].as_array().cloned().or_else(|| {
        let words = words(&schema["items"]);
        let item = schema["items"]["examples"][0].as_str().or(words.first().copied())?;
        Some(vec![Value::from(item)])
    });
    match example {
        Some(example) => {
            let items: Vec<String> = example
                .iter()
                .map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned))
                .collect();
            format!("a list such as [{}]", items.join(", "))
        }
        None => String::from("a list"),
    }
}

fn wrong_type(expected: &str, tree: &Tree) -> String {
    let found = match tree {
        Tree::Null(_) => String::from("nothing"),
        Tree::Bool(value) => format!("the truth value {value} (quote it to mean the text)"),
        Tree::Number(_, text) => format!("the number {text}"),
        Tree::Text(text) => format!("the text '{text}'"),
        Tree::List(_) => String::from("a list"),
        Tree::Map(_) => String::from("keys and values"),
    };
    let were = if expected.starts_with(KEYS_AND_VALUES) { "were" } else { "was" };
    format!("{expected} {were} expected, found {found}")
}
