//! Jobs: defaults, the selector and labels with which the Job controller finds its Pods, and allowed updates.
//!
//! Source: `pkg/apis/batch/v1/defaults.go`, `pkg/apis/batch/validation/validation.go`,
//! `pkg/registry/batch/job/strategy.go`.

use serde_json::{Map, Value, json};

use super::strategy::Strategy;
use super::workload::label_selector;
use super::{Context, meta, podspec};
use embedded_objects::cause::Cause;
use embedded_objects::kinds::Kind;
use embedded_objects::select::Labels;
use embedded_objects::value::{Edit as _, PathAccess as _};

pub(super) struct Job;

/// The labels with the Job's name, and those with its uid. The ones without a domain are older.
const NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];
const UID_LABELS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];

/// Parts of a template that may change while the Job is suspended and none of its Pods runs.
const FREE_WHILE_SUSPENDED: [&str; 6] = [
    "metadata.annotations",
    "metadata.labels",
    "spec.nodeSelector",
    "spec.affinity.nodeAffinity",
    "spec.tolerations",
    "spec.schedulingGates",
];

/// The longest `managedBy`, in bytes.
const MANAGED_BY: usize = 63;

impl Strategy for Job {
    fn default(&self, object: &mut Value) {
        if let Some(spec) = object.at_mut("spec.template.spec") {
            podspec::default(spec);
        }
        if !object.has("spec.completions") && !object.has("spec.parallelism") {
            object.put("spec.completions", 1);
        }
        let limit = if object.has("spec.backoffLimitPerIndex") { i32::MAX } else { 6 };
        let replacement = if object.has("spec.podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
        let defaults = [
            ("spec.parallelism", json!(1)),
            ("spec.backoffLimit", json!(limit)),
            ("spec.completionMode", json!("NonIndexed")),
            ("spec.suspend", json!(false)),
            ("spec.podReplacementPolicy", json!(replacement)),
            ("spec.manualSelector", json!(false)),
        ];
        for (path, value) in defaults {
            if !object.has(path) {
                object.put(path, value);
            }
        }
        super::stored::labels_of_template(object);
    }

    fn prepare_create(&self, object: &mut Value, _cx: &mut Context<'_>) {
        if !object.truth("spec.manualSelector") {
            generate_selector(object);
        }
        object.put("status", json!({}));
        object.put("metadata.generation", 1);
    }

    fn validate_create(&self, object: &Value, _cx: &Context<'_>) -> Vec<Cause> {
        let mut causes = generated(object);
        causes.extend(spec(object));
        causes
    }

    fn prepare_update(&self, sub: Option<&str>, old: &Value, new: &mut Value, _cx: &mut Context<'_>) {
        if sub == Some("status") {
            new.put("spec", old.at("spec").clone());
            return;
        }
        new.put("status", old.at("status").clone());
        if old.at("spec") != new.at("spec") {
            new.put("metadata.generation", old.int("metadata.generation") + 1);
        }
    }

    fn validate_update(
        &self,
        _kind: &Kind,
        sub: Option<&str>,
        old: &Value,
        new: &Value,
        _cx: &Context<'_>,
    ) -> Vec<Cause> {
        let mut causes = meta::changed(old, new);
        if sub.is_some() {
            return causes;
        }
        causes.extend(generated(new));
        causes.extend(spec(new));
        causes.extend(completions(old, new));
        causes.extend(meta::immutable(old, new, "spec.selector"));
        causes.extend(template(old, new));
        for field in
            ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"]
        {
            causes.extend(meta::immutable(old, new, &format!("spec.{field}")));
        }
        causes
    }
}

/// Adds the labels of the Job's Pods, and the selector with which its controller finds them.
fn generate_selector(object: &mut Value) {
    let (name, uid) = (object.text("metadata.name").to_owned(), object.text("metadata.uid").to_owned());
    let labels = object.object("spec.template.metadata.labels");
    for (keys, value) in [(NAME_LABELS, &name), (UID_LABELS, &uid)] {
        for key in keys {
            labels.entry(key).or_insert_with(|| value.as_str().into());
        }
    }
    object.object("spec.selector.matchLabels").entry(UID_LABELS[1]).or_insert_with(|| uid.into());
}

/// The causes for a selector that is not the Job's own: labels that a client has set stay, and are wrong.
fn generated(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let selector = object.at("spec.selector");
    if object.truth("spec.manualSelector") || selector.is_null() {
        return causes;
    }
    let labels = object.map("spec.template.metadata.labels");
    let mut expected = Map::new();
    let own = |at: usize| [(UID_LABELS[at], "metadata.uid"), (NAME_LABELS[at], "metadata.name")];
    for (key, of) in own(0).into_iter().chain(own(1)) {
        let value = object.text(of);
        expected.insert(key.to_owned(), value.into());
        let field = format!("spec.template.metadata.labels[{key}]");
        let detail = format!("must be '{value}'");
        match labels.get(key) {
            None => causes.push(Cause::required(field, &detail)),
            Some(is) if is != value => {
                causes.push(Cause::invalid(field, Value::Object(labels.clone()), detail));
            }
            Some(_) => {}
        }
    }
    if !Labels::of_object(selector).matches(&Value::Object(expected)) {
        causes.push(Cause::invalid("spec.selector", selector.clone(), "`selector` not auto-generated"));
    }
    causes
}

fn not_negative(object: &Value, path: &str) -> Option<Cause> {
    let number = object.int(path);
    (number < 0).then(|| Cause::invalid(path, number, "must be greater than or equal to 0"))
}

fn spec(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        causes.extend(not_negative(object, &format!("spec.{field}")));
    }
    if object.has("spec.maxFailedIndexes") && !object.has("spec.backoffLimitPerIndex") {
        causes.push(Cause::required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified"));
    }
    if object.text("spec.managedBy").len() > MANAGED_BY {
        causes.push(Cause::too_long("spec.managedBy", MANAGED_BY));
    }
    let mode = object.text("spec.completionMode");
    match mode {
        "Indexed" if !object.has("spec.completions") => {
            causes.push(Cause::required("spec.completions", "when completion mode is Indexed"));
        }
        "Indexed" => {}
        "NonIndexed" => {
            for path in ["spec.backoffLimitPerIndex", "spec.maxFailedIndexes"] {
                if object.has(path) {
                    let why = "requires indexed completion mode";
                    causes.push(Cause::invalid(path, object.at(path).clone(), why));
                }
            }
        }
        other => {
            causes.push(Cause::not_supported("spec.completionMode", other, &["NonIndexed", "Indexed"]));
        }
    }
    causes.extend(template_itself(object));
    let selector = object.at("spec.selector");
    if selector.is_null() {
        causes.push(Cause::required("spec.selector", ""));
    } else {
        causes.extend(label_selector(selector, "spec.selector"));
    }
    let labels = object.at("spec.template.metadata.labels");
    if selector.is_null() || !Labels::of_object(selector).matches(labels) {
        let why = "`selector` does not match template `labels`";
        causes.push(Cause::invalid("spec.template.metadata.labels", labels.clone(), why));
    }
    causes
}

fn template_itself(object: &Value) -> Vec<Cause> {
    let path = "spec.template";
    let template = object.at(path);
    let mut causes = podspec::template(template, path);
    let field = "spec.template.spec.restartPolicy";
    match template.text("spec.restartPolicy") {
        "" | "Always" => {
            causes.push(Cause::required(field, "valid values: \"OnFailure\", \"Never\""));
        }
        "OnFailure" if object.has("spec.podFailurePolicy") => {
            let why = "only \"Never\" is supported when podFailurePolicy is specified";
            causes.push(Cause::invalid(field, "OnFailure", why));
        }
        "OnFailure" | "Never" => {}
        other => causes.push(Cause::not_supported(field, other, &["OnFailure", "Never"])),
    }
    causes
}

fn completions(old: &Value, new: &Value) -> Option<Cause> {
    let path = "spec.completions";
    if new.text("spec.completionMode") != "Indexed" {
        return meta::immutable(old, new, path);
    }
    let together = new.at(path) == old.at(path) || new.at(path) == new.at("spec.parallelism");
    (!together).then(|| {
        Cause::invalid(path, new.at(path).clone(), "can only be modified in tandem with spec.parallelism")
    })
}

/// Whether the template may change in part: the Job is suspended, and no Pod of it runs or is about to run.
fn is_at_rest(job: &Value) -> bool {
    let suspended = job
        .list("status.conditions")
        .iter()
        .any(|condition| condition.text("type") == "Suspended" && condition.text("status") == "True");
    job.truth("spec.suspend") && (!job.has("status.startTime") || suspended) && job.int("status.active") == 0
}

/// The cause for a change of the template that the Job's state does not allow.
fn template(old: &Value, new: &Value) -> Option<Cause> {
    let path = "spec.template";
    if !is_at_rest(old) {
        return meta::immutable(old, new, path);
    }
    let mut before = old.at(path).clone();
    for free in FREE_WHILE_SUSPENDED {
        put_or_clear(&mut before, free, new.at(path).at(free));
    }
    if before.map("spec.affinity").is_empty() && !new.at(path).has("spec.affinity") {
        before.clear("spec.affinity");
    }
    for list in ["spec.containers", "spec.initContainers"] {
        let after = new.at(path).list(list);
        if before.list(list).len() != after.len() {
            continue;
        }
        for (container, after) in before.items(list).iter_mut().zip(after) {
            if container.text("name") == after.text("name") {
                put_or_clear(container, "resources", after.at("resources"));
            }
        }
    }
    (before.at("spec") != new.at(path).at("spec"))
        .then(|| Cause::invalid("spec.template.spec", new.at(path).at("spec").clone(), "field is immutable"))
}

fn put_or_clear(object: &mut Value, path: &str, value: &Value) {
    if value.is_null() {
        object.clear(path);
    } else {
        object.put(path, value.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alloc::Allocator;
    use crate::lifecycle;
    use embedded_objects::kinds;

    fn job(change: impl FnOnce(&mut Value)) -> Value {
        let mut job = json!({"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "a", "namespace": "default"}, "spec": {"template": {"metadata": {"labels": {"x": "y"}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}});
        change(&mut job);
        job
    }

    fn create(job: Value) -> Result<Value, String> {
        let kind = kinds::find("batch", "v1", "jobs").expect("Jobs are served");
        let mut allocator = Allocator::new(&["10.96.0.0/12"]).expect("a network");
        let mut cx = context(&mut allocator);
        lifecycle::create(kind, job, &mut cx).map_err(|status| status.message)
    }

    fn update(old: &Value, change: impl FnOnce(&mut Value)) -> Result<Value, String> {
        let kind = kinds::find("batch", "v1", "jobs").expect("Jobs are served");
        let mut allocator = Allocator::new(&["10.96.0.0/12"]).expect("a network");
        let mut cx = context(&mut allocator);
        let (mut old, mut new) = (old.clone(), old.clone());
        old.put("metadata.resourceVersion", "1");
        new.put("metadata.resourceVersion", "1");
        change(&mut new);
        lifecycle::update(kind, None, &old, new, &mut cx).map_err(|status| status.message)
    }

    fn context(allocator: &mut Allocator) -> Context<'_> {
        Context {
            now: "2026-01-01T00:00:00Z",
            now_micro: "2026-01-01T00:00:00.000000Z",
            uid: "u-1",
            suffix: "bcdfg",
            allocator,
            minor: 36,
            dry_run: false,
        }
    }

    #[test]
    fn a_job_selects_its_pods_by_its_uid() {
        let made = create(job(|_| {})).expect("a right Job");
        let key = "batch.kubernetes.io/controller-uid";
        assert_eq!(made["spec"]["selector"], json!({"matchLabels": {key: "u-1"}}));
        assert_eq!(
            made["spec"]["template"]["metadata"]["labels"],
            json!({"x": "y", key: "u-1", "controller-uid": "u-1", "job-name": "a", "batch.kubernetes.io/job-name": "a"})
        );
        // The Job itself has the labels that its template had originally.
        assert_eq!(made["metadata"]["labels"], json!({"x": "y"}));
        assert_eq!(made["spec"]["manualSelector"], json!(false));
        assert_eq!((made.int("spec.completions"), made.int("spec.backoffLimit")), (1, 6));
        // Workers of a queue: as many as wanted, until one reports that the queue is empty.
        let workers = create(job(|job| job.put("spec.parallelism", 3))).expect("a right Job");
        assert!(!workers.has("spec.completions"));
    }

    #[test]
    fn a_selector_of_its_own_is_the_authors_affair() {
        let by_hand = |job: &mut Value| {
            job.put("spec.manualSelector", true);
            job.put("spec.selector.matchLabels", json!({"x": "y"}));
        };
        let made = create(job(by_hand)).expect("a right Job");
        assert_eq!(made["spec"]["selector"], json!({"matchLabels": {"x": "y"}}));
        assert_eq!(made["spec"]["template"]["metadata"]["labels"], json!({"x": "y"}));
        let foreign = create(job(|job| {
            job.put("spec.template.metadata.labels", json!({"controller-uid": "other"}));
        }));
        let why = foreign.expect_err("labels of another Job");
        assert!(
            why.contains("spec.template.metadata.labels[controller-uid]") && why.contains("must be 'u-1'"),
            "{why}"
        );
        let none = create(job(|job| job.put("spec.manualSelector", true))).expect_err("no selector");
        assert!(none.contains("spec.selector: Required value"), "{none}");
    }

    #[test]
    fn pods_that_always_restart_are_refused_for_jobs() {
        let why =
            create(job(|job| job.put("spec.template.spec.restartPolicy", "Always"))).expect_err("Always");
        assert!(
            why.contains("restartPolicy: Required value: valid values: \"OnFailure\", \"Never\""),
            "{why}"
        );
    }

    #[test]
    fn a_template_changes_only_while_the_job_is_suspended() {
        let gpu = |job: &mut Value| job.put("spec.template.spec.nodeSelector", json!({"gpu": "yes"}));
        let made = create(job(|_| {})).expect("a right Job");
        assert!(update(&made, gpu).expect_err("it runs").contains("spec.template: Invalid value"));
        let resting = create(job(|job| job.put("spec.suspend", true))).expect("a right Job");
        assert!(update(&resting, gpu).is_ok());
        let image = |job: &mut Value| job.items("spec.template.spec.containers")[0]["image"] = json!("other");
        assert!(update(&resting, image).is_err());
        assert!(update(&made, |job| job.put("spec.parallelism", 2)).is_ok());
        assert!(
            update(&made, |job| job.put("spec.completions", 2)).expect_err("fixed").contains("immutable")
        );
    }
}
