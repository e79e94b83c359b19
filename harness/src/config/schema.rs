//! A file's schema as data, and the walk that holds a file against it.
//!
//! The walk finds every fault of form at once, with line and key path, and hands on what is sound. Typed
//! deserialisation comes after it and therefore has nothing left to refuse.

use super::API_VERSION;
use super::problem::{Origin, Problem, Problems, did_you_mean, nearest};
use super::yaml::{Node, Tree};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// A key of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// Its name.
    pub(crate) name: &'static str,
    /// What stands there.
    pub(crate) kind: &'static Kind,
    /// Names it had in earlier versions of the format; using one fails and says the new one.
    pub(crate) formerly: &'static [&'static str],
}

/// Shorthand for a [`Key`] that was never renamed.
pub(crate) const fn key(name: &'static str, kind: &'static Kind) -> Key {
    Key { name, kind, formerly: &[] }
}

/// What may stand under a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Text, not empty; a number counts as its spelling.
    Text,
    /// Text that a function accepts, or refuses with a reason.
    Form(fn(&str) -> Result<(), String>),
    /// One of these words.
    Word(&'static [&'static str]),
    /// `true` or `false`.
    Switch,
    /// A whole number in a range.
    Whole(u64, u64),
    /// A number in a range.
    Factor(f64, f64),
    /// A list.
    List(&'static Kind),
    /// Known keys.
    Table(&'static [Key]),
    /// Keys that a function accepts, all of one kind.
    Free(fn(&str) -> Result<(), String>, &'static Kind),
}

/// The line of each key path that a file holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Places(pub(crate) BTreeMap<String, u64>);

impl Places {
    /// The line of `key`, or of the nearest table around it that is there.
    pub(crate) fn line(&self, key: &str) -> Option<u64> {
        let mut path = key;
        loop {
            if let Some(line) = self.0.get(path) {
                return Some(*line);
            }
            path = &path[..path.rfind(['.', '['])?];
        }
    }
}

/// Holds a file (`None`: the command line) against its schema. Returns what is sound in it and where it stands; what is not, and keys without
/// a value, are left out.
pub(crate) fn walk(
    root: &Node,
    keys: &'static [Key],
    file: Option<&Path>,
    problems: &mut Problems,
) -> (Map<String, Value>, Places) {
    let mut walk = Walk { file, root: keys, problems, places: Places::default() };
    let sound = match walk.table(root, keys, "") {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    };
    (sound, walk.places)
}

/// Checks the two keys every file opens with.
pub(crate) fn header(
    sound: &Map<String, Value>,
    kind: &str,
    places: &Places,
    file: &Path,
    problems: &mut Problems,
) {
    for (key, wanted) in [("apiVersion", API_VERSION), ("kind", kind)] {
        let what = match sound.get(key).and_then(Value::as_str) {
            Some(given) if given == wanted => continue,
            Some(given) => format!("'{given}' is not understood here; write '{wanted}'"),
            None if problems.has(file, key) => continue,
            None => format!("is missing; write '{key}: {wanted}'"),
        };
        let origin = Origin::File { path: file.to_owned(), line: places.0.get(key).copied() };
        problems.0.push(Problem { origin, key: key.to_owned(), what });
    }
}

struct Walk<'a> {
    file: Option<&'a Path>,
    root: &'static [Key],
    problems: &'a mut Problems,
    places: Places,
}

impl Walk<'_> {
    fn problem(&mut self, node: &Node, path: &str, what: String) -> Option<Value> {
        self.problems.0.push(Problem {
            origin: match self.file {
                Some(file) => Origin::File { path: file.to_owned(), line: Some(node.line) },
                None => Origin::CommandLine,
            },
            key: path.to_owned(),
            what,
        });
        None
    }

    fn value(&mut self, node: &Node, kind: &'static Kind, path: &str) -> Option<Value> {
        self.places.0.insert(path.to_owned(), node.line);
        match kind {
            Kind::Table(keys) => return self.table(node, keys, path),
            Kind::List(inner) => return self.list(node, inner, path),
            Kind::Free(accepts, inner) => return self.free(node, *accepts, inner, path),
            _ => {}
        }
        let sound = match (&node.tree, kind) {
            (Tree::Bool(value), Kind::Switch) => Ok(Value::from(*value)),
            (Tree::Number(number, _), Kind::Whole(least, most)) => match number.as_u64() {
                Some(value) if (*least..=*most).contains(&value) => Ok(Value::from(value)),
                _ => Err(format!("{number} is out of range; a whole number from {least} to {most}")),
            },
            (Tree::Number(number, _), Kind::Factor(least, most)) => match number.as_f64() {
                Some(value) if (*least..=*most).contains(&value) => Ok(Value::from(value)),
                _ => Err(format!("{number} is out of range; a number from {least} to {most}")),
            },
            (Tree::Text(text) | Tree::Number(_, text), Kind::Text) if text.trim().is_empty() => {
                Err(format!("'{text}' is empty"))
            }
            (Tree::Text(text) | Tree::Number(_, text), Kind::Text) => Ok(Value::from(text.clone())),
            (Tree::Text(text) | Tree::Number(_, text), Kind::Form(accepts)) => match accepts(text) {
                Ok(()) => Ok(Value::from(text.clone())),
                Err(why) => Err(format!("'{text}': {why}")),
            },
            (Tree::Text(text), Kind::Word(words)) if words.contains(&text.as_str()) => {
                Ok(Value::from(text.clone()))
            }
            (Tree::Text(text), Kind::Word(words)) => {
                Err(format!("'{text}' is none of {}{}", words.join(", "), did_you_mean(text, *words)))
            }
            (tree, kind) => Err(format!("{} was expected, found {}", expected(kind), found(tree))),
        };
        sound.map_err(|what| self.problem(node, path, what)).ok()
    }

    fn table(&mut self, node: &Node, keys: &'static [Key], path: &str) -> Option<Value> {
        let entries = match &node.tree {
            Tree::Map(entries) => entries,
            Tree::Null(_) => return Some(Value::Object(Map::new())),
            other => {
                return self.problem(
                    node,
                    path,
                    format!("keys and values were expected, found {}", found(other)),
                );
            }
        };
        let mut sound = Map::new();
        for (name, value) in entries {
            let inner = join(path, name);
            match keys.iter().find(|key| key.name == name) {
                Some(key) if matches!(value.tree, Tree::Null(_)) => {
                    self.absent(value, key.kind, &inner);
                }
                Some(key) => {
                    if let Some(value) = self.value(value, key.kind, &inner) {
                        sound.insert(name.clone(), value);
                    }
                }
                None => {
                    let what = self.unknown(name, keys);
                    self.problem(value, &inner, what);
                }
            }
        }
        Some(Value::Object(sound))
    }

    /// A key without a value counts as absent, except where `null` may have been meant as a text.
    fn absent(&mut self, node: &Node, kind: &'static Kind, path: &str) {
        self.places.0.insert(path.to_owned(), node.line);
        match (&node.tree, kind) {
            (Tree::Null(word), Kind::Text | Kind::Form(_)) if word.eq_ignore_ascii_case("null") => {
                let what =
                    format!("'{word}' means no value; quote it to mean the text, or leave the key out");
                self.problem(node, path, what);
            }
            _ => {}
        }
    }

    fn unknown(&self, name: &str, keys: &'static [Key]) -> String {
        if let Some(key) = keys.iter().find(|key| key.formerly.contains(&name)) {
            return format!("this key is now called '{}'", key.name);
        }
        if let Some(near) = nearest(name, keys.iter().map(|key| key.name)) {
            return format!("unknown key; did you mean '{near}'?");
        }
        let mut elsewhere = Vec::new();
        collect(self.root, "", &mut elsewhere);
        match elsewhere.iter().find(|path| path.rsplit('.').next() == Some(name)) {
            Some(path) => format!("unknown key here; did you mean '{path}'?"),
            None => {
                let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
                format!("unknown key; known here: {}", names.join(", "))
            }
        }
    }

    fn list(&mut self, node: &Node, kind: &'static Kind, path: &str) -> Option<Value> {
        let Tree::List(items) = &node.tree else {
            return self.problem(node, path, format!("a list was expected, found {}", found(&node.tree)));
        };
        let items = items
            .iter()
            .enumerate()
            .filter_map(|(at, item)| self.value(item, kind, &format!("{path}[{at}]")))
            .collect();
        Some(Value::Array(items))
    }

    fn free(
        &mut self,
        node: &Node,
        accepts: fn(&str) -> Result<(), String>,
        kind: &'static Kind,
        path: &str,
    ) -> Option<Value> {
        let Tree::Map(entries) = &node.tree else {
            return self.problem(
                node,
                path,
                format!("keys and values were expected, found {}", found(&node.tree)),
            );
        };
        let mut sound = Map::new();
        for (name, value) in entries {
            let inner = join(path, name);
            if let Err(why) = accepts(name) {
                self.problem(value, &inner, why);
            } else if let Some(value) = self.value(value, kind, &inner) {
                sound.insert(name.clone(), value);
            }
        }
        Some(Value::Object(sound))
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Every key path of a schema, outer keys first.
pub(crate) fn collect(keys: &'static [Key], path: &str, into: &mut Vec<String>) {
    for key in keys {
        let inner = join(path, key.name);
        into.push(inner.clone());
        let mut kind = key.kind;
        while let Kind::List(item) = kind {
            kind = item;
        }
        if let Kind::Table(keys) = kind {
            collect(keys, &inner, into);
        }
    }
}

fn expected(kind: &Kind) -> String {
    match kind {
        Kind::Text | Kind::Form(_) => String::from("text"),
        Kind::Word(words) => format!("one of {}", words.join(", ")),
        Kind::Switch => String::from("true or false"),
        Kind::Whole(least, most) => format!("a whole number from {least} to {most}"),
        Kind::Factor(least, most) => format!("a number from {least} to {most}"),
        Kind::List(_) => String::from("a list"),
        Kind::Table(_) | Kind::Free(..) => String::from("keys and values"),
    }
}

fn found(tree: &Tree) -> String {
    match tree {
        Tree::Null(_) => String::from("nothing"),
        Tree::Bool(value) => format!("the truth value {value} (quote it to mean the text)"),
        Tree::Number(_, text) => format!("the number {text}"),
        Tree::Text(text) => format!("the text '{text}'"),
        Tree::List(_) => String::from("a list"),
        Tree::Map(_) => String::from("keys and values"),
    }
}
