//! Changes of what is applied next to the CCM: quotas, limits, policies, webhooks, Leases, other workloads.

use super::set::{Change, Set, pick};
use fastrand::Rng;
use serde_json::{Value, json};

/// What only a real API server enforces.
pub(super) const ADMISSION: &[Change] = &[a_quota, a_limit, pod_security, a_policy, a_webhook];

pub(super) const CHANGES: &[Change] =
    &[a_lease, a_rival_for_its_port, a_namespace_of_its_own, paused, selects_other_pods, more_labels];

fn a_quota(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let namespace = set.namespace();
    let hard = match rng.u8(..4) {
        0 => json!({"pods": "0"}),
        1 => json!({"pods": "1"}),
        2 => json!({"requests.cpu": "10m"}),
        _ => json!({"limits.memory": "1Gi"}),
    };
    set.documents.push(json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "quota", "namespace": namespace}, "spec": {"hard": hard},
    }));
    Some(format!("a quota of {hard}"))
}

fn a_limit(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let namespace = set.namespace();
    let limit = match rng.u8(..3) {
        0 => json!({"type": "Container", "default": {"memory": "256Mi"}, "defaultRequest": {"cpu": "10m"}}),
        1 => json!({"type": "Container", "min": {"cpu": "500m"}}),
        _ => json!({"type": "Container", "max": {"cpu": "10m"}}),
    };
    set.documents.push(json!({
        "apiVersion": "v1", "kind": "LimitRange",
        "metadata": {"name": "limits", "namespace": namespace}, "spec": {"limits": [limit]},
    }));
    Some(format!("a limit range {limit}"))
}

fn pod_security(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let namespace = set.namespace();
    let level = pick(rng, &["privileged", "baseline", "restricted"]);
    set.documents
        .retain(|one| !(one["kind"] == "Namespace" && one["metadata"]["name"] == namespace.as_str()));
    set.documents.insert(
        0,
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": namespace, "labels": {"pod-security.kubernetes.io/enforce": level}},
        }),
    );
    Some(format!("Pod Security {level}"))
}

fn a_policy(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let (expression, action) = (pick(rng, &["true", "false"]), pick(rng, &["Deny", "Warn", "Audit"]));
    let resource = pick(rng, &["pods", "nodes", "leases"]);
    let (group, operation) = match resource {
        "leases" => ("coordination.k8s.io", "UPDATE"),
        "nodes" => ("", "UPDATE"),
        _ => ("", "CREATE"),
    };
    set.documents.push(json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "policy"},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [
                {"apiGroups": [group], "apiVersions": ["v1"], "operations": [operation], "resources": [resource]},
            ]},
            "validations": [{"expression": expression}],
        },
    }));
    set.documents.push(json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "policy"}, "spec": {"policyName": "policy", "validationActions": [action]},
    }));
    Some(format!("a policy {expression} for {operation} of {resource}, {action}"))
}

fn a_webhook(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let resource = pick(rng, &["pods", "configmaps", "nodes"]);
    let namespace = set.namespace();
    let failure = pick(rng, &["Fail", "Ignore"]);
    let mut hook = json!({
        "name": "hook.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "failurePolicy": failure, "timeoutSeconds": 1,
        "clientConfig": {"service": {"namespace": namespace, "name": "hook", "path": "/"}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": [resource]}],
    });
    let exempt = rng.bool();
    if exempt {
        let not_here =
            json!([{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [namespace]}]);
        hook["namespaceSelector"] = json!({"matchExpressions": not_here});
    }
    set.documents.push(json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "hook"}, "webhooks": [hook],
    }));
    Some(format!("a webhook without a server for {resource}, {failure}, exempt: {exempt}"))
}

fn a_lease(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let held = rng.bool();
    let renewed = pick(rng, &["2020-01-01T00:00:00.000000Z", "2099-01-01T00:00:00.000000Z"]);
    let spec = match held {
        true => json!({
            "holderIdentity": "another", "leaseDurationSeconds": 15,
            "acquireTime": renewed, "renewTime": renewed, "leaseTransitions": 1,
        }),
        false => json!({}),
    };
    set.documents.push(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "cloud-controller-manager", "namespace": "kube-system"}, "spec": spec,
    }));
    Some(format!("a Lease, held: {held}, renewed {renewed}"))
}

/// Another workload on every Node that takes a port, with or without precedence.
fn a_rival_for_its_port(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let port = pick(rng, &[&10_258_u16, &10_299]);
    let mut spec = json!({
        "hostNetwork": true, "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "rival", "image": "idle:1", "ports": [{"containerPort": port, "hostPort": port}]}],
    });
    if rng.bool() {
        spec["priorityClassName"] = json!("system-node-critical");
    }
    set.documents.push(workload("DaemonSet", "rival", spec));
    Some(format!("a DaemonSet with the host port {port}"))
}

fn workload(kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    })
}

/// The CCM's workload moves to a namespace that is, or is not, in the manifests; its account stays behind.
fn a_namespace_of_its_own(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let made = rng.bool();
    set.ccm()?["metadata"]["namespace"] = json!("elsewhere");
    if made {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}});
        set.documents.insert(0, namespace);
    }
    Some(format!("another namespace for its Pods, in the manifests: {made}"))
}

fn paused(set: &mut Set, _: &mut Rng) -> Option<String> {
    set.ccm().filter(|one| one["kind"] == "Deployment")?["spec"]["paused"] = json!(true);
    Some("paused".to_owned())
}

/// A selector that does not match the Pods: the API server refuses it.
fn selects_other_pods(set: &mut Set, _: &mut Rng) -> Option<String> {
    set.ccm()?["spec"]["selector"]["matchLabels"]["app"] = json!("other");
    Some("a selector of other Pods".to_owned())
}

fn more_labels(set: &mut Set, _: &mut Rng) -> Option<String> {
    set.ccm()?["spec"]["template"]["metadata"]["labels"]["more"] = json!("label");
    Some("one more label".to_owned())
}
