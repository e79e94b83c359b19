//! Variants about where Pods may be: affinity, topology spread, `nodeName`, and stronger Pods.

use super::{all, boot, changed, deadlock, pod};
use bootstrap::{Outcome, Topology};

/// The base with required anti-affinity.
fn apart(term: &str) -> String {
    pod(&format!(
        "affinity: {{podAntiAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{term}]}}}}"
    ))
}

#[test]
fn namespaces_of_affinity() {
    let of_static = |more: &str| {
        apart(&format!(
            "{{topologyKey: kubernetes.io/hostname, labelSelector: {{matchLabels: {{tier: control-plane}}}}{more}}}"
        ))
    };
    boot(&[
        ("another namespace", of_static(", namespaces: [default]")),
        (
            "namespaces with another name",
            of_static(", namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}"),
        ),
        ("only Pods of its own rollout", of_static(", matchLabelKeys: [pod-template-hash]")),
    ]);
    deadlock(&[
        ("its own namespace", of_static("")),
        (
            "a selector of all namespaces besides another one",
            of_static(", namespaces: [default], namespaceSelector: {}"),
        ),
        (
            "the namespace by its name",
            of_static(", namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}"),
        ),
        ("a key that its Pods do not have", of_static(", matchLabelKeys: [absent]")),
        ("Pods that are not of its own rollout", of_static(", mismatchLabelKeys: [pod-template-hash]")),
    ]);
}

#[test]
fn topology_spread() {
    let spread = |more: &str| {
        pod(&format!(
            "topologySpreadConstraints: [{{maxSkew: 2, topologyKey: kubernetes.io/hostname, \
             whenUnsatisfiable: DoNotSchedule, labelSelector: {{matchLabels: {{tier: control-plane}}}}{more}}}]"
        ))
    };
    boot(&[
        ("only Nodes count that it may use", spread("")),
        (
            "it only prefers",
            changed(&spread(", nodeAffinityPolicy: Ignore"), "DoNotSchedule", "ScheduleAnyway"),
        ),
    ]);
    let (one, why) = super::judge(&spread(", nodeAffinityPolicy: Ignore"), Topology::SingleControlPlane);
    assert_eq!(one, Outcome::Boots, "{why}");
    let (two, why) = super::judge(&spread(", nodeAffinityPolicy: Ignore"), Topology::ControlPlaneAndWorker);
    assert_eq!(two, Outcome::Deadlock, "the worker has none of the four static Pods: {why}");
    deadlock(&[("more places than there are", spread(", minDomains: 5"))]);
}

#[test]
fn what_node_name_bypasses() {
    let named = |more: &str| pod(&format!("nodeName: control-plane\n{more}"));
    all(
        Outcome::BootsIf,
        &[
            ("a scheduler that does not exist", named("schedulerName: absent")),
            (
                "a topology that no Node has",
                named(
                    "topologySpreadConstraints: [{maxSkew: 1, topologyKey: absent, whenUnsatisfiable: DoNotSchedule}]",
                ),
            ),
        ],
    );
    deadlock(&[
        ("a scheduler that does not exist, without a name", pod("schedulerName: absent")),
        (
            "a label that the kubelet also compares",
            named(
                "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: \
                 [{matchExpressions: [{key: absent, operator: Exists}]}]}}}",
            ),
        ),
    ]);
}

#[test]
fn stronger_pods_that_come_first() {
    let guard = |class: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: guard, namespace: kube-system, labels: {{app: guard}}}}\nspec: \
             {{priorityClassName: {class}, hostNetwork: true, tolerations: [{{operator: Exists}}], nodeSelector: \
             {{node-role.kubernetes.io/control-plane: ''}}, containers: [{{name: guard, image: 'guard:1'}}], affinity: \
             {{podAntiAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: kubernetes.io/hostname, \
             labelSelector: {{matchLabels: {{app: ccm}}}}}}]}}}}}}"
        )
    };
    let base = pod("priorityClassName: system-cluster-critical");
    let first = |class: &str| format!("{}\n---\n{base}", guard(class));
    deadlock(&[("a stronger Pod", first("system-node-critical"))]);
    let last = format!("{base}\n---\n{}", guard("system-node-critical"));
    all(Outcome::SomeOrders, &[("a stronger Pod that comes last", last)]);
}
