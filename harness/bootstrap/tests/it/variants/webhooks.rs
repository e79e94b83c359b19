//! Variants about admission webhooks that fail closed and whose Pods cannot run before a Node is initialised.

use super::{base, boot, changed, deadlock};

/// A webhook with these fields before the CCM.
fn hook(fields: &str) -> String {
    ordered(fields, true)
}

fn ordered(fields: &str, first: bool) -> String {
    let hook = format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: check, namespace: kube-system}}\nspec: {{selector: {{app: check}}, ports: [{{port: 443, targetPort: 8443}}]}}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: check, namespace: kube-system}}\nspec:\n  selector: {{matchLabels: {{app: check}}}}\n  template:\n    metadata: {{labels: {{app: check}}}}\n    spec: {{containers: [{{name: check, image: 'example.test/helper:dev', imagePullPolicy: IfNotPresent, args: [sleep]}}]}}\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {{name: check}}\nwebhooks:\n- name: check.example.test\n  admissionReviewVersions: [v1]\n  sideEffects: None\n  clientConfig: {{service: {{namespace: kube-system, name: check, port: 443}}}}\n{}\n",
        fields.lines().map(|line| format!("  {line}\n")).collect::<String>().trim_end()
    );
    if first {
        let before = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: cloud-controller-manager\n";
        changed(&base(), before, &format!("{hook}---\n{before}"))
    } else {
        format!("{}---\n{hook}", base())
    }
}

fn rule(group: &str, resource: &str, operation: &str) -> String {
    format!(
        "rules: [{{apiGroups: ['{group}'], apiVersions: [v1], resources: [{resource}], operations: [{operation}]}}]"
    )
}

#[test]
fn updates_of_nodes() {
    let nodes = rule("", "nodes", "UPDATE");
    let with = |more: &str| hook(&format!("{nodes}\n{more}"));
    boot(&[
        ("it fails open", with("failurePolicy: Ignore")),
        ("creation only", hook(&rule("", "nodes", "CREATE"))),
        ("another group", hook(&rule("apps", "nodes", "UPDATE"))),
        ("namespaced objects only", hook(&nodes.replace("operations:", "scope: Namespaced, operations:"))),
        ("conditions that exclude all", with("matchConditions: [{name: never, expression: 'false'}]")),
        ("labels of other Nodes", with("objectSelector: {matchExpressions: [{key: gpu, operator: Exists}]}")),
    ]);
    deadlock(&[
        ("all Nodes", hook(&nodes)),
        ("objects of the cluster", hook(&nodes.replace("operations:", "scope: Cluster, operations:"))),
        ("namespaces do not count for Nodes", with("namespaceSelector: {matchLabels: {absent: 'yes'}}")),
        ("conditions that exclude none", with("matchConditions: [{name: always, expression: 'true'}]")),
        ("labels of every Node", with("objectSelector: {matchLabels: {kubernetes.io/os: linux}}")),
        ("applied last", ordered(&nodes, false)),
        (
            "labels that the CCM adds",
            with(
                "objectSelector: {matchExpressions: [{key: topology.kubernetes.io/zone, operator: Exists}]}",
            ),
        ),
        ("all resources", hook(&rule("*", "'*'", "UPDATE"))),
    ]);
}

#[test]
fn creation_of_pods_and_their_owners() {
    let with = |what: String, more: &str| hook(&format!("{what}\n{more}"));
    boot(&[
        (
            "Pods of another namespace",
            with(
                rule("", "pods", "CREATE"),
                "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}",
            ),
        ),
        (
            "Pods with other labels",
            with(rule("", "pods", "CREATE"), "objectSelector: {matchLabels: {app: other}}"),
        ),
        ("changes of Pods", hook(&rule("", "pods", "DELETE"))),
        ("StatefulSets", hook(&rule("apps", "statefulsets", "CREATE"))),
        ("Deployments, applied after them", ordered(&rule("apps", "deployments", "CREATE"), false)),
        ("events", hook(&rule("", "events", "CREATE"))),
    ]);
    deadlock(&[
        ("ReplicaSets", hook(&rule("apps", "replicasets", "CREATE"))),
        ("Deployments", hook(&rule("apps", "deployments", "CREATE"))),
        ("bindings", hook(&rule("", "pods/binding", "CREATE"))),
        ("Leases", hook(&rule("coordination.k8s.io", "leases", "'CREATE', UPDATE"))),
    ]);
}
