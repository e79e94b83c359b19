//! Whether a schema is structural.
//!
//! Source: `k8s.io/apiextensions-apiserver/pkg/apiserver/schema/validation.go`.

use serde_json::Value;

use super::path::Path;
use super::{INT_OR_STRING, KEEPS_UNKNOWN};
use crate::cause::Cause;
use crate::value::PathAccess as _;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// The most bytes of causes for one schema; after that, nothing more is examined.
const MOST_TEXT: usize = 256 << 10;

/// The causes for the schema of a definition's version, which is at this path.
pub fn faults(schema: &Value, path: &str) -> Vec<Cause> {
    let mut faults = Faults { causes: Vec::new(), text_bytes: 0 };
    let path = Path::root(path);
    match schema.text("type") {
        "object" => {}
        "" => faults.tell(&path.member("type"), |at| Cause::required(at, "must not be empty at the root")),
        other => {
            faults.tell(&path.member("type"), |at| Cause::invalid(at, other, "must be object at the root"));
        }
    }
    for (name, inner) in schema.map("properties") {
        faults.value(inner, &path.named("properties", name), "object fields");
    }
    faults.causes
}

struct Faults {
    causes: Vec<Cause>,
    /// The bytes of all causes.
    text_bytes: usize,
}

impl Faults {
    fn tell(&mut self, path: &Path<'_>, cause: impl FnOnce(String) -> Cause) {
        if self.text_bytes < MOST_TEXT {
            let cause = cause(path.to_string());
            self.text_bytes += cause.field.len() + cause.message.len();
            self.causes.push(cause);
        }
    }

    fn value(&mut self, schema: &Value, path: &Path<'_>, of: &str) {
        if !schema.is_object() {
            self.tell(path, |at| Cause::invalid(at, schema.clone(), "must be a schema"));
            return;
        }
        let named = schema.text("type");
        if named.is_empty() && !schema.truth(INT_OR_STRING) && !schema.truth(KEEPS_UNKNOWN) {
            let why = format!("must not be empty for specified {of}");
            self.tell(&path.member("type"), |at| Cause::required(at, &why));
        } else if !named.is_empty() && !TYPES.contains(&named) {
            self.tell(&path.member("type"), |at| Cause::not_supported(at, named, &TYPES));
        }
        if schema.get("$ref").is_some() {
            self.tell(&path.member("$ref"), |at| Cause::forbidden(at, "$ref is not supported"));
        }
        if schema.get("properties").is_some() && schema.get("additionalProperties").is_some() {
            let why = "additionalProperties and properties are mutual exclusive";
            self.tell(&path.member("additionalProperties"), |at| Cause::forbidden(at, why));
        }
        for (name, inner) in schema.map("properties") {
            self.value(inner, &path.named("properties", name), "object fields");
        }
        if let Some(inner) = super::additional(schema) {
            self.value(inner, &path.member("additionalProperties"), "object fields");
        }
        match schema.get("items") {
            Some(inner) => self.value(inner, &path.member("items"), "array items"),
            None if named == "array" => {
                self.tell(&path.member("items"), |at| Cause::required(at, "must be specified"));
            }
            None => {}
        }
        let keys = schema.list("x-kubernetes-list-map-keys");
        if schema.text("x-kubernetes-list-type") == "map" && keys.is_empty() {
            let why = "must not be empty if x-kubernetes-list-type is map";
            self.tell(&path.member("x-kubernetes-list-map-keys"), |at| Cause::required(at, why));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_says_of_each_value_what_it_is() {
        let messages = |schema: Value| faults(&schema, "s").iter().map(Cause::text).collect::<Vec<_>>();
        let right = json!({"type": "object", "properties": {"spec": {"x-kubernetes-preserve-unknown-fields": true},
            "port": {"x-kubernetes-int-or-string": true}, "list": {"type": "array", "items": {"type": "string"}}}});
        assert_eq!(messages(right), Vec::<String>::new());
        assert_eq!(messages(json!({})), ["s.type: Required value: must not be empty at the root"]);
        let wrong = json!({"type": "object", "properties": {"a": {}, "l": {"type": "array"}}});
        assert_eq!(
            messages(wrong),
            [
                "s.properties[a].type: Required value: must not be empty for specified object fields",
                "s.properties[l].items: Required value: must be specified",
            ]
        );
    }

    #[test]
    fn words_about_one_schema_are_bounded() {
        let inner: serde_json::Map<String, Value> =
            (0..20_000).map(|at| (at.to_string(), json!({}))).collect();
        let schema = json!({"type": "object", "properties": {
            "n".repeat(100_000): {"type": "object", "properties": inner}}});
        let bytes: usize = faults(&schema, "s").iter().map(|cause| cause.text().len()).sum();
        assert!(bytes > MOST_TEXT && bytes < 2 * MOST_TEXT, "{bytes}");
    }
}
