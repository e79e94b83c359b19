//! Whether values have the types of their fields, and whether the fields are there at all.

use super::answer::{Answer, Refusal, UnknownField};
use crate::manifest::{Node, Object, Value};
use embedded_objects::schema::{self, Shape, TypeId};

/// The walk through one object.
pub(super) struct Form<'a> {
    index: usize,
    object: &'a Object,
    answer: &'a mut Answer,
}

impl<'a> Form<'a> {
    pub(super) fn new(index: usize, object: &'a Object, answer: &'a mut Answer) -> Form<'a> {
        Form { index, object, answer }
    }

    /// A struct at a path; the root has apiVersion and kind besides.
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

    /// A value at a path.
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

    /// A field that nothing knows.
    pub(super) fn unknown(&mut self, map: &Node, key: &str, path: String) {
        let place = self.object.place_of(map, key);
        self.answer.unknown.push(UnknownField { object: self.index, place, path });
    }

    fn misfit(&mut self, node: &Node, path: &str, expected: &str) {
        let shown = match &node.value {
            Value::Text(text) => format!("the text '{text}'"),
            Value::Bool(_) | Value::Int(_) | Value::Number(_) => {
                format!("{} ({})", node.kind(), node.scalar().unwrap_or_default())
            }
            _ => node.kind().to_owned(),
        };
        let hint = match node.value {
            Value::Bool(_) | Value::Int(_) | Value::Number(_) if expected == "text" => "put it in quotes",
            _ => "'kubectl explain' shows what belongs there",
        };
        self.answer.refusals.push(Refusal {
            object: self.index,
            place: self.object.place(node),
            what: format!("{path} is {shown} where {expected} belongs"),
            hint: hint.to_owned(),
        });
    }
}

/// A field below a path.
pub(super) fn joined(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn expected(shape: &Shape) -> &'static str {
    match shape {
        Shape::Pointer(inner) => expected(inner),
        Shape::Struct(_) | Shape::Map(_) => "a map",
        Shape::List(_) => "a list",
        Shape::Text(_) | Shape::Bytes => "text",
        Shape::Time | Shape::MicroTime => "a point in time",
        Shape::Bool => "a truth value",
        Shape::Int(32, _) => "a whole number of 32 bits",
        Shape::Int(..) => "a whole number",
        Shape::Float => "a number",
        Shape::IntOrString => "a whole number or text",
        Shape::Quantity => "a quantity such as 100m or 64Mi",
        Shape::Raw | Shape::JsonSchema(_) | Shape::FieldsV1 => "JSON",
    }
}
