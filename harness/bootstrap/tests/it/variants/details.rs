//! Variants about details on which a careful reader may be wrong. Each group has some that boot and some that do not.

use super::{all, argument, base, behind, below, boot, changed, container, deadlock, pod, variable};
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
fn volumes() {
    let claimed = |class: &str, size: &str| {
        let documents = format!(
            "apiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: own}}\nspec: {{storageClassName: '{class}', \
             capacity: {{storage: {size}}}, accessModes: [ReadWriteOnce], hostPath: {{path: /var/lib/own}}}}\n---\n\
             apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: own, namespace: kube-system}}\nspec: \
             {{storageClassName: '', accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}"
        );
        let text = behind(&documents);
        below(
            &text,
            "      serviceAccountName: ccm\n",
            6,
            "volumes: [{name: own, persistentVolumeClaim: {claimName: own}}]",
        )
    };
    boot(&[("a volume that was made by hand", claimed("", "2Gi"))]);
    deadlock(&[
        ("a volume of another class", claimed("other", "2Gi")),
        ("a volume that is too small", claimed("", "1Mi")),
    ]);
    let file = |path: &str, kind: &str| {
        pod(&format!("volumes: [{{name: own, hostPath: {{path: {path}, type: {kind}}}}}]"))
    };
    boot(&[
        ("a file in a folder of every machine", file("/var/lib/own", "FileOrCreate")),
        ("a folder in a folder that is absent", file("/var/lib/own/deep", "DirectoryOrCreate")),
    ]);
    all(Outcome::BootsIf, &[("a file in another folder", file("/var/lib/own/deep", "FileOrCreate"))]);
}

#[test]
fn variables_that_come_too_late() {
    let both = |first: &str, second: &str| {
        let text = variable("t", "          value: t\n");
        below(&text, "        env:\n", 8, &format!("{first}\n{second}"))
    };
    let (used, defined) =
        ("- {name: OWN_URL, value: 'http://$(OWN_NAME)/'}", "- {name: OWN_NAME, value: own}");
    boot(&[
        ("in order", both(defined, used)),
        ("no variable at all", both(used, "- {name: OTHER, value: own}")),
    ]);
    deadlock(&[("too late", both(used, defined))]);
    all(
        Outcome::BootsIf,
        &[(
            "too late, for something that may not matter",
            both("- {name: NOTE, value: $(OWN_NAME)}", defined),
        )],
    );
}

#[test]
fn truth_values_as_words() {
    let election = |text: &str| changed(&argument("--cloud-provider=own"), "--leader-elect=true", text);
    boot(&[("one word", election("--leader-elect=false")), ("none", election("--leader-elect"))]);
    deadlock(&[("two words", election("--leader-elect\n        - \"false\""))]);
}

#[test]
fn labels_and_modes() {
    let label = |text: &str| {
        below(&base(), "    metadata:\n      labels:\n", 8, &format!("kubernetes.io/os: {text}"))
    };
    boot(&[("its own system", label("linux"))]);
    deadlock(&[("with a capital", label("Linux")), ("another system", label("windows"))]);
    let config = |mode: &str, more: &str| {
        let text = behind(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own, namespace: kube-system}\ndata: {c: x}",
        );
        let text = below(&text, "        - -v=1\n", 8, "- --cloud-config=/etc/own/c");
        let text = below(
            &text,
            "        imagePullPolicy: IfNotPresent\n",
            8,
            "volumeMounts: [{name: own, mountPath: /etc/own}]",
        );
        below(
            &text,
            "      serviceAccountName: ccm\n",
            6,
            &format!(
                "securityContext: {{runAsUser: 1000{more}}}\nvolumes: [{{name: own, configMap: {{name: own, defaultMode: {mode}}}}}]"
            ),
        )
    };
    boot(&[
        ("others may read", config("0444", "")),
        ("the group of root may read", config("0440", "")),
        ("a group of its own", config("0400", ", fsGroup: 1000")),
    ]);
    deadlock(&[
        ("only root may read", config("0400", "")),
        ("decimal, by mistake", config("400", "")),
        ("another group", config("0440", ", runAsGroup: 1000")),
    ]);
}

#[test]
fn tokens() {
    let covered = |source: &str, more: &str| {
        let text = below(
            &base(),
            "        imagePullPolicy: IfNotPresent\n",
            8,
            &format!("volumeMounts: [{{name: own, mountPath: /var/run/secrets{more}}}]"),
        );
        below(&text, "      serviceAccountName: ccm\n", 6, &format!("volumes: [{{name: own, {source}}}]"))
    };
    let at_path = |path: &str, more: &str| {
        let text = below(
            &base(),
            "        imagePullPolicy: IfNotPresent\n",
            8,
            &format!("volumeMounts: [{{name: own, mountPath: {path}}}]"),
        );
        below(
            &text,
            "      serviceAccountName: ccm\n",
            6,
            &format!("volumes: [{{name: own, emptyDir: {{}}}}]\n{more}"),
        )
    };
    let folder = "/var/run/secrets/kubernetes.io/serviceaccount";
    boot(&[(
        "a path with a slash at its end, which admission does not recognise",
        at_path(&format!("{folder}/"), ""),
    )]);
    deadlock(&[
        ("the usual path", at_path(folder, "")),
        ("a slash, and no token", at_path(&format!("{folder}/"), "automountServiceAccountToken: false")),
    ]);
    boot(&[
        ("an empty folder above", covered("emptyDir: {}", "")),
        ("a folder that the kubelet writes", covered("projected: {sources: []}", ", readOnly: true")),
    ]);
    deadlock(&[("an empty folder above that is read-only", covered("emptyDir: {}", ", readOnly: true"))]);
}

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

/// A policy about a resource, with its binding.
fn policy(resource: &str, fields: &str, binding: &str) -> String {
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
        ("an error of a policy that fails open", open("object.spec.unschedulable == false")),
        ("a variable that is not declared, so that there is no policy", nodes("objectMeta.name == 'own'")),
    ]);
    deadlock(&[
        ("a field that is not there", nodes("object.spec.unschedulable == false")),
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
        ("a field, so that there is no webhook", condition("object.spec.unschedulable")),
        ("only Nodes that are cordoned", condition("has(object.spec.unschedulable)")),
        ("a text, so that there is no webhook", condition("'true'")),
    ]);
    deadlock(&[
        ("a field that is not there", condition("object.spec.unschedulable == true")),
        ("Nodes that are not cordoned", condition("!has(object.spec.unschedulable)")),
    ]);
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
