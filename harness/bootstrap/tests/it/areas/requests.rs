//! What Pods request of a Node: containers, sidecars, init containers, the Pod as a whole, overhead and other Pods.

use super::{Parts, before, boots, boots_if, container, outcome, spec};

/// Another workload that tolerates everything, with this priority class, number of replicas and request.
fn other(class: &str, replicas: u32, cpu: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: agent, namespace: kube-system}}\nspec:\n  \
         replicas: {replicas}\n  selector: {{matchLabels: {{app: agent}}}}\n  template:\n    metadata: {{labels: \
         {{app: agent}}}}\n    spec:\n      priorityClassName: '{class}'\n      tolerations: [{{operator: Exists}}]\n      \
         containers: [{{name: a, image: 'example.test/a:1', resources: {{requests: {{cpu: {cpu}}}}}}}]\n---\n"
    )
}

#[test]
fn of_one_pod() {
    let init = |cpu: &str, more: &str| {
        format!(
            "      initContainers: [{{name: i, image: 'example.test/i:1'{more}, resources: {{requests: {{cpu: {cpu}}}}}}}]\n"
        )
    };
    let own = "        resources: {requests: {cpu: 600m}}\n";
    boots(&container(own));
    boots_if(&container("        resources: {requests: {cpu: 1500m}}\n"), "(cpu: 1500m)");
    boots_if(&container("        resources: {limits: {memory: 3Gi}}\n"), "(memory: 3Gi)");
    boots_if(&spec(&init("2", "")), "room for its requests (cpu: 2)");
    // An init container that is not a sidecar has ended before the containers start.
    let both = |more: &str| {
        let init = init("600m", more);
        outcome(&Parts { spec: &init, container: own, ..Parts::default() }.text()).1
    };
    assert!(!both("").contains("has room"), "{}", both(""));
    assert!(both(", restartPolicy: Always").contains("room for its requests (cpu: 1200m)"));
    // The request of the Pod replaces those of its containers.
    let whole = |cpu: &str| {
        let whole = format!("      resources: {{requests: {{cpu: {cpu}}}}}\n");
        outcome(&Parts { spec: &whole, container: own, ..Parts::default() }.text())
    };
    assert_eq!(whole("700m").0, "boots");
    assert!(whole("2").1.contains("(cpu: 2)"));
    let class = "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: heavy}\nhandler: runc\noverhead: \
                 {podFixed: {cpu: 500m}}\n---\n";
    let heavy = "      runtimeClassName: heavy\n";
    let text = Parts { before: class, spec: heavy, container: own, ..Parts::default() }.text();
    assert!(outcome(&text).1.contains("(cpu: 1100m, with the overhead of RuntimeClass/heavy)"));
}

#[test]
fn of_several_pods() {
    let own = "        resources: {requests: {cpu: 600m}}\n";
    let with = |before: &str| outcome(&Parts { before, container: own, ..Parts::default() }.text());
    assert_eq!(with(&other("", 1, "300m")).0, "boots");
    let together = with(&other("", 2, "300m"));
    assert!(
        together.1.contains("its Pod and those of Deployment/agent (cpu: 1200m together)"),
        "{together:?}"
    );
    assert_eq!(with(&other("system-node-critical", 1, "900m")).0, "boots-if");
    // It tolerates no uninitialised Node, so the CCM is there first.
    let late = other("", 2, "900m").replace("tolerations: [{operator: Exists}]", "tolerations: []");
    assert_eq!(with(&late).0, "boots");
    // The CCM takes the place of Pods that matter less.
    let first = Parts {
        before: &other("", 2, "900m"),
        spec: "      priorityClassName: system-cluster-critical\n",
        container: own,
        ..Parts::default()
    };
    boots(&first);
    boots(&before(&other("", 1, "900m")));
}
