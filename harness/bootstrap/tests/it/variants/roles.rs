//! Variants about roles, and about objects that a file contains twice.

use super::{all, base, behind, boot, changed, container, deadlock, pod};
use bootstrap::Outcome;

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
        ("edit, which view does not contain", with_role(&bound_to("view"), &to("edit"), &all)),
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
    // Only new client libraries do.
    all(Outcome::BootsIf, &[("without list", only("get, watch, update, patch"))]);
    deadlock(&[("without either", only("get, update, patch"))]);
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
        // The second one is refused, and the first one stays.
        ("another selector", again("matchLabels:\n      app: ccm", "matchLabels:\n      app: other")),
        (
            "another role at last",
            format!("{}\n---\n{}", base(), binding("view").split("---\n").next().expect("a binding")),
        ),
    ]);
    deadlock(&[
        ("another role", binding("view")),
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
fn objects_next_to_the_ccm() {
    let class = |name: &str, value: &str| {
        let class = format!(
            "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: {name}}}\nvalue: {value}"
        );
        super::below(
            &behind(&class),
            "      serviceAccountName: ccm\n",
            6,
            &format!("priorityClassName: {name}"),
        )
    };
    let token = |account: &str| {
        let secret = format!(
            "apiVersion: v1\nkind: Secret\ntype: kubernetes.io/service-account-token\nmetadata: {{name: token, namespace: \
             kube-system, annotations: {{kubernetes.io/service-account.name: {account}}}}}"
        );
        let folder = "/var/run/secrets/kubernetes.io/serviceaccount";
        let text = super::below(
            &behind(&secret),
            "        imagePullPolicy: IfNotPresent\n",
            8,
            &format!("volumeMounts: [{{name: t, mountPath: {folder}}}]"),
        );
        super::below(
            &text,
            "      serviceAccountName: ccm\n",
            6,
            "volumes: [{name: t, secret: {secretName: token}}]",
        )
    };
    let test_pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: ccm-test, namespace: default, annotations: {helm.sh/hook: \
                    test}}\nspec: {restartPolicy: Never, containers: [{name: wget, image: 'a/b:1', command: [wget]}]}";
    boot(&[
        ("a class", class("high", "1000000000")),
        ("a token of its account", token("ccm")),
        ("a test of its chart", behind(test_pod)),
        (
            "a refused object that nothing needs",
            behind("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a..b}\ndata: {a: 1}"),
        ),
    ]);
    deadlock(&[
        ("a reserved name", class("system-high", "1000")),
        ("a class that is too high", class("high", "1000000001")),
        ("a token of an account that does not exist", token("absent")),
        ("memory in thousandths of a byte", container("resources: {limits: {memory: 128m}}")),
        ("two flags in one argument", super::argument("--v=2 --leader-elect=true")),
        (
            "a refused object that it needs",
            super::below(
                &behind(
                    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: need, namespace: kube-system}\ndata: {a: 1}",
                ),
                "        imagePullPolicy: IfNotPresent\n",
                8,
                "envFrom: [{configMapRef: {name: need}}]",
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

#[test]
fn accounts_of_controllers() {
    let with = |subject: &str, role: &str| {
        let text = changed(
            &base(),
            "        - -v=1\n",
            "        - -v=1\n        - --use-service-account-credentials=true\n",
        );
        let text = changed(&text, "- kind: ServiceAccount\n  name: ccm\n  namespace: kube-system\n", subject);
        changed(&text, "  name: cluster-admin\n", &format!("  name: {role}\n"))
    };
    let account = "- kind: ServiceAccount\n  name: ccm\n  namespace: kube-system\n";
    let group =
        "- kind: Group\n  apiGroup: rbac.authorization.k8s.io\n  name: system:serviceaccounts:kube-system\n";
    let tokens =
        "{apiGroups: [''], resources: [serviceaccounts, serviceaccounts/token], verbs: [get, create]}";
    let nodes = "{apiGroups: [''], resources: [nodes], verbs: [list, watch]}";
    let of_one = "{apiGroups: [''], resources: [serviceaccounts, serviceaccounts/token], verbs: [get, create], resourceNames: \
                  [node-controller]}";
    boot(&[
        (
            "tokens of one account",
            with_role(&with(account, "own"), "a: b", &format!("{of_one}, {nodes}, {LEASES}")),
        ),
        ("for everybody", with(group, "cluster-admin")),
        (
            "tokens, and what its informers need",
            with_role(&with(account, "own"), "a: b", &format!("{tokens}, {nodes}, {LEASES}")),
        ),
    ]);
    deadlock(&[
        ("no tokens", with_role(&with(account, "own"), "a: b", &format!("{NODES}, {LEASES}"))),
        ("no Nodes", with_role(&with(account, "own"), "a: b", &format!("{tokens}, {LEASES}"))),
    ]);
}
