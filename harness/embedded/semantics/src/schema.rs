//! The wire types of the served API: names, order, numbers, omission and merge rules of every field.
//!
//! Decoding, encoding, protobuf, strategic merge and server-side apply all read this one table (`schema/api.txt`).

use std::sync::LazyLock;

mod parse;
mod types;

pub use types::{Field, ListType, Schema, Shape, Type, TypeId};

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| parse::parse(include_str!("schema/api.txt")));

/// The type of an id.
pub fn get(id: TypeId) -> &'static Type {
    &SCHEMA.types[id.0]
}

/// The id of a type by its name, such as `core/v1.Node`.
pub fn find(name: &str) -> Option<TypeId> {
    SCHEMA.by_name.get(name).copied()
}

/// The id of the struct type that a root object of this apiVersion and kind has.
pub fn of_object(api_version: &str, kind: &str) -> Option<TypeId> {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let folder = match group {
        "" => "core",
        "rbac.authorization.k8s.io" => "rbac",
        "meta.k8s.io" => "meta",
        other => other.split('.').next().unwrap_or(other),
    };
    find(&format!("{folder}/{version}.{kind}")).or_else(|| find(&format!("meta/v1.{kind}")))
}
