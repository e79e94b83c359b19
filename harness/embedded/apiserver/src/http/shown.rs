//! Reading what tables show of a stored object, without what no table shows.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

/// Parts that are often most of an object, and in no table: the member of the object, and the member of that.
const SKIPPED: [(&str, &str); 2] = [("metadata", "managedFields"), ("status", "images")];

/// The object without those parts; nothing where the text is no object.
pub(super) fn value(text: &[u8]) -> Option<Value> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let members = Members { of: None }.deserialize(&mut reader).ok()?;
    Some(Value::Object(members))
}

/// The members of the object itself, or of its member of a name.
#[derive(Clone, Copy)]
struct Members<'a> {
    of: Option<&'a str>,
}

impl<'de> DeserializeSeed<'de> for Members<'_> {
    type Value = Map<String, Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut out = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            match self.of {
                None if SKIPPED.iter().any(|(of, _)| *of == name) => {
                    let below = members.next_value_seed(Members { of: Some(&name) })?;
                    out.insert(name, Value::Object(below));
                }
                Some(of) if SKIPPED.contains(&(of, name.as_str())) => {
                    members.next_value::<IgnoredAny>()?;
                }
                _ => {
                    let value = members.next_value()?;
                    out.insert(name, value);
                }
            }
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_no_table_shows_is_left_out() {
        let object = json!({"metadata": {"name": "a", "managedFields": [{"manager": "m"}], "labels": {"images": "x"}},
            "spec": {"managedFields": 1, "images": []}, "status": {"images": [{"names": ["i"]}], "phase": "Running"}});
        let expected = json!({"metadata": {"name": "a", "labels": {"images": "x"}},
            "spec": {"managedFields": 1, "images": []}, "status": {"phase": "Running"}});
        assert_eq!(value(object.to_string().as_bytes()), Some(expected));
        // What has another form is read the general way.
        assert_eq!(value(br#"{"status": 1}"#), None);
        assert_eq!(value(b"[]"), None);
    }
}
