//! Small edits of a workload.

use super::super::manifests::{array_at, pod_spec_mut};
use serde_json::{Value, json};

/// Label that distinguishes a copy from the others.
pub const REPLICA_LABEL: &str = "ccm-conformance.io/replica";

/// Sets a variable of a container, replacing one with the same name.
pub(super) fn set_variable(container: &mut Value, name: &str, value: &str) {
    let env = array_at(container, "env");
    env.retain(|entry| entry["name"] != *name);
    env.push(json!({"name": name, "value": value}));
}

/// Adds a supplementary group to the Pods' processes that no other process has.
pub(super) fn join_group(workload: &mut Value, group: u32) {
    let spec = pod_spec_mut(workload);
    if !spec["securityContext"].is_object() {
        spec["securityContext"] = json!({});
    }
    array_at(&mut spec["securityContext"], "supplementalGroups").push(json!(group));
}

/// Changes the declared port and the probes of a container to another port.
pub(super) fn move_port(workload: &mut Value, container: usize, from: u16, to: u16) {
    let container = &mut pod_spec_mut(workload)["containers"][container];
    for port in container["ports"].as_array_mut().into_iter().flatten() {
        for field in ["containerPort", "hostPort"] {
            if port[field] == from {
                port[field] = json!(to);
            }
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        for kind in ["httpGet", "tcpSocket"] {
            if container.get(probe).and_then(|p| p.get(kind)).is_some_and(|p| p["port"] == from) {
                container[probe][kind]["port"] = json!(to);
            }
        }
    }
}

/// Gives a copy its own name and labels.
pub(super) fn set_apart(workload: &mut Value, replica: &str) {
    let name = workload["metadata"]["name"].as_str().unwrap_or("ccm").to_owned();
    workload["metadata"]["name"] = json!(format!("{name}-{replica}"));
    workload["metadata"]["labels"][REPLICA_LABEL] = json!(replica);
    workload["spec"]["selector"]["matchLabels"][REPLICA_LABEL] = json!(replica);
    workload["spec"]["template"]["metadata"]["labels"][REPLICA_LABEL] = json!(replica);
}

/// Changes references to a Secret or ConfigMap to its copy.
pub(super) fn refer_to(value: &mut Value, kind: &str, name: &str, renamed: &str) {
    let fields: &[&str] = match kind {
        "Secret" => &["secret", "secretKeyRef", "secretRef"],
        "ConfigMap" => &["configMap", "configMapKeyRef", "configMapRef"],
        _ => &[],
    };
    match value {
        Value::Object(map) => {
            for (field, inner) in map.iter_mut() {
                if fields.contains(&field.as_str()) {
                    for key in ["name", "secretName"] {
                        if inner.get(key).is_some_and(|n| n == name) {
                            inner[key] = json!(renamed);
                        }
                    }
                }
                refer_to(inner, kind, name, renamed);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|item| refer_to(item, kind, name, renamed)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
