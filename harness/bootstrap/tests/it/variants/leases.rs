//! Variants about Leases and their rights.

use super::{argument, base, behind, boot, changed, deadlock};

fn lease(name: &str, spec: &str) -> String {
    behind(&format!(
        "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {{name: {name}, namespace: kube-system}}\nspec: {{{spec}}}"
    ))
}

#[test]
fn a_lease_in_the_manifests() {
    let held = "holderIdentity: other, leaseDurationSeconds: 7200, renewTime: '2026-11-27T16:00:00.000000Z'";
    boot(&[
        ("without a holder", lease("cloud-controller-manager", "leaseDurationSeconds: 7200")),
        (
            "for a short time",
            lease("cloud-controller-manager", "holderIdentity: other, leaseDurationSeconds: 15"),
        ),
        ("of another name", lease("other", held)),
        (
            "without election",
            changed(&lease("cloud-controller-manager", held), "--leader-elect=true", "--leader-elect=false"),
        ),
        (
            "for another Lease",
            changed(
                &lease("cloud-controller-manager", held),
                "        - -v=1\n",
                "        - -v=1\n        - --leader-elect-resource-name=own\n",
            ),
        ),
    ]);
    deadlock(&[
        ("for two hours", lease("cloud-controller-manager", held)),
        (
            "of the name in its flag",
            changed(
                &lease("own", held),
                "        - -v=1\n",
                "        - -v=1\n        - --leader-elect-resource-name=own\n",
            ),
        ),
    ]);
}

#[test]
fn names_and_kinds_of_locks() {
    boot(&[
        ("another name", argument("--leader-elect-resource-name=own")),
        ("another namespace", argument("--leader-elect-resource-namespace=default")),
        ("the usual kind", argument("--leader-elect-resource-lock=leases")),
    ]);
    deadlock(&[
        ("a namespace that does not exist", argument("--leader-elect-resource-namespace=absent")),
        ("an old kind", argument("--leader-elect-resource-lock=endpoints")),
        (
            "the name of kube-controller-manager",
            argument("--leader-elect-resource-name=kube-controller-manager"),
        ),
        ("the name of kube-scheduler", argument("--leader-elect-resource-name=kube-scheduler")),
    ]);
}

/// The base with a role of its own instead of cluster-admin.
fn role(kind: &str, more: &str) -> String {
    let text = changed(&base(), "  name: cluster-admin\n", "  name: own\n");
    format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata: {{name: own}}\n{more}---\n{text}"
    )
}

const NODES: &str = "{apiGroups: [''], resources: [nodes], verbs: ['*']}, {apiGroups: [''], resources: [nodes/status], verbs: [patch]}";

#[test]
fn roles() {
    let leases = |more: &str| {
        role(
            "ClusterRole",
            &format!("rules: [{NODES}, {{apiGroups: [coordination.k8s.io], resources: [leases]{more}}}]\n"),
        )
    };
    let part = |label: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: part, labels: {{to: {label}}}}}\nrules: [{NODES}, {{apiGroups: ['*'], resources: [leases], verbs: ['*']}}]\n---\n{}",
            role("ClusterRole", "aggregationRule: {clusterRoleSelectors: [{matchLabels: {to: ccm}}]}\n")
        )
    };
    let built_in = |name: &str| changed(&base(), "  name: cluster-admin\n", &format!("  name: {name}\n"));
    boot(&[("all verbs", leases(", verbs: ['*']")), ("aggregated", part("ccm"))]);
    deadlock(&[
        (
            "only by name, without the Lease",
            leases(", verbs: [get, update], resourceNames: [cloud-controller-manager]"),
        ),
        ("aggregated from another label", part("other")),
        ("the rights of an editor", built_in("edit")),
        ("the rights of a viewer", built_in("view")),
        ("a role that does not exist", built_in("absent")),
    ]);
    let made = |name: &str| {
        format!(
            "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {{name: cloud-controller-manager, namespace: kube-system}}\nspec: {{}}\n---\n{}",
            leases(&format!(", verbs: [get, update], resourceNames: [{name}]"))
        )
    };
    boot(&[("by name, with the Lease", made("cloud-controller-manager"))]);
    deadlock(&[("by another name, with the Lease", made("other"))]);
}
