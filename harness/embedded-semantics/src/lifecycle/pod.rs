//! Pods.
//!
//! Source: `pkg/registry/core/pod/strategy.go`, `ValidatePodUpdate` in
//! `pkg/apis/core/validation/validation.go`, and the admission plugins `Priority` and
//! `DefaultTolerationSeconds`. The plugin `ServiceAccount` needs the account: the part without it is done
//! here, and [`mount_token`] does the rest.

mod part;

use serde_json::{Value, json};

use super::strategy::Strategy;
use super::warnings::apparmor;
use super::{Context, meta, podspec};
use embedded_objects::cause::Cause;
use embedded_objects::kinds::Kind;
use embedded_objects::value::{Edit as _, PathAccess as _};

/// The default number of seconds that a Pod stays on a node that is not ready or not reachable.
const TOLERATION_SECONDS: i64 = 300;
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The lifetime of a mounted token: an hour and seven seconds. Kubernetes recognises such tokens by this lifetime.
const TOKEN_SECONDS: i64 = 3607;
const UPDATABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub(super) struct Pod;

impl Strategy for Pod {
    fn default(&self, object: &mut Value) {
        if let Some(spec) = object.at_mut("spec") {
            podspec::default(spec);
            podspec::default_host_ports(spec);
        }
        for list in ["spec.containers", "spec.initContainers"] {
            for container in object.items(list) {
                let limits = container.map("resources.limits").clone();
                for (name, limit) in limits {
                    container.object("resources.requests").entry(name).or_insert(limit);
                }
            }
        }
        if !object.has("spec.enableServiceLinks") {
            object.put("spec.enableServiceLinks", true);
        }
        // The older field for the account's name follows the newer one.
        let account = match object.text("spec.serviceAccountName") {
            "" => object.text("spec.serviceAccount").to_owned(),
            account => account.to_owned(),
        };
        if !account.is_empty() {
            object.put("spec.serviceAccountName", account.as_str());
            object.put("spec.serviceAccount", account);
        }
    }

    fn prepare_create(&self, object: &mut Value, _cx: &mut Context<'_>) {
        admit(object);
        apparmor::fill_fields(object);
        object.put("metadata.generation", 1);
        let class = podspec::quality_of_service(object.at("spec"));
        object.put("status", json!({"phase": "Pending", "qosClass": class}));
        if !object.list("spec.schedulingGates").is_empty() {
            object.put(
                "status.conditions",
                json!([{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates"}]),
            );
        }
    }

    fn validate_create(&self, object: &Value, _cx: &Context<'_>) -> Vec<Cause> {
        let mut causes = podspec::annotations(object, "metadata.annotations");
        causes.extend(podspec::validate(object.at("spec"), "spec"));
        if !object.list("spec.ephemeralContainers").is_empty() {
            causes.push(Cause::forbidden("spec.ephemeralContainers", "cannot be set on create"));
        }
        if !object.text("spec.nodeName").is_empty() && !object.list("spec.schedulingGates").is_empty() {
            let why = "cannot be set until all schedulingGates have been cleared";
            causes.push(Cause::forbidden("spec.nodeName", why));
        }
        causes.extend(podspec::seccomp_contradictions(object, "spec"));
        causes.extend(apparmor::contradictions(object, "spec"));
        causes
    }

    fn prepare_update(&self, sub: Option<&str>, old: &Value, new: &mut Value, _cx: &mut Context<'_>) {
        match sub {
            Some("status") => {
                new.put("spec", old.at("spec").clone());
                new.clear("metadata.deletionTimestamp");
                new.put("metadata.ownerReferences", old.at("metadata.ownerReferences").clone());
                let class = old.at("status.qosClass").clone();
                new.put_default("status.qosClass", class);
                keep_observed_generations(old, new);
            }
            Some(part @ ("ephemeralcontainers" | "resize")) => part::prepare(part, old, new),
            Some(_) => {}
            None => {
                new.put("status", old.at("status").clone());
                if new.at("spec") != old.at("spec") {
                    new.put("metadata.generation", old.int("metadata.generation") + 1);
                }
            }
        }
    }

    fn validate_update(
        &self,
        kind: &Kind,
        sub: Option<&str>,
        old: &Value,
        new: &Value,
        _cx: &Context<'_>,
    ) -> Vec<Cause> {
        let mut causes = meta::changed(old, new);
        match sub {
            Some("status") => {
                causes.extend(meta::immutable(old, new, "status.qosClass"));
            }
            Some(part @ ("ephemeralcontainers" | "resize")) => causes.extend(part::validate(part, old, new)),
            Some(_) => {}
            None => {
                causes.extend(meta::created(kind, new));
                causes.extend(podspec::annotations(new, "metadata.annotations"));
                causes.extend(podspec::validate(new.at("spec"), "spec"));
                causes.extend(spec_changed(old.at("spec"), new.at("spec")));
            }
        }
        causes
    }
}

/// Keeps the observed generation of the old status if the new one does not contain it.
fn keep_observed_generations(old: &Value, new: &mut Value) {
    if old.int("status.observedGeneration") != 0 {
        new.put_default("status.observedGeneration", old.int("status.observedGeneration"));
    }
    let mut known: Vec<&Value> = old.list("status.conditions").iter().collect();
    for condition in new.items("status.conditions") {
        let Some(at) = known.iter().position(|one| one.text("type") == condition.text("type")) else {
            continue;
        };
        let before = known.remove(at).int("observedGeneration");
        if before != 0 {
            condition.put_default("observedGeneration", before);
        }
    }
}

/// Sets the fields of the admission plugins that need only the Pod.
fn admit(pod: &mut Value) {
    if pod.text("spec.serviceAccountName").is_empty() {
        pod.put("spec.serviceAccountName", "default");
        pod.put("spec.serviceAccount", "default");
    }
    let system = match pod.text("spec.priorityClassName") {
        "system-cluster-critical" => 2_000_000_000,
        "system-node-critical" => 2_000_001_000,
        _ => 0,
    };
    if !pod.has("spec.priority") {
        pod.put("spec.priority", system);
    }
    if !pod.has("spec.preemptionPolicy") {
        pod.put("spec.preemptionPolicy", "PreemptLowerPriority");
    }
    tolerate_unready_nodes(pod);
}

/// Adds the default tolerations for a node that is not ready or not reachable, unless the Pod sets them: the
/// work of the admission plugin `DefaultTolerationSeconds` at each write of a Pod.
pub fn tolerate_unready_nodes(pod: &mut Value) {
    let mut tolerations = pod.list("spec.tolerations").to_vec();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = tolerations.iter().any(|toleration| {
            let (known, effect) = (toleration.text("key"), toleration.text("effect"));
            (known == key || known.is_empty()) && (effect == "NoExecute" || effect.is_empty())
        });
        if !tolerated {
            tolerations.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": TOLERATION_SECONDS}));
        }
    }
    pod.put("spec.tolerations", tolerations);
}

/// Mounts the token of a Pod's service account, unless the Pod, its account or a mount prevents it, and adds
/// the account's pull secrets. Call it before a creation; `suffix` is five random characters.
pub fn mount_token(pod: &mut Value, account: &Value, suffix: &str) {
    if pod.list("spec.imagePullSecrets").is_empty() && account.has("imagePullSecrets") {
        pod.put("spec.imagePullSecrets", account.at("imagePullSecrets").clone());
    }
    let says = |object: &Value, path: &str| object.at(path).as_bool();
    let mounts = says(pod, "spec.automountServiceAccountToken")
        .or(says(account, "automountServiceAccountToken"))
        .unwrap_or(true);
    if !mounts {
        return;
    }
    let name = format!("kube-api-access-{suffix}");
    let mut used = false;
    for list in ["spec.initContainers", "spec.containers"] {
        for container in pod.items(list) {
            let mut mounts = container.list("volumeMounts").to_vec();
            if mounts.iter().any(|mount| mount.text("mountPath") == TOKEN_PATH) {
                continue;
            }
            mounts.push(json!({"name": name, "readOnly": true, "mountPath": TOKEN_PATH}));
            container.put("volumeMounts", mounts);
            used = true;
        }
    }
    if used {
        let mut volumes = pod.list("spec.volumes").to_vec();
        volumes.push(json!({"name": name, "projected": {"defaultMode": 0o644, "sources": [
            {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [
                {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}}]}}));
        pod.put("spec.volumes", volumes);
    }
}

fn spec_changed(old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for list in ["containers", "initContainers"] {
        if old.list(list).len() != new.list(list).len() {
            let why = "pod updates may not add or remove containers";
            return vec![Cause::forbidden(format!("spec.{list}"), why)];
        }
    }
    let deadline = "activeDeadlineSeconds";
    match (old.at(deadline).as_i64(), new.at(deadline).as_i64()) {
        (Some(before), Some(after)) if before < after => {
            let why = "must be less than or equal to previous value";
            return vec![Cause::invalid("spec.activeDeadlineSeconds", after, why)];
        }
        (Some(_), None) => {
            let why = "must not update from a positive integer to nil value";
            causes.push(Cause::invalid("spec.activeDeadlineSeconds", Value::Null, why));
        }
        _ => {}
    }
    causes.extend(tolerations_changed(old, new));
    let gates = |spec: &Value| spec.list("schedulingGates").to_vec();
    for (at, gate) in gates(new).iter().enumerate().filter(|(_, gate)| !gates(old).contains(gate)) {
        let why = format!("only deletion is allowed, but found new scheduling gate '{}'", gate.text("name"));
        causes.push(Cause::forbidden(format!("spec.schedulingGates[{at}].name"), why));
    }
    let mut munged = new.clone();
    for list in ["containers", "initContainers"] {
        for (container, before) in munged.items(list).iter_mut().zip(old.list(list)) {
            container.put("image", before.at("image").clone());
        }
    }
    for path in [deadline, "schedulingGates", "tolerations"] {
        match old.at(path) {
            Value::Null => {
                munged.clear(path);
            }
            before => munged.put(path, before.clone()),
        }
    }
    let grace = "terminationGracePeriodSeconds";
    if old.int(grace) < 0 && munged.int(grace) == 1 {
        munged.put(grace, old.at(grace).clone());
    }
    if munged != *old {
        let shown = super::internal::difference(old, &munged);
        causes.push(Cause::forbidden("spec", format!("{UPDATABLE}\n{shown}")));
    }
    causes
}

/// The causes for changed tolerations: only additions and changes of their seconds are allowed.
fn tolerations_changed(old: &Value, new: &Value) -> Vec<Cause> {
    let same = |a: &Value, b: &Value| {
        ["key", "operator", "value", "effect"].iter().all(|name| a.text(name) == b.text(name))
    };
    let kept = |before: &Value| new.list("tolerations").iter().any(|after| same(before, after));
    if old.list("tolerations").iter().all(kept) {
        let mut causes = Vec::new();
        podspec::tolerations(new, "spec.tolerations", &mut causes);
        return causes;
    }
    let why = "existing toleration can not be modified except its tolerationSeconds";
    vec![Cause::forbidden("spec.tolerations", why)]
}
