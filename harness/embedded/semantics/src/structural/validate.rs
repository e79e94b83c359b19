//! Whether a value is what its schema says. Formats and rules in CEL are not looked at.

use serde_json::Value;

use super::{HEAD, INT_OR_STRING, nullable, of_member};
use crate::cause::Cause;
use crate::value::Look as _;

/// The causes in an object of a schema. Its head (apiVersion, kind, metadata) is not the schema's.
pub(crate) fn validate(schema: &Value, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    value(schema, object, "", &mut causes);
    causes
}

fn member_path(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number)
            if number.is_f64() && number.as_f64().is_none_or(|float| float.fract() != 0.0) =>
        {
            "number"
        }
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Whether a value is of the type that a schema names, if it names one.
fn fits(schema: &Value, of: &Value) -> bool {
    let is = kind_of(of);
    match schema.text("type") {
        _ if schema.truth(INT_OR_STRING) => matches!(is, "integer" | "string"),
        "" => true,
        "number" => matches!(is, "integer" | "number"),
        wanted => wanted == is,
    }
}

fn value(schema: &Value, of: &Value, path: &str, causes: &mut Vec<Cause>) {
    if of.is_null() && nullable(schema) {
        return;
    }
    if !fits(schema, of) {
        let wanted = if schema.truth(INT_OR_STRING) { "integer,string" } else { schema.text("type") };
        let is = kind_of(of);
        causes.push(Cause::wrong_type(path, is, format!("{path} in body must be of type {wanted}: {is:?}")));
        return;
    }
    let possible = schema.list("enum");
    if !possible.is_empty() && !possible.contains(of) {
        let texts: Vec<String> =
            possible.iter().map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        causes.push(Cause::not_supported(path, of.clone(), &texts));
    }
    match of {
        Value::Number(number) => numbers(schema, number.as_f64().unwrap_or_default(), of, path, causes),
        Value::String(text) => texts(schema, text, path, causes),
        Value::Array(items) => list(schema, items, path, causes),
        Value::Object(_) => object(schema, of, path, causes),
        _ => {}
    }
    combined(schema, of, path, causes);
}

fn should(causes: &mut Vec<Cause>, path: &str, of: impl Into<Value>, what: String) {
    causes.push(Cause::invalid(path, of, format!("{path} in body should {what}")));
}

fn numbers(schema: &Value, number: f64, of: &Value, path: &str, causes: &mut Vec<Cause>) {
    if let Some(most) = schema.at("maximum").as_f64() {
        let exclusive = schema.truth("exclusiveMaximum");
        if number > most || (exclusive && number >= most) {
            let equal = if exclusive { "than" } else { "than or equal to" };
            should(causes, path, of.clone(), format!("be less {equal} {}", schema.at("maximum")));
        }
    }
    if let Some(least) = schema.at("minimum").as_f64() {
        let exclusive = schema.truth("exclusiveMinimum");
        if number < least || (exclusive && number <= least) {
            let equal = if exclusive { "than" } else { "than or equal to" };
            should(causes, path, of.clone(), format!("be greater {equal} {}", schema.at("minimum")));
        }
    }
    if let Some(factor) = schema.at("multipleOf").as_f64().filter(|factor| *factor > 0.0)
        && (number / factor).fract() != 0.0
    {
        should(causes, path, of.clone(), format!("be a multiple of {}", schema.at("multipleOf")));
    }
}

/// A limit of a schema, such as `maxItems`.
fn limit(schema: &Value, name: &str) -> Option<usize> {
    schema.at(name).as_u64().and_then(|limit| usize::try_from(limit).ok())
}

fn texts(schema: &Value, text: &str, path: &str, causes: &mut Vec<Cause>) {
    let length = text.chars().count();
    if let Some(most) = limit(schema, "maxLength").filter(|most| length > *most) {
        causes.push(Cause::too_long(path, most));
    }
    if let Some(least) = limit(schema, "minLength").filter(|least| length < *least) {
        should(causes, path, text, format!("be at least {least} chars long"));
    }
    let pattern = schema.text("pattern");
    // One that is no pattern of this library's matches everything: definitions are read by Go's.
    if !pattern.is_empty() && regex::Regex::new(pattern).is_ok_and(|pattern| !pattern.is_match(text)) {
        should(causes, path, text, format!("match '{pattern}'"));
    }
}

fn list(schema: &Value, items: &[Value], path: &str, causes: &mut Vec<Cause>) {
    if let Some(most) = limit(schema, "maxItems").filter(|most| items.len() > *most) {
        causes.push(Cause::too_many(path, items.len(), most));
    }
    if let Some(least) = limit(schema, "minItems").filter(|least| items.len() < *least) {
        should(causes, path, items.to_vec(), format!("have at least {least} items"));
    }
    let keys = schema.list("x-kubernetes-list-map-keys");
    let key_of = |item: &Value| match schema.text("x-kubernetes-list-type") {
        "set" => Some(item.clone()),
        "map" => {
            let named = keys.iter().filter_map(Value::as_str);
            Some(
                named
                    .map(|key| (key.to_owned(), item.at(key).clone()))
                    .collect::<serde_json::Map<_, _>>()
                    .into(),
            )
        }
        _ => None,
    };
    let mut seen = std::collections::HashSet::new();
    for (at, item) in items.iter().enumerate() {
        let path = format!("{path}[{at}]");
        if let Some(key) = key_of(item)
            && !seen.insert(key.to_string())
        {
            causes.push(Cause::duplicate(path.clone(), key));
        }
        if let Some(inner) = schema.get("items") {
            value(inner, item, &path, causes);
        }
    }
}

fn object(schema: &Value, of: &Value, path: &str, causes: &mut Vec<Cause>) {
    let Some(members) = of.as_object() else { return };
    if let Some(most) = limit(schema, "maxProperties").filter(|most| members.len() > *most) {
        causes.push(Cause::too_many(path, members.len(), most));
    }
    if let Some(least) = limit(schema, "minProperties").filter(|least| members.len() < *least) {
        should(causes, path, of.clone(), format!("have at least {least} properties"));
    }
    for name in schema.list("required").iter().filter_map(Value::as_str) {
        if !members.contains_key(name) {
            causes.push(Cause::required(member_path(path, name), ""));
        }
    }
    for (name, member) in members {
        if path.is_empty() && HEAD.contains(&name.as_str()) {
            continue;
        }
        if let Some(inner) = of_member(schema, name) {
            value(inner, member, &member_path(path, name), causes);
        }
    }
}

/// What `allOf`, `anyOf`, `oneOf` and `not` say.
fn combined(schema: &Value, of: &Value, path: &str, causes: &mut Vec<Cause>) {
    let holds = |inner: &Value| {
        let mut found = Vec::new();
        value(inner, of, path, &mut found);
        found.is_empty()
    };
    let count = |name: &str| schema.list(name).iter().filter(|inner| holds(inner)).count();
    let mut must = |what: &str| {
        causes.push(Cause::invalid(path, of.clone(), format!("{path:?} must {what}")));
    };
    if count("allOf") < schema.list("allOf").len() {
        must("validate all the schemas (allOf)");
    }
    if !schema.list("anyOf").is_empty() && count("anyOf") == 0 {
        must("validate at least one schema (anyOf)");
    }
    if !schema.list("oneOf").is_empty() {
        match count("oneOf") {
            1 => {}
            0 => must("validate one and only one schema (oneOf). Found none valid"),
            valid => {
                must(&format!("validate one and only one schema (oneOf). Found {valid} valid alternatives"))
            }
        }
    }
    if schema.get("not").is_some_and(holds) {
        must("not validate the schema (not)");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: Value, of: Value, expected: &[&str]) {
        let schema = json!({"type": "object", "properties": {"spec": schema}});
        let told: Vec<String> = validate(&schema, &json!({"spec": of})).iter().map(Cause::text).collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn what_does_not_fit_its_schema_is_told_in_the_servers_words() {
        check(
            json!({"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "integer"}}}),
            json!({"a": "x"}),
            &[
                "spec.b: Required value",
                "spec.a: Invalid value: \"string\": spec.a in body must be of type integer: \"string\"",
            ],
        );
        check(
            json!({"type": "string", "enum": ["a", "b"]}),
            json!("c"),
            &["spec: Unsupported value: \"c\": supported values: \"a\", \"b\""],
        );
        check(
            json!({"type": "integer", "minimum": 1, "maximum": 10}),
            json!(11),
            &["spec: Invalid value: 11: spec in body should be less than or equal to 10"],
        );
        check(
            json!({"type": "string", "pattern": "^[a-z]+$", "minLength": 3}),
            json!("A1"),
            &[
                "spec: Invalid value: \"A1\": spec in body should be at least 3 chars long",
                "spec: Invalid value: \"A1\": spec in body should match '^[a-z]+$'",
            ],
        );
        check(
            json!({"type": "array", "x-kubernetes-list-type": "set", "maxItems": 1, "items": {"type": "string"}}),
            json!(["a", "a"]),
            &["spec: Too many: 2: must have at most 1 item", "spec[1]: Duplicate value: \"a\""],
        );
        check(
            json!({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({"a": 1, "b": 1}),
            &[
                "spec: Invalid value: {\"a\":1,\"b\":1}: \"spec\" must validate one and only one schema (oneOf). Found 2 valid alternatives",
            ],
        );
        check(json!({"x-kubernetes-int-or-string": true}), json!("80%"), &[]);
        check(json!({"type": "number"}), json!(1), &[]);
        check(
            json!({"type": "integer"}),
            json!(1.5),
            &["spec: Invalid value: \"number\": spec in body must be of type integer: \"number\""],
        );
        check(json!({"type": "object", "nullable": true}), Value::Null, &[]);
    }
}
