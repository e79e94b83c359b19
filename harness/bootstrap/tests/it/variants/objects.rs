//! Variants about other objects than the workload: those that change or go, roles, quotas, versions.

use super::expressions::policy;
use super::{all, base, behind, below, boot, changed, container, deadlock};
use bootstrap::Outcome;

#[test]
fn objects_that_change_or_go() {
    let map = |fields: &str, value: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: own, namespace: kube-system}}\n{fields}data: {{c: {value}}}\n---\n"
        )
    };
    let uses = container("envFrom: [{configMapRef: {name: own}}]");
    let twice = |fields: &str| format!("{}{}{uses}", map(fields, "x"), map("", "z"));
    boot(&[("a change", twice(""))]);
    all(Outcome::BootsIf, &[("a change of what is immutable", twice("immutable: true\n"))]);
    let owned = |by: &str, kind: &str| {
        let uid = "1b4e28ba-2fa1-11d2-883f-0016d3cca427";
        let owner = format!("ownerReferences: [{{{by}, name: own, uid: {uid}}}]");
        below(&base(), &format!("kind: {kind}\nmetadata:\n"), 2, &owner)
    };
    let (map, role) =
        ("apiVersion: v1, kind: ConfigMap", "apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole");
    boot(&[("an owner with a namespace of an object without one", owned(map, "ClusterRoleBinding"))]);
    deadlock(&[
        ("a binding with an owner", owned(role, "ClusterRoleBinding")),
        ("an account with an owner", owned(map, "ServiceAccount")),
        ("a Deployment with an owner", owned(map, "Deployment")),
    ]);
    let replicas = changed(&base(), "kind: Deployment", "kind: ReplicaSet");
    let replicas = changed(&replicas, "  replicas: 1\n  strategy:\n    type: Recreate\n", "  replicas: 1\n");
    let placeholder = |label: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: own, namespace: kube-system, labels: {{app: {label}}}}}\n\
             spec: {{containers: [{{name: own, image: 'own:1'}}]}}\n---\n{replicas}"
        )
    };
    boot(&[("another Pod", placeholder("other"))]);
    deadlock(&[("a Pod that counts as its replica", placeholder("ccm"))]);
}

#[test]
fn aggregated_roles() {
    let role = |selector: &str| {
        let text = changed(&base(), "  name: cluster-admin\n", "  name: own\n");
        let group = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole";
        format!(
            "{text}\n---\n{group}\nmetadata: {{name: own}}\naggregationRule: {{clusterRoleSelectors: [{{matchLabels: \
             {{{selector}}}}}]}}\nrules: [{{apiGroups: ['*'], resources: ['*'], verbs: ['*']}}]\n---\n{group}\nmetadata: \
             {{name: other, labels: {{other: 'yes'}}}}\nrules: [{{apiGroups: [''], resources: [pods], verbs: [get]}}]"
        )
    };
    boot(&[("nothing is gathered, so that its own rules stay", role("absent: 'yes'"))]);
    deadlock(&[("its own rules are replaced", role("other: 'yes'"))]);
}

#[test]
fn accounts_without_a_namespace() {
    let binding = |namespace: &str, subject: &str| {
        let text = changed(&base(), "  name: cluster-admin\n", "  name: own\n");
        let group = "apiVersion: rbac.authorization.k8s.io/v1";
        format!(
            "{text}\n---\n{group}\nkind: ClusterRole\nmetadata: {{name: own}}\nrules: [{{apiGroups: [''], resources: \
             [nodes, nodes/status, services, services/status, events, configmaps], verbs: ['*']}}]\n---\n{group}\n\
             kind: Role\nmetadata: {{name: own, namespace: {namespace}}}\nrules: [{{apiGroups: [coordination.k8s.io], \
             resources: [leases], verbs: ['*']}}]\n---\n{group}\nkind: RoleBinding\nmetadata: {{name: own, namespace: \
             {namespace}}}\nroleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: own}}\nsubjects: \
             [{{kind: ServiceAccount, name: ccm{subject}}}]\n"
        )
    };
    boot(&[
        ("that of the binding", binding("kube-system", "")),
        ("named", binding("kube-system", ", namespace: kube-system")),
    ]);
    deadlock(&[
        ("another binding", binding("default", "")),
        ("another account", binding("kube-system", ", namespace: default")),
    ]);
}

#[test]
fn quotas_and_versions() {
    let quota = |hard: &str, scopes: &str| {
        behind(&format!(
            "apiVersion: v1\nkind: ResourceQuota\nmetadata: {{name: own, namespace: kube-system}}\nspec: {{hard: {{{hard}}}, \
             scopes: [{scopes}]}}"
        ))
    };
    boot(&[
        ("a scope that does not apply to Services", quota("pods: 0, services: 0", "NotTerminating")),
        ("no affinity to other namespaces", quota("pods: 0", "CrossNamespacePodAffinity")),
    ]);
    let near = "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: \
                kubernetes.io/hostname, namespaces: [kube-system], labelSelector: {matchLabels: {app: other}}}]}}";
    deadlock(&[
        ("Pods that do not end", quota("pods: 0", "NotTerminating")),
        (
            "even its own namespace",
            below(&quota("pods: 0", "CrossNamespacePodAffinity"), "      serviceAccountName: ccm\n", 6, near),
        ),
    ]);
    boot(&[("room for Leases", quota("count/leases.coordination.k8s.io: 4", ""))]);
    deadlock(&[
        ("no Lease", quota("count/leases.coordination.k8s.io: 0", "")),
        ("those of Kubernetes only", quota("count/leases.coordination.k8s.io: 3", "")),
    ]);
    let denies = policy("nodes", "  validations: [{expression: \"false\"}]\n", "");
    deadlock(&[("a version that is served", denies.clone())]);
    boot(&[(
        "a version that is not",
        denies.replace("k8s.io/v1\nkind: Validating", "k8s.io/v1beta1\nkind: Validating"),
    )]);
}
