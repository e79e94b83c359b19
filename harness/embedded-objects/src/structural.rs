//! Structural schemas, with which the definition of a custom resource describes its objects.
//!
//! A schema is used as it was written (`openAPIV3Schema`). Source:
//! `k8s.io/apiextensions-apiserver/pkg/apiserver/schema` and `k8s.io/kube-openapi/pkg/validation`.

mod go;
mod path;
mod patterns;
mod types;
mod validate;
mod wellformed;

use serde_json::{Map, Value};

use crate::size;
use crate::value::PathAccess as _;

pub use patterns::Patterns;
pub use types::root_type;
pub use validate::validate;
pub use wellformed::faults;

/// The fields that every object has, whatever its schema contains.
const HEAD: [&str; 3] = ["apiVersion", "kind", "metadata"];
const KEEPS_UNKNOWN: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// Whether a value of this schema may be null.
fn nullable(schema: &Value) -> bool {
    schema.truth("nullable")
}

/// The schema of a map's members beyond the named ones.
fn additional(schema: &Value) -> Option<&Value> {
    schema.get("additionalProperties").filter(|more| more.is_object())
}

/// The schema of a member: of an object by name, of a list for all items.
fn of_member<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema.get("properties").and_then(|named| named.get(name)).or_else(|| additional(schema))
}

/// Removes fields that the schema of an object does not contain.
pub fn prune(schema: &Value, object: &mut Value) {
    prune_value(schema, object, true);
}

fn prune_value(schema: &Value, value: &mut Value, root: bool) {
    match value {
        Value::Object(members) => {
            let has_head = root || schema.truth(EMBEDDED);
            let is_head = |name: &str| has_head && HEAD.contains(&name);
            let any = schema.truth(KEEPS_UNKNOWN) || schema.truth("additionalProperties");
            members.retain(|name, _| any || is_head(name) || of_member(schema, name).is_some());
            for (name, member) in members.iter_mut().filter(|(name, _)| !is_head(name)) {
                if let Some(inner) = of_member(schema, name) {
                    prune_value(inner, member, false);
                }
            }
        }
        Value::Array(items) => {
            let Some(inner) = schema.get("items") else { return };
            items.iter_mut().for_each(|item| prune_value(inner, item, false));
        }
        _ => {}
    }
}

/// The most bytes of text that defaults may add to one object: a default under `items` is added once for each item.
const MOST_DEFAULTS: usize = 3 << 20;

/// Defaults would add more than [`MOST_DEFAULTS`] to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

/// Adds defaults, and removes nulls where null is not allowed.
///
/// # Errors
/// [`TooLarge`]; the object then has only some of the defaults.
pub fn default(schema: &Value, object: &mut Value) -> Result<(), TooLarge> {
    default_value(schema, object, &mut MOST_DEFAULTS.clone())
}

fn default_value(schema: &Value, value: &mut Value, room: &mut usize) -> Result<(), TooLarge> {
    match value {
        Value::Object(members) => {
            for (name, inner) in schema.map("properties") {
                default_member(name, inner, members, room)?;
            }
            for (name, member) in members.iter_mut() {
                if let Some(inner) = of_member(schema, name) {
                    default_value(inner, member, room)?;
                }
            }
            Ok(())
        }
        Value::Array(items) => {
            let Some(inner) = schema.get("items") else { return Ok(()) };
            items.iter_mut().try_for_each(|item| default_value(inner, item, room))
        }
        _ => Ok(()),
    }
}

fn default_member(
    name: &str,
    schema: &Value,
    members: &mut Map<String, Value>,
    room: &mut usize,
) -> Result<(), TooLarge> {
    if members.get(name).is_some_and(Value::is_null) && !nullable(schema) {
        members.remove(name);
    }
    if let Some(filling) = schema.get("default").filter(|filling| !filling.is_null())
        && !members.contains_key(name)
    {
        *room = room.checked_sub(name.len() + size::of(filling)).ok_or(TooLarge)?;
        members.insert(name.to_owned(), filling.clone());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_fields_are_dropped_unless_the_schema_preserves_them() {
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "size": {"type": "integer"},
                "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    "properties": {"closed": {"type": "object"}}},
                "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "string"}}}},
                "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
                "pod": {"type": "object", "x-kubernetes-embedded-resource": true}}}}});
        let mut object = json!({"apiVersion": "a/v1", "kind": "K", "metadata": {"name": "x"}, "other": 1, "spec": {
            "size": 1, "bogus": 2, "open": {"any": 1, "closed": {"any": 1}}, "map": {"k": {"a": "1", "b": 2}},
            "list": [{"a": "1", "b": 2}], "pod": {"kind": "Pod", "metadata": {"x": 1}, "spec": {}}}});
        prune(&schema, &mut object);
        assert_eq!(
            object,
            json!({"apiVersion": "a/v1", "kind": "K", "metadata": {"name": "x"}, "spec": {
                "size": 1, "open": {"any": 1, "closed": {}}, "map": {"k": {"a": "1"}}, "list": [{"a": "1"}],
                "pod": {"kind": "Pod", "metadata": {"x": 1}}}})
        );
    }

    #[test]
    fn defaults_stand_where_nothing_does_and_nulls_only_where_they_may() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "default": {}, "properties": {
            "size": {"type": "integer", "default": 3},
            "kept": {"type": "integer", "nullable": true, "default": 3},
            "gone": {"type": "integer"},
            "list": {"type": "array", "items": {"type": "object", "properties": {"p": {"type": "string", "default": "TCP"}}}}}}}});
        let mut object = json!({});
        assert_eq!(default(&schema, &mut object), Ok(()));
        assert_eq!(object, json!({"spec": {"size": 3, "kept": 3}}));
        let mut object = json!({"spec": {"size": null, "kept": null, "gone": null, "list": [{}]}});
        assert_eq!(default(&schema, &mut object), Ok(()));
        assert_eq!(object, json!({"spec": {"size": 3, "kept": null, "list": [{"p": "TCP"}]}}));
    }

    #[test]
    fn the_size_of_defaults_is_bounded() {
        let filling = "x".repeat(1000);
        let schema = json!({"type": "object", "properties": {"list": {"type": "array", "items": {"type": "object",
            "properties": {"text": {"type": "string", "default": filling}}}}}});
        let of = |count: usize| json!({"list": vec![json!({}); count]});
        assert_eq!(default(&schema, &mut of(3000)), Ok(()));
        let mut many = of(100_000);
        assert_eq!(default(&schema, &mut many), Err(TooLarge));
        assert!(size::of(&many) < 2 * MOST_DEFAULTS);
    }
}
