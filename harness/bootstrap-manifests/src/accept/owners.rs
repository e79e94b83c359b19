//! The fields of workloads that the embedded API server does not serve.

use super::form::{Form, joined};
use crate::manifest::Node;
use crate::workload::WorkloadKind;
use embedded_objects::schema::Shape;

/// The fields of a spec and their types; `Raw` where the type is not checked.
type Fields = &'static [(&'static str, Shape)];

const NUMBER: Shape = Shape::Int(32, "int32");
const TEXT: Shape = Shape::Text("string");

const STATEFUL_SET: Fields = &[
    ("replicas", NUMBER),
    ("selector", Shape::Raw),
    ("template", Shape::Raw),
    ("volumeClaimTemplates", Shape::Raw),
    ("serviceName", TEXT),
    ("podManagementPolicy", TEXT),
    ("updateStrategy", Shape::Raw),
    ("revisionHistoryLimit", NUMBER),
    ("minReadySeconds", NUMBER),
    ("persistentVolumeClaimRetentionPolicy", Shape::Raw),
    ("ordinals", Shape::Raw),
];

const JOB: Fields = &[
    ("parallelism", NUMBER),
    ("completions", NUMBER),
    ("activeDeadlineSeconds", Shape::Int(64, "int64")),
    ("podFailurePolicy", Shape::Raw),
    ("successPolicy", Shape::Raw),
    ("backoffLimit", NUMBER),
    ("backoffLimitPerIndex", NUMBER),
    ("maxFailedIndexes", NUMBER),
    ("selector", Shape::Raw),
    ("manualSelector", Shape::Bool),
    ("template", Shape::Raw),
    ("ttlSecondsAfterFinished", NUMBER),
    ("completionMode", TEXT),
    ("suspend", Shape::Bool),
    ("podReplacementPolicy", TEXT),
    ("managedBy", TEXT),
    ("scheduling", Shape::Raw),
];

const CRON_JOB: Fields = &[
    ("schedule", TEXT),
    ("timeZone", TEXT),
    ("startingDeadlineSeconds", Shape::Int(64, "int64")),
    ("concurrencyPolicy", TEXT),
    ("suspend", Shape::Bool),
    ("jobTemplate", Shape::Raw),
    ("successfulJobsHistoryLimit", NUMBER),
    ("failedJobsHistoryLimit", NUMBER),
];

const REPLICATION_CONTROLLER: Fields =
    &[("replicas", NUMBER), ("minReadySeconds", NUMBER), ("selector", Shape::Raw), ("template", Shape::Raw)];

/// Checks the spec of such a workload.
pub(super) fn walk(form: &mut Form<'_>, kind: WorkloadKind, root: &Node) {
    match kind {
        WorkloadKind::StatefulSet => spec(form, STATEFUL_SET, root, &["spec"]),
        WorkloadKind::Job => spec(form, JOB, root, &["spec"]),
        WorkloadKind::CronJob => {
            spec(form, CRON_JOB, root, &["spec"]);
            spec(form, JOB, root, &["spec", "jobTemplate", "spec"]);
        }
        WorkloadKind::ReplicaSet => spec(form, REPLICATION_CONTROLLER, root, &["spec"]),
        // The embedded API server serves the others.
        WorkloadKind::Deployment | WorkloadKind::DaemonSet | WorkloadKind::Pod => {}
    }
}

fn spec(form: &mut Form<'_>, fields: Fields, root: &Node, at: &[&str]) {
    let Some(map) = root.at(at) else { return };
    let path = at.join(".");
    for entry in map.entries() {
        match fields.iter().find(|(name, _)| *name == entry.key) {
            Some((_, shape)) => form.value(shape, &entry.value, &joined(&path, &entry.key)),
            None => form.unknown(map, &entry.key, joined(&path, &entry.key)),
        }
    }
}
