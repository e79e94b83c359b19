//! The CCM as a single process with a check's own flags, which is not restarted when it exits. Pure functions.

use super::arguments::Flag;
use super::manifests::{Manifests, key_of};
use super::render::{Rendered, Replica, Surroundings, replicas};
use harness_core::ledger::SetBy;
use serde_json::{Value, json};
use std::slice::from_ref;

/// Label of a Pod that is a trial, with the trial's name.
const TRIAL_LABEL: &str = "ccm-conformance.io/trial";

/// The objects of a trial: those of a copy of the workload, with a bare Pod instead of the workload. `arguments` come
/// after those of the manifests and the profile. `like` provides credential and port.
pub(super) fn trial(
    manifests: &Manifests,
    name: &str,
    like: &Replica,
    around: &Surroundings,
    (node, arguments): (Option<&str>, &[String]),
) -> Rendered {
    let mut around = around.clone();
    around.flags.extend(arguments.iter().map(|argument| Flag::of(argument, SetBy::Harness)));
    let replica = Replica { name: name.to_owned(), ..like.clone() };
    let mut rendered = replicas(manifests, from_ref(&replica), &around);
    for document in &mut rendered.documents {
        if rendered.workloads.contains(&key_of(document)) {
            *document = bare_pod(document, name, node);
        }
    }
    let is_pod = |document: &&Value| document["metadata"]["labels"][TRIAL_LABEL] == name;
    rendered.workloads = rendered.documents.iter().filter(is_pod).map(key_of).collect();
    rendered
}

/// The Pod that a workload would make, which nothing starts again. Bound to its Node it does without selectors: before Kubernetes
/// 1.22, a kubelet that restarts while its API server is away knows no labels of its Node, and ends each Pod that selects any
/// ("Predicate NodeAffinity failed"). A workload makes another Pod then, and nothing makes another trial.
fn bare_pod(workload: &Value, trial: &str, node: Option<&str>) -> Value {
    let mut spec = workload["spec"]["template"]["spec"].clone();
    spec["restartPolicy"] = json!("Never");
    if let (Some(node), Some(spec)) = (node, spec.as_object_mut()) {
        spec.insert("nodeName".to_owned(), json!(node));
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
        let rendered = trial(&manifests, "trial-x", &like, &Surroundings::default(), (None, &flags));
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
        let bound = trial(&manifests, "trial-x", &like, &Surroundings::default(), (Some("n1"), &flags));
        let pod = &bound.documents[1]["spec"];
        assert_eq!((&pod["nodeName"], &pod["nodeSelector"]), (&json!("n1"), &Value::Null));
    }
}
