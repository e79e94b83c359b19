//! The columns that the definition of a custom resource adds to its tables.
//!
//! Source: `k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor`.

mod path;

use std::borrow::Cow;

use serde_json::{Value, json};

use super::age::age;
use embedded_objects::kinds::Custom;
use embedded_objects::value::PathAccess as _;

/// The columns of the definition. If there are none, tables show the age of objects.
fn own(custom: &Custom) -> Cow<'_, [Value]> {
    if custom.columns.is_empty() {
        let age = json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"});
        return vec![age].into();
    }
    custom.columns.as_slice().into()
}

/// The columns: the name, and then those of the definition; `usual` are those of a kind without its own columns.
pub(super) fn columns(custom: &Custom, usual: &Value) -> Value {
    let (own, age) = (own(custom), usual[1].text("description"));
    let own = own.iter().map(|column| {
        let about = match column.text("description") {
            "" if custom.columns.is_empty() => age.to_owned(),
            "" => {
                format!("Custom resource definition column (in JSONPath format): {}", column.text("jsonPath"))
            }
            text => text.to_owned(),
        };
        json!({"name": column.text("name"), "type": column.text("type"), "format": column.text("format"),
            "description": about, "priority": column.int("priority")})
    });
    std::iter::once(usual[0].clone()).chain(own).collect()
}

/// The cells of an object's row.
pub(super) fn cells(custom: &Custom, object: &Value, now: &str) -> Vec<Value> {
    let name = json!(object.text("metadata.name"));
    let own = own(custom);
    std::iter::once(name).chain(own.iter().map(|column| cell(column, object, now))).collect()
}

fn cell(column: &Value, object: &Value, now: &str) -> Value {
    let found = path::find(column.text("jsonPath"), object);
    let Some(first) = found.first() else { return Value::Null };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match column.text("type") {
        "date" => first.as_str().map_or(json!("<invalid>"), |at| json!(age(at, now))),
        "string" => json!(found.iter().map(|value| text(value)).collect::<Vec<_>>().join(" ")),
        "integer" if first.is_i64() || first.is_u64() => (*first).clone(),
        "number" if first.is_number() => (*first).clone(),
        "boolean" if first.is_boolean() => (*first).clone(),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use embedded_objects::kinds;

    #[test]
    fn a_definitions_columns_stand_behind_the_name() {
        let definition = |columns: Value| {
            json!({"spec": {"group": "columns.example.com", "scope": "Namespaced", "versions": [
                {"name": "v1", "served": true, "storage": true, "additionalPrinterColumns": columns,
                 "schema": {"openAPIV3Schema": {"type": "object"}}}]},
                "status": {"acceptedNames": {"plural": "cs", "kind": "C", "listKind": "CList"}}})
        };
        let object = json!({"metadata": {"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"size": 3, "hosts": ["a", "b"]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let shown = |columns: Value| {
            let kind = kinds::defined(&definition(columns), &mut kinds::Budget::default())
                .expect("there is room")
                .stored;
            let table = super::super::table(
                kind,
                std::slice::from_ref(&object),
                &json!({}),
                Default::default(),
                "2026-01-01T00:05:00Z",
            );
            (table["columnDefinitions"].as_array().map_or(0, Vec::len), table["rows"][0]["cells"].clone())
        };
        assert_eq!(shown(json!([])), (2, json!(["x", "5m"])));
        let columns = json!([
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
            {"name": "Hosts", "type": "string", "jsonPath": ".spec.hosts[*]"},
            {"name": "First", "type": "string", "jsonPath": ".spec.hosts[0]"},
            {"name": "None", "type": "string", "jsonPath": ".spec.none"},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]);
        assert_eq!(shown(columns), (7, json!(["x", 3, "True", "a b", "a", null, "5m"])));
    }
}
