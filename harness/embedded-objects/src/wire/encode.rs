//! Protobuf bytes as the generated Go code writes them: plain fields always, pointers if they are set.

use base64::Engine as _;
use serde_json::Value;

use crate::rules::time;
use crate::schema::{self, Instead, Shape, TypeId};

const VARINT: u8 = 0;
const FIXED64: u8 = 1;
const BYTES: u8 = 2;

fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push((number as u8 & 0x7f) | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn key(number: u32, wire: u8, out: &mut Vec<u8>) {
    varint(u64::from(number) << 3 | u64::from(wire), out);
}

fn bytes(number: u32, of: &[u8], out: &mut Vec<u8>) {
    key(number, BYTES, out);
    varint(of.len() as u64, out);
    out.extend(of);
}

fn int(number: u32, of: i64, out: &mut Vec<u8>) {
    key(number, VARINT, out);
    // Negative numbers take ten bytes: protobuf extends their sign to 64 bits.
    varint(of.cast_unsigned(), out);
}

/// The envelope around every object: its type, its bytes, no encoding and no content type.
pub(super) fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut meta = Vec::new();
    bytes(1, api_version.as_bytes(), &mut meta);
    bytes(2, kind.as_bytes(), &mut meta);
    let mut out = Vec::with_capacity(raw.len() + meta.len() + 16);
    bytes(1, &meta, &mut out);
    bytes(2, raw, &mut out);
    bytes(3, b"", &mut out);
    bytes(4, b"", &mut out);
    out
}

/// A list's bytes, from those of its items: metadata is the first field of every list, items are the second.
pub(super) fn list<'a>(metadata: &[u8], items: impl Iterator<Item = &'a [u8]> + Clone) -> Vec<u8> {
    let length: usize = items.clone().map(|item| item.len() + 6).sum();
    let mut out = Vec::with_capacity(metadata.len() + length + 6);
    bytes(1, metadata, &mut out);
    items.for_each(|item| bytes(2, item, &mut out));
    out
}

/// A message with only its first field.
pub(super) fn only(first: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(first.len() + 6);
    bytes(1, first, &mut out);
    out
}

/// A watch event, from an object's bytes.
pub(super) fn watch_event(event: &str, object: &[u8]) -> Vec<u8> {
    let mut raw = Vec::with_capacity(object.len() + 8);
    bytes(1, object, &mut raw);
    let mut out = Vec::with_capacity(raw.len() + 16);
    bytes(1, event.as_bytes(), &mut out);
    bytes(2, &raw, &mut out);
    out
}

/// A struct's bytes.
pub(super) fn message(ty: TypeId, of: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    for field in &schema::get(ty).by_number {
        let member = if field.inline { of } else { of.get(field.json).unwrap_or(&Value::Null) };
        if !field.held {
            self::field(field.number, &field.shape, member, &mut out);
        } else if !member.is_null() {
            let mut held = Vec::new();
            self::field(1, &field.shape, member, &mut held);
            bytes(field.number, &held, &mut out);
        }
    }
    out
}

fn field(number: u32, shape: &Shape, of: &Value, out: &mut Vec<u8>) {
    match shape {
        Shape::Pointer(_) if of.is_null() => {}
        Shape::Pointer(inner) => field(number, inner, of, out),
        Shape::List(inner) => {
            for item in of.as_array().into_iter().flatten() {
                field(number, inner, item, out);
            }
        }
        Shape::Map(inner) => {
            for (name, member) in of.as_object().into_iter().flatten() {
                let mut entry = Vec::new();
                bytes(1, name.as_bytes(), &mut entry);
                match inner.bare() {
                    // A list in a map is a message that holds the list.
                    Shape::List(_) => {
                        let mut held = Vec::new();
                        field(1, inner, member, &mut held);
                        bytes(2, &held, &mut entry);
                    }
                    _ => field(2, inner, member, &mut entry),
                }
                bytes(number, &entry, out);
            }
        }
        Shape::Text(_) => bytes(number, of.as_str().unwrap_or_default().as_bytes(), out),
        Shape::Int(..) => int(number, of.as_i64().unwrap_or_default(), out),
        Shape::Bool => int(number, i64::from(of.as_bool().unwrap_or_default()), out),
        Shape::Float => {
            key(number, FIXED64, out);
            out.extend(of.as_f64().unwrap_or_default().to_le_bytes());
        }
        Shape::Bytes => {
            if let Some(text) = of.as_str() {
                let engine = base64::engine::general_purpose::STANDARD;
                bytes(number, &engine.decode(text).unwrap_or_default(), out);
            }
        }
        Shape::Time | Shape::MicroTime => bytes(number, &timestamp(of, shape), out),
        Shape::Quantity => {
            let mut held = Vec::new();
            bytes(1, of.as_str().unwrap_or("0").as_bytes(), &mut held);
            bytes(number, &held, out);
        }
        Shape::IntOrString => {
            let text = of.as_str();
            let mut held = Vec::new();
            int(1, i64::from(text.is_some()), &mut held);
            int(2, of.as_i64().unwrap_or_default(), &mut held);
            bytes(3, text.unwrap_or_default().as_bytes(), &mut held);
            bytes(number, &held, out);
        }
        // Text stands for fields that were not parsed: parsed ones are never a text.
        Shape::FieldsV1 if of.is_string() => {
            let mut held = Vec::new();
            bytes(1, of.as_str().unwrap_or_default().as_bytes(), &mut held);
            bytes(number, &held, out);
        }
        Shape::Raw | Shape::FieldsV1 => {
            let mut held = Vec::new();
            if !of.is_null() {
                bytes(1, of.to_string().as_bytes(), &mut held);
            }
            bytes(number, &held, out);
        }
        Shape::JsonSchema(instead) => bytes(number, &json_schema(*instead, of), out),
        Shape::Struct(ty) => bytes(number, &message(*ty, of), out),
    }
}

/// A JSON schema, or the message that contains either a schema or its alternative.
fn json_schema(instead: Instead, of: &Value) -> Vec<u8> {
    let schema = |of: &Value| schema::json_schema().map(|ty| message(ty, of)).unwrap_or_default();
    let mut held = Vec::new();
    match (instead, of) {
        (Instead::Nothing, _) => return schema(of),
        (Instead::Bool, Value::Object(_)) => {
            int(1, 1, &mut held);
            bytes(2, &schema(of), &mut held);
        }
        (Instead::Bool, _) => int(1, i64::from(of.as_bool().unwrap_or_default()), &mut held),
        (_, Value::Array(items)) => {
            for item in items {
                match instead {
                    Instead::List => bytes(2, &schema(item), &mut held),
                    _ => bytes(2, item.as_str().unwrap_or_default().as_bytes(), &mut held),
                }
            }
        }
        (_, Value::Object(_)) => bytes(1, &schema(of), &mut held),
        _ => {}
    }
    held
}

/// The zero time is an empty message.
fn timestamp(of: &Value, shape: &Shape) -> Vec<u8> {
    let mut held = Vec::new();
    if let Some((seconds, nanos)) = of.as_str().and_then(time::to_unix) {
        int(1, seconds, &mut held);
        let nanos = if *shape == Shape::Time { 0 } else { i64::from(nanos) };
        int(2, nanos, &mut held);
    }
    held
}
