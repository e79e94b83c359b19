//! Lists as tables: cells are computed, and the rest is sent as it is stored.

use bytes::{Bytes, BytesMut};
use embedded_objects::kinds::Kind;
use embedded_objects::wire;
use embedded_tables::{self as table, Include};
use serde_json::Value;

use super::encode;
use super::partial;
use super::slices::{self, Part};
use embedded_state::store::Record;
use embedded_state::{Clock, from_stored};

/// Writes a list as a table, in JSON.
pub(crate) fn list<'a>(
    kind: &'static Kind,
    records: impl Iterator<Item = &'a Record> + Clone,
    list_metadata: &Value,
    include: Include,
) -> Bytes {
    let now = Clock::now().seconds;
    let columns = wire::plain(&table::columns(kind));
    let head = format!(
        r#"{{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{list_metadata},"columnDefinitions":{columns},"rows":["#
    );
    let room: usize = records.clone().map(|record| record.json().len() / 2 + 200).sum();
    let mut bytes = BytesMut::with_capacity(head.len() + room);
    bytes.extend_from_slice(head.as_bytes());
    for (at, record) in records.enumerate() {
        if at > 0 {
            bytes.extend_from_slice(b",");
        }
        row(kind, record, include, &now, &mut bytes);
    }
    bytes.extend_from_slice(b"]}\n");
    bytes.freeze()
}

/// The parts of Nodes that their rows show.
const OF_NODES: Part = Part::Only(&[
    (
        "metadata",
        Part::Only(&[("name", Part::Whole), ("creationTimestamp", Part::Whole), ("labels", Part::Whole)]),
    ),
    ("spec", Part::Only(&[("unschedulable", Part::Whole)])),
    (
        "status",
        Part::Only(&[
            ("conditions", Part::Only(&[("type", Part::Whole), ("status", Part::Whole)])),
            ("addresses", Part::Whole),
            ("nodeInfo", Part::Whole),
        ]),
    ),
]);

/// The parts of Pods that their rows show.
const OF_PODS: Part = Part::Only(&[
    ("metadata", Part::But(&["managedFields", "annotations", "ownerReferences"])),
    (
        "spec",
        Part::Only(&[
            ("containers", Part::Only(&[("name", Part::Whole), ("restartPolicy", Part::Whole)])),
            ("initContainers", Part::Only(&[("name", Part::Whole), ("restartPolicy", Part::Whole)])),
            ("nodeName", Part::Whole),
            ("readinessGates", Part::Whole),
        ]),
    ),
    ("status", Part::Whole),
]);

/// The parts of a stored object that its row shows; `None` if it is stored in another form than it is served,
/// or if the whole object may be shown.
fn shown(kind: &Kind, text: &[u8]) -> Option<Value> {
    match (kind.group, kind.kind) {
        ("", "Node") => slices::part(text, OF_NODES),
        ("", "Pod") => slices::part(text, OF_PODS),
        _ => None,
    }
}

fn row(kind: &'static Kind, record: &Record, include: Include, now: &str, out: &mut BytesMut) {
    let object = shown(kind, record.json()).unwrap_or_else(|| from_stored(kind, record.value()));
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
