//! Every new node is tainted as not ready, so that nothing is scheduled before its first report.
//!
//! Follows `k8s.io/kubernetes/plugin/pkg/admission/nodetaint`.

use serde_json::{Value, json};

pub(super) fn taint(node: &mut Value) {
    let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    if node["spec"].is_null() {
        node["spec"] = json!({});
    }
    let Some(spec) = node["spec"].as_object_mut() else { return };
    let taints = spec.entry("taints").or_insert(Value::Null);
    if taints.is_null() {
        *taints = json!([]);
    }
    let Some(taints) = taints.as_array_mut() else { return };
    let same = |one: &Value| one["key"] == taint["key"] && one["effect"] == taint["effect"];
    if !taints.iter().any(same) {
        taints.push(taint);
    }
}
