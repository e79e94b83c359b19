//! The encoding of objects.

use std::sync::Arc;

use bytes::{Buf as _, Bytes};
use embedded_objects::kinds::Kind;
use embedded_objects::status::{self, Status};
use embedded_objects::wire;
use embedded_tables::{self as tables, Include};
use serde_json::Value;

use super::accept::{Encoding, Form};
use embedded_state::store::Record;
use embedded_state::{Clock, from_stored, is_stored_form};

/// Encodes an object.
///
/// # Errors
///
/// 500 if the encoding cannot represent the object.
pub(crate) fn object(value: &Value, form: Form) -> Result<Bytes, Status> {
    let failed = |why: String| status::internal(&why);
    match form.encoding {
        Encoding::Json if form.pretty => {
            serde_json::to_string_pretty(value).map(Bytes::from).map_err(|e| failed(e.to_string()))
        }
        Encoding::Json => Ok(wire::json(value).into()),
        Encoding::Yaml => serde_saphyr::to_string(value).map(Bytes::from).map_err(|e| failed(e.to_string())),
        Encoding::Protobuf => wire::encode_protobuf(value).map(Bytes::from).map_err(failed),
    }
}

/// A stored object without kind and apiVersion, as JSON.
#[must_use]
pub(crate) fn bare(kind: &'static Kind, record: &Record) -> Bytes {
    if is_stored_form(kind) {
        return record.json().clone();
    }
    let mut object = from_stored(kind, record.value());
    if let Some(map) = object.as_object_mut() {
        map.remove("kind");
        map.remove("apiVersion");
    }
    object.to_string().into()
}

/// A stored object as JSON.
#[must_use]
pub(crate) fn json(kind: &'static Kind, record: &Record) -> Bytes {
    json_parts(kind, record).concat().into()
}

/// A stored object as JSON in two parts: its type, and the rest, which is not copied if it is stored in that form.
#[must_use]
pub(crate) fn json_parts(kind: &'static Kind, record: &Record) -> [Bytes; 2] {
    let head = format!(r#"{{"kind":"{}","apiVersion":"{}","#, kind.kind, kind.api_version());
    // After the opening brace: a stored object always has metadata, so a comma is correct.
    let mut rest = bare(kind, record);
    rest.advance(1.min(rest.len()));
    [head.into(), rest]
}

/// Encodes a stored object.
///
/// # Errors
///
/// 500 if the encoding cannot represent it.
pub(crate) fn record(kind: &'static Kind, record: &Arc<Record>, form: Form) -> Result<Bytes, Status> {
    match form.encoding {
        Encoding::Json if !form.pretty => Ok(json(kind, record)),
        Encoding::Protobuf if is_stored_form(kind) => {
            Ok(wire::encode_object(kind, &fields(kind, record)?).into())
        }
        _ => object(&from_stored(kind, record.value()), form),
    }
}

/// A stored object's own fields in protobuf; encoded only once for each version of the object.
fn fields(kind: &'static Kind, record: &Record) -> Result<Bytes, Status> {
    record
        .encoded(|| wire::encode_fields(kind, &record.value()).map(Bytes::from))
        .map_err(|why| status::internal(&why))
}

/// A list in protobuf, written from its encoded items.
///
/// # Errors
///
/// 500 if the kind has no protobuf encoding.
pub(crate) fn protobuf_list(
    kind: &'static Kind,
    records: &[Arc<Record>],
    metadata: &Value,
) -> Result<Bytes, Status> {
    let items = records.iter().map(|record| fields(kind, record)).collect::<Result<Vec<Bytes>, Status>>()?;
    let items = items.iter().map(Bytes::as_ref);
    wire::encode_list(kind, metadata, items).map(Bytes::from).map_err(|why| status::internal(&why))
}

/// Objects as a table for people.
#[must_use]
pub(crate) fn table(kind: &'static Kind, objects: &[Value], metadata: &Value, include: Include) -> Value {
    tables::table(kind, objects, metadata, include, &Clock::now().seconds)
}
