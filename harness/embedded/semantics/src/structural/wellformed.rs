//! Whether a schema is structural.
//!
//! Source: `k8s.io/apiextensions-apiserver/pkg/apiserver/schema/validation.go`.

use serde_json::Value;

use super::{INT_OR_STRING, KEEPS_UNKNOWN};
use crate::cause::Cause;
use crate::value::Look as _;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// The causes in the schema of a definition's version, which stands at a path.
pub(crate) fn faults(schema: &Value, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    let root = format!("{path}.type");
    match schema.text("type") {
        "object" => {}
        "" => causes.push(Cause::required(root, "must not be empty at the root")),
        other => causes.push(Cause::invalid(root, other, "must be object at the root")),
    }
    for (name, inner) in schema.map("properties") {
        value(inner, &format!("{path}.properties[{name}]"), "object fields", &mut causes);
    }
    causes
}

fn value(schema: &Value, path: &str, of: &str, causes: &mut Vec<Cause>) {
    if !schema.is_object() {
        causes.push(Cause::invalid(path, schema.clone(), "must be a schema"));
        return;
    }
    let named = schema.text("type");
    if named.is_empty() && !schema.truth(INT_OR_STRING) && !schema.truth(KEEPS_UNKNOWN) {
        causes
            .push(Cause::required(format!("{path}.type"), &format!("must not be empty for specified {of}")));
    } else if !named.is_empty() && !TYPES.contains(&named) {
        causes.push(Cause::not_supported(format!("{path}.type"), named, &TYPES));
    }
    if schema.get("$ref").is_some() {
        causes.push(Cause::forbidden(format!("{path}.$ref"), "$ref is not supported"));
    }
    if schema.get("properties").is_some() && schema.get("additionalProperties").is_some() {
        let why = "additionalProperties and properties are mutual exclusive";
        causes.push(Cause::forbidden(format!("{path}.additionalProperties"), why));
    }
    for (name, inner) in schema.map("properties") {
        value(inner, &format!("{path}.properties[{name}]"), "object fields", causes);
    }
    if let Some(inner) = super::additional(schema) {
        value(inner, &format!("{path}.additionalProperties"), "object fields", causes);
    }
    match schema.get("items") {
        Some(inner) => value(inner, &format!("{path}.items"), "array items", causes),
        None if named == "array" => {
            causes.push(Cause::required(format!("{path}.items"), "must be specified"))
        }
        None => {}
    }
    let keys = schema.list("x-kubernetes-list-map-keys");
    if schema.text("x-kubernetes-list-type") == "map" && keys.is_empty() {
        let why = "must not be empty if x-kubernetes-list-type is map";
        causes.push(Cause::required(format!("{path}.x-kubernetes-list-map-keys"), why));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_says_of_each_value_what_it_is() {
        let told = |schema: Value| faults(&schema, "s").iter().map(Cause::text).collect::<Vec<_>>();
        let right = json!({"type": "object", "properties": {"spec": {"x-kubernetes-preserve-unknown-fields": true},
            "port": {"x-kubernetes-int-or-string": true}, "list": {"type": "array", "items": {"type": "string"}}}});
        assert_eq!(told(right), Vec::<String>::new());
        assert_eq!(told(json!({})), ["s.type: Required value: must not be empty at the root"]);
        let wrong = json!({"type": "object", "properties": {"a": {}, "l": {"type": "array"}}});
        assert_eq!(
            told(wrong),
            [
                "s.properties[a].type: Required value: must not be empty for specified object fields",
                "s.properties[l].items: Required value: must be specified",
            ]
        );
    }
}
