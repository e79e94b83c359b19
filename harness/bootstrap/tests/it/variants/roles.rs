//! Variants about roles, and about objects that a file contains twice.

use super::{base, behind, boot, changed, container, deadlock, pod};

fn bound_to(role: &str) -> String {
    changed(&base(), "  name: cluster-admin\n", &format!("  name: {role}\n"))
}

/// A role with these labels and rules, before the others.
fn with_role(text: &str, labels: &str, rules: &str) -> String {
    format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: own, labels: \
         {{{labels}}}}}\nrules: [{rules}]\n---\n{text}"
    )
}

const NODES: &str =
    "{apiGroups: [''], resources: [nodes, nodes/status], verbs: [get, list, watch, update, patch]}";
const LEASES: &str = "{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update]}";

#[test]
fn aggregation_into_the_roles_of_a_new_cluster() {
    let to = |role: &str| format!("rbac.authorization.k8s.io/aggregate-to-{role}: 'true'");
    let all = format!("{NODES}, {LEASES}");
    boot(&[
        ("edit", with_role(&bound_to("edit"), &to("edit"), &all)),
        ("view", with_role(&bound_to("view"), &to("view"), &all)),
        ("view, which is part of admin", with_role(&bound_to("admin"), &to("view"), &all)),
    ]);
    deadlock(&[
        ("edit, which is no part of view", with_role(&bound_to("view"), &to("edit"), &all)),
        ("another value", with_role(&bound_to("edit"), &to("edit").replace("true", "false"), &all)),
    ]);
}

#[test]
fn a_ccm_that_may_only_list_nodes_lists_them_again_and_again() {
    let only = |verbs: &str| {
        let nodes = NODES.replace("get, list, watch, update, patch", verbs);
        with_role(&bound_to("own"), "a: b", &format!("{nodes}, {LEASES}"))
    };
    boot(&[("without watch", only("get, list, update, patch"))]);
    deadlock(&[("without list", only("get, watch, update, patch"))]);
}

#[test]
fn objects_that_are_there_twice() {
    let binding = |role: &str| {
        behind(&format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {{name: ccm}}\nroleRef: \
             {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {role}}}\nsubjects: [{{kind: \
             ServiceAccount, name: ccm, namespace: kube-system}}]"
        ))
    };
    let again = |from: &str, to: &str| {
        let (_, deployment) =
            base().rsplit_once("---\n").map(|(a, b)| (a.to_owned(), b.to_owned())).expect("parts");
        format!("{}\n---\n{}", base(), changed(&deployment, from, to))
    };
    boot(&[
        ("the same binding", binding("cluster-admin")),
        ("the same Deployment", again("x", "x")),
        ("another image at last", again("do-ccm:dev", "do-ccm:other")),
    ]);
    deadlock(&[
        ("another role", binding("view")),
        ("another selector", again("matchLabels:\n      app: ccm", "matchLabels:\n      app: other")),
        (
            "no toleration at last",
            again(
                "      - key: node.cloudprovider.kubernetes.io/uninitialized\n        operator: Exists\n        effect: NoSchedule\n",
                "",
            ),
        ),
    ]);
}

#[test]
fn what_a_pod_says_of_its_classes() {
    let class = |more: &str| {
        behind(&format!(
            "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: high}}\nvalue: 1000\n{more}"
        ))
    };
    let with = |class: String, spec: &str| {
        super::below(
            &class,
            "      serviceAccountName: ccm\n",
            6,
            &format!("priorityClassName: high\n{spec}"),
        )
    };
    boot(&[
        ("no priority", pod("priority: 0")),
        ("that of its class", with(class(""), "priority: 1000")),
        ("the policy of its class", with(class("preemptionPolicy: Never\n"), "preemptionPolicy: Never")),
        ("a pause after the start", container("lifecycle: {postStart: {sleep: {seconds: 1}}}")),
    ]);
    deadlock(&[
        ("a priority without a class", pod("priority: 1000")),
        ("another priority than its class", with(class(""), "priority: 10")),
        ("another policy than its class", with(class(""), "preemptionPolicy: Never")),
        ("an overhead without a class", pod("overhead: {cpu: 100m}")),
        ("a medium that does not exist", pod("volumes: [{name: scratch, emptyDir: {medium: Ram}}]")),
    ]);
}
