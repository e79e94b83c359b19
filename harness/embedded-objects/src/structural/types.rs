//! The types for a schema's values in the table of types, which determine the owners of fields and the
//! unknown fields.

use serde_json::Value;

use super::{EMBEDDED, INT_OR_STRING, KEEPS_UNKNOWN, additional};
use crate::schema::{self, Field, ListType, Shape, Type, TypeId};
use crate::value::PathAccess as _;

/// The type of a schema's objects. It stays for as long as the program runs.
pub fn root_type(schema: &Value) -> TypeId {
    struct_of(schema, true)
}

fn kept(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

fn struct_of(schema: &Value, typed: bool) -> TypeId {
    let mut flat = Vec::new();
    if typed && let Some(metadata) = schema::find("meta/v1.ObjectMeta") {
        flat.push(Field::optional("metadata", Shape::Struct(metadata)));
    }
    let named = schema.map("properties").iter();
    let own = named.filter(|(name, _)| !(typed && super::HEAD.contains(&name.as_str())));
    flat.extend(own.map(|(name, inner)| field(name, inner)));
    let mut ty = Type::of_fields(flat);
    ty.typed = typed;
    ty.open = schema.truth(KEEPS_UNKNOWN);
    schema::add(ty)
}

fn field(name: &str, schema: &Value) -> Field {
    let mut field = Field::optional(kept(name), shape(schema));
    field.atomic = schema.text("x-kubernetes-map-type") == "atomic";
    field.list_type = match schema.text("x-kubernetes-list-type") {
        "map" => ListType::Map,
        "set" => ListType::Set,
        _ => ListType::Atomic,
    };
    let keys = schema.list("x-kubernetes-list-map-keys").iter();
    field.list_keys = keys.filter_map(Value::as_str).map(kept).collect();
    field.default = schema.at("default").as_str().map(kept);
    field
}

/// Every shape is optional.
fn shape(schema: &Value) -> Shape {
    let bare = match schema.text("type") {
        _ if schema.truth(INT_OR_STRING) => Shape::IntOrString,
        "object" => match (additional(schema), schema.get("properties")) {
            (Some(inner), None) => Shape::Map(Box::new(shape(inner))),
            (None, None) if schema.truth("additionalProperties") || schema.truth(KEEPS_UNKNOWN) => Shape::Raw,
            _ => Shape::Struct(struct_of(schema, schema.truth(EMBEDDED))),
        },
        "array" => Shape::List(Box::new(schema.get("items").map_or(Shape::Raw, shape))),
        "string" => Shape::Text("string"),
        "integer" => Shape::Int(64, "int64"),
        "number" => Shape::Float,
        "boolean" => Shape::Bool,
        _ => Shape::Raw,
    };
    Shape::Pointer(Box::new(bare))
}
