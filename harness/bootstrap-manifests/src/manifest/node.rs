//! A value of a manifest and its place.

use std::ops::Range;

/// Maximum depth of a path of fields.
const DEEPEST_PATH: usize = 64;

/// A value with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// The range of the text that it covers, in bytes. A block collection ends with its last value.
    pub bytes: Range<usize>,
    /// Line, counted from 1.
    pub line: u32,
    /// Column in characters, counted from 1.
    pub column: u32,
    /// How it was written.
    pub style: Style,
    /// Whether it is here through an alias or a merge key; such a value cannot be edited in place.
    pub borrowed: bool,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Null.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// Any other number, as it is spelt.
    Number(String),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// Keys and values in the order of the file.
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Bytes of the key.
    pub key_bytes: Range<usize>,
    /// Line of the key, counted from 1.
    pub line: u32,
    /// Column of the key in characters, counted from 1.
    pub column: u32,
    /// The value.
    pub value: Node,
}

/// How a value was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A scalar without quotes, or an empty one.
    Plain,
    /// A scalar in quotes.
    Quoted,
    /// A block scalar of several lines.
    Lines,
    /// A collection in block style.
    Block,
    /// A collection in flow style, in brackets as in JSON.
    Flow,
}

impl Node {
    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// Returns a key with its value.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// Returns the value at the end of a path of keys.
    pub fn at(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// The same map with these texts where it has no value of its own.
    pub(super) fn with_defaults(&self, defaults: &[(&str, &str)]) -> Node {
        let (line, column, start) = (self.line, self.column, self.bytes.start);
        let mut node = self.clone();
        let Value::Map(entries) = &mut node.value else { return node };
        for (key, text) in defaults {
            if entries.iter().any(|entry| entry.key == *key) {
                continue;
            }
            let value = Value::Text((*text).to_owned());
            let value =
                Node { value, bytes: start..start, line, column, style: Style::Plain, borrowed: true };
            entries.push(Entry { key: (*key).to_owned(), key_bytes: start..start, line, column, value });
        }
        node
    }

    /// Keys and values; empty if this is not a map.
    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// Items; empty if this is not a list.
    pub fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// The string, if this is one.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Any scalar as a string, as it would reach a field of type string.
    pub fn scalar(&self) -> Option<String> {
        match &self.value {
            Value::Text(text) => Some(text.clone()),
            Value::Bool(value) => Some(value.to_string()),
            Value::Int(value) => Some(value.to_string()),
            Value::Number(spelling) => Some(spelling.clone()),
            Value::Null | Value::List(_) | Value::Map(_) => None,
        }
    }

    /// The integer, if this is one.
    pub fn int(&self) -> Option<i64> {
        match self.value {
            Value::Int(value) => Some(value),
            _ => None,
        }
    }

    /// The boolean, if this is one.
    pub fn bool(&self) -> Option<bool> {
        match self.value {
            Value::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the string under a key.
    pub fn text_at(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Node::text)
    }

    /// The strings of a list of scalars.
    pub fn texts(&self) -> Vec<String> {
        self.items().iter().filter_map(Node::scalar).collect()
    }

    /// The value as JSON, as `kubectl` sends it.
    pub fn json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Int(value) => (*value).into(),
            Value::Number(spelling) => {
                let number = spelling.replace('_', "").parse::<f64>().ok();
                number.and_then(serde_json::Number::from_f64).map_or(serde_json::Value::Null, Into::into)
            }
            Value::Text(text) => text.as_str().into(),
            Value::List(items) => items.iter().map(Node::json).collect(),
            Value::Map(entries) => serde_json::Value::Object(
                entries.iter().map(|entry| (entry.key.clone(), entry.value.json())).collect(),
            ),
        }
    }

    /// The value at a field path of the API server, such as `spec.ports[0].port` or `data[key]`; the nearest existing
    /// value if the path leads further than the manifest.
    pub fn nearest(&self, path: &str) -> &Node {
        let mut node = self;
        let mut rest = path;
        for _ in 0..DEEPEST_PATH {
            let next = if let Some(inside) = rest.strip_prefix('[') {
                let (name, after) = inside.split_once(']').unwrap_or((inside, ""));
                rest = after.strip_prefix('.').unwrap_or(after);
                match name.parse::<usize>() {
                    Ok(at) if !node.items().is_empty() => node.items().get(at),
                    _ => node.get(name),
                }
            } else {
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                let name = &rest[..end];
                rest = rest[end..].strip_prefix('.').unwrap_or(&rest[end..]);
                node.get(name)
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
            if rest.is_empty() {
                break;
            }
        }
        node
    }

    /// Whether this string contains a placeholder that is filled in later.
    pub fn is_placeholder(&self) -> bool {
        self.text().is_some_and(|text| text.contains("${"))
    }

    /// Whether there is a placeholder here or below.
    pub fn holds_placeholder(&self) -> bool {
        self.is_placeholder()
            || self.items().iter().any(Node::holds_placeholder)
            || self.entries().iter().any(|entry| entry.value.holds_placeholder())
    }

    /// Whether this is null.
    pub fn is_null(&self) -> bool {
        self.value == Value::Null
    }

    /// The type of the value, for messages.
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "a boolean",
            Value::Int(_) | Value::Number(_) => "a number",
            Value::Text(_) => "a string",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }
}
