//! Variants about quotas, limit ranges, Pod security and admission policies.

use super::{base, behind, below, boot, changed, deadlock, in_namespace, judge, pod};
use bootstrap::{Cluster, Cni, Outcome, Topology, YesNo, expect};

fn quota(spec: &str) -> String {
    in_namespace(&quota_text(spec))
}

fn quota_text(spec: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ResourceQuota\nmetadata: {{name: quota, namespace: ccm-system}}\nspec: {spec}"
    )
}

fn requesting(text: &str, resources: &str) -> String {
    below(text, "        imagePullPolicy: IfNotPresent\n", 8, &format!("resources: {resources}"))
}

fn range(limits: &str) -> String {
    in_namespace(&range_text(limits))
}

fn range_text(limits: &str) -> String {
    format!(
        "apiVersion: v1\nkind: LimitRange\nmetadata: {{name: limits, namespace: ccm-system}}\nspec: {{limits: [{limits}]}}"
    )
}

#[test]
fn quotas() {
    let asks = "{requests: {cpu: 100m, memory: 64Mi}}";
    boot(&[
        ("of Pods", quota("{hard: {pods: '5'}}")),
        ("with requests", requesting(&quota("{hard: {requests.cpu: '1', requests.memory: 1Gi}}"), asks)),
        ("of services", quota("{hard: {services: '0'}}")),
        ("of Pods that end", quota("{hard: {pods: '0'}, scopes: [Terminating]}")),
        (
            "of best effort, with requests",
            requesting(&quota("{hard: {pods: '0'}, scopes: [BestEffort]}"), asks),
        ),
        ("of another namespace", base()),
        (
            "requests by a limit range",
            in_namespace(&format!(
                "{}\n---\n{}",
                range_text("{type: Container, defaultRequest: {cpu: 100m}, default: {cpu: 200m}}"),
                quota_text("{hard: {requests.cpu: '1'}}")
            )),
        ),
    ]);
    deadlock(&[
        ("no Pods", quota("{hard: {pods: '0'}}")),
        ("no Pods, counted", quota("{hard: {count/pods: '0'}}")),
        ("more than it has", requesting(&quota("{hard: {requests.cpu: 50m}}"), asks)),
        ("limits that it does not set", requesting(&quota("{hard: {limits.cpu: '4'}}"), asks)),
        ("of best effort", quota("{hard: {pods: '0'}, scopes: [BestEffort]}")),
        ("of Pods that do not end", quota("{hard: {pods: '0'}, scopes: [NotTerminating]}")),
        ("no ReplicaSets", quota("{hard: {count/replicasets.apps: '0'}}")),
        (
            "only the ReplicaSet of CoreDNS",
            behind(&quota_text("{hard: {count/replicasets.apps: '1'}}").replace("ccm-system", "kube-system")),
        ),
        (
            "of its priority",
            changed(
                &quota(
                    "{hard: {pods: '0'}, scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [system-cluster-critical]}]}}",
                ),
                "      serviceAccountName: ccm\n",
                "      serviceAccountName: ccm\n      priorityClassName: system-cluster-critical\n",
            ),
        ),
    ]);
}

#[test]
fn quotas_of_the_namespace_of_kubernetes() {
    let with = |hard: &str| {
        let text = behind(&quota_text(&format!("{{hard: {hard}}}")).replace("ccm-system", "kube-system"));
        requesting(&text, "{requests: {cpu: 100m, memory: 64Mi}}")
    };
    boot(&[("many Pods", with("{pods: '100'}")), ("many processors", with("{requests.cpu: '8'}"))]);
    deadlock(&[
        ("fewer Pods than there are", with("{pods: '5'}")),
        ("fewer processors than are used", with("{requests.cpu: 800m}")),
    ]);
}

#[test]
fn limit_ranges() {
    let asks = "{requests: {cpu: 100m}, limits: {cpu: 200m}}";
    boot(&[
        ("small defaults", range("{type: Container, defaultRequest: {cpu: 50m}, default: {cpu: 100m}}")),
        (
            "between its bounds",
            requesting(&range("{type: Container, min: {cpu: 50m}, max: {cpu: '1'}}"), asks),
        ),
        ("of claims", range("{type: PersistentVolumeClaim, max: {storage: 1Gi}}")),
    ]);
    deadlock(&[
        ("more than the most", requesting(&range("{type: Container, max: {cpu: 150m}}"), asks)),
        (
            "less than the least",
            requesting(&range("{type: Container, min: {cpu: 150m}, max: {cpu: '1'}}"), asks),
        ),
        ("more than the most of a Pod", requesting(&range("{type: Pod, max: {cpu: 150m}}"), asks)),
        (
            "too far from its limit",
            requesting(&range("{type: Container, maxLimitRequestRatio: {cpu: '1.5'}}"), asks),
        ),
    ]);
}

fn policy(spec: &str, binding: &str) -> String {
    behind(&format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {{name: check}}\nspec: {spec}\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {{name: check}}\nspec: {binding}"
    ))
}

#[test]
fn admission_policies() {
    let of = |group: &str, resource: &str, operation: &str, expression: &str| {
        format!(
            "{{matchConstraints: {{resourceRules: [{{apiGroups: ['{group}'], apiVersions: [v1], operations: [{operation}], resources: [{resource}]}}]}}, validations: [{{expression: '{expression}'}}]}}"
        )
    };
    let deny = "{policyName: check, validationActions: [Deny]}";
    boot(&[
        ("of Services", policy(&of("", "services", "CREATE", "false"), deny)),
        (
            "only a warning",
            policy(
                &of("", "pods", "CREATE", "false"),
                "{policyName: check, validationActions: [Warn, Audit]}",
            ),
        ),
        (
            "bound to another policy",
            policy(&of("", "pods", "CREATE", "false"), "{policyName: other, validationActions: [Deny]}"),
        ),
        ("always true", policy(&of("", "pods", "CREATE", "true"), deny)),
        (
            "of another namespace",
            policy(
                &of("", "pods", "CREATE", "false"),
                "{policyName: check, validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other}}}}",
            ),
        ),
    ]);
    deadlock(&[
        ("of Pods", policy(&of("", "pods", "CREATE", "false"), deny)),
        ("of Nodes", policy(&of("", "nodes", "UPDATE", "false"), deny)),
        ("of Leases", policy(&of("coordination.k8s.io", "leases", "\"*\"", "false"), deny)),
        ("of ReplicaSets", policy(&of("apps", "replicasets", "CREATE", "false"), deny)),
        ("of all", policy(&of("*", "\"*\"", "\"*\"", "false"), deny)),
    ]);
}

#[test]
fn sysctls_and_security() {
    boot(&[
        (
            "the level privileged",
            in_namespace("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: ccm-system}")
                .replacen(
                    "metadata: {name: ccm-system}",
                    "metadata: {name: ccm-system, labels: {pod-security.kubernetes.io/enforce: privileged}}",
                    1,
                ),
        ),
        (
            "only a warning",
            in_namespace("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: ccm-system}")
                .replacen(
                    "metadata: {name: ccm-system}",
                    "metadata: {name: ccm-system, labels: {pod-security.kubernetes.io/warn: restricted}}",
                    1,
                ),
        ),
        ("the runtime's seccomp profile", pod("securityContext: {seccompProfile: {type: RuntimeDefault}}")),
        ("no AppArmor profile", pod("securityContext: {appArmorProfile: {type: Unconfined}}")),
    ]);
    deadlock(&[
        (
            "the level baseline",
            in_namespace("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: ccm-system}")
                .replacen(
                    "metadata: {name: ccm-system}",
                    "metadata: {name: ccm-system, labels: {pod-security.kubernetes.io/enforce: baseline}}",
                    1,
                ),
        ),
        (
            "a setting of the host's network",
            pod("securityContext: {sysctls: [{name: net.ipv4.tcp_syncookies, value: '1'}]}"),
        ),
    ]);
}

#[test]
fn ordinary_pods() {
    let quota = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: own, namespace: default}\nspec: {hard: {pods: '0'}, \
                 scopes: [BestEffort]}";
    let range = |namespace: &str, request: &str| {
        format!(
            "apiVersion: v1\nkind: LimitRange\nmetadata: {{name: own, namespace: {namespace}}}\nspec: {{limits: \
             [{{type: Container, defaultRequest: {{cpu: {request}}}}}]}}"
        )
    };
    let level = "apiVersion: v1\nkind: Namespace\nmetadata: {name: default, labels: {pod-security.kubernetes.io/enforce: \
                 restricted}}";
    let old = Cluster {
        version: bootstrap::Version { major: 1, minor: 22 },
        node_ip: YesNo::Yes,
        ..Cluster::new(Topology::ControlPlaneAndWorker, Cni::Kindnet)
    };
    let tolerant = below(
        &behind(level),
        "      tolerations:\n",
        6,
        "- {key: node-role.kubernetes.io/master, operator: Exists}",
    );
    let source = bootstrap::Source::new("ccm.yaml", &tolerant);
    let found = expect(vec![source], &[old], &[], None).expect("it can be read");
    assert_eq!(found.cells[0].outcome, Outcome::Boots, "1.22 enforces no level: {}", found.summary());
    let two = |text: String| judge(&text, Topology::ControlPlaneAndWorker);
    let both = |namespace: &str| behind(&format!("{quota}\n---\n{}", range(namespace, "10m")));
    for (outcome, text) in [
        (Outcome::Deadlock, behind(quota)),
        (Outcome::Deadlock, both("kube-system")),
        (Outcome::Boots, both("default")),
        (Outcome::Boots, behind(&range("default", "100m"))),
        (Outcome::BootsIf, behind(&range("default", "64"))),
        (Outcome::Deadlock, behind(level)),
    ] {
        let (found, why) = two(text.clone());
        assert_eq!(found, outcome, "{why}\n{text}");
    }
}

#[test]
fn names_of_stateful_sets() {
    let named = |characters: usize| {
        let text = changed(
            &base(),
            "kind: Deployment\nmetadata:\n  name: cloud-controller-manager\n",
            &format!(
                "kind: StatefulSet\nmetadata:\n  name: cloud-controller-manager{}\n",
                "x".repeat(characters - 24)
            ),
        );
        changed(&text, "  replicas: 1\n  strategy:\n    type: Recreate", "")
    };
    let service =
        |name: &str| changed(&named(52), "  selector:\n", &format!("  serviceName: {name}\n  selector:\n"));
    boot(&[("of 52 characters", named(52)), ("a Service that is not there", service("ccm"))]);
    deadlock(&[
        ("of 59 characters", named(59)),
        ("a Service with its namespace", service("ccm.kube-system")),
    ]);
}
