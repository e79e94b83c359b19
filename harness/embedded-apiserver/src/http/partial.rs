//! The metadata of objects without the rest. Stored objects begin with it, so that most of it is sent as it
//! is stored.

use bytes::{Bytes, BytesMut};
use embedded_objects::kinds::Kind;
use embedded_objects::status::{self, Status};
use embedded_objects::wire;
use serde_json::Value;

use super::accept::{Encoding, Form};
use super::slices::{self, Part};
use embedded_state::store::Record;
use embedded_state::{is_stored_form, is_stored_metadata};

/// The text before the metadata in an object that consists of nothing else.
const TYPE: &[u8] = br#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":"#;

/// The text of an object's metadata. It comes first in all objects except custom resources.
fn metadata(record: &Record) -> &[u8] {
    slices::member(record.json(), "metadata").unwrap_or(b"{}")
}

/// Appends an object's metadata with its type to `out`.
pub(crate) fn write(record: &Record, out: &mut BytesMut) {
    out.extend_from_slice(TYPE);
    out.extend_from_slice(metadata(record));
    out.extend_from_slice(b"}");
}

/// An object's metadata in protobuf: the first field of every kind, and the only one of this.
fn fields(kind: &Kind, record: &Record) -> Result<Bytes, Status> {
    if let Some(known) = record.known_encoding()
        && let Some(part) = wire::first_field(&known)
    {
        return Ok(known.slice_ref(part));
    }
    wire::encode_metadata(&for_protobuf(metadata(record)))
        .map(Bytes::from)
        .map_err(|why| status::internal(&format!("{} {}: {why}", kind.plural, record.key().name())))
}

/// Metadata to be encoded. Managed fields, which are most of it, stay text, as they are in protobuf.
fn for_protobuf(text: &[u8]) -> Value {
    let mut value = slices::part(text, Part::But(&["managedFields"])).unwrap_or_default();
    let Some(entries) = slices::member(text, "managedFields") else { return value };
    let entry = |entry: &[u8]| {
        let mut read = slices::part(entry, Part::But(&["fieldsV1"])).unwrap_or_default();
        if let Some(fields) = slices::member(entry, "fieldsV1") {
            read["fieldsV1"] = String::from_utf8_lossy(fields).into();
        }
        read
    };
    value["managedFields"] = slices::items(entries).map(entry).collect();
    value
}

/// A list of metadata in the requested form; `None` if only the general way can make that form.
///
/// # Errors
///
/// 500 if metadata cannot be encoded.
pub(crate) fn list<'a>(
    kind: &'static Kind,
    records: impl Iterator<Item = &'a Record> + Clone,
    list_metadata: &Value,
    form: Form,
) -> Result<Option<Bytes>, Status> {
    match form.encoding {
        Encoding::Json if !form.pretty && is_stored_metadata(kind) => {
            Ok(Some(json_list(records, list_metadata)))
        }
        Encoding::Protobuf if is_stored_form(kind) => {
            let items = records.map(|record| fields(kind, record)).collect::<Result<Vec<Bytes>, Status>>()?;
            let items = items.iter().map(Bytes::as_ref);
            let list =
                wire::encode_list_of("meta.k8s.io/v1", "PartialObjectMetadataList", list_metadata, items);
            list.map(|bytes| Some(bytes.into())).map_err(|why| status::internal(&why))
        }
        _ => Ok(None),
    }
}

fn json_list<'a>(records: impl Iterator<Item = &'a Record> + Clone, list_metadata: &Value) -> Bytes {
    let head = format!(
        r#"{{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{list_metadata},"items":["#
    );
    let room: usize = records.clone().map(|record| TYPE.len() + record.json().len() / 2).sum();
    let mut bytes = BytesMut::with_capacity(head.len() + room);
    bytes.extend_from_slice(head.as_bytes());
    for (at, record) in records.enumerate() {
        if at > 0 {
            bytes.extend_from_slice(b",");
        }
        write(record, &mut bytes);
    }
    bytes.extend_from_slice(b"]}\n");
    bytes.freeze()
}
