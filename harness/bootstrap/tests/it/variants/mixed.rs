//! Variants about several areas at once: environment, subjects of bindings, runtime classes, Nodes.

use super::{argument, base, behind, below, boot, changed, container, deadlock, pod};

const HOST: &str = "        - name: KUBERNETES_SERVICE_HOST\n          value: 172.18.0.2\n";

#[test]
fn the_environment() {
    let map = |data: &str, optional: bool| {
        let text = changed(&base(), HOST, "");
        let from = format!("envFrom: [{{configMapRef: {{name: conf, optional: {optional}}}}}]");
        let text = below(&text, "        imagePullPolicy: IfNotPresent\n", 8, &from);
        match data {
            "" => text,
            data => format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: conf, namespace: kube-system}}\ndata: {{{data}}}\n---\n{text}"
            ),
        }
    };
    let twice = |first: &str, second: &str| {
        changed(
            &base(),
            HOST,
            &format!(
                "        - {{name: KUBERNETES_SERVICE_HOST, value: '{first}'}}\n        - {{name: KUBERNETES_SERVICE_HOST, value: '{second}'}}\n"
            ),
        )
    };
    boot(&[
        ("the host from a map", map("KUBERNETES_SERVICE_HOST: 172.18.0.2", false)),
        (
            "an optional map that is not there",
            changed(&map("", true), "        - name: KUBERNETES_SERVICE_PORT\n          value: '6443'\n", ""),
        ),
        ("the last one wins", twice("kubernetes.default.svc", "172.18.0.2")),
        (
            "a variable of a variable",
            changed(
                &base(),
                HOST,
                "        - {name: A, value: 172.18.0.2}\n        - {name: KUBERNETES_SERVICE_HOST, value: $(A)}\n",
            ),
        ),
    ]);
    deadlock(&[
        ("a cluster name from a map", map("KUBERNETES_SERVICE_HOST: kubernetes.default.svc", false)),
        ("a map that is not there", map("", false)),
        ("the last one wins, wrong", twice("172.18.0.2", "kubernetes.default.svc")),
        (
            "a wrong variable of a variable",
            changed(
                &base(),
                HOST,
                "        - {name: A, value: kubernetes.default.svc}\n        - {name: KUBERNETES_SERVICE_HOST, value: $(A)}\n",
            ),
        ),
    ]);
}

#[test]
fn subjects_of_bindings() {
    let subject = |text: &str| {
        changed(
            &base(),
            "- kind: ServiceAccount\n  name: ccm\n  namespace: kube-system\n",
            &format!("- {text}\n"),
        )
    };
    let group = "apiGroup: rbac.authorization.k8s.io, kind: Group";
    boot(&[
        ("all accounts", subject(&format!("{{{group}, name: 'system:serviceaccounts'}}"))),
        (
            "accounts of its namespace",
            subject(&format!("{{{group}, name: 'system:serviceaccounts:kube-system'}}")),
        ),
        (
            "its name as a user",
            subject(
                "{apiGroup: rbac.authorization.k8s.io, kind: User, name: 'system:serviceaccount:kube-system:ccm'}",
            ),
        ),
        ("everybody", subject(&format!("{{{group}, name: 'system:authenticated'}}"))),
    ]);
    deadlock(&[
        ("another account", subject("{kind: ServiceAccount, name: other, namespace: kube-system}")),
        ("the same name elsewhere", subject("{kind: ServiceAccount, name: ccm, namespace: default}")),
        (
            "accounts of another namespace",
            subject(&format!("{{{group}, name: 'system:serviceaccounts:default'}}")),
        ),
        ("Nodes", subject(&format!("{{{group}, name: 'system:nodes'}}"))),
    ]);
    let within = |namespace: &str| {
        changed(
            &base(),
            "kind: ClusterRoleBinding\nmetadata:\n  name: ccm\n",
            &format!("kind: RoleBinding\nmetadata:\n  name: ccm\n  namespace: {namespace}\n"),
        )
    };
    deadlock(&[("in its namespace only", within("kube-system")), ("in another one", within("default"))]);
}

#[test]
fn runtime_classes_and_nodes() {
    let class = |fields: &str, own: &str| {
        let text = behind(&format!(
            "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {{name: own}}\nhandler: runc\n{fields}"
        ));
        below(&text, "      serviceAccountName: ccm\n", 6, &format!("runtimeClassName: own\n{own}"))
    };
    let selector = "      nodeSelector:\n        node-role.kubernetes.io/control-plane: ''\n";
    let toleration = "      - key: node.cloudprovider.kubernetes.io/uninitialized\n        operator: Exists\n        effect: NoSchedule\n";
    deadlock(&[
        ("Nodes with a label that none has", class("scheduling: {nodeSelector: {runtime: own}}", "")),
        (
            "a label that contradicts its own",
            changed(
                &class("scheduling: {nodeSelector: {node-role.kubernetes.io/control-plane: 'x'}}", ""),
                "runtimeClassName",
                "runtimeClassName",
            ),
        ),
        ("a class that does not exist", pod("runtimeClassName: absent")),
        (
            "no toleration in its class",
            changed(
                &class("scheduling: {tolerations: [{key: other, operator: Exists}]}", ""),
                toleration,
                "",
            ),
        ),
    ]);
    super::all(
        bootstrap::Outcome::Boots,
        &[
            ("Nodes that are there", class("scheduling: {nodeSelector: {kubernetes.io/os: linux}}", "")),
            (
                "tolerations of its class",
                changed(&class("scheduling: {tolerations: [{operator: Exists}]}", ""), toleration, ""),
            ),
            ("a small overhead", class("overhead: {podFixed: {cpu: 10m}}", "")),
        ],
    );
    let affinity = |key: &str, rest: &str| {
        let text = changed(&base(), selector, "");
        below(
            &text,
            "      serviceAccountName: ccm\n",
            6,
            &format!(
                "affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{{matchExpressions: [{{key: {key}, {rest}}}]}}]}}}}}}"
            ),
        )
    };
    boot(&[
        (
            "a control plane by affinity",
            affinity("node-role.kubernetes.io/control-plane", "operator: Exists"),
        ),
        ("not on Windows", affinity("kubernetes.io/os", "operator: NotIn, values: [windows]")),
        ("without a selector", changed(&base(), selector, "")),
    ]);
    deadlock(&[
        ("by an old label", affinity("node-role.kubernetes.io/master", "operator: Exists")),
        ("by a zone", affinity("topology.kubernetes.io/zone", "operator: Exists")),
        (
            "a selector with another value",
            changed(
                &base(),
                "node-role.kubernetes.io/control-plane: ''\n",
                "node-role.kubernetes.io/control-plane: 'true'\n",
            ),
        ),
        (
            "spread over zones",
            pod(
                "topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}]",
            ),
        ),
    ]);
}

#[test]
fn shells_and_arguments() {
    let shell = |line: &str| {
        changed(
            &base(),
            "        args:\n        - --leader-elect=true\n        - -v=1\n",
            &format!("        command: [sh, -c]\n        args: [\"{line}\"]\n"),
        )
    };
    super::all(
        bootstrap::Outcome::BootsIf,
        &[("a shell", shell("exec ccm --leader-elect=true --controllers=*"))],
    );
    deadlock(&[
        ("a shell without its controller", shell("exec ccm --leader-elect=true --controllers=service")),
        (
            "a provider in two words",
            changed(
                &argument("--cloud-provider"),
                "        - --cloud-provider\n",
                "        - --cloud-provider\n        - external\n",
            ),
        ),
        ("no provider", argument("--cloud-provider=")),
        (
            "no token by a secret of a name that is not there",
            container("envFrom: [{secretRef: {name: absent}}]"),
        ),
    ]);
}
