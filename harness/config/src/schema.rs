//! Converts a type to its JSON Schema, the only definition of a file's content.
//!
//! The schema contains everything from the type: keys, types, ranges, words, forms (`format`), defaults,
//! meaning (doc comments). Three of our annotations go beyond JSON Schema: `x-order` is the order of an
//! object's keys, `x-missing` says what to write if a required key is missing, `x-default` describes a
//! default that is computed.

use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::marker::PhantomData;

/// The JSON Schema of a file that people write, without references: a key without a value counts as absent,
/// so no key needs `null`, and a text is never empty unless its format allows it.
pub(crate) fn of_file<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.with_transform(plain).into_generator().into_root_schema_for::<T>().to_value()
}

/// The JSON Schema of a file that the harness writes.
pub fn of_output<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize().with_transform(described);
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// Adds the order of a struct's keys, which a schema's objects do not keep; for `#[schemars(transform = ..)]`.
pub(crate) fn ordered<T: DeserializeOwned>(schema: &mut Schema) {
    let mut names: &'static [&'static str] = &[];
    // This always fails: only the names are needed.
    let _ = T::deserialize(KeyNames(&mut names));
    schema.insert(String::from("x-order"), json!(names));
}

/// A table whose keys have a format or are words: `#[schemars(with = "Keyed<K, V>")]`.
pub(crate) struct Keyed<K, V>(PhantomData<(K, V)>);

impl<K: JsonSchema, V: JsonSchema> JsonSchema for Keyed<K, V> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}_by_{}", V::schema_name(), K::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (keys, values) = (generator.subschema_for::<K>(), generator.subschema_for::<V>());
        json_schema!({ "type": "object", "propertyNames": keys, "additionalProperties": values })
    }
}

/// The words that a schema allows, if it allows nothing else.
pub(crate) fn words(schema: &Value) -> Vec<&str> {
    let listed = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    let described = schema.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    listed.chain(described.filter_map(|word| word.get("const"))).filter_map(Value::as_str).collect()
}

/// The keys of an object's schema in their order, each with its own schema.
pub(crate) fn keys(schema: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let order = schema.get("x-order").and_then(Value::as_array).into_iter().flatten();
    order.filter_map(Value::as_str).filter_map(|key| Some((key, schema.get("properties")?.get(key)?)))
}

/// The required keys of an object.
pub(crate) fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Every key path of an object's schema, outer keys first, each with its own schema and whether it is required.
pub(crate) fn paths(schema: &Value) -> Vec<(String, &Value, bool)> {
    let mut found = Vec::new();
    collect(schema, "", &mut found);
    found
}

fn collect<'a>(schema: &'a Value, path: &str, found: &mut Vec<(String, &'a Value, bool)>) {
    for (key, of_key) in keys(schema) {
        let inner = join(path, key);
        found.push((inner.clone(), of_key, required(schema).any(|name| name == key)));
        // What each entry of a table with free keys holds.
        match of_key.get("additionalProperties").filter(|values| values.is_object()) {
            Some(values) => collect(values, &join(&inner, "*"), found),
            None => collect(of_key.get("items").unwrap_or(of_key), &inner, found),
        }
    }
}

/// The path of a key in the table at `path`.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Joins the lines of descriptions: doc comments are wrapped to the width of code, descriptions are not.
fn described(schema: &mut Schema) {
    transform_subschemas(&mut described, schema);
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.split("\n\n").map(|part| part.replace('\n', " ")).collect::<Vec<_>>().join("\n\n");
    }
}

fn plain(schema: &mut Schema) {
    transform_subschemas(&mut plain, schema);
    described(schema);
    // `Option` of an enum: the enum or `null`.
    if let Some(Value::Array(choices)) = schema.get("anyOf").cloned() {
        schema.remove("anyOf");
        for (key, value) in choices.into_iter().filter_map(|choice| choice.as_object().cloned()).flatten() {
            if value != "null" && schema.get(&key).is_none() {
                schema.insert(key, value);
            }
        }
    }
    if let Some(Value::Array(types)) = schema.get("type").cloned() {
        let one = types.into_iter().find(|name| name != "null").unwrap_or_default();
        schema.insert(String::from("type"), one);
    }
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
    // The width of a number in memory adds nothing to its range.
    if matches!(schema.get("type").and_then(Value::as_str), Some("integer" | "number")) {
        schema.remove("format");
    }
    let free_text = schema.get("type").is_some_and(|name| name == "string")
        && ["format", "const", "enum", "oneOf"].iter().all(|key| schema.get(*key).is_none());
    if free_text {
        schema.insert(String::from("minLength"), json!(1));
    }
    let required: Vec<String> = required(schema.as_value()).map(str::to_owned).collect();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for key in required {
            if let Some(Value::Object(of_key)) = properties.get_mut(&key) {
                of_key.remove("default");
            }
        }
    }
}

/// Finds the names of a struct's keys from the way in which it is deserialised.
struct KeyNames<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for KeyNames<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("only a struct has keys"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = names;
        Err(Error::custom("the names are all that is wanted"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
