//! JSON with duplicate keys, which a strict reader rejects.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// A value, and the paths of its duplicate keys.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) value: Value,
    pub(super) twice: Vec<String>,
}

/// Reads a single value with nothing after it.
pub(super) fn read(bytes: &[u8]) -> Result<Read, serde_json::Error> {
    serde_json::from_slice(bytes)
}

impl<'de> Deserialize<'de> for Read {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Read, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl Reader {
    fn plain<E>(value: impl Into<Value>) -> Result<Read, E> {
        Ok(Read { value: value.into(), twice: Vec::new() })
    }
}

impl<'de> Visitor<'de> for Reader {
    type Value = Read;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Read, E> {
        Reader::plain(value)
    }

    fn visit_i64<E>(self, value: i64) -> Result<Read, E> {
        Reader::plain(value)
    }

    fn visit_u64<E>(self, value: u64) -> Result<Read, E> {
        Reader::plain(value)
    }

    fn visit_f64<E>(self, value: f64) -> Result<Read, E> {
        Reader::plain(value)
    }

    fn visit_str<E>(self, value: &str) -> Result<Read, E> {
        Reader::plain(value)
    }

    fn visit_unit<E>(self) -> Result<Read, E> {
        Reader::plain(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Read, A::Error> {
        let (mut values, mut twice) = (Vec::new(), Vec::new());
        while let Some(one) = list.next_element::<Read>()? {
            twice.extend(one.twice.iter().map(|path| format!("[{}].{path}", values.len())));
            values.push(one.value);
        }
        Ok(Read { value: Value::Array(values), twice })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Read, A::Error> {
        let (mut values, mut twice) = (Map::new(), Vec::new());
        while let Some((key, one)) = map.next_entry::<String, Read>()? {
            twice.extend(one.twice.iter().map(|path| format!("{key}.{path}")));
            if values.insert(key.clone(), one.value).is_some() {
                twice.push(key);
            }
        }
        Ok(Read { value: Value::Object(values), twice })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_given_twice_is_found_wherever_it_stands() {
        let found = read(br#"{"a": 1, "b": [{"c": 1, "c": 2}], "a": {"d": null}}"#).expect("JSON");
        assert_eq!(found.twice, ["b.[0].c", "a"]);
        assert_eq!(found.value["a"], serde_json::json!({"d": null}));
        assert!(read(b"{} {}").is_err() && read(b"").is_err());
    }
}
