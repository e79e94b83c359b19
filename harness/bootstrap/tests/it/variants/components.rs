//! Variants about what the manifests do to Kubernetes' own components: their roles, and their share of the API server.

use super::{base, behind, boot, deadlock, judge};
use bootstrap::{Outcome, Topology};

/// The role of the scheduler with these rules.
fn scheduler_role(rules: &str) -> String {
    format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: 'system:kube-scheduler'}}\nrules: \
         [{rules}]"
    )
}

#[test]
fn roles_of_kubernetes_that_the_manifests_replace() {
    let leases = "{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create, get, update]}";
    let pods = "{apiGroups: [''], resources: [pods, nodes], verbs: [get, list, watch]}";
    let binding = "{apiGroups: [''], resources: [bindings, pods/binding], verbs: [create]}";
    let own = scheduler_role(leases).replace("system:kube-scheduler", "acme-scheduler");
    boot(&[
        ("with all that it needs", behind(&scheduler_role(&[leases, pods, binding].join(", ")))),
        ("with everything", behind(&scheduler_role("{apiGroups: ['*'], resources: ['*'], verbs: ['*']}"))),
        ("a role of another name", behind(&own)),
        (
            "the role of a controller that has no part in it",
            behind(
                &scheduler_role(leases).replace("system:kube-scheduler", "system:controller:job-controller"),
            ),
        ),
    ]);
    let labelled = scheduler_role("").replace("rules: []", "");
    assert!(!labelled.contains("rules"), "{labelled}");
    let bound = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: own}\nroleRef: {apiGroup: \
                 rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\nsubjects: [{kind: User, name: \
                 'system:kube-scheduler', apiGroup: rbac.authorization.k8s.io}]";
    boot(&[
        ("without the field", behind(&labelled)),
        ("with another binding", behind(&format!("{}\n---\n{bound}", scheduler_role(leases)))),
    ]);
    // It comes too late for the CCM, but not for the Pods that come after the boot.
    let late = format!("{}\n---\n{}\n", base(), scheduler_role(leases));
    assert_eq!(judge(&late, Topology::SingleControlPlane).0, Outcome::Boots);
    assert_eq!(judge(&late, Topology::ControlPlaneAndWorker).0, Outcome::Deadlock);
    deadlock(&[
        ("without bindings", behind(&scheduler_role(&[leases, pods].join(", ")))),
        ("without rules", behind(&scheduler_role(""))),
        (
            "the role of the controller that creates its Pods",
            behind(
                &scheduler_role(pods)
                    .replace("system:kube-scheduler", "system:controller:replicaset-controller"),
            ),
        ),
    ]);
}

/// A priority level, and a schema that leads the requests of a subject to it.
fn share(limited: &str, precedence: u32, subject: &str) -> String {
    format!(
        "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: PriorityLevelConfiguration\nmetadata: {{name: own}}\nspec: {{type: \
         Limited, limited: {{{limited}}}}}\n---\napiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: \
         {{name: own}}\nspec: {{priorityLevelConfiguration: {{name: own}}, matchingPrecedence: {precedence}, rules: \
         [{{subjects: [{subject}], resourceRules: [{{verbs: ['*'], apiGroups: ['*'], resources: ['*'], clusterScope: true, \
         namespaces: ['*']}}]}}]}}\n---\n{}",
        base()
    )
}

#[test]
fn shares_of_the_api_server() {
    let ccm = "{kind: ServiceAccount, serviceAccount: {namespace: kube-system, name: ccm}}";
    let queue = "limitResponse: {type: Queue, queuing: {queues: 8, handSize: 4, queueLengthLimit: 50}}";
    let none = format!("nominalConcurrencyShares: 0, borrowingLimitPercent: 0, {queue}");
    boot(&[
        ("a small share", share(&none.replace("Shares: 0", "Shares: 1"), 500, ccm)),
        (
            "no share, and what others do not use",
            share(&none.replace("borrowingLimitPercent: 0, ", ""), 500, ccm),
        ),
        (
            "no share, and no queue",
            share(
                "nominalConcurrencyShares: 0, borrowingLimitPercent: 0, limitResponse: {type: Reject}",
                500,
                ccm,
            ),
        ),
        ("behind Kubernetes' own schema", share(&none, 950, ccm)),
        (
            "behind one that is about a part of its requests",
            format!(
                "{}\n---\n{}",
                "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: {name: part}\nspec: \
                 {priorityLevelConfiguration: {name: workload-high}, matchingPrecedence: 400, rules: [{subjects: [{kind: \
                 ServiceAccount, serviceAccount: {namespace: kube-system, name: ccm}}], resourceRules: [{verbs: [get, list, \
                 watch, update, patch], apiGroups: ['*'], resources: ['*'], clusterScope: true, namespaces: ['*']}]}]}",
                share(&none, 500, ccm)
            ),
        ),
        ("for another account", share(&none, 500, &ccm.replace("name: ccm", "name: csi"))),
    ]);
    deadlock(&[
        ("no share", share(&none, 500, ccm)),
        (
            "all of nothing",
            share(&none.replace("borrowingLimitPercent: 0", "borrowingLimitPercent: 100"), 500, ccm),
        ),
        (
            "for a whole namespace",
            share(&none, 800, "{kind: Group, group: {name: 'system:serviceaccounts:kube-system'}}"),
        ),
    ]);
}
