//! Kinds that are only stored: they have the defaults, status and generation of the real server, no rules
//! beyond those of metadata, and no controller. Manifests with them can be installed, and informers on them
//! sync.
//!
//! Source: `pkg/apis/*/v1/defaults.go` and `pkg/registry/*/strategy.go` of the kinds.

use serde_json::{Value, json};

use super::strategy::Strategy;
use super::{Context, podspec};
use embedded_objects::kinds;
use embedded_objects::value::{Edit as _, PathAccess as _};

pub(super) struct Stored;

/// The path of the Pod spec in objects of a kind.
const POD_SPECS: &[(&str, &str)] = &[
    ("StatefulSet", "spec.template.spec"),
    ("ReplicationController", "spec.template.spec"),
    ("CronJob", "spec.jobTemplate.spec.template.spec"),
    ("PodTemplate", "template.spec"),
];

/// Kinds whose spec has no generation.
const WITHOUT_GENERATION: &[&str] = &[
    "PersistentVolume",
    "PersistentVolumeClaim",
    "LimitRange",
    "ResourceQuota",
    "HorizontalPodAutoscaler",
    "CSIDriver",
    "VolumeAttachment",
    "IPAddress",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "APIService",
];

/// The defaults of a kind.
fn defaults(kind: &str) -> Vec<(&'static str, Value)> {
    match kind {
        "StatefulSet" => vec![
            ("spec.replicas", json!(1)),
            ("spec.podManagementPolicy", json!("OrderedReady")),
            ("spec.revisionHistoryLimit", json!(10)),
        ],
        "ReplicationController" => vec![("spec.replicas", json!(1))],
        "CronJob" => vec![
            ("spec.concurrencyPolicy", json!("Allow")),
            ("spec.suspend", json!(false)),
            ("spec.successfulJobsHistoryLimit", json!(3)),
            ("spec.failedJobsHistoryLimit", json!(1)),
        ],
        "HorizontalPodAutoscaler" => vec![("spec.minReplicas", json!(1))],
        "PersistentVolume" => vec![
            ("spec.persistentVolumeReclaimPolicy", json!("Retain")),
            ("spec.volumeMode", json!("Filesystem")),
            ("status.phase", json!("Pending")),
        ],
        "PersistentVolumeClaim" => {
            vec![("spec.volumeMode", json!("Filesystem")), ("status.phase", json!("Pending"))]
        }
        "StorageClass" => vec![("reclaimPolicy", json!("Delete")), ("volumeBindingMode", json!("Immediate"))],
        "CSIDriver" => vec![
            ("spec.attachRequired", json!(true)),
            ("spec.podInfoOnMount", json!(false)),
            ("spec.fsGroupPolicy", json!("ReadWriteOnceWithFSType")),
            ("spec.volumeLifecycleModes", json!(["Persistent"])),
            ("spec.requiresRepublish", json!(false)),
            ("spec.storageCapacity", json!(false)),
            ("spec.seLinuxMount", json!(false)),
        ],
        "PriorityClass" => vec![("preemptionPolicy", json!("PreemptLowerPriority"))],
        _ => Vec::new(),
    }
}

/// Sets the default of a NetworkPolicy's types: ingress, and egress if it has rules for that.
fn policy_types(object: &mut Value) {
    if !object.has("spec.policyTypes") {
        let types = if object.list("spec.egress").is_empty() {
            json!(["Ingress"])
        } else {
            json!(["Ingress", "Egress"])
        };
        object.put("spec.policyTypes", types);
    }
}

fn webhooks(object: &mut Value, mutating: bool) {
    for webhook in object.at_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
        let defaults = [
            ("failurePolicy", json!("Fail")),
            ("matchPolicy", json!("Equivalent")),
            ("timeoutSeconds", json!(10)),
            ("namespaceSelector", json!({})),
            ("objectSelector", json!({})),
        ];
        let again = mutating.then(|| ("reinvocationPolicy", json!("Never")));
        for (path, value) in defaults.into_iter().chain(again) {
            if !webhook.has(path) {
                webhook.put(path, value);
            }
        }
    }
}

/// Sets the defaults of a priority level: shares, lending, and the queues of one that queues.
fn priority_level(object: &mut Value) {
    let (part, shares) = match object.text("spec.type") {
        "Exempt" => ("exempt", 0),
        "Limited" => ("limited", 30),
        _ => return,
    };
    let mut defaults = vec![("nominalConcurrencyShares", shares), ("lendablePercent", 0)];
    if object.text("spec.limited.limitResponse.type") == "Queue" {
        let queues = [("queues", 64), ("handSize", 8), ("queueLengthLimit", 50)];
        for (field, value) in queues {
            object.put_default(&format!("spec.limited.limitResponse.queuing.{field}"), value);
        }
    }
    defaults.retain(|(field, _)| !object.has(&format!("spec.{part}.{field}")));
    for (field, value) in defaults {
        object.put(&format!("spec.{part}.{field}"), value);
    }
}

/// Makes an APIService available at once if it has no server of its own.
fn api_service(object: &mut Value, now: &str) {
    if !object.has("spec.service") {
        let condition = json!({"type": "Available", "status": "True", "lastTransitionTime": now,
            "reason": "Local", "message": "Local APIServices are always available"});
        object.put("status.conditions", json!([condition]));
    }
}

/// Sets the labels of a workload without labels to those of its template.
pub(super) fn labels_of_template(object: &mut Value) {
    if object.has("spec.template.metadata.labels") && object.map("metadata.labels").is_empty() {
        object.put("metadata.labels", object.at("spec.template.metadata.labels").clone());
    }
}

/// Sets the selector of a ReplicationController without one to the labels of its template.
fn replication_controller(object: &mut Value) {
    let labels = object.at("spec.template.metadata.labels").clone();
    if !labels.is_null() && object.map("spec.selector").is_empty() {
        object.put("spec.selector", labels);
    }
    labels_of_template(object);
}

/// Sets the default rolling update: one Pod after the other, and all of them.
fn rolling_update(object: &mut Value) {
    let path = "spec.updateStrategy";
    if object.text(&format!("{path}.type")).is_empty() {
        object.put(&format!("{path}.type"), "RollingUpdate");
        object.put_default(&format!("{path}.rollingUpdate"), json!({}));
    }
    let rolling = format!("{path}.rollingUpdate");
    if object.text(&format!("{path}.type")) == "RollingUpdate" && object.has(&rolling) {
        let partition = format!("{rolling}.partition");
        if !object.has(&partition) {
            object.put(&partition, 0);
        }
    }
    for when in ["whenDeleted", "whenScaled"] {
        object.put_default(&format!("spec.persistentVolumeClaimRetentionPolicy.{when}"), "Retain");
    }
}

/// Sets the default metric: Pods are added while they use more than 80 % of the requested processor time.
fn metrics(object: &mut Value) {
    if object.list("spec.metrics").is_empty() {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        object.put(
            "spec.metrics",
            json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]),
        );
    }
}

/// The finalizer that protects objects in use. Source: the admission plugin `StorageObjectInUseProtection`.
fn protection(kind: &str) -> Option<&'static str> {
    match kind {
        "PersistentVolumeClaim" => Some("kubernetes.io/pvc-protection"),
        "PersistentVolume" => Some("kubernetes.io/pv-protection"),
        "VolumeAttributesClass" => Some("kubernetes.io/vac-protection"),
        _ => None,
    }
}

fn has_status(object: &Value) -> bool {
    kinds::of(object).is_some_and(|kind| kind.subresource("status").is_some())
}

fn has_generation(object: &Value) -> bool {
    object.has("spec") && !WITHOUT_GENERATION.contains(&object.text("kind"))
}

impl Strategy for Stored {
    fn default(&self, object: &mut Value) {
        let kind = object.text("kind").to_owned();
        for (_, path) in POD_SPECS.iter().filter(|(of, _)| *of == kind) {
            if let Some(spec) = object.at_mut(path) {
                podspec::default(spec);
            }
        }
        for (path, value) in defaults(&kind) {
            if !object.has(path) {
                object.put(path, value);
            }
        }
        match kind.as_str() {
            "NetworkPolicy" => policy_types(object),
            "ReplicationController" => replication_controller(object),
            "StatefulSet" => rolling_update(object),
            "HorizontalPodAutoscaler" => metrics(object),
            "FlowSchema" => object.put_default("spec.matchingPrecedence", 1000),
            "PriorityLevelConfiguration" => priority_level(object),
            "MutatingWebhookConfiguration" => webhooks(object, true),
            "ValidatingWebhookConfiguration" => webhooks(object, false),
            _ => {}
        }
    }

    fn prepare_create(&self, object: &mut Value, cx: &mut Context<'_>) {
        if has_status(object) {
            let phase = object.at("status.phase").clone();
            let volume = object.text("kind").starts_with("PersistentVolume");
            object.put("status", if volume { json!({"phase": phase}) } else { json!({}) });
        }
        if has_generation(object) {
            object.put("metadata.generation", 1);
        }
        if let Some(finalizer) = protection(object.text("kind")) {
            let mut finalizers = object.list("metadata.finalizers").to_vec();
            if !finalizers.iter().any(|one| one == finalizer) {
                finalizers.push(finalizer.into());
                object.put("metadata.finalizers", finalizers);
            }
        }
        if object.text("kind") == "APIService" {
            api_service(object, cx.now);
        }
    }

    fn prepare_update(&self, sub: Option<&str>, old: &Value, new: &mut Value, _cx: &mut Context<'_>) {
        if sub == Some("status") {
            new.put("spec", old.at("spec").clone());
            return;
        }
        if has_status(new) {
            new.put("status", old.at("status").clone());
        }
        if has_generation(new) && old.at("spec") != new.at("spec") {
            new.put("metadata.generation", old.int("metadata.generation") + 1);
        }
    }
}
