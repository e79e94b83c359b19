//! Decodes JSON values from protobuf bytes.

use base64::Engine as _;
use serde_json::{Map, Value, json};

use crate::rules::time;
use crate::schema::{self, Field, Instead, Shape, TypeId};
use crate::typed;

/// How deep messages may be nested; only JSON schemas come close to it.
const DEPTH: usize = 100;
const TRUNCATED: &str = "unexpected EOF";

/// The envelope around an object.
pub(super) struct Envelope<'a> {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) raw: &'a [u8],
}

/// One field of a message: its number and content.
#[derive(Clone, Copy)]
enum Content<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn varint(&mut self) -> Result<u64, String> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or(TRUNCATED)?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err("proto: integer overflow".to_owned())
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], String> {
        let length = usize::try_from(length).map_err(|_| TRUNCATED)?;
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(TRUNCATED)?;
        self.rest = rest;
        Ok(taken)
    }

    fn next(&mut self) -> Result<Option<(u32, Content<'a>)>, String> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).map_err(|_| "proto: illegal tag".to_owned())?;
        let content = match key & 7 {
            0 => Content::Number(self.varint()?),
            1 => Content::Bytes(self.take(8)?),
            2 => {
                let length = self.varint()?;
                Content::Bytes(self.take(length)?)
            }
            5 => Content::Bytes(self.take(4)?),
            wire => return Err(format!("proto: illegal wireType {wire}")),
        };
        if number == 0 {
            return Err("proto: illegal tag 0".to_owned());
        }
        Ok(Some((number, content)))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Parses the envelope.
pub(super) fn envelope(bytes: &[u8]) -> Result<Envelope<'_>, String> {
    let mut envelope = Envelope { api_version: String::new(), kind: String::new(), raw: b"" };
    let mut reader = Reader { rest: bytes };
    while let Some((number, content)) = reader.next()? {
        match (number, content) {
            (1, Content::Bytes(meta)) => {
                let mut meta = Reader { rest: meta };
                while let Some((number, content)) = meta.next()? {
                    match (number, content) {
                        (1, Content::Bytes(bytes)) => envelope.api_version = text(bytes),
                        (2, Content::Bytes(bytes)) => envelope.kind = text(bytes),
                        _ => {}
                    }
                }
            }
            (2, Content::Bytes(raw)) => envelope.raw = raw,
            _ => {}
        }
    }
    Ok(envelope)
}

/// Parses a watch event: its type and the bytes of its object.
pub(super) fn watch_event(bytes: &[u8]) -> Result<(String, &[u8]), String> {
    let (mut event, mut object): (String, &[u8]) = (String::new(), b"");
    let mut reader = Reader { rest: bytes };
    while let Some((number, content)) = reader.next()? {
        match (number, content) {
            (1, Content::Bytes(bytes)) => event = text(bytes),
            (2, Content::Bytes(raw)) => {
                let mut raw = Reader { rest: raw };
                while let Some((number, content)) = raw.next()? {
                    if let (1, Content::Bytes(bytes)) = (number, content) {
                        object = bytes;
                    }
                }
            }
            _ => {}
        }
    }
    Ok((event, object))
}

/// The first field of a message with its key and length, if it has number 1 and a length.
pub(super) fn first_field(message: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader { rest: message };
    match reader.next() {
        Ok(Some((1, Content::Bytes(_)))) => message.get(..message.len() - reader.rest.len()),
        _ => None,
    }
}

/// Parses a struct's bytes.
pub(super) fn message(ty: TypeId, bytes: &[u8]) -> Result<Value, String> {
    structure(ty, bytes, 0).map(Value::Object)
}

fn structure(ty: TypeId, bytes: &[u8], depth: usize) -> Result<Map<String, Value>, String> {
    if depth > DEPTH {
        return Err("exceeded max depth".to_owned());
    }
    let known = schema::get(ty);
    let mut out = Map::new();
    let mut reader = Reader { rest: bytes };
    while let Some((number, content)) = reader.next()? {
        let Some(field) = known.fields.iter().find(|field| field.number == number) else { continue };
        member(field, content, depth, &mut out)?;
    }
    Ok(out)
}

fn member(
    field: &Field,
    content: Content<'_>,
    depth: usize,
    out: &mut Map<String, Value>,
) -> Result<(), String> {
    match (field.shape.bare(), content) {
        (Shape::Struct(ty), Content::Bytes(bytes)) if field.inline => {
            out.extend(structure(*ty, bytes, depth + 1)?);
        }
        (Shape::List(inner), Content::Bytes(bytes)) if field.held => {
            out.insert(field.json.to_owned(), held(inner, bytes, depth)?);
        }
        (Shape::List(inner), content) => {
            let item = single(inner, content, depth)?;
            match out.entry(field.json).or_insert_with(|| json!([])) {
                Value::Array(items) => items.push(item),
                other => *other = json!([item]),
            }
        }
        (Shape::Map(inner), Content::Bytes(bytes)) => {
            let (name, value) = entry(inner, bytes, depth)?;
            match out.entry(field.json).or_insert_with(|| json!({})) {
                Value::Object(members) => {
                    members.insert(name, value);
                }
                other => *other = json!({ name: value }),
            }
        }
        (shape, content) => {
            out.insert(field.json.to_owned(), single(shape, content, depth)?);
        }
    }
    Ok(())
}

fn entry(shape: &Shape, bytes: &[u8], depth: usize) -> Result<(String, Value), String> {
    let mut name = String::new();
    let mut value = Value::Null;
    let mut reader = Reader { rest: bytes };
    while let Some((number, content)) = reader.next()? {
        match (number, content, shape.bare()) {
            (1, Content::Bytes(bytes), _) => name = text(bytes),
            (2, Content::Bytes(bytes), Shape::List(inner)) => value = held(inner, bytes, depth)?,
            (2, content, shape) => value = single(shape, content, depth + 1)?,
            _ => {}
        }
    }
    Ok((name, value))
}

/// A list that is a message of its own.
fn held(shape: &Shape, bytes: &[u8], depth: usize) -> Result<Value, String> {
    let mut items = Vec::new();
    let mut held = Reader { rest: bytes };
    while let Some((number, content)) = held.next()? {
        if number == 1 {
            items.push(single(shape, content, depth + 1)?);
        }
    }
    Ok(Value::Array(items))
}

/// A JSON schema in JSON: protobuf also contains empty fields.
fn json_schema(bytes: &[u8], depth: usize) -> Result<Value, String> {
    let ty = schema::json_schema().ok_or("the types of JSON schemas are unknown")?;
    typed::decode(ty, &Value::Object(structure(ty, bytes, depth + 1)?))
}

/// The content of a message that has either a schema or something else.
fn schema_or(instead: Instead, bytes: &[u8], depth: usize) -> Result<Value, String> {
    let mut value = match instead {
        Instead::Nothing => return json_schema(bytes, depth),
        Instead::Bool => Value::Bool(false),
        Instead::List | Instead::Texts => Value::Null,
    };
    let mut items = Vec::new();
    let mut reader = Reader { rest: bytes };
    while let Some((number, content)) = reader.next()? {
        match (instead, number, content) {
            (Instead::Bool, 1, Content::Number(allows)) if !value.is_object() => value = (allows != 0).into(),
            (Instead::Bool, 2, Content::Bytes(bytes)) => value = json_schema(bytes, depth)?,
            (Instead::List | Instead::Texts, 1, Content::Bytes(bytes)) => value = json_schema(bytes, depth)?,
            (Instead::List, 2, Content::Bytes(bytes)) => items.push(json_schema(bytes, depth)?),
            (Instead::Texts, 2, Content::Bytes(bytes)) => items.push(text(bytes).into()),
            _ => {}
        }
    }
    Ok(if items.is_empty() { value } else { Value::Array(items) })
}

fn single(shape: &Shape, content: Content<'_>, depth: usize) -> Result<Value, String> {
    Ok(match (shape.bare(), content) {
        (Shape::Int(32, _), Content::Number(number)) => (number as i32).into(),
        (Shape::Int(..), Content::Number(number)) => number.cast_signed().into(),
        (Shape::Bool, Content::Number(number)) => (number != 0).into(),
        (Shape::Float, Content::Bytes(bytes)) => {
            let bytes: [u8; 8] = bytes.try_into().map_err(|_| TRUNCATED)?;
            let number = f64::from_le_bytes(bytes);
            // Go writes a whole number without a decimal point.
            if number.fract() == 0.0 && number.abs() < 1e15 { json!(number as i64) } else { json!(number) }
        }
        (Shape::Text(_), Content::Bytes(bytes)) => text(bytes).into(),
        (Shape::Bytes, Content::Bytes(bytes)) => {
            base64::engine::general_purpose::STANDARD.encode(bytes).into()
        }
        (Shape::Time | Shape::MicroTime, Content::Bytes(bytes)) => timestamp(shape, bytes)?,
        (Shape::Quantity, Content::Bytes(bytes)) => {
            let (_, texts) = scalars(bytes)?;
            texts
                .into_iter()
                .find(|(number, _)| *number == 1)
                .map(|(_, text)| text)
                .unwrap_or_default()
                .into()
        }
        (Shape::IntOrString, Content::Bytes(bytes)) => {
            let (numbers, texts) = scalars(bytes)?;
            let number = |wanted| {
                let found = numbers.iter().find(|(number, _)| *number == wanted);
                found.map(|(_, value)| *value).unwrap_or_default()
            };
            if number(1) == 1 {
                texts
                    .into_iter()
                    .find(|(number, _)| *number == 3)
                    .map(|(_, text)| text)
                    .unwrap_or_default()
                    .into()
            } else {
                (number(2) as i32).into()
            }
        }
        (Shape::Raw | Shape::FieldsV1, Content::Bytes(bytes)) => {
            let (_, texts) = scalars(bytes)?;
            let raw = texts.into_iter().find(|(number, _)| *number == 1).map(|(_, text)| text);
            raw.and_then(|raw| serde_json::from_str(&raw).ok()).unwrap_or(Value::Null)
        }
        (Shape::JsonSchema(instead), Content::Bytes(bytes)) => schema_or(*instead, bytes, depth)?,
        (Shape::Struct(ty), Content::Bytes(bytes)) => Value::Object(structure(*ty, bytes, depth + 1)?),
        _ => return Err("proto: wrong wireType".to_owned()),
    })
}

fn timestamp(shape: &Shape, bytes: &[u8]) -> Result<Value, String> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (numbers, _) = scalars(bytes)?;
    let number = |wanted| {
        let found = numbers.iter().find(|(number, _)| *number == wanted);
        found.map(|(_, value)| value.cast_signed()).unwrap_or_default()
    };
    let nanos = i32::try_from(number(2)).unwrap_or_default();
    let written = if *shape.bare() == Shape::Time {
        time::of_unix(number(1))
    } else {
        time::of_unix_micros(number(1), nanos)
    };
    written.map(Value::from).ok_or_else(|| format!("time {} is out of range", number(1)))
}

/// The plain numbers and strings of a small message, each with its field's number.
type Scalars = (Vec<(u32, u64)>, Vec<(u32, String)>);

fn scalars(bytes: &[u8]) -> Result<Scalars, String> {
    let (mut numbers, mut texts) = (Vec::new(), Vec::new());
    let mut reader = Reader { rest: bytes };
    while let Some((number, content)) = reader.next()? {
        match content {
            Content::Number(value) => numbers.push((number, value)),
            Content::Bytes(bytes) => texts.push((number, text(bytes))),
        }
    }
    Ok((numbers, texts))
}
