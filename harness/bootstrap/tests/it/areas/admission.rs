//! What the API server refuses: webhooks, roles, quotas, limit ranges, policies and Pod Security.

use super::{Parts, before, boots, boots_if, never_boots, outcome, spec_text};

#[test]
fn webhooks() {
    let hook = |rule: &str, more: &str| {
        format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {{name: h}}\n\
             webhooks: [{{name: h.example.test, admissionReviewVersions: [v1], sideEffects: None, clientConfig: {{service: \
             {{namespace: kube-system, name: absent}}}}, rules: [{{apiVersions: [v1], {rule}}}]{more}}}]\n---\n"
        )
    };
    let nodes = "apiGroups: [''], resources: [nodes], operations: [UPDATE]";
    let pods = "apiGroups: [''], resources: [pods], operations: [CREATE]";
    boots(&before(&hook(nodes, ", failurePolicy: Ignore")));
    boots(&before(&hook(&format!("{nodes}, scope: Namespaced"), "")));
    boots(&before(&hook(pods, ", objectSelector: {matchLabels: {app: other}}")));
    boots(&before(&hook(pods, ", namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other}}")));
    boots(&before(&hook("apiGroups: [''], resources: ['pods/status'], operations: [UPDATE]", "")));
    never_boots(&before(&hook(nodes, "")), "cannot be reached");
    never_boots(&before(&hook(nodes, ", objectSelector: {matchLabels: {kubernetes.io/os: linux}}")), "h");
    never_boots(&before(&hook("apiGroups: [''], resources: ['pods/*'], operations: [CREATE]", "")), "h");
    never_boots(&before(&hook("apiGroups: [apps], resources: [replicasets], operations: ['*']", "")), "h");
}

#[test]
fn roles() {
    let role = |name: &str| Parts { role: "ROLE", ..Parts::default() }.text().replace("ROLE", name);
    assert_eq!(outcome(&role("system:node")).0, "boots");
    assert_eq!(outcome(&role("cluster-admin")).0, "boots");
    for name in ["view", "edit", "system:absent", "system:discovery"] {
        assert_eq!(outcome(&role(name)).0, "deadlock", "{name}");
    }
    let gathered = |label: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: all}}\naggregationRule: \
             {{clusterRoleSelectors: [{{matchLabels: {{to: ccm}}}}]}}\nrules: []\n---\napiVersion: \
             rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: part, labels: {{to: {label}}}}}\nrules: \
             [{{apiGroups: ['*'], resources: ['*', '*/*', nodes/status], verbs: ['*']}}]\n---\n"
        )
    };
    boots(&Parts { before: &gathered("ccm"), role: "all", ..Parts::default() });
    never_boots(&Parts { before: &gathered("other"), role: "all", ..Parts::default() }, "AUTH-");
}

#[test]
fn quotas_and_limit_ranges() {
    let with = |object: &str| {
        let text = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: own}}\n---\n{object}---\n");
        Parts { before: "BEFORE", namespace: "own", ..Parts::default() }.text().replacen("BEFORE", &text, 1)
    };
    let quota = |hard: &str| {
        outcome(&with(&format!(
            "apiVersion: v1\nkind: ResourceQuota\nmetadata: {{name: q, namespace: own}}\nspec: {{{hard}}}\n"
        )))
        .0
    };
    assert_eq!(quota("hard: {pods: '5'}"), "boots");
    assert_eq!(quota("hard: {services: '0'}"), "boots");
    assert_eq!(quota("hard: {pods: '0'}, scopes: [NotBestEffort]"), "boots");
    assert_eq!(quota("hard: {pods: '0'}"), "deadlock");
    assert_eq!(quota("hard: {limits.memory: 1Gi}"), "deadlock");
    assert_eq!(quota("hard: {pods: '0'}, scopes: [BestEffort]"), "deadlock");
    assert_eq!(quota("hard: {count/deployments.apps: '0'}"), "deadlock");
    let range = |item: &str| {
        outcome(&with(&format!("apiVersion: v1\nkind: LimitRange\nmetadata: {{name: l, namespace: own}}\nspec: {{limits: [{{type: Container, {item}}}]}}\n"))).0
    };
    assert_eq!(range("default: {memory: 100Mi}"), "boots");
    assert_eq!(range("max: {cpu: '1'}"), "boots");
    assert_eq!(range("max: {cpu: '1'}, default: {cpu: '2'}"), "deadlock");
    assert_eq!(range("defaultRequest: {memory: 1Ti}"), "boots-if");
    // The container requests 100m of cpu and 64Mi of memory.
    let requests = |kind: &str, item: &str| {
        let range = format!(
            "apiVersion: v1\nkind: LimitRange\nmetadata: {{name: l, namespace: kube-system}}\nspec: {{limits: [{{type: {kind}, {item}}}]}}\n---\n"
        );
        let container = "        resources: {requests: {cpu: 100m, memory: 64Mi}}\n";
        outcome(&Parts { before: &range, container, ..Parts::default() }.text()).0
    };
    assert_eq!(requests("Container", "max: {cpu: 100m}"), "boots");
    assert_eq!(requests("Container", "default: {cpu: 200m}"), "boots");
    assert_eq!(requests("Pod", "min: {memory: 64Mi}"), "boots");
    assert_eq!(requests("Container", "max: {cpu: 10m}"), "deadlock");
    assert_eq!(requests("Container", "default: {cpu: 50m}"), "deadlock");
    assert_eq!(requests("Container", "min: {cpu: 10m}, default: {cpu: 5m}"), "deadlock");
    assert_eq!(requests("Pod", "min: {memory: 65Mi}"), "deadlock");
}

#[test]
fn admission_policies() {
    let policy = |rule: &str, expression: &str, action: &str| {
        format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {{name: p}}\nspec:\n  \
             matchConstraints: {{resourceRules: [{{apiVersions: ['*'], {rule}}}]}}\n  validations: [{{expression: \
             '{expression}'}}]\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: \
             ValidatingAdmissionPolicyBinding\nmetadata: {{name: p}}\nspec: {{policyName: p, validationActions: \
             [{action}]}}\n---\n"
        )
    };
    let pods = "apiGroups: [''], resources: [pods], operations: [CREATE]";
    boots(&before(&policy(pods, "true", "Deny")));
    boots(&before(&policy(pods, "false", "Audit")));
    boots(&before(&policy("apiGroups: [''], resources: [services], operations: ['*']", "false", "Deny")));
    boots(&before(&policy(pods, "object.spec.hostNetwork", "Deny")));
    never_boots(&before(&policy(pods, "!object.spec.hostNetwork", "Deny")), "denies its Pods");
    boots_if(&before(&policy(pods, "object.metadata.name == \"a\"", "Deny")), "the expressions of");
    never_boots(&before(&policy(pods, "false", "Deny")), "denies its Pods");
    never_boots(
        &before(&policy(
            "apiGroups: [apps], resources: [replicasets], operations: [CREATE]",
            "false",
            "Deny",
        )),
        "denies its Pods",
    );
    never_boots(
        &before(&policy("apiGroups: [''], resources: [nodes], operations: [UPDATE]", "false", "Deny")),
        "denies its updates of Nodes with taints",
    );
    // The first leader creates its Lease, and works until it should have renewed it.
    let leases = |operation: &str| {
        format!("apiGroups: [coordination.k8s.io], resources: [leases], operations: [{operation}]")
    };
    never_boots(&before(&policy(&leases("CREATE"), "false", "Deny")), "denies its writes");
    boots_if(&before(&policy(&leases("UPDATE"), "false", "Deny")), "lets it renew its Lease");
    boots(&before(&policy(&leases("UPDATE"), "true", "Deny")));
    boots(&before(&policy(&leases("UPDATE"), "false", "Audit")));
    let elsewhere = policy(&leases("'*'"), "false", "Deny").replacen(
        "matchConstraints: {",
        "matchConstraints: {namespaceSelector: {matchLabels: {a: b}}, ",
        1,
    );
    boots(&before(&elsewhere));
    let alone = policy(&leases("'*'"), "false", "Deny");
    boots(&Parts { before: &alone, args: "'--leader-elect=false'", ..Parts::default() });
}

#[test]
fn pod_security() {
    let verdict = |level: &str, spec: &str, container: &str| {
        let before = format!(
            "apiVersion: v1\nkind: Namespace\nmetadata: {{name: own, labels: {{pod-security.kubernetes.io/enforce: \
             {level}}}}}\n---\n"
        );
        let parts = Parts { before: &before, namespace: "own", spec, container, ..Parts::default() };
        // The pod network of kind is there without the CCM, so the host's network is not needed.
        outcome(&parts.text().replace("      hostNetwork: true\n", "")).0
    };
    let strict = "        securityContext: {allowPrivilegeEscalation: false, runAsNonRoot: true, runAsUser: 65532, \
                  capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}}\n";
    assert_eq!(verdict("privileged", "", ""), "boots");
    assert_eq!(verdict("baseline", "", ""), "boots");
    assert_eq!(verdict("restricted", "", strict), "boots");
    assert_eq!(verdict("restricted", "", ""), "deadlock");
    assert_eq!(
        verdict("restricted", "      volumes: [{name: v, hostPath: {path: /a}}]\n", strict),
        "deadlock"
    );
    assert_eq!(verdict("restricted", "", &strict.replace("65532", "0")), "deadlock");
    assert_eq!(verdict("baseline", &spec_text("{seccompProfile: {type: Unconfined}}"), ""), "deadlock");
    assert_eq!(verdict("baseline", "      hostPID: true\n", ""), "deadlock");
}
