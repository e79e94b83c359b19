//! JSON text as Go's encoder writes it: fields in the order of the structs, `<`, `>` and `&` escaped.

use serde_json::{Map, Value};

use crate::schema::{self, Shape};

/// The text of an object, list or Status with a line end. Unknown members come last.
pub fn json(object: &Value) -> String {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let shape = schema::of_object(text("apiVersion"), text("kind")).map(Shape::Struct);
    let mut out = String::new();
    value(shape.as_ref(), object, &mut out);
    out.push('\n');
    out
}

/// The text of a value that is not an object of a kind, in the same form.
pub fn plain(of: &Value) -> String {
    let mut out = String::new();
    value(None, of, &mut out);
    out
}

fn value(shape: Option<&Shape>, of: &Value, out: &mut String) {
    match (shape.map(Shape::bare), of) {
        (Some(Shape::Struct(ty)), Value::Object(members)) => {
            let known = schema::get(*ty);
            let head = known.typed.then_some(["kind", "apiVersion"]).into_iter().flatten();
            let names = head
                .map(|name| (name, None))
                .chain(known.flat.iter().map(|field| (field.json, Some(&field.shape))));
            let ordered = names.filter_map(|(name, shape)| Some((name, shape, members.get(name)?)));
            let is_head = |name: &str| known.typed && (name == "kind" || name == "apiVersion");
            let rest = members
                .iter()
                .filter(|(name, _)| known.field(name).is_none() && !is_head(name))
                .map(|(name, value)| (name.as_str(), None, value));
            object(ordered.chain(rest), out);
        }
        (Some(Shape::Map(inner)), Value::Object(members)) => members_of(members, Some(inner), out),
        (Some(Shape::List(inner)), Value::Array(items)) => array(items, Some(inner), out),
        (Some(Shape::Raw), Value::Object(_)) => {
            let line = json(of);
            out.push_str(line.trim_end());
        }
        (_, Value::Object(members)) => members_of(members, None, out),
        (_, Value::Array(items)) => array(items, None, out),
        (_, Value::String(text)) => string(text, out),
        (_, other) => out.push_str(&other.to_string()),
    }
}

fn members_of(members: &Map<String, Value>, shape: Option<&Shape>, out: &mut String) {
    object(members.iter().map(|(name, value)| (name.as_str(), shape, value)), out);
}

fn object<'a>(members: impl Iterator<Item = (&'a str, Option<&'a Shape>, &'a Value)>, out: &mut String) {
    out.push('{');
    for (at, (name, shape, member)) in members.enumerate() {
        if at > 0 {
            out.push(',');
        }
        string(name, out);
        out.push(':');
        value(shape, member, out);
    }
    out.push('}');
}

fn array(items: &[Value], shape: Option<&Shape>, out: &mut String) {
    out.push('[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        value(shape, item, out);
    }
    out.push(']');
}

fn string(text: &str, out: &mut String) {
    out.push('"');
    for ch in text.chars() {
        match ch {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(ch)));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn members_stand_in_the_order_of_the_structs() {
        let service = json!({"apiVersion": "v1", "kind": "Service", "zzz": 1, "spec": {"clusterIP": "x", "ports": [
            {"targetPort": 80, "port": 80, "name": "<&>"}]}, "metadata": {"uid": "u", "name": "n"}});
        assert_eq!(
            super::json(&service),
            "{\"kind\":\"Service\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n\",\"uid\":\"u\"},\"spec\":{\"ports\":[{\"name\":\"\\u003c\\u0026\\u003e\",\"port\":80,\"targetPort\":80}],\"clusterIP\":\"x\"},\"zzz\":1}\n"
        );
    }
}
