//! The wire types of the served API: names, order, numbers, omission and merge rules of every field.
//!
//! Decoding, encoding, protobuf, strategic merge and server-side apply all read this one table (`schema/api.txt`).

use std::sync::{LazyLock, PoisonError, RwLock};

mod parse;
mod types;

pub use types::{Field, Instead, ListType, Schema, Shape, Type, TypeId};

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| parse::parse(include_str!("schema/api.txt")));

/// Types that were added by definitions of custom resources: their ids follow those of the table. They are
/// never removed; [`crate::kinds::defined`] limits how many there are.
static ADDED: RwLock<Vec<&'static Type>> = RwLock::new(Vec::new());

/// The type with this id.
///
/// # Panics
/// For an id that neither the table nor [`add`] has created: there is none.
pub fn get(id: TypeId) -> &'static Type {
    match SCHEMA.types.get(id.0) {
        Some(known) => known,
        None => ADDED.read().unwrap_or_else(PoisonError::into_inner)[id.0 - SCHEMA.types.len()],
    }
}

/// Adds a type, for as long as the program runs.
pub(crate) fn add(ty: Type) -> TypeId {
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    added.push(Box::leak(Box::new(ty)));
    TypeId(SCHEMA.types.len() + added.len() - 1)
}

/// The id of a type by its name, such as `core/v1.Node`.
pub fn find(name: &str) -> Option<TypeId> {
    SCHEMA.by_name.get(name).copied()
}

/// The type of an OpenAPI v3 schema in a definition of a custom resource.
pub fn json_schema() -> Option<TypeId> {
    find("apiextensions/v1.JSONSchemaProps")
}

/// The id of the struct type for a root object with this apiVersion and kind; `None` for custom resources.
pub fn of_object(api_version: &str, kind: &str) -> Option<TypeId> {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let folder = match group {
        "" => "core",
        "rbac.authorization.k8s.io" => "rbac",
        "meta.k8s.io" => "meta",
        // Only the built-in groups are in the table: `apps` is, `apps.example.com` is not.
        other if !other.contains('.') || other.ends_with(".k8s.io") => {
            other.split('.').next().unwrap_or(other)
        }
        _ => return None,
    };
    find(&format!("{folder}/{version}.{kind}")).or_else(|| find(&format!("meta/v1.{kind}")))
}
