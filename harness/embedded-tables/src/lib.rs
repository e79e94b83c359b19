//! Tables: the output of `kubectl get`, one row for each object.
//!
//! Source: `pkg/printers/internalversion/printers.go`. Roles, ClusterRoles and kinds without columns of their
//! own show their name and when they were created.

mod age;
mod cells;
mod custom;
mod pod;

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Value, json};

use embedded_objects::kinds::Kind;
use embedded_objects::value::PathAccess as _;

/// How much of each object is in its row. Source: the parameter `includeObject`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Include {
    /// Nothing.
    None,
    /// Its metadata: the server's default.
    #[default]
    Metadata,
    /// The whole object.
    Object,
}

impl Include {
    /// Parses an `includeObject` parameter; an empty one is the default.
    pub fn parse(text: &str) -> Option<Include> {
        Some(match text {
            "" | "Metadata" => Include::Metadata,
            "None" => Include::None,
            "Object" => Include::Object,
            _ => return None,
        })
    }
}

static COLUMNS: LazyLock<HashMap<&'static str, Value>> = LazyLock::new(|| {
    let mut columns: HashMap<&'static str, Vec<Value>> = HashMap::new();
    let mut kind = "";
    for line in include_str!("columns.txt").lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix(' ') {
            None => kind = line,
            Some(column) => {
                let parts: Vec<&str> = column.splitn(5, '|').collect();
                let part = |at: usize| parts.get(at).copied().unwrap_or_default();
                let priority: i64 = part(3).parse().unwrap_or_default();
                columns.entry(kind).or_default().push(json!({"name": part(0), "type": part(1),
                    "format": part(2), "description": part(4).replace("\\n", "\n"), "priority": priority}));
            }
        }
    }
    columns.into_iter().map(|(kind, columns)| (kind, Value::Array(columns))).collect()
});

/// The Table of objects of a kind. `list_meta` is the list's metadata (resourceVersion, continue); `now` is
/// the time that ages refer to, RFC 3339.
pub fn table(kind: &Kind, objects: &[Value], list_meta: &Value, include: Include, now: &str) -> Value {
    let rows: Vec<Value> = objects.iter().map(|object| row(kind, object, include, now)).collect();
    let metadata = if list_meta.is_object() { list_meta.clone() } else { json!({}) };
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        "columnDefinitions": columns(kind), "rows": rows})
}

/// Whether a built-in kind has columns of its own.
fn known(kind: &Kind) -> Option<&'static Value> {
    COLUMNS.get(kind.kind).filter(|_| kind.custom.is_none())
}

/// The columns of a kind's table.
pub fn columns(kind: &Kind) -> Value {
    let usual = COLUMNS.get("*").unwrap_or(&Value::Null);
    match &kind.custom {
        Some(custom) => custom::columns(custom, usual),
        None => known(kind).unwrap_or(usual).clone(),
    }
}

/// The cells of an object's row.
pub fn cells(kind: &Kind, object: &Value, now: &str) -> Vec<Value> {
    if let Some(custom) = &kind.custom {
        custom::cells(custom, object, now)
    } else if known(kind).is_some() {
        cells::of(kind, object, now)
    } else {
        vec![object.text("metadata.name").into(), object.text("metadata.creationTimestamp").into()]
    }
}

/// The conditions of the row of an object that has ended, if it has.
pub fn conditions(kind: &Kind, object: &Value) -> Option<Value> {
    if kind.custom.is_some() { None } else { pod::finished(kind, object) }
}

fn row(kind: &Kind, object: &Value, include: Include, now: &str) -> Value {
    let shown = match include {
        Include::None => Value::Null,
        Include::Metadata => json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
            "metadata": object.at("metadata")}),
        Include::Object => {
            let mut object = object.clone();
            if let Some(members) = object.as_object_mut() {
                members.insert("kind".to_owned(), kind.kind.into());
                members.insert("apiVersion".to_owned(), kind.api_version().into());
            }
            object
        }
    };
    let mut row = json!({"cells": cells(kind, object, now), "object": shown});
    if let Some(conditions) = conditions(kind, object)
        && let Some(members) = row.as_object_mut()
    {
        members.insert("conditions".to_owned(), conditions);
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use embedded_objects::kinds;

    const NOW: &str = "2026-01-01T00:10:00Z";

    fn row_of(plural: &str, group: &str, object: Value) -> Vec<String> {
        row_of_kind(kinds::find(group, "v1", plural).expect("it is served"), object)
    }

    fn row_of_kind(kind: &Kind, object: Value) -> Vec<String> {
        let table = table(kind, &[object], &json!({"resourceVersion": "7"}), Include::None, NOW);
        let cells = table["rows"][0]["cells"].as_array().expect("a row has cells").clone();
        let columns = table["columnDefinitions"].as_array().expect("a table has columns").len();
        assert_eq!(cells.len(), columns, "a cell for each column");
        cells.iter().map(|cell| cell.as_str().map(str::to_owned).unwrap_or(cell.to_string())).collect()
    }

    #[test]
    fn nodes_services_and_pods_are_shown_as_kubectl_shows_them() {
        let meta = json!({"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"node-role.kubernetes.io/control-plane": ""}});
        let node = row_of(
            "nodes",
            "",
            json!({"metadata": meta, "spec": {"unschedulable": true}, "status": {
            "conditions": [{"type": "Ready", "status": "False"}], "nodeInfo": {"kubeletVersion": "v1.36.2"}}}),
        );
        assert_eq!(node[..5], ["a", "NotReady,SchedulingDisabled", "control-plane", "10m", "v1.36.2"]);
        let service = row_of(
            "services",
            "",
            json!({"metadata": meta, "spec": {"type": "LoadBalancer",
            "clusterIPs": ["10.96.0.7"], "ports": [{"port": 80, "nodePort": 30000, "protocol": "TCP"}]}}),
        );
        assert_eq!(service[..6], ["a", "LoadBalancer", "10.96.0.7", "<pending>", "80:30000/TCP", "10m"]);
        let pod = row_of(
            "pods",
            "",
            json!({"metadata": meta, "spec": {"containers": [{}], "nodeName": "n"},
            "status": {"phase": "Running", "containerStatuses": [{"ready": true, "restartCount": 2,
                "state": {"running": {}}, "lastState": {"terminated": {"finishedAt": "2026-01-01T00:09:00Z"}}}]}}),
        );
        assert_eq!(pod[..5], ["a", "1/1", "Running", "2 (60s ago)", "10m"]);
    }

    #[test]
    fn every_kind_that_is_stored_has_as_many_cells_as_columns() {
        for kind in kinds::ALL.iter().filter(|kind| kind.stored()) {
            row_of_kind(kind, json!({"metadata": {"name": "x"}}));
        }
    }

    #[test]
    fn a_table_is_written_in_the_servers_order() {
        let kind = kinds::find("", "v1", "namespaces").expect("namespaces are served");
        let objects = [json!({"metadata": {"name": "x"}})];
        let text = embedded_objects::wire::json(&table(
            kind,
            &objects,
            &json!({"resourceVersion": "7"}),
            Include::Metadata,
            NOW,
        ));
        assert!(text.starts_with(
            "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{\"resourceVersion\":\"7\"},\"columnDefinitions\":[{\"name\":\"Name\",\"type\":\"string\",\"format\":\"name\",\"description\":"
        ));
        assert!(text.contains("\"rows\":[{\"cells\":[\"x\",\"\",\"\\u003cunknown\\u003e\"],\"object\":{\"kind\":\"PartialObjectMetadata\""));
    }
}
