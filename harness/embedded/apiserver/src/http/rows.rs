//! Lists as tables for people: cells are computed, and what stands beside them is sent as it is stored.

use bytes::{Bytes, BytesMut};
use embedded_semantics::kinds::Kind;
use embedded_semantics::table::{self, Include};
use embedded_semantics::wire;
use serde_json::Value;

use super::encode;
use super::partial;
use super::shown;
use crate::api::{Clock, from_stored, is_stored_form};
use crate::store::Record;

/// A list as a table, in JSON.
pub(crate) fn list<'a>(
    kind: &'static Kind,
    records: impl Iterator<Item = &'a Record>,
    list_metadata: &Value,
    include: Include,
) -> Bytes {
    let now = Clock::now().seconds;
    let columns = wire::plain(&table::columns(kind));
    let head = format!(
        r#"{{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{list_metadata},"columnDefinitions":{columns},"rows":["#
    );
    let mut bytes = BytesMut::from(head.as_bytes());
    for (at, record) in records.enumerate() {
        if at > 0 {
            bytes.extend_from_slice(b",");
        }
        row(kind, record, include, &now, &mut bytes);
    }
    bytes.extend_from_slice(b"]}\n");
    bytes.freeze()
}

fn row(kind: &'static Kind, record: &Record, include: Include, now: &str, out: &mut BytesMut) {
    let object = match shown::value(record.json()).filter(|_| is_stored_form(kind)) {
        Some(part) => part,
        None => from_stored(kind, record.value()),
    };
    out.extend_from_slice(br#"{"cells":"#);
    out.extend_from_slice(wire::plain(&Value::Array(table::cells(kind, &object, now))).as_bytes());
    if let Some(conditions) = table::conditions(kind, &object) {
        out.extend_from_slice(br#","conditions":"#);
        out.extend_from_slice(wire::plain(&conditions).as_bytes());
    }
    out.extend_from_slice(br#","object":"#);
    match include {
        Include::None => out.extend_from_slice(b"null"),
        Include::Metadata => partial::write(record, out),
        Include::Object => out.extend_from_slice(&encode::json(kind, record)),
    }
    out.extend_from_slice(b"}");
}
