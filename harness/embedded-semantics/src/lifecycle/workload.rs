//! Deployments, ReplicaSets and DaemonSets.
//!
//! Source: `pkg/apis/apps/v1/defaults.go`, `pkg/apis/apps/validation/validation.go`, `pkg/registry/apps`.

use serde_json::{Value, json};

use super::strategy::Strategy;
use super::{Context, meta, podspec};
use embedded_objects::cause::Cause;
use embedded_objects::kinds::Kind;
use embedded_objects::rules::names;
use embedded_objects::select::Labels;
use embedded_objects::value::{Edit as _, PathAccess as _};

/// The annotation with the generation of a DaemonSet's template.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Workload {
    Deployment,
    ReplicaSet,
    DaemonSet,
}

impl Strategy for Workload {
    fn default(&self, object: &mut Value) {
        if let Some(spec) = object.at_mut("spec.template.spec") {
            podspec::default(spec);
        }
        let mut default = |path: &str, value: Value| {
            if !object.has(path) {
                object.put(path, value);
            }
        };
        if *self != Workload::DaemonSet {
            default("spec.replicas", json!(1));
        }
        if *self != Workload::ReplicaSet {
            default("spec.revisionHistoryLimit", json!(10));
        }
        match self {
            Workload::Deployment => {
                default("spec.progressDeadlineSeconds", json!(600));
                rolling(object, "spec.strategy", json!("25%"), json!("25%"));
            }
            Workload::DaemonSet => rolling(object, "spec.updateStrategy", json!(1), json!(0)),
            Workload::ReplicaSet => {}
        }
    }

    fn prepare_create(&self, object: &mut Value, _cx: &mut Context<'_>) {
        object.put("status", json!({}));
        object.put("metadata.generation", 1);
        if *self == Workload::DaemonSet {
            let generation = template_generation(object).max(1);
            put_template_generation(object, generation);
        }
    }

    fn validate_create(&self, object: &Value, _cx: &Context<'_>) -> Vec<Cause> {
        self.validate(object)
    }

    fn prepare_update(&self, sub: Option<&str>, old: &Value, new: &mut Value, _cx: &mut Context<'_>) {
        if sub == Some("status") {
            new.put("spec", old.at("spec").clone());
            if *self == Workload::Deployment {
                new.put("metadata.labels", old.at("metadata.labels").clone());
            }
            return;
        }
        new.put("status", old.at("status").clone());
        let mut changed = old.at("spec") != new.at("spec");
        if *self == Workload::Deployment {
            changed |= old.map("metadata.annotations") != new.map("metadata.annotations");
        }
        if *self == Workload::DaemonSet {
            let other = old.at("spec.template") != new.at("spec.template");
            put_template_generation(new, template_generation(old) + i64::from(other));
        }
        if changed {
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
        if sub == Some("status") {
            causes.extend(counts(new, "status"));
            return causes;
        }
        let immutable = meta::immutable(old, new, "spec.selector");
        if *self == Workload::DaemonSet {
            causes.extend(immutable);
            causes.extend(self.validate(new));
        } else {
            causes.extend(self.validate(new));
            causes.extend(immutable);
        }
        causes
    }
}

impl Workload {
    fn validate(self, object: &Value) -> Vec<Cause> {
        let mut causes = Vec::new();
        if self != Workload::DaemonSet {
            causes.extend(not_negative(object, "spec.replicas"));
        }
        if self == Workload::ReplicaSet {
            causes.extend(not_negative(object, "spec.minReadySeconds"));
        }
        let selector = object.at("spec.selector");
        let path = "spec.selector";
        let empty = selector.map("matchLabels").is_empty() && selector.list("matchExpressions").is_empty();
        let what = if self == Workload::DaemonSet { "daemonset" } else { "deployment" };
        let empty_cause =
            || Cause::invalid(path, selector.clone(), format!("empty selector is invalid for {what}"));
        if selector.is_null() {
            if self != Workload::DaemonSet {
                causes.push(Cause::required(path, ""));
            }
        } else {
            causes.extend(label_selector(selector, path));
            if empty && self != Workload::DaemonSet {
                causes.push(empty_cause());
            }
        }
        let labels = object.at("spec.template.metadata.labels");
        let matches = Labels::of_object(selector).matches(labels);
        if !matches && (!empty || self == Workload::DaemonSet || selector.is_null()) {
            let why = "`selector` does not match template `labels`";
            causes.push(Cause::invalid("spec.template.metadata.labels", labels.clone(), why));
        }
        if empty && !selector.is_null() && self == Workload::DaemonSet {
            causes.push(empty_cause());
        }
        causes.extend(self.template(object));
        match self {
            Workload::Deployment => causes.extend(deployment(object)),
            Workload::DaemonSet => causes.extend(daemon_set(object)),
            Workload::ReplicaSet => {}
        }
        causes
    }

    fn template(self, object: &Value) -> Vec<Cause> {
        let template = object.at("spec.template");
        let path = "spec.template";
        let mut causes = podspec::template(template, path);
        let policy = template.text("spec.restartPolicy");
        if policy != "Always" {
            causes.push(Cause::not_supported(format!("{path}.spec.restartPolicy"), policy, &["Always"]));
        }
        if template.has("spec.activeDeadlineSeconds") {
            let what = if self == Workload::DaemonSet { "DaemonSet" } else { "ReplicaSet" };
            let why = format!("activeDeadlineSeconds in {what} is not Supported");
            causes.push(Cause::forbidden(format!("{path}.spec.activeDeadlineSeconds"), why));
        }
        causes
    }
}

fn rolling(object: &mut Value, path: &str, unavailable: Value, surge: Value) {
    object.put_default(&format!("{path}.type"), "RollingUpdate");
    if object.text(&format!("{path}.type")) == "RollingUpdate" {
        for (name, value) in [("maxUnavailable", unavailable), ("maxSurge", surge)] {
            let path = format!("{path}.rollingUpdate.{name}");
            if !object.has(&path) {
                object.put(&path, value);
            }
        }
    }
}

fn template_generation(object: &Value) -> i64 {
    let note = object.at("metadata.annotations").get(TEMPLATE_GENERATION).and_then(Value::as_str);
    note.and_then(|note| note.parse().ok()).unwrap_or_default()
}

fn put_template_generation(object: &mut Value, generation: i64) {
    let annotations = object.object("metadata.annotations");
    annotations.insert(TEMPLATE_GENERATION.to_owned(), generation.to_string().into());
}

fn not_negative(object: &Value, path: &str) -> Option<Cause> {
    let number = object.int(path);
    (number < 0).then(|| Cause::invalid(path, number, "must be greater than or equal to 0"))
}

fn counts(object: &Value, path: &str) -> Vec<Cause> {
    object.map(path).keys().filter_map(|name| not_negative(object, &format!("{path}.{name}"))).collect()
}

/// The causes for a selector at a path.
pub(super) fn label_selector(selector: &Value, path: &str) -> Vec<Cause> {
    let mut causes = meta::labels(selector.at("matchLabels"), &format!("{path}.matchLabels"));
    for (at, expression) in selector.list("matchExpressions").iter().enumerate() {
        let path = format!("{path}.matchExpressions[{at}]");
        let (operator, values) = (expression.text("operator"), expression.list("values"));
        match operator {
            "In" | "NotIn" if values.is_empty() => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                causes.push(Cause::required(format!("{path}.values"), why));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                causes.push(Cause::forbidden(format!("{path}.values"), why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                causes.push(Cause::invalid(
                    format!("{path}.operator"),
                    other,
                    "not a valid selector operator",
                ));
            }
        }
        let key = expression.text("key");
        let field = format!("{path}.key");
        causes.extend(names::qualified(key).iter().map(|fault| Cause::invalid(field.clone(), key, fault)));
        for (at, value) in values.iter().filter_map(Value::as_str).enumerate() {
            let field = format!("{path}.values[{at}]");
            let faults = names::label_value(value);
            causes.extend(faults.iter().map(|fault| Cause::invalid(field.clone(), value, fault)));
        }
    }
    causes
}

fn int_or_percent(object: &Value, path: &str) -> (i64, Vec<Cause>) {
    match object.at(path) {
        Value::String(text) => {
            let digits = text
                .strip_suffix('%')
                .filter(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
            match digits.and_then(|digits| digits.parse().ok()) {
                Some(percent) => (percent, Vec::new()),
                None => {
                    let form = names::pattern(
                        "a valid percent string must be a numeric string followed by an ending '%'",
                        "[0-9]+%",
                        &["1%", "93%"],
                    );
                    (0, vec![Cause::invalid(path, text.as_str(), form)])
                }
            }
        }
        other => (other.as_i64().unwrap_or_default(), not_negative(object, path).into_iter().collect()),
    }
}

fn deployment(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let path = "spec.strategy";
    match object.text("spec.strategy.type") {
        "Recreate" if object.has("spec.strategy.rollingUpdate") => {
            let why = "may not be specified when strategy `type` is 'Recreate'";
            causes.push(Cause::forbidden(format!("{path}.rollingUpdate"), why));
        }
        "Recreate" => {}
        "RollingUpdate" => {
            let field = format!("{path}.rollingUpdate.maxUnavailable");
            let (unavailable, faults) = int_or_percent(object, &field);
            let (surge, more) = int_or_percent(object, &format!("{path}.rollingUpdate.maxSurge"));
            causes.extend(faults);
            causes.extend(more);
            if unavailable == 0 && surge == 0 {
                let shown = object.at(&field).clone();
                causes.push(Cause::invalid(field.clone(), shown, "may not be 0 when `maxSurge` is 0"));
            }
            if object.at(&field).is_string() && unavailable > 100 {
                let shown = object.at(&field).clone();
                causes.push(Cause::invalid(field, shown, "must not be greater than 100%"));
            }
        }
        other => {
            let mut cause = Cause::not_supported(path, other, &["Recreate", "RollingUpdate"]);
            // The server shows its internal type here.
            let shown = json!({"Type": other, "RollingUpdate": null});
            cause.message = cause.message.replacen(&json!(other).to_string(), &internal_strategy(&shown), 1);
            causes.push(cause);
        }
    }
    for field in ["spec.minReadySeconds", "spec.revisionHistoryLimit", "spec.progressDeadlineSeconds"] {
        causes.extend(not_negative(object, field));
    }
    let (deadline, ready) = (object.int("spec.progressDeadlineSeconds"), object.int("spec.minReadySeconds"));
    if deadline <= ready {
        let why = "must be greater than minReadySeconds";
        causes.push(Cause::invalid("spec.progressDeadlineSeconds", deadline, why));
    }
    causes
}

/// The internal strategy, with its fields in order.
fn internal_strategy(strategy: &Value) -> String {
    format!("{{\"Type\":{},\"RollingUpdate\":{}}}", strategy.at("Type"), strategy.at("RollingUpdate"))
}

fn daemon_set(object: &Value) -> Vec<Cause> {
    let mut causes: Vec<Cause> = not_negative(object, "spec.minReadySeconds").into_iter().collect();
    let path = "spec.updateStrategy";
    match object.text("spec.updateStrategy.type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            let field = format!("{path}.rollingUpdate.maxUnavailable");
            let (unavailable, faults) = int_or_percent(object, &field);
            let (surge, more) = int_or_percent(object, &format!("{path}.rollingUpdate.maxSurge"));
            causes.extend(faults);
            causes.extend(more);
            let shown = object.at(&field).clone();
            if unavailable == 0 && surge == 0 {
                causes.push(Cause::invalid(field, shown, "cannot be 0 when maxSurge is 0"));
            } else if unavailable != 0 && surge != 0 {
                let field = format!("{path}.rollingUpdate.maxSurge");
                let shown = object.at(&field).clone();
                causes.push(Cause::invalid(field, shown, "may not be set when maxUnavailable is non-zero"));
            }
        }
        other => {
            let mut cause = Cause::not_supported(path, other, &["RollingUpdate", "OnDelete"]);
            let shown = json!({"Type": other, "RollingUpdate": null});
            cause.message = cause.message.replacen(&json!(other).to_string(), &internal_strategy(&shown), 1);
            causes.push(cause);
        }
    }
    causes.extend(not_negative(object, "spec.revisionHistoryLimit"));
    causes
}
