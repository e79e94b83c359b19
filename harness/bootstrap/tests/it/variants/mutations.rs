//! Variants about MutatingAdmissionPolicies: what they change in Pods, and when they make the API server refuse them.

use super::{all, base, boot, changed, deadlock, judge};
use bootstrap::{Outcome, Topology};

/// A policy about new Pods, with a binding, before this text.
fn policy(spec: &str, text: &str) -> String {
    format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy\nmetadata: {{name: own}}\nspec:\n  \
         reinvocationPolicy: Never\n  matchConstraints:\n    namespaceSelector: {{matchLabels: \
         {{kubernetes.io/metadata.name: kube-system}}}}\n    resourceRules: [{{apiGroups: [''], apiVersions: [v1], \
         operations: [CREATE], resources: [pods]}}]\n{spec}---\napiVersion: admissionregistration.k8s.io/v1\nkind: \
         MutatingAdmissionPolicyBinding\nmetadata: {{name: own}}\nspec: {{policyName: own}}\n---\n{text}"
    )
}

fn patch(text: &str, expression: &str) -> String {
    policy(
        &format!("  mutations:\n  - patchType: JSONPatch\n    jsonPatch: {{expression: \"{expression}\"}}\n"),
        text,
    )
}

fn configuration(text: &str, expression: &str) -> String {
    policy(
        &format!(
            "  mutations:\n  - patchType: ApplyConfiguration\n    applyConfiguration: {{expression: \"{expression}\"}}\n"
        ),
        text,
    )
}

/// The base without its toleration of the taint that the CCM removes.
fn intolerant() -> String {
    changed(
        &base(),
        "      - key: node.cloudprovider.kubernetes.io/uninitialized\n        operator: Exists\n        effect: NoSchedule\n",
        "",
    )
}

const TOLERATION: &str = "[JSONPatch{op: 'add', path: '/spec/tolerations/-', value: Object.spec.tolerations{key: \
                          'node.cloudprovider.kubernetes.io/uninitialized', operator: 'Exists'}}]";

#[test]
fn what_a_pod_needs_is_added() {
    let with = |fields: &str, expression: &str| {
        patch(&intolerant(), expression).replacen("  mutations:\n", &format!("{fields}  mutations:\n"), 1)
    };
    boot(&[
        ("a toleration", with("", TOLERATION)),
        (
            "for Pods with a label",
            with(
                "  matchConditions: [{name: a, expression: \"object.metadata.labels.app == 'ccm'\"}]\n",
                TOLERATION,
            ),
        ),
        (
            "with a variable and a decision",
            with(
                "  variables: [{name: key, expression: \"'node.cloudprovider.kubernetes.io/uninitialized'\"}]\n",
                "has(object.spec.hostNetwork) ? [JSONPatch{op: 'add', path: '/spec/tolerations/-', value: \
                 Object.spec.tolerations{key: variables.key, operator: 'Exists'}}] : []",
            ),
        ),
    ]);
    deadlock(&[
        ("no policy", intolerant()),
        ("no binding", with("", TOLERATION).replace("policyName: own", "policyName: other")),
        (
            "other Pods",
            with(
                "  matchConditions: [{name: a, expression: \"object.metadata.labels.app == 'other'\"}]\n",
                TOLERATION,
            ),
        ),
        (
            "another namespace",
            with("", TOLERATION)
                .replace("kubernetes.io/metadata.name: kube-system", "kubernetes.io/metadata.name: default"),
        ),
        ("another key", with("", &TOLERATION.replace("uninitialized", "shutdown"))),
    ]);
}

#[test]
fn what_a_pod_needs_is_taken_away() {
    let host = |value: &str| format!("Object{{spec: Object.spec{{hostNetwork: {value}}}}}");
    boot(&[
        ("its network stays", configuration(&base(), &host("true"))),
        (
            "variables of its container",
            configuration(
                &base(),
                "Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, \
                 env: [Object.spec.containers.env{name: 'OWN', value: 'a'}]})}}",
            ),
        ),
        ("a label", configuration(&base(), "Object{metadata: Object.metadata{labels: {'own': 'a'}}}")),
    ]);
    deadlock(&[
        (
            "its tolerations",
            patch(&base(), "[JSONPatch{op: 'replace', path: '/spec/tolerations', value: []}]"),
        ),
        (
            "it gets a scheduler that does not exist",
            configuration(&base(), "Object{spec: Object.spec{schedulerName: 'own'}}"),
        ),
        (
            "a selector of Nodes",
            patch(&base(), "[JSONPatch{op: 'add', path: '/spec/nodeSelector/own', value: 'a'}]"),
        ),
        (
            "the volume of its token",
            patch(&base(), "[JSONPatch{op: 'add', path: '/spec/volumes', value: []}]"),
        ),
        (
            "its priority, which is set already",
            configuration(&base(), "Object{spec: Object.spec{priorityClassName: 'system-node-critical'}}"),
        ),
        (
            "its container has no name",
            patch(&base(), "[JSONPatch{op: 'replace', path: '/spec/containers/0/name', value: ''}]"),
        ),
    ]);
}

#[test]
fn changes_that_cannot_be_made() {
    let open = |text: String| {
        text.replacen("  reinvocationPolicy", "  failurePolicy: Ignore\n  reinvocationPolicy", 1)
    };
    let list = configuration(
        &base(),
        "Object{spec: Object.spec{tolerations: [Object.spec.tolerations{operator: 'Exists'}]}}",
    );
    let absent = patch(&base(), "[JSONPatch{op: 'add', path: '/metadata/annotations/own', value: 'a'}]");
    let unknown = configuration(&base(), "Object{spec: Object.spec{hostnetwork: true}}");
    boot(&[
        ("an atomic list, and it fails open", open(list.clone())),
        ("below a field that is absent, and it fails open", open(absent.clone())),
    ]);
    deadlock(&[
        ("an atomic list", list),
        ("below a field that is absent", absent),
        ("a field that Pods do not have", unknown),
    ]);
    all(
        Outcome::BootsIf,
        &[(
            "what the manifests do not show",
            patch(
                &base(),
                "[JSONPatch{op: 'add', path: '/spec/schedulerName', value: object.metadata.name}]",
            ),
        )],
    );
}

#[test]
fn other_requests() {
    let nodes = |expression: &str| {
        configuration(&base(), expression)
            .replacen(
                "    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}\n",
                "",
                1,
            )
            .replacen(
                "operations: [CREATE], resources: [pods]",
                "operations: [UPDATE], resources: [nodes]",
                1,
            )
    };
    boot(&[("a label of Nodes", nodes("Object{metadata: Object.metadata{labels: {'own': 'a'}}}"))]);
    all(Outcome::BootsIf, &[("a field of Nodes", nodes("Object{spec: Object.spec{unschedulable: true}}"))]);
    let ordinary = patch(&base(), "[JSONPatch{op: 'add', path: '/spec/nodeSelector/own', value: 'a'}]")
        .replace("kubernetes.io/metadata.name: kube-system", "kubernetes.io/metadata.name: default");
    let (one, why) = judge(&ordinary, Topology::SingleControlPlane);
    assert_eq!(one, Outcome::Boots, "no ordinary Pod can run there anyway: {why}");
    let (two, why) = judge(&ordinary, Topology::ControlPlaneAndWorker);
    assert_eq!(two, Outcome::Deadlock, "ordinary Pods have no selector to which it could be added: {why}");
    let whole =
        ordinary.replace("/spec/nodeSelector/own', value: 'a'", "/spec/nodeSelector', value: {'own': 'a'}");
    let (two, why) = judge(&whole, Topology::ControlPlaneAndWorker);
    assert!(two == Outcome::BootsIf && why.contains("a Node has the label own=a"), "{why}");
}

#[test]
fn lists_and_numbers_that_are_absent_or_there() {
    let sidecar = "(has(object.spec.initContainers) ? [] : [JSONPatch{op: 'add', path: '/spec/initContainers', value: []}]) + \
                   [JSONPatch{op: 'add', path: '/spec/initContainers/-', value: Object.spec.initContainers{name: 'own', image: \
                   'registry.k8s.io/pause:3.10', restartPolicy: 'Always'}}]";
    let own_default = "      - key: node.kubernetes.io/not-ready\n        operator: Exists\n        effect: NoExecute\n        \
                       tolerationSeconds: 300\n";
    let first = "      tolerations:\n";
    let ordered = changed(&base(), first, &format!("{first}{own_default}"));
    let other = TOLERATION.replace("uninitialized", "shutdown");
    let class = "JSONPatch{op: 'add', path: '/spec/priorityClassName', value: 'system-node-critical'}";
    let number = "JSONPatch{op: 'remove', path: '/spec/priority'}";
    boot(&[
        ("a list that is absent", patch(&base(), sidecar)),
        ("a default that stands in the manifest", patch(&ordered, &other)),
        ("a class without the number", patch(&base(), &format!("[{class}, {number}]"))),
        (
            "a test that fails",
            patch(
                &base(),
                "[JSONPatch{op: 'test', path: '/spec/dnsPolicy', value: 'None'}, JSONPatch{op: 'replace', path: '/spec/tolerations', value: []}]",
            ),
        ),
    ]);
    deadlock(&[
        ("a class with the old number", patch(&base(), &format!("[{class}]"))),
        (
            "a test that succeeds",
            patch(
                &base(),
                "[JSONPatch{op: 'test', path: '/spec/dnsPolicy', value: 'Default'}, JSONPatch{op: 'replace', path: '/spec/tolerations', value: []}]",
            ),
        ),
    ]);
}

#[test]
fn of_several_changes_each_counts() {
    let both = |policy: &str| {
        let one = patch(&intolerant(), TOLERATION);
        let more = "  - patchType: ApplyConfiguration\n    applyConfiguration: {expression: \"Object{spec: Object.spec{nodeSelector: {'a': 'b'}}}\"}\n---\n";
        let text = one.replacen("---\n", more, 1);
        text.replacen("  reinvocationPolicy", &format!("  failurePolicy: {policy}\n  reinvocationPolicy"), 1)
    };
    boot(&[("the second fails, and the policy fails open", both("Ignore"))]);
    deadlock(&[("the second fails", both("Fail"))]);
}

#[test]
fn what_this_evaluator_cannot_read_is_open() {
    let with = |variable: &str, expression: &str| {
        patch(&intolerant(), expression).replacen(
            "  mutations:\n",
            &format!("  variables: [{{name: own, expression: \"{variable}\"}}]\n  mutations:\n"),
            1,
        )
    };
    let by_variable = "variables.own == 'ccm' ? [JSONPatch{op: 'add', path: '/spec/tolerations/-', value: \
                       Object.spec.tolerations{operator: 'Exists'}}] : []";
    let hash = "[JSONPatch{op: 'add', path: '/metadata/labels/own', value: object.metadata.labels['pod-template-hash']}]";
    // It does not boot without the toleration, whatever the open part does; so the conditions are looked at.
    for text in [with("object.metadata.labels.app.split('-')[0]", by_variable), patch(&base(), hash)] {
        let (_, why) = judge(&text.replace(&intolerant(), &base()), Topology::SingleControlPlane);
        assert!(why.contains("MutatingAdmissionPolicy/own changes nothing that the boot needs"), "{why}");
    }
}

#[test]
fn nonsense_is_refused_and_nothing_panics() {
    let one = "        image: example.test/do-ccm:dev\n";
    assert!(base().contains(one));
    let texts = [
        "apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: kube-system}\nspec: {containers: [ccm]}\n",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: kube-system}\nspec: text\n",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: kube-system}\nspec: []\n",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: kube-system}\nspec: {containers: 1, initContainers: {a: b}}\n",
    ];
    for text in texts {
        boot(&[("an object that is refused", format!("{}---\n{text}", patch(&base(), TOLERATION)))]);
    }
    deadlock(&[
        (
            "a container that is none",
            patch(&base(), "[JSONPatch{op: 'add', path: '/spec/containers/-', value: 'x'}]"),
        ),
        ("no specification", patch(&base(), "[JSONPatch{op: 'replace', path: '/spec', value: 'x'}]")),
        ("no object", patch(&base(), "[JSONPatch{op: 'replace', path: '', value: 'x'}]")),
    ]);
}
