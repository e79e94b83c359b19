//! The CCM as a single process with a check's own flags, which is not restarted when it exits. Pure functions.

use super::arguments::Flag;
use super::manifests::{Manifests, key_of};
use super::render::{RenderContext, Rendered, Replica, replicas};
use harness_core::ledger::SetBy;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::slice::from_ref;
use std::sync::Arc;

/// Label of a Pod that is a trial, with the trial's name.
const TRIAL_LABEL: &str = "ccm-conformance.io/trial";

/// The objects of a trial: those of a copy of the workload, with a bare Pod instead of the workload. `arguments` come
/// after those of the manifests and the profile. `like` provides credential and port.
pub(super) fn trial(
    manifests: &Manifests,
    name: &str,
    like: &Replica,
    around: &RenderContext,
    (nodes, arguments): (&[Arc<Node>], &[String]),
) -> Rendered {
    let mut around = around.clone();
    around.flags.extend(arguments.iter().map(|argument| Flag::of(argument, SetBy::Harness)));
    let replica = Replica { name: name.to_owned(), ..like.clone() };
    let mut rendered = replicas(manifests, from_ref(&replica), &around);
    for document in &mut rendered.documents {
        if rendered.workloads.contains(&key_of(document)) {
            *document = bare_pod(document, name, nodes);
        }
    }
    let is_pod = |document: &&Value| document["metadata"]["labels"][TRIAL_LABEL] == name;
    rendered.workloads = rendered.documents.iter().filter(is_pod).map(key_of).collect();
    rendered
}

/// The Pod that a workload would create, without restarts. If it selects its Node by labels, it is bound to the first Node that
/// fits, without selectors: before Kubernetes 1.22, a kubelet that restarts while its API server is away does not know the labels
/// of its Node, and ends each Pod that selects any ("Predicate NodeAffinity failed"). A workload creates another Pod then, and
/// nothing creates another trial.
fn bare_pod(workload: &Value, trial: &str, nodes: &[Arc<Node>]) -> Value {
    let mut spec = workload["spec"]["template"]["spec"].clone();
    spec["restartPolicy"] = json!("Never");
    let terms = terms(&spec);
    let fits = |node: &&Arc<Node>| terms.iter().any(|term| term.iter().all(|one| is_met(one, node.labels())));
    if let (Some(node), Some(spec)) = (nodes.iter().find(fits), spec.as_object_mut()) {
        spec.insert("nodeName".to_owned(), json!(node.name_any()));
        for selector in ["nodeSelector", "affinity", "topologySpreadConstraints"] {
            spec.remove(selector);
        }
    }
    let metadata = &workload["metadata"];
    // Without the labels of the workload, no controller or Service selects it.
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"], "labels": {TRIAL_LABEL: trial}},
        "spec": spec,
    })
}

/// The label requirements of a Pod for its Node: alternatives, each of which is a list of expressions. None if it has no
/// requirements. Source: PodSpec `nodeSelector` and `affinity.nodeAffinity`.
pub(super) fn terms(spec: &Value) -> Vec<Vec<Value>> {
    let labels = spec["nodeSelector"].as_object().into_iter().flatten();
    let plain = labels.map(|(key, value)| json!({"key": key, "operator": "In", "values": [value]}));
    let plain: Vec<Value> = plain.collect();
    let required = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let alternatives = required["nodeSelectorTerms"].as_array().into_iter().flatten();
    let with_plain = |term: &Value| {
        let expressions = term["matchExpressions"].as_array().into_iter().flatten();
        plain.iter().chain(expressions).cloned().collect::<Vec<Value>>()
    };
    let all: Vec<Vec<Value>> = alternatives.map(with_plain).collect();
    if all.is_empty() && !plain.is_empty() { vec![plain] } else { all }
}

/// Whether labels meet an expression; one with an operator that compares numbers is not met.
pub(super) fn is_met(expression: &Value, labels: &BTreeMap<String, String>) -> bool {
    let value = expression["key"].as_str().and_then(|key| labels.get(key));
    let listed = || {
        let values = expression["values"].as_array().into_iter().flatten();
        value.is_some_and(|value| values.into_iter().any(|one| one == value))
    };
    match expression["operator"].as_str() {
        Some("In") => listed(),
        Some("NotIn") => !listed(),
        Some("Exists") => value.is_some(),
        Some("DoesNotExist") => value.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::manifests::WorkloadHint;
    use super::*;

    #[test]
    fn a_trial_is_a_bare_pod_with_flags_of_its_own() {
        let documents = vec![
            json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "ccm", "namespace": "kube-system"},
                "spec": {"selector": {"matchLabels": {"app": "ccm"}}, "template": {
                    "metadata": {"labels": {"app": "ccm"}},
                    "spec": {"hostNetwork": true, "restartPolicy": "Always", "nodeSelector": {"a": "b"}, "containers": [{
                        "name": "ccm", "image": "x:1", "args": ["--leader-elect=true"],
                        "env": [{"name": "T", "valueFrom": {"secretKeyRef": {"name": "cloud", "key": "token"}}}]}]}}}}),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cloud"}, "stringData": {"token": "${CLOUD_TOKEN}"}}),
        ];
        let manifests = Manifests::new(documents, &WorkloadHint::default()).expect("a fine set");
        let like =
            Replica { name: "a".into(), token: "t-a".into(), secure_port: 10_258, endpoint: String::new() };
        let flags = ["--leader-elect=false".to_owned(), "--help".to_owned()];
        let rendered = trial(&manifests, "trial-x", &like, &RenderContext::default(), (&[], &flags));
        let [secret, pod] = rendered.documents.as_slice() else { panic!("{:?}", rendered.documents) };
        assert_eq!(
            (&secret["metadata"]["name"], &secret["stringData"]["token"]),
            (&json!("cloud-trial-x"), &json!("t-a"))
        );
        assert_eq!(rendered.workloads, [key_of(pod)]);
        assert_eq!((&pod["kind"], &pod["metadata"]["name"]), (&json!("Pod"), &json!("ccm-trial-x")));
        assert_eq!(pod["metadata"]["labels"], json!({TRIAL_LABEL: "trial-x"}));
        assert_eq!(pod["spec"]["restartPolicy"], "Never");
        let container = &pod["spec"]["containers"][0];
        assert_eq!(container["args"], json!(["--leader-elect=false", "--help"]));
        assert_eq!(container["env"][0]["valueFrom"]["secretKeyRef"]["name"], "cloud-trial-x");
        assert_eq!(
            (&pod["spec"]["nodeName"], &pod["spec"]["nodeSelector"]["a"]),
            (&Value::Null, &json!("b"))
        );
        let node = |name: &str, labels: Value| -> Arc<Node> {
            Arc::new(
                serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}}))
                    .expect("a Node"),
            )
        };
        let nodes = [node("n0", json!({"a": "c"})), node("n1", json!({"a": "b"}))];
        let bound = trial(&manifests, "trial-x", &like, &RenderContext::default(), (&nodes, &flags));
        let pod = &bound.documents[1]["spec"];
        assert_eq!((&pod["nodeName"], &pod["nodeSelector"]), (&json!("n1"), &Value::Null));
        let term =
            |key: &str, operator: &str| json!({"matchExpressions": [{"key": key, "operator": operator}]});
        let required = json!({"nodeSelectorTerms": [term("old", "Exists"), term("new", "Exists")]});
        let affinity = json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}});
        let fits = |labels: Value| {
            let node = node("n", labels);
            terms(&affinity).iter().any(|term| term.iter().all(|one| is_met(one, node.labels())))
        };
        assert!(fits(json!({"new": ""})) && fits(json!({"old": "x"})) && !fits(json!({"other": ""})));
    }
}
