//! Checks that values have the types of their fields, and that the fields exist.

use super::answer::{Answer, Refusal, UnknownField};
use crate::manifest::{Node, Object, Value};
use embedded_objects::schema::{self, Shape, TypeId};

/// Walks through one object.
pub(super) struct Form<'a> {
    index: usize,
    object: &'a Object,
    answer: &'a mut Answer,
}

impl<'a> Form<'a> {
    pub(super) fn new(index: usize, object: &'a Object, answer: &'a mut Answer) -> Form<'a> {
        Form { index, object, answer }
    }

    /// Checks a struct at a path; the root also has apiVersion and kind.
    pub(super) fn walk(&mut self, ty: TypeId, node: &Node, path: &str) {
        if node.is_null() {
            return;
        }
        let known = schema::get(ty);
        if !matches!(node.value, Value::Map(_)) {
            return self.misfit(node, path, "a map");
        }
        for entry in node.entries() {
            let below = joined(path, &entry.key);
            if known.typed && (entry.key == "apiVersion" || entry.key == "kind") {
                continue;
            }
            match known.field(&entry.key) {
                Some(field) => self.value(&field.shape, &entry.value, &below),
                None if known.open => {}
                None => self.unknown(node, &entry.key, below),
            }
        }
    }

    /// Checks the value at a path.
    pub(super) fn value(&mut self, shape: &Shape, node: &Node, path: &str) {
        if node.is_null() || node.is_placeholder() {
            return;
        }
        let fits = match shape {
            Shape::Pointer(inner) => return self.value(inner, node, path),
            Shape::Struct(ty) => return self.walk(*ty, node, path),
            Shape::List(inner) => match &node.value {
                Value::List(items) => {
                    for (at, item) in items.iter().enumerate() {
                        self.value(inner, item, &format!("{path}[{at}]"));
                    }
                    true
                }
                _ => false,
            },
            Shape::Map(inner) => match &node.value {
                Value::Map(entries) => {
                    for entry in entries {
                        self.value(inner, &entry.value, &format!("{path}[{}]", entry.key));
                    }
                    true
                }
                _ => false,
            },
            Shape::Raw | Shape::JsonSchema(_) | Shape::FieldsV1 => true,
            Shape::Text(_) | Shape::Bytes | Shape::Time | Shape::MicroTime => node.text().is_some(),
            Shape::Bool => node.bool().is_some(),
            Shape::Int(bits, _) => node.int().is_some_and(|n| *bits == 64 || i32::try_from(n).is_ok()),
            Shape::Float => matches!(node.value, Value::Int(_) | Value::Number(_)),
            Shape::IntOrString => {
                node.text().is_some() || node.int().is_some_and(|n| i32::try_from(n).is_ok())
            }
            Shape::Quantity => {
                matches!(node.value, Value::Int(_) | Value::Number(_) | Value::Text(_))
            }
        };
        if !fits {
            self.misfit(node, path, expected(shape));
        }
    }

    /// Records a field that Kubernetes does not know.
    pub(super) fn unknown(&mut self, map: &Node, key: &str, path: String) {
        let place = self.object.place_of(map, key);
        self.answer.unknown.push(UnknownField { object: self.index, place, path });
    }

    fn misfit(&mut self, node: &Node, path: &str, expected: &str) {
        let shown = match &node.value {
            Value::Text(text) => format!("the string '{text}'"),
            Value::Bool(_) | Value::Int(_) | Value::Number(_) => {
                format!("{} ({})", node.kind(), node.scalar().unwrap_or_default())
            }
            _ => node.kind().to_owned(),
        };
        let hint = match node.value {
            Value::Bool(_) | Value::Int(_) | Value::Number(_) if expected == "a string" => "put it in quotes",
            _ => "'kubectl explain' shows the expected type",
        };
        self.answer.refusals.push(Refusal {
            object: self.index,
            place: self.object.place(node),
            what: format!("{path}: expected {expected}, got {shown}"),
            hint: hint.to_owned(),
        });
    }
}

/// Returns the path of a field below another path.
pub(super) fn joined(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn expected(shape: &Shape) -> &'static str {
    match shape {
        Shape::Pointer(inner) => expected(inner),
        Shape::Struct(_) | Shape::Map(_) => "a map",
        Shape::List(_) => "a list",
        Shape::Text(_) | Shape::Bytes => "a string",
        Shape::Time | Shape::MicroTime => "a timestamp",
        Shape::Bool => "a boolean",
        Shape::Int(32, _) => "a 32-bit integer",
        Shape::Int(..) => "an integer",
        Shape::Float => "a number",
        Shape::IntOrString => "an integer or a string",
        Shape::Quantity => "a quantity such as 100m or 64Mi",
        Shape::Raw | Shape::JsonSchema(_) | Shape::FieldsV1 => "JSON",
    }
}
