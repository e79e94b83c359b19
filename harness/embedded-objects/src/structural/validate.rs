//! Whether a value is valid according to its schema. Formats and CEL rules are not checked.

use serde_json::{Map, Value};

use super::path::Path;
use super::{HEAD, INT_OR_STRING, Patterns, nullable, of_member};
use crate::cause::Cause;
use crate::value::PathAccess as _;

/// The limit of the work for one object: one step for each value and schema, plus the cost of comparing texts
/// with patterns.
const MOST_STEPS: usize = 4_000_000;
/// The most bytes of causes for one object; after that, nothing more is examined.
const MOST_TEXT: usize = 256 << 10;

/// The causes for an object of a schema. Its head (apiVersion, kind, metadata) is not part of the schema.
pub fn validate(schema: &Value, patterns: &Patterns, object: &Value) -> Vec<Cause> {
    let mut judge = Judge { patterns, steps: MOST_STEPS, room: MOST_TEXT, causes: Vec::new(), trial: None };
    judge.value(schema, object, &Path::root(""));
    if judge.steps == 0 {
        let why = "validation takes more steps than one request may, no further rules were looked at";
        judge.causes.push(Cause::forbidden("<nil>", why));
    }
    judge.causes
}

/// Makes a cause for a value from its path.
type MakeCause<'a> = &'a dyn Fn(String) -> Cause;

struct Judge<'a> {
    patterns: &'a Patterns,
    /// The rest of [`MOST_STEPS`].
    steps: usize,
    /// The rest of [`MOST_TEXT`].
    room: usize,
    causes: Vec<Cause>,
    /// Whether a value fits so far, in a trial without causes.
    trial: Option<bool>,
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

/// Whether a value has the type that a schema names, if it names one.
fn fits(schema: &Value, of: &Value) -> bool {
    let is = kind_of(of);
    match schema.text("type") {
        _ if schema.truth(INT_OR_STRING) => matches!(is, "integer" | "string"),
        "" => true,
        "number" => matches!(is, "integer" | "number"),
        wanted => wanted == is,
    }
}

/// A limit of a schema, such as `maxItems`.
fn limit(schema: &Value, name: &str) -> Option<usize> {
    schema.at(name).as_u64().and_then(|limit| usize::try_from(limit).ok())
}

/// The key that distinguishes two items of a list, if the schema requires unique items.
fn key_of(schema: &Value, item: &Value) -> Option<Value> {
    match schema.text("x-kubernetes-list-type") {
        "set" => Some(item.clone()),
        "map" => {
            let keys = schema.list("x-kubernetes-list-map-keys").iter().filter_map(Value::as_str);
            let named = keys.map(|key| (key.to_owned(), item.at(key).clone()));
            Some(named.collect::<Map<_, _>>().into())
        }
        _ => None,
    }
}

impl Judge<'_> {
    /// Uses up steps; returns whether to continue.
    fn step(&mut self, count: usize) -> bool {
        self.steps = self.steps.saturating_sub(count);
        self.steps > 0 && self.room > 0 && self.trial != Some(false)
    }

    fn tell(&mut self, path: &Path<'_>, cause: MakeCause<'_>) {
        if self.trial.is_some() {
            self.trial = Some(false);
        } else if self.room > 0 {
            let cause = cause(path.to_string());
            self.room = self.room.saturating_sub(cause.field.len() + cause.message.len());
            self.causes.push(cause);
        }
    }

    fn should(&mut self, path: &Path<'_>, of: &Value, what: &str) {
        self.tell(path, &|path| {
            let message = format!("{path} in body should {what}");
            Cause::invalid(path, of.clone(), message)
        });
    }

    fn value(&mut self, schema: &Value, of: &Value, path: &Path<'_>) {
        let possible = schema.list("enum");
        if !self.step(1 + possible.len()) || (of.is_null() && nullable(schema)) {
            return;
        }
        if !fits(schema, of) {
            let wanted = if schema.truth(INT_OR_STRING) { "integer,string" } else { schema.text("type") };
            let is = kind_of(of);
            self.tell(path, &|path| {
                let message = format!("{path} in body must be of type {wanted}: {is:?}");
                Cause::wrong_type(path, is, message)
            });
            return;
        }
        if !possible.is_empty() && !possible.contains(of) {
            self.tell(path, &|path| {
                let shown = |one: &Value| one.as_str().map_or_else(|| one.to_string(), str::to_owned);
                let texts: Vec<String> = possible.iter().map(shown).collect();
                let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                Cause::not_supported(path, of.clone(), &texts)
            });
        }
        match of {
            Value::Number(number) => self.number(schema, number.as_f64().unwrap_or_default(), of, path),
            Value::String(text) => self.text(schema, text, of, path),
            Value::Array(items) => self.list(schema, items, of, path),
            Value::Object(members) => self.object(schema, members, of, path),
            _ => {}
        }
        self.combined(schema, of, path);
    }

    fn number(&mut self, schema: &Value, number: f64, of: &Value, path: &Path<'_>) {
        if let Some(most) = schema.at("maximum").as_f64() {
            let exclusive = schema.truth("exclusiveMaximum");
            if number > most || (exclusive && number >= most) {
                let equal = if exclusive { "than" } else { "than or equal to" };
                self.should(path, of, &format!("be less {equal} {}", schema.at("maximum")));
            }
        }
        if let Some(least) = schema.at("minimum").as_f64() {
            let exclusive = schema.truth("exclusiveMinimum");
            if number < least || (exclusive && number <= least) {
                let equal = if exclusive { "than" } else { "than or equal to" };
                self.should(path, of, &format!("be greater {equal} {}", schema.at("minimum")));
            }
        }
        if let Some(factor) = schema.at("multipleOf").as_f64().filter(|factor| *factor > 0.0)
            && (number / factor).fract() != 0.0
        {
            self.should(path, of, &format!("be a multiple of {}", schema.at("multipleOf")));
        }
    }

    fn text(&mut self, schema: &Value, text: &str, of: &Value, path: &Path<'_>) {
        let length = text.chars().count();
        if let Some(most) = limit(schema, "maxLength").filter(|most| length > *most) {
            self.tell(path, &|path| Cause::too_long(path, most));
        }
        if let Some(least) = limit(schema, "minLength").filter(|least| length < *least) {
            self.should(path, of, &format!("be at least {least} chars long"));
        }
        let pattern = schema.text("pattern");
        let held = |judge: &mut Self| judge.patterns.matches(pattern, text, &mut judge.steps);
        if !pattern.is_empty() && self.step(1) && held(self) == Some(false) {
            self.should(path, of, &format!("match '{pattern}'"));
        }
    }

    fn list(&mut self, schema: &Value, items: &[Value], of: &Value, path: &Path<'_>) {
        if let Some(most) = limit(schema, "maxItems").filter(|most| items.len() > *most) {
            self.tell(path, &|path| Cause::too_many(path, items.len(), most));
        }
        if let Some(least) = limit(schema, "minItems").filter(|least| items.len() < *least) {
            self.should(path, of, &format!("have at least {least} items"));
        }
        let mut seen = std::collections::HashSet::new();
        for (at, item) in items.iter().enumerate() {
            let path = path.item(at);
            if let Some(key) = key_of(schema, item) {
                let text = key.to_string();
                if !self.step(text.len()) {
                    return;
                }
                if !seen.insert(text) {
                    self.tell(&path, &|path| Cause::duplicate(path, key.clone()));
                }
            }
            if let Some(inner) = schema.get("items") {
                self.value(inner, item, &path);
            }
        }
    }

    fn object(&mut self, schema: &Value, members: &Map<String, Value>, of: &Value, path: &Path<'_>) {
        if let Some(most) = limit(schema, "maxProperties").filter(|most| members.len() > *most) {
            self.tell(path, &|path| Cause::too_many(path, members.len(), most));
        }
        if let Some(least) = limit(schema, "minProperties").filter(|least| members.len() < *least) {
            self.should(path, of, &format!("have at least {least} properties"));
        }
        let required = schema.list("required");
        if !self.step(required.len()) {
            return;
        }
        for name in required.iter().filter_map(Value::as_str) {
            if !members.contains_key(name) {
                self.tell(&path.member(name), &|path| Cause::required(path, ""));
            }
        }
        for (name, member) in members {
            if path.is_root() && HEAD.contains(&name.as_str()) {
                continue;
            }
            if let Some(inner) = of_member(schema, name) {
                self.value(inner, member, &path.member(name));
            }
        }
    }

    /// Whether a value is valid according to a schema; adds no causes.
    fn holds(&mut self, schema: &Value, of: &Value, path: &Path<'_>) -> bool {
        let outer = self.trial.replace(true);
        self.value(schema, of, path);
        std::mem::replace(&mut self.trial, outer) == Some(true)
    }

    /// How many of the schemas in a part of a schema match, and how many there are.
    fn count(&mut self, schema: &Value, part: &str, of: &Value, path: &Path<'_>) -> (usize, usize) {
        let all = schema.list(part);
        (all.iter().filter(|inner| self.holds(inner, of, path)).count(), all.len())
    }

    fn must(&mut self, of: &Value, path: &Path<'_>, what: &str) {
        self.tell(path, &|path| {
            let message = format!("{path:?} must {what}");
            Cause::invalid(path, of.clone(), message)
        });
    }

    /// Checks `allOf`, `anyOf`, `oneOf` and `not`.
    fn combined(&mut self, schema: &Value, of: &Value, path: &Path<'_>) {
        let (valid, all) = self.count(schema, "allOf", of, path);
        if valid < all {
            self.must(of, path, "validate all the schemas (allOf)");
        }
        let (valid, all) = self.count(schema, "anyOf", of, path);
        if all > 0 && valid == 0 {
            self.must(of, path, "validate at least one schema (anyOf)");
        }
        match self.count(schema, "oneOf", of, path) {
            (_, 0) | (1, _) => {}
            (0, _) => self.must(of, path, "validate one and only one schema (oneOf). Found none valid"),
            (valid, _) => {
                let what =
                    format!("validate one and only one schema (oneOf). Found {valid} valid alternatives");
                self.must(of, path, &what);
            }
        }
        if let Some(schema) = schema.get("not")
            && self.holds(schema, of, path)
        {
            self.must(of, path, "not validate the schema (not)");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: Value, of: Value, expected: &[&str]) {
        let schema = json!({"type": "object", "properties": {"spec": schema}});
        let patterns = Patterns::of(&schema);
        let causes = validate(&schema, &patterns, &json!({"spec": of}));
        let messages: Vec<String> = causes.iter().map(Cause::text).collect();
        assert_eq!(messages, expected);
    }

    #[test]
    fn misfits_of_a_schema_have_the_words_of_the_real_server() {
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

    /// The causes for an object, and their size in bytes.
    fn weighed(schema: &Value, object: &Value) -> (Vec<Cause>, usize) {
        let causes = validate(schema, &Patterns::of(schema), object);
        let bytes = causes.iter().map(|cause| cause.field.len() + cause.message.len()).sum();
        (causes, bytes)
    }

    #[test]
    fn work_and_words_about_one_object_are_bounded() {
        // Each of many items is compared with each of many schemas, again at every level.
        let one = json!({"type": "object", "required": ["x"]});
        let many = json!({"anyOf": vec![one; 3000]});
        let schema = json!({"type": "object", "properties": {"list": {"type": "array", "items": many}}});
        let began = std::time::Instant::now();
        let (causes, bytes) = weighed(&schema, &json!({"list": vec![json!({}); 20_000]}));
        let last = causes.last().map(Cause::text).unwrap_or_default();
        assert!(last.starts_with("<nil>: Forbidden: validation takes more steps"), "{last}");
        assert!(bytes < 2 * MOST_TEXT, "{bytes}");
        // A pattern that is slow to compile is not compiled again for each text.
        let schema = json!({"type": "object", "properties": {"list": {"type": "array", "items":
            {"type": "string", "pattern": "^([a-z]{1,40}){1,10}$"}}}});
        let texts: Vec<String> = (0..50_000).map(|_| "abc".to_owned()).collect();
        assert_eq!(weighed(&schema, &json!({"list": texts})), (Vec::new(), 0));
        // A pattern with thousands of open alternatives is not followed through a long text.
        let schema = json!({"type": "object", "properties": {"text": {"type": "string",
            "pattern": "(a|b)*a((a|b){1000}){10}c"}}});
        let (causes, _) = weighed(&schema, &json!({"text": "aabab".repeat(300_000)}));
        assert!(causes.iter().any(|cause| cause.text().contains("more steps")), "{causes:?}");
        // Causes for each of many values under a long name do not multiply its length.
        let schema = json!({"type": "object", "additionalProperties": {"type": "object", "additionalProperties":
            {"type": "integer"}}});
        let members: Map<String, Value> = (0..20_000).map(|at| (at.to_string(), json!("x"))).collect();
        let (causes, bytes) = weighed(&schema, &json!({"n".repeat(100_000): members}));
        assert!(causes.len() > 1 && bytes < 3 * MOST_TEXT, "{} causes of {bytes} bytes", causes.len());
        // Without the limits, each of the three took minutes, or all memory.
        assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
    }
}
