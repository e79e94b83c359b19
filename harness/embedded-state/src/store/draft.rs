//! An object on its way into the store.

use std::sync::OnceLock;

use bytes::Bytes;
use serde_json::{Value, json};

use super::record::{Key, Record};

/// An object that only lacks its resource version.
#[derive(Debug)]
pub struct Draft {
    key: Key,
    value: Value,
    write: fn(&Value) -> Bytes,
    fields: Vec<(&'static str, Value)>,
}

impl Draft {
    /// `value` is the whole object; `fields` are those that a field selector may use; `write` makes the text
    /// of the object without kind and apiVersion.
    #[must_use]
    pub fn new(value: Value, write: fn(&Value) -> Bytes, fields: Vec<(&'static str, Value)>) -> Self {
        let text = |name: &str| value["metadata"][name].as_str().unwrap_or_default().to_owned();
        let key = Key::new(&text("namespace"), &text("name"));
        Self { key, value, write, fields }
    }

    /// Sets the object's revision and converts it to its stored form.
    pub(super) fn into_record(mut self, revision: u64) -> Record {
        if let Some(map) = self.value.as_object_mut()
            && let Some(metadata) = map.entry("metadata").or_insert_with(|| json!({})).as_object_mut()
        {
            metadata.insert("resourceVersion".into(), Value::String(revision.to_string()));
        }
        let labels = self.value["metadata"].get("labels").cloned().unwrap_or_default();
        Record {
            key: self.key,
            revision,
            json: (self.write)(&self.value),
            labels,
            fields: self.fields,
            encoded: OnceLock::new(),
        }
    }
}
