//! How the server shows a forbidden change of a Pod: its internal spec before and after as JSON, and the
//! difference.
//!
//! Source: `k8s.io/apimachinery/pkg/util/diff` and `pkg/apis/core/types.go`.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use embedded_objects::schema::{self, Field, Shape};
use embedded_objects::value::PathAccess as _;

/// The ordered fields of each internal type.
static ORDER: LazyLock<HashMap<&'static str, Vec<&'static str>>> = LazyLock::new(|| {
    include_str!("internal.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(' '))
        .map(|(name, fields)| (name, fields.split(' ').collect()))
        .collect()
});

/// Fields of the Pod's internal security context that are in the spec in the API.
const MOVED: &[&str] = &["HostNetwork", "HostPID", "HostIPC", "ShareProcessNamespace", "HostUsers"];

/// The difference between two Pod specs, as lines with three lines around each change.
pub(super) fn difference(old: &Value, new: &Value) -> String {
    let (before, after) = (shown(old), shown(new));
    similar::TextDiff::from_lines(&before, &after)
        .unified_diff()
        .context_radius(3)
        .missing_newline_hint(false)
        .to_string()
}

/// A structure of this type below a Pod's spec as JSON in one line, in the order of its internal fields.
pub(super) fn inline(name: &str, of: &Value) -> String {
    let mut out = String::new();
    structure(name, of, &Value::Null, 0, &mut out);
    out.lines().map(|line| joined(line.trim_start())).collect()
}

/// A line that begins with the name of a member, without the space after the colon.
fn joined(line: &str) -> String {
    let mut escaped = false;
    let end = line.char_indices().skip(1).find(|(_, ch)| {
        let ends = *ch == '"' && !escaped;
        escaped = *ch == '\\' && !escaped;
        ends
    });
    match end.map(|(at, _)| line.split_at(at + 1)) {
        Some((name, rest)) if line.starts_with('"') => match rest.strip_prefix(": ") {
            Some(value) => format!("{name}:{value}"),
            None => line.to_owned(),
        },
        _ => line.to_owned(),
    }
}

fn shown(spec: &Value) -> String {
    let mut out = String::new();
    structure("PodSpec", spec, spec, 0, &mut out);
    out.push('\n');
    out
}

fn line(depth: usize, out: &mut String) {
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', depth));
}

fn structure(name: &str, of: &Value, spec: &Value, depth: usize, out: &mut String) {
    let known = schema::find(&format!("core/v1.{name}")).map(schema::get);
    let (Some(known), Some(order)) = (known, ORDER.get(name)) else {
        plain(of, depth, out);
        return;
    };
    out.push('{');
    let root = schema::find("core/v1.PodSpec").map(schema::get);
    for (at, go) in order.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        line(depth + 1, out);
        out.push_str(&format!("{go:?}: "));
        let moved = name == "PodSecurityContext" && MOVED.contains(go);
        let (ty, holder) = if moved { (root, spec) } else { (Some(known), of) };
        match ty.and_then(|ty| ty.flat.iter().find(|field| field.go == *go)) {
            Some(field) => member(field, holder.at(field.json), spec, depth + 1, out),
            None => out.push_str("null"),
        }
    }
    line(depth, out);
    out.push('}');
}

fn member(field: &Field, of: &Value, spec: &Value, depth: usize, out: &mut String) {
    value(&field.shape, of, spec, depth, out);
}

fn value(shape: &Shape, of: &Value, spec: &Value, depth: usize, out: &mut String) {
    match (shape, of) {
        (Shape::Pointer(_) | Shape::List(_) | Shape::Map(_) | Shape::Bytes, Value::Null) => {
            out.push_str("null")
        }
        (Shape::Pointer(inner), of) => value(inner, of, spec, depth, out),
        (Shape::Struct(ty), of) => structure(schema::get(*ty).go_name(), of, spec, depth, out),
        (Shape::List(inner), Value::Array(items)) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                line(depth + 1, out);
                value(inner, item, spec, depth + 1, out);
            }
            line(depth, out);
            out.push(']');
        }
        (Shape::Text(_), Value::Null) => out.push_str("\"\""),
        (Shape::Int(..) | Shape::Float | Shape::IntOrString, Value::Null) => out.push('0'),
        (Shape::Bool, Value::Null) => out.push_str("false"),
        (Shape::Quantity, Value::Null) => out.push_str("\"0\""),
        (_, other) => plain(other, depth, out),
    }
}

/// A value as plain indented JSON.
fn plain(of: &Value, depth: usize, out: &mut String) {
    match of {
        Value::Object(members) if !members.is_empty() => object(members, depth, out),
        Value::Array(items) if !items.is_empty() => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                line(depth + 1, out);
                plain(item, depth + 1, out);
            }
            line(depth, out);
            out.push(']');
        }
        other => out.push_str(&other.to_string()),
    }
}

fn object(members: &Map<String, Value>, depth: usize, out: &mut String) {
    out.push('{');
    for (at, (name, member)) in members.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        line(depth + 1, out);
        out.push_str(&format!("{}: ", json!(name)));
        plain(member, depth + 1, out);
    }
    line(depth, out);
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_shown_in_one_line() {
        let context = json!({"capabilities": {"add": ["A\": b", "c: d"]}});
        let shown = inline("SecurityContext", &context);
        assert!(
            shown.starts_with(r#"{"Capabilities":{"Add":["A\": b","c: d"],"Drop":null},"Privileged":null,"#),
            "{shown}"
        );
        assert_eq!(
            inline("SeccompProfile", &json!({"type": "x: y"})),
            r#"{"Type":"x: y","LocalhostProfile":null}"#
        );
    }
}
