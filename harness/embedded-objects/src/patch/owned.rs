//! The owned fields of an object: paths, and their form in managedFields.
//!
//! Source: `sigs.k8s.io/structured-merge-diff`. A path's steps are written as `fieldsV1` writes them:
//! `f:<name>` for a member, `k:<keys>` for an item of a list with keys, `v:<value>` for an item of a set.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::schema::{self, Field, ListType, Shape, TypeId};

/// The steps from the root to a field.
pub(super) type Path = Vec<String>;
/// A set of owned fields.
pub(super) type Set = BTreeSet<Path>;
/// The fields of an object with their values; containers have null.
pub(super) type Leaves = BTreeMap<Path, Value>;

/// The fields of an object.
pub(super) fn leaves(ty: TypeId, object: &Value) -> Leaves {
    differing(ty, object, &Value::Null)
}

/// The fields of an object, without members that are equal in `other`. Most writes change only a little of an
/// object, and comparing costs less than writing paths.
pub(super) fn differing(ty: TypeId, object: &Value, other: &Value) -> Leaves {
    let mut out = Leaves::new();
    walk(&Shape::Struct(ty), None, object, other, &mut Vec::new(), &mut out);
    out
}

/// Whether a struct or map always has one owner as a whole.
pub(super) fn is_atomic(shape: &Shape, field: Option<&Field>) -> bool {
    field.is_some_and(|field| field.atomic)
        || matches!(shape.bare(), Shape::Struct(ty) if schema::get(*ty).atomic)
}

/// The shape of a map's members; those of any JSON are any JSON.
pub(super) fn of_members(map: &Shape) -> &Shape {
    match map {
        Shape::Map(inner) => inner,
        other => other,
    }
}

/// Whether a member is managedFields itself, which has no owner.
fn is_own_record(path: &Path, name: &str) -> bool {
    name == "managedFields" && matches!(path.as_slice(), [metadata] if metadata == "f:metadata")
}

fn walk(shape: &Shape, field: Option<&Field>, of: &Value, other: &Value, path: &mut Path, out: &mut Leaves) {
    match (shape.bare(), of) {
        (shape, Value::Object(_)) if is_atomic(shape, field) => {
            out.insert(path.clone(), of.clone());
        }
        (Shape::Struct(ty), Value::Object(members)) => {
            for (name, member) in members {
                let twin = other.get(name);
                if twin == Some(member) || is_own_record(path, name) {
                    continue;
                }
                let twin = twin.unwrap_or(&Value::Null);
                let known = schema::get(*ty).field(name);
                path.push(format!("f:{name}"));
                match known {
                    Some(known) => walk(&known.shape, Some(known), member, twin, path, out),
                    None if schema::get(*ty).open => {
                        walk(&Shape::Raw, None, member, twin, path, out);
                        out.entry(path.clone()).or_insert(Value::Null);
                    }
                    None => {
                        out.insert(path.clone(), member.clone());
                    }
                }
                if member.is_null() || member.as_object().is_some_and(Map::is_empty) {
                    out.insert(path.clone(), member.clone());
                }
                path.pop();
            }
        }
        (shape @ (Shape::Map(_) | Shape::Raw | Shape::JsonSchema(_)), Value::Object(members)) => {
            let inner = of_members(shape);
            for (name, member) in members {
                let twin = other.get(name);
                if twin == Some(member) {
                    continue;
                }
                path.push(format!("f:{name}"));
                walk(inner, None, member, twin.unwrap_or(&Value::Null), path, out);
                out.entry(path.clone()).or_insert(Value::Null);
                path.pop();
            }
        }
        (Shape::List(inner), Value::Array(items)) => match field.map(|field| field.list_type) {
            Some(ListType::Map) => {
                for item in items {
                    path.push(step_of_item(field, item));
                    walk(inner, None, item, &Value::Null, path, out);
                    out.insert(path.clone(), Value::Null);
                    path.pop();
                }
            }
            Some(ListType::Set) => {
                for item in items {
                    path.push(format!("v:{item}"));
                    out.insert(path.clone(), Value::Null);
                    path.pop();
                }
            }
            _ => {
                out.insert(path.clone(), of.clone());
            }
        },
        _ => {
            out.insert(path.clone(), of.clone());
        }
    }
}

/// The step to an item of a list with keys; a missing key has its default.
pub(super) fn step_of_item(field: Option<&Field>, item: &Value) -> String {
    let mut keys: BTreeMap<&str, Value> = BTreeMap::new();
    let inner = field.and_then(|field| match field.shape.bare() {
        Shape::List(inner) => match inner.bare() {
            Shape::Struct(ty) => Some(schema::get(*ty)),
            _ => None,
        },
        _ => None,
    });
    for key in field.map(|field| field.list_keys.as_slice()).unwrap_or_default() {
        let default = inner.and_then(|ty| ty.field(key)).and_then(|field| field.default);
        let value = item.get(*key).cloned().or_else(|| default.map(Value::from));
        keys.insert(key, value.unwrap_or(Value::Null));
    }
    format!("k:{}", json!(keys))
}

/// Parses the fields of a `fieldsV1`.
pub(super) fn read(fields: &Value) -> Set {
    let mut out = Set::new();
    collect(fields, &mut Vec::new(), &mut out);
    out
}

fn collect(fields: &Value, path: &mut Path, out: &mut Set) {
    for (step, below) in fields.as_object().into_iter().flatten() {
        if step == "." {
            out.insert(path.clone());
            continue;
        }
        path.push(step.clone());
        if below.as_object().is_none_or(Map::is_empty) {
            out.insert(path.clone());
        } else {
            collect(below, path, out);
        }
        path.pop();
    }
}

/// Writes fields as a `fieldsV1`.
pub(super) fn write(set: &Set) -> Value {
    let mut root = Map::new();
    for path in set {
        let mut here = &mut root;
        for step in path {
            let entry = here.entry(step.clone()).or_insert_with(|| json!({}));
            if !entry.is_object() {
                *entry = json!({});
            }
            here = match entry {
                Value::Object(members) => members,
                _ => unreachable!("it was made an object just above"),
            };
        }
        here.insert(".".to_owned(), json!({}));
    }
    tidy(root)
}

/// Removes the dot of a field without fields below it.
fn tidy(members: Map<String, Value>) -> Value {
    if members.len() == 1 && members.contains_key(".") {
        return json!({});
    }
    let tidied = members.into_iter().map(|(step, below)| match below {
        Value::Object(below) if step != "." => (step, tidy(below)),
        other => (step, other),
    });
    Value::Object(tidied.collect())
}

/// A path as conflicts name it: `.spec.ports[port=80,protocol="TCP"].name`.
pub(super) fn shown(path: &Path) -> String {
    path.iter()
        .map(|step| match step.split_once(':') {
            Some(("f", name)) => format!(".{name}"),
            Some(("v", value)) => format!("[={value}]"),
            Some((_, keys)) => {
                let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
                let listed: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
                format!("[{}]", listed.join(","))
            }
            None => step.clone(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_written_and_read_back() {
        let service = schema::find("core/v1.Service").expect("services are in the schema");
        let object = json!({"metadata": {"labels": {"a": "b"}, "finalizers": ["x/y"]}, "spec": {
            "ports": [{"port": 80, "name": "web"}], "selector": {"app": "a"}, "clusterIPs": ["None"]}});
        let set: Set = leaves(service, &object).into_keys().collect();
        let fields = write(&set);
        let expected = json!({
            "f:metadata": {"f:labels": {"f:a": {}}, "f:finalizers": {"v:\"x/y\"": {}}},
            "f:spec": {"f:clusterIPs": {}, "f:selector": {},
                "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:name": {}}}}});
        assert_eq!(fields, expected);
        assert_eq!(read(&fields), set);
        let texts: Vec<String> = set.iter().map(shown).collect();
        assert!(texts.contains(&".spec.ports[port=80,protocol=\"TCP\"].name".to_owned()), "{texts:?}");
        assert!(texts.contains(&".metadata.finalizers[=\"x/y\"]".to_owned()));
    }
}
