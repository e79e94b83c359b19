//! Reads JSON values as Go reads its structs: a missing value reads as the zero value.

use serde_json::{Map, Value};

/// An empty object to borrow where a struct is missing.
pub static EMPTY: Value = Value::Null;

/// Reads members of objects that may be missing.
pub trait PathAccess {
    /// The member at a dotted path, or null.
    fn at(&self, path: &str) -> &Value;
    /// The text at a dotted path, or the empty text.
    fn text(&self, path: &str) -> &str;
    /// The whole number at a dotted path, or zero.
    fn int(&self, path: &str) -> i64;
    /// The boolean at a dotted path, or false.
    fn truth(&self, path: &str) -> bool;
    /// The list at a dotted path, or an empty one.
    fn list(&self, path: &str) -> &[Value];
    /// The members of the object at a dotted path, or none.
    fn map(&self, path: &str) -> &Map<String, Value>;
    /// Whether there is something other than null at a dotted path.
    fn has(&self, path: &str) -> bool;
}

static NO_MEMBERS: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);

impl PathAccess for Value {
    fn at(&self, path: &str) -> &Value {
        let mut here = self;
        for step in path.split('.') {
            match here.get(step) {
                Some(next) => here = next,
                None => return &EMPTY,
            }
        }
        here
    }

    fn text(&self, path: &str) -> &str {
        self.at(path).as_str().unwrap_or_default()
    }

    fn int(&self, path: &str) -> i64 {
        self.at(path).as_i64().unwrap_or_default()
    }

    fn truth(&self, path: &str) -> bool {
        self.at(path).as_bool().unwrap_or_default()
    }

    fn list(&self, path: &str) -> &[Value] {
        self.at(path).as_array().map(Vec::as_slice).unwrap_or_default()
    }

    fn map(&self, path: &str) -> &Map<String, Value> {
        self.at(path).as_object().unwrap_or(&NO_MEMBERS)
    }

    fn has(&self, path: &str) -> bool {
        !self.at(path).is_null()
    }
}

/// Changes objects, and creates the structs on the way.
pub trait Edit {
    /// The object at a dotted path, created if it is missing or something else.
    fn object(&mut self, path: &str) -> &mut Map<String, Value>;
    /// Puts a value at a dotted path.
    fn put(&mut self, path: &str, value: impl Into<Value>);
    /// Sets a value at a dotted path if there is nothing, null, the empty text or zero.
    fn put_default(&mut self, path: &str, value: impl Into<Value>);
    /// Removes the value at a dotted path.
    fn clear(&mut self, path: &str) -> Option<Value>;
    /// The list at a dotted path as a mutable slice, empty if it is missing.
    fn items(&mut self, path: &str) -> &mut [Value];
    /// The member at a dotted path as a mutable reference.
    fn at_mut(&mut self, path: &str) -> Option<&mut Value>;
}

impl Edit for Value {
    fn object(&mut self, path: &str) -> &mut Map<String, Value> {
        let mut here = self;
        if !path.is_empty() {
            for step in path.split('.') {
                here = as_object(here).entry(step).or_insert(Value::Null);
            }
        }
        as_object(here)
    }

    fn put(&mut self, path: &str, value: impl Into<Value>) {
        let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
        self.object(parent).insert(name.to_owned(), value.into());
    }

    fn put_default(&mut self, path: &str, value: impl Into<Value>) {
        if is_zero(self.at(path)) {
            self.put(path, value);
        }
    }

    fn clear(&mut self, path: &str) -> Option<Value> {
        let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
        let parent = if parent.is_empty() { Some(self) } else { self.at_mut(parent) };
        parent?.as_object_mut()?.remove(name)
    }

    fn items(&mut self, path: &str) -> &mut [Value] {
        self.at_mut(path).and_then(Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default()
    }

    fn at_mut(&mut self, path: &str) -> Option<&mut Value> {
        path.split('.').try_fold(self, |here, step| here.get_mut(step))
    }
}

fn as_object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(members) => members,
        _ => unreachable!("it was made an object just above"),
    }
}

/// Whether a value is what Go calls the zero value of a scalar, or null.
pub fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(truth) => !truth,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(_) => false,
    }
}
