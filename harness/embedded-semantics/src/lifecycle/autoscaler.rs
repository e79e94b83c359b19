//! HorizontalPodAutoscalers in their older version, which has one metric: the use of processor time. Fields
//! that it does not have are in annotations.
//!
//! Source: `pkg/apis/autoscaling/v1/conversion.go`.

use serde_json::{Value, json};

use embedded_objects::value::{Edit as _, PathAccess as _};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// The default use at which Pods are added, in percent.
const DEFAULT_USE: i64 = 80;

/// Annotations, and their fields in the newer version.
const CARRIED: [(&str, &str); 4] = [
    (METRICS, "spec.metrics"),
    (CURRENT_METRICS, "status.currentMetrics"),
    (CONDITIONS, "status.conditions"),
    (BEHAVIOR, "spec.behavior"),
];

fn use_of_processor(percent: i64) -> Value {
    let target = json!({"type": "Utilization", "averageUtilization": percent});
    json!({"type": "Resource", "resource": {"name": "cpu", "target": target}})
}

/// Whether a metric is the one that has a field in the older version.
fn has_a_field(metric: &Value) -> bool {
    metric.text("type") == "Resource"
        && metric.text("resource.name") == "cpu"
        && metric.has("resource.target.averageUtilization")
}

fn put_annotation(object: &mut Value, name: &str, value: &Value) {
    object.object("metadata.annotations").insert(name.to_owned(), value.to_string().into());
}

fn drop_annotations(object: &mut Value) -> Vec<(&'static str, Value)> {
    let Some(annotations) = object.at_mut("metadata.annotations").and_then(Value::as_object_mut) else {
        return Vec::new();
    };
    let carried = CARRIED.iter().filter_map(|(name, path)| Some((*path, annotations.remove(*name)?)));
    let carried: Vec<(&str, Value)> = carried.collect();
    if annotations.is_empty() {
        object.clear("metadata.annotations");
    }
    let read = |text: &Value| serde_json::from_str(text.as_str().unwrap_or_default()).ok();
    carried.into_iter().filter_map(|(path, text)| Some((path, read(&text)?))).collect()
}

/// Converts an autoscaler to the older version.
pub fn autoscaler_to_v1(newer: &Value) -> Value {
    let mut older = newer.clone();
    older.put("apiVersion", "autoscaling/v1");
    drop(drop_annotations(&mut older));
    let metrics = newer.list("spec.metrics");
    let others: Vec<Value> = metrics.iter().filter(|metric| !has_a_field(metric)).cloned().collect();
    if !others.is_empty() {
        put_annotation(&mut older, METRICS, &others.into());
    }
    for (name, path) in CARRIED.iter().filter(|(name, _)| *name != METRICS) {
        if newer.at(path) != &json!([]) && newer.has(path) {
            put_annotation(&mut older, name, newer.at(path));
        }
    }
    for path in ["spec.metrics", "spec.behavior", "status.currentMetrics", "status.conditions"] {
        older.clear(path);
    }
    if let Some(metric) = metrics.iter().rev().find(|metric| has_a_field(metric)) {
        let percent = metric.at("resource.target.averageUtilization").clone();
        older.put("spec.targetCPUUtilizationPercentage", percent);
    }
    let now = newer.list("status.currentMetrics").iter().find(|metric| {
        metric.text("resource.name") == "cpu" && metric.has("resource.current.averageUtilization")
    });
    if let Some(metric) = now {
        let percent = metric.at("resource.current.averageUtilization").clone();
        older.put("status.currentCPUUtilizationPercentage", percent);
    }
    older
}

/// Converts an autoscaler to the newer version.
pub fn autoscaler_from_v1(older: &Value) -> Value {
    let mut newer = older.clone();
    newer.put("apiVersion", "autoscaling/v2");
    let wanted = newer.clear("spec.targetCPUUtilizationPercentage").and_then(|percent| percent.as_i64());
    newer.clear("status.currentCPUUtilizationPercentage");
    for (path, value) in drop_annotations(&mut newer) {
        newer.put(path, value);
    }
    let mut metrics = newer.list("spec.metrics").to_vec();
    metrics.extend(wanted.map(use_of_processor));
    if metrics.is_empty() {
        metrics.push(use_of_processor(DEFAULT_USE));
    }
    newer.put("spec.metrics", metrics);
    newer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_between_the_versions() {
        let memory = json!({"type": "Resource", "resource": {"name": "memory",
            "target": {"type": "Utilization", "averageUtilization": 70}}});
        let newer = json!({"apiVersion": "autoscaling/v2", "metadata": {"name": "a"}, "spec": {"maxReplicas": 3,
            "metrics": [memory, use_of_processor(50)], "behavior": {"scaleUp": {"stabilizationWindowSeconds": 1}}},
            "status": {"currentReplicas": 1, "conditions": [{"type": "AbleToScale", "status": "True"}]}});
        let older = autoscaler_to_v1(&newer);
        assert_eq!(older["spec"], json!({"maxReplicas": 3, "targetCPUUtilizationPercentage": 50}));
        assert_eq!(older["metadata"]["annotations"].as_object().map(serde_json::Map::len), Some(3));
        assert_eq!(autoscaler_from_v1(&older), newer);
    }

    #[test]
    fn the_default_metric_is_eighty_per_cent_of_the_processor_time() {
        let older = json!({"apiVersion": "autoscaling/v1", "spec": {"maxReplicas": 3}});
        assert_eq!(autoscaler_from_v1(&older)["spec"]["metrics"], json!([use_of_processor(80)]));
    }
}
