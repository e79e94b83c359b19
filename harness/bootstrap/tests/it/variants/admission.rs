//! Variants about tokens, bindings and revisions at admission, the parameters of policies, and configurations that the API
//! server refuses.

use super::{base, behind, below, boot, changed, deadlock, in_namespace, judge, pod};
use bootstrap::{Outcome, Topology};

/// A webhook without a server that checks these requests, with further fields.
fn hook(resource: &str, more: &str) -> String {
    let (group, resource) = resource.split_once('|').unwrap_or(("", resource));
    behind(&format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {{name: check}}\n\
         webhooks:\n- name: check.example.test\n  admissionReviewVersions: [v1]\n  sideEffects: None\n  clientConfig: \
         {{service: {{namespace: kube-system, name: absent}}}}\n  rules: [{{apiGroups: ['{group}'], apiVersions: [v1], \
         resources: ['{resource}'], operations: ['*']}}]\n{more}"
    ))
}

fn policy(resource: &str, spec: &str, binding: &str) -> String {
    behind(&format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {{name: check}}\nspec: \
         {{matchConstraints: {{resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: \
         ['{resource}']}}]}}, {spec}}}\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: \
         ValidatingAdmissionPolicyBinding\nmetadata: {{name: check}}\nspec: {{policyName: check, validationActions: \
         [Deny]{binding}}}"
    ))
}

fn as_daemon_set(text: &str) -> String {
    let text =
        changed(text, "apiVersion: apps/v1\nkind: Deployment\n", "apiVersion: apps/v1\nkind: DaemonSet\n");
    changed(&text, "  replicas: 1\n  strategy:\n    type: Recreate", "")
}

#[test]
fn tokens_bindings_and_revisions() {
    let without_token = |text: &str| {
        let text = below(text, "      serviceAccountName: ccm\n", 6, "automountServiceAccountToken: false");
        changed(&text, "        - -v=1\n", "        - -v=1\n        - --kubeconfig=/etc/acme/kubeconfig\n")
    };
    boot(&[
        ("revisions, which a Deployment has not", hook("apps|controllerrevisions", "")),
        ("a DaemonSet", as_daemon_set(&base())),
        (
            "another version of Nodes",
            hook("nodes", "").replace("apiVersions: [v1], ", "apiVersions: [v1beta1], "),
        ),
        (
            "tokens of another namespace",
            hook(
                "serviceaccounts/token",
                "  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other}}\n",
            ),
        ),
        (
            "a policy for objects with names",
            policy("pods", "validations: [{expression: 'false'}]", "")
                .replace("resources: ['pods']", "resources: ['pods'], resourceNames: [other]"),
        ),
    ]);
    let unmounted = without_token(&hook("serviceaccounts/token", ""));
    let (one, why) = judge(&unmounted, Topology::SingleControlPlane);
    assert_eq!(one, Outcome::Boots, "it mounts no token: {why}");
    let (two, why) = judge(&unmounted, Topology::ControlPlaneAndWorker);
    assert_eq!(two, Outcome::Deadlock, "ordinary Pods do: {why}");
    deadlock(&[
        ("tokens", hook("serviceaccounts/token", "")),
        ("all tokens", hook("*/token", "")),
        ("revisions of a DaemonSet", as_daemon_set(&hook("apps|controllerrevisions", ""))),
        ("a policy for tokens", policy("serviceaccounts/token", "validations: [{expression: 'false'}]", "")),
        ("a policy for bindings", policy("pods/binding", "validations: [{expression: 'false'}]", "")),
    ]);
}

#[test]
fn parameters_of_policies() {
    let kind = "paramKind: {apiVersion: v1, kind: ConfigMap}, validations: [{expression: 'true'}]";
    let binding = |action: &str| {
        format!(", paramRef: {{name: settings, namespace: kube-system, parameterNotFoundAction: {action}}}")
    };
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: kube-system}\n---\n";
    boot(&[
        ("absent, and allowed", policy("pods", kind, &binding("Allow"))),
        ("there", format!("{map}{}", policy("pods", kind, &binding("Deny")))),
    ]);
    deadlock(&[("absent", policy("pods", kind, &binding("Deny")))]);
}

#[test]
fn configurations_that_the_api_server_refuses() {
    // Without them nothing is checked, and kubectl goes on after them.
    let closed = |from: &str, to: &str| changed(&hook("pods", ""), from, to);
    deadlock(&[("complete", closed("x", "x"))]);
    boot(&[
        ("no side effects", closed("  sideEffects: None\n", "")),
        ("unknown side effects", closed("sideEffects: None", "sideEffects: Unknown")),
        ("a name without a domain", closed("check.example.test", "check")),
        ("no versions of reviews", closed("admissionReviewVersions: [v1]", "admissionReviewVersions: [v2]")),
        ("a long timeout", closed("  sideEffects", "  timeoutSeconds: 60\n  sideEffects")),
        (
            "two actions that exclude each other",
            policy("pods", "validations: [{expression: 'false'}]", "").replace("[Deny]", "[Deny, Warn]"),
        ),
    ]);
}

#[test]
fn the_levels_of_pod_security() {
    let labelled = |labels: &str| {
        let extra = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: ccm-system}";
        let text = in_namespace(extra).replacen(
            "metadata: {name: ccm-system}",
            &format!("metadata: {{name: ccm-system, labels: {{{labels}}}}}"),
            1,
        );
        changed(&text, "      hostNetwork: true\n", "")
    };
    let level = |level: &str, version: &str| {
        labelled(&format!(
            "pod-security.kubernetes.io/enforce: {level}, pod-security.kubernetes.io/enforce-version: '{version}'"
        ))
    };
    let with =
        |text: &str, container: &str| below(text, "        imagePullPolicy: IfNotPresent\n", 8, container);
    let probe = "livenessProbe: {httpGet: {host: 127.0.0.1, port: 10258, path: /healthz}}";
    let old = "securityContext: {allowPrivilegeEscalation: false, runAsNonRoot: true, runAsUser: 65532}";
    let created = |text: &str| {
        // Off the host's network it waits for the pod network, so only its creation differs.
        judge(text, Topology::SingleNode).1
    };
    let refuses = "forbids";
    for (text, expected) in [
        (with(&level("baseline", "v1.33"), probe), false),
        (with(&level("baseline", "latest"), probe), true),
        (with(&level("restricted", "v1.18"), old), false),
        (with(&level("restricted", "v1.22"), old), true),
    ] {
        assert_eq!(created(&text).contains(refuses), expected, "{}\n{text}", created(&text));
    }
    deadlock(&[
        ("a level that does not exist", labelled("pod-security.kubernetes.io/enforce: none")),
        ("a version without its v", level("privileged", "1.36")),
    ]);
    boot(&[("the privileged level", pod("priorityClassName: system-node-critical"))]);
}

#[test]
fn expressions() {
    let ccm = "system:serviceaccount:kube-system:ccm";
    let condition = |expression: &str| {
        hook("nodes", &format!("  matchConditions: [{{name: who, expression: \"{expression}\"}}]\n"))
    };
    let validation = |expression: &str, more: &str| {
        policy("pods", &format!("validations: [{{expression: \"{expression}\"}}]{more}"), "")
    };
    boot(&[
        ("a webhook for other users", condition(&format!("request.userInfo.username != '{ccm}'"))),
        (
            "a webhook without service accounts",
            condition("!('system:serviceaccounts' in request.userInfo.groups)"),
        ),
        (
            "Pods with labels",
            validation("has(object.metadata.labels) && object.metadata.labels['app'] == 'ccm'", ""),
        ),
        (
            "Pods of a controller",
            validation("request.userInfo.username.endsWith(':replicaset-controller')", ""),
        ),
        (
            "a variable",
            validation(
                "variables.own.all(c, c.image.startsWith('example.test/'))",
                ", variables: [{name: own, expression: object.spec.containers}]",
            ),
        ),
        (
            "a condition that leaves it out",
            validation(
                "false",
                ", matchConditions: [{name: other, expression: \"object.metadata.labels['app'] != 'ccm'\"}]",
            ),
        ),
    ]);
    deadlock(&[
        ("a webhook for the CCM", condition(&format!("request.userInfo.username == '{ccm}'"))),
        ("no host network", validation("!has(object.spec.hostNetwork) || !object.spec.hostNetwork", "")),
        ("only some images", validation("object.spec.containers.all(c, c.image.startsWith('acme/'))", "")),
        ("users only", validation("!request.userInfo.username.startsWith('system:')", "")),
    ]);
}
