//! Variants about expressions (CEL) of policies and webhooks, and about ordinary Pods.

use super::{all, behind, boot, changed, deadlock};
use bootstrap::{Outcome, Topology};

/// A policy about a resource, with its binding.
pub(super) fn policy(resource: &str, fields: &str, binding: &str) -> String {
    let group = if resource == "leases" { "coordination.k8s.io" } else { "" };
    behind(&format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {{name: own}}\nspec:\n  \
         matchConstraints: {{resourceRules: [{{apiGroups: ['{group}'], apiVersions: [v1], resources: [{resource}], \
         operations: [CREATE, UPDATE]}}]}}\n{fields}---\napiVersion: admissionregistration.k8s.io/v1\nkind: \
         ValidatingAdmissionPolicyBinding\nmetadata: {{name: own}}\nspec: {{policyName: own, validationActions: \
         [Deny]{binding}}}"
    ))
}

#[test]
fn limit_ranges_come_before_policies() {
    let limited = "object.spec.containers.all(c, has(c.resources) && has(c.resources.limits) && 'cpu' in c.resources.limits)";
    let with = |item: &str, expression: &str| {
        let range = format!(
            "apiVersion: v1\nkind: LimitRange\nmetadata: {{name: own, namespace: kube-system}}\nspec: {{limits: [{{type: \
             Container, {item}}}]}}\n---\n"
        );
        let expression = format!("  validations: [{{expression: \"{expression}\"}}]\n");
        format!(
            "{range}{}",
            policy(
                "pods",
                &expression,
                ", matchResources: {namespaceSelector: {matchLabels: {'kubernetes.io/metadata.name': kube-system}}}"
            )
        )
    };
    let requested =
        "object.spec.containers.all(c, has(c.resources.requests) && 'cpu' in c.resources.requests)";
    let own_limit = with("default: {memory: 128Mi}", requested).replacen(
        "        imagePullPolicy: IfNotPresent\n",
        "        imagePullPolicy: IfNotPresent\n        resources: {limits: {cpu: 200m, memory: 64Mi}}\n",
        1,
    );
    boot(&[
        ("a limit of its own, which is its request", own_limit),
        ("a default limit", with("default: {cpu: 200m}", limited)),
        ("the most as the limit", with("max: {cpu: 500m}", limited)),
    ]);
    deadlock(&[
        ("a default request only", with("defaultRequest: {cpu: 100m}", limited)),
        ("a limit that is forbidden", with("default: {cpu: 200m}", &format!("!({limited})"))),
    ]);
}

#[test]
fn policies_about_nodes_and_leases() {
    let nodes = |expression: &str| {
        policy("nodes", &format!("  validations: [{{expression: \"{expression}\"}}]\n"), "")
    };
    let open = |expression: &str| {
        policy(
            "nodes",
            &format!("  failurePolicy: Ignore\n  validations: [{{expression: \"{expression}\"}}]\n"),
            "",
        )
    };
    boot(&[
        (
            "few taints, if there are any",
            nodes("!has(object.spec.taints) || object.spec.taints.size() <= 10"),
        ),
        ("not cordoned", nodes("!has(object.spec.unschedulable)")),
        ("no namespace", nodes("namespaceObject == null")),
        ("an error of a policy that fails open", open("object.spec.unschedulable == false")),
        ("a variable that is not declared, so that the policy is refused", nodes("objectMeta.name == 'own'")),
    ]);
    deadlock(&[
        ("a field that is not there", nodes("object.spec.unschedulable == false")),
        (
            "the name of a namespace that is not there",
            nodes("namespaceObject.metadata.name == 'kube-system'"),
        ),
        (
            "a macro with variables of its own",
            nodes("has(object.spec.unschedulable) && [1].transformList(i, v, v).size() == 1"),
        ),
        ("only Nodes that are cordoned", nodes("has(object.spec.unschedulable)")),
        ("false, although the policy fails open", open("has(object.spec.unschedulable)")),
    ]);
    let (one, why) = super::judge(&nodes("object.spec.taints.size() <= 10"), Topology::SingleControlPlane);
    assert_eq!(one, Outcome::Boots, "a control plane keeps its taint: {why}");
    let (two, why) = super::judge(&nodes("object.spec.taints.size() <= 10"), Topology::ControlPlaneAndWorker);
    assert_eq!(two, Outcome::Deadlock, "a worker loses its last taint: {why}");
    all(Outcome::BootsIf, &[("the labels of a Node", nodes("'zone' in object.metadata.labels"))]);
    let leases = |expression: &str| {
        let text = policy("leases", &format!("  validations: [{{expression: \"{expression}\"}}]\n"), "");
        changed(&text, "        - -v=1\n", "        - -v=1\n        - --cloud-provider=own\n")
    };
    boot(&[
        ("at most a minute", leases("object.spec.leaseDurationSeconds <= 60")),
        ("others", leases("object.metadata.name != 'other'")),
    ]);
    deadlock(&[
        ("at least a minute", leases("object.spec.leaseDurationSeconds >= 60")),
        ("with a label", leases("object.metadata.labels.size() > 0")),
    ]);
}

#[test]
fn parameters_of_policies() {
    let with = |fields: &str, reference: &str| {
        let fields = format!(
            "{fields}  paramKind: {{apiVersion: v1, kind: ConfigMap}}\n  validations: [{{expression: \"true\"}}]\n"
        );
        policy("nodes", &fields, &format!(", paramRef: {{name: absent{reference}}}"))
    };
    let data = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: absent, namespace: kube-system}\ndata: {most: '3'}\n---\n";
    let most = |limit: &str| {
        let text = with("", ", namespace: kube-system, parameterNotFoundAction: Deny");
        format!(
            "{data}{}",
            changed(
                &text,
                "expression: \"true\"",
                &format!("expression: \"int(params.data.most) >= {limit}\"")
            )
        )
    };
    let custom = |action: &str| {
        let rules = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: limits.own.example}\nspec: \
                     {group: own.example, scope: Cluster, names: {kind: Limit, plural: limits}, versions: [{name: v1, served: \
                     true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}\n---\napiVersion: \
                     own.example/v1\nkind: Limit\nmetadata: {name: absent}\n---\n";
        let text = with("", &format!(", parameterNotFoundAction: {action}"));
        format!(
            "{rules}{}",
            changed(&text, "apiVersion: v1, kind: ConfigMap", "apiVersion: own.example/v1, kind: Limit")
        )
    };
    boot(&[
        ("a value that allows it", most("3")),
        ("a kind that kubectl does not know yet, allowed", custom("Allow")),
    ]);
    deadlock(&[("a kind that kubectl does not know yet", custom("Deny"))]);
    deadlock(&[("a value that does not", most("4"))]);
    let ordinary =
        policy("pods", "  validations: [{expression: \"request.namespace == 'kube-system'\"}]\n", "");
    let (one, why) = super::judge(&ordinary, Topology::SingleControlPlane);
    assert_eq!(one, Outcome::Boots, "no ordinary Pod can run there anyway: {why}");
    let (two, why) = super::judge(&ordinary, Topology::ControlPlaneAndWorker);
    assert_eq!(two, Outcome::Deadlock, "it denies ordinary Pods: {why}");
    let (named, open) = (", namespace: kube-system", "  failurePolicy: Ignore\n");
    boot(&[
        ("none, which is allowed", with("", &format!("{named}, parameterNotFoundAction: Allow"))),
        ("none, and it fails open", with(open, &format!("{named}, parameterNotFoundAction: Deny"))),
        ("no namespace, and it fails open", with(open, ", parameterNotFoundAction: Deny")),
    ]);
    deadlock(&[
        ("none", with("", &format!("{named}, parameterNotFoundAction: Deny"))),
        ("no namespace, for objects that have none", with("", ", parameterNotFoundAction: Allow")),
    ]);
}

#[test]
fn conditions_of_webhooks() {
    let hook = |rule: &str, more: &str| {
        behind(&format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {{name: own}}\n\
             webhooks: [{{name: own.example.test, admissionReviewVersions: [v1], sideEffects: None, clientConfig: \
             {{service: {{name: absent, namespace: kube-system}}}}, rules: [{rule}]{more}}}]"
        ))
    };
    let nodes = "{apiGroups: [''], apiVersions: [v1], operations: [UPDATE], resources: [nodes]}";
    let condition =
        |text: &str| hook(nodes, &format!(", matchConditions: [{{name: own, expression: \"{text}\"}}]"));
    boot(&[
        ("a field, so that the webhook is refused", condition("object.spec.unschedulable")),
        ("only Nodes that are cordoned", condition("has(object.spec.unschedulable)")),
        ("a text, so that the webhook is refused", condition("'true'")),
    ]);
    deadlock(&[
        ("a field that is not there", condition("object.spec.unschedulable == true")),
        ("Nodes that are not cordoned", condition("!has(object.spec.unschedulable)")),
    ]);
    let bindings = "{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods/binding]}";
    let label = "{name: label, expression: \"object.metadata.labels['own'] == 'a'\"}";
    let scheduler = "{name: others, expression: \"request.userInfo.username != 'system:kube-scheduler'\"}";
    deadlock(&[("a binding has no labels", hook(bindings, &format!(", matchConditions: [{label}]")))]);
    boot(&[(
        "another condition is false, and decides",
        hook(bindings, &format!(", matchConditions: [{label}, {scheduler}]")),
    )]);
    let pods = "{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}";
    let except = |names: &str| {
        hook(
            pods,
            &format!(
                ", namespaceSelector: {{matchExpressions: [{{key: kubernetes.io/metadata.name, operator: NotIn, \
                 values: [{names}]}}]}}"
            ),
        )
    };
    boot(&[
        ("every namespace of the test is exempt", except("kube-system, default")),
        (
            "only Pods with a label, which ordinary ones do not have",
            hook(pods, ", objectSelector: {matchLabels: {own: 'yes'}}"),
        ),
    ]);
    let ordinary =
        hook(pods, ", matchConditions: [{name: own, expression: \"!has(object.spec.hostNetwork)\"}]");
    let (two, why) = super::judge(&ordinary, Topology::ControlPlaneAndWorker);
    assert_eq!(two, Outcome::Deadlock, "ordinary Pods are not on the host's network: {why}");
    let (one, why) = super::judge(&except("kube-system"), Topology::SingleControlPlane);
    assert_eq!(one, Outcome::Boots, "no ordinary Pod can run there anyway: {why}");
    let (two, why) = super::judge(&except("kube-system"), Topology::ControlPlaneAndWorker);
    assert_eq!(two, Outcome::Deadlock, "ordinary Pods are refused: {why}");
}
