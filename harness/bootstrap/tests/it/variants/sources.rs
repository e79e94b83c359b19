//! Variants about where a program gets its variables, files and settings from.

use super::expressions::policy;
use super::{all, argument, base, below, boot, changed, deadlock, in_namespace, pod, variable};
use bootstrap::Outcome;

const HOST: &str = "172.18.0.2";

/// The base with a ConfigMap, and lines in place of the value of the API server's host.
fn with_map(data: &str, lines: &str) -> String {
    let map = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: own, namespace: kube-system}}\n{data}\n---\n"
    );
    map + &variable(HOST, lines)
}

fn from_key(more: &str) -> String {
    format!("          valueFrom: {{configMapKeyRef: {{name: own, key: host{more}}}}}\n")
}

#[test]
fn variables_from_config_maps() {
    let first = "          value: $(API_HOST)\n        - name: API_HOST\n          value: 172.18.0.2\n";
    let from = |data: &str| {
        changed(
            &with_map(data, first),
            "        env:\n",
            "        envFrom: [{configMapRef: {name: own}}]\n        env:\n",
        )
    };
    boot(&[
        ("text", with_map("data: {host: 172.18.0.2}", &from_key(""))),
        ("replaced by the right address of the ConfigMap", from("data: {API_HOST: 172.18.0.2}")),
        (
            "a key that need not be there, with the port of the Service",
            changed(
                &with_map("data: {other: a}", &from_key(", optional: true")),
                "value: '6443'",
                "value: '443'",
            ),
        ),
    ]);
    let set = |from: &str| {
        changed(
            &with_map("data: {KUBERNETES_SERVICE_HOST: 172.18.0.2}", &from_key(", optional: true")),
            "        env:\n",
            &format!("        envFrom: [{from}]\n        env:\n"),
        )
    };
    boot(&[(
        "a key that need not be there, and the host in another object",
        set("{configMapRef: {name: own}}"),
    )]);
    boot(&[(
        "the host perhaps in an object outside of the manifests",
        set("{secretRef: {name: hidden, optional: true}}"),
    )]);
    deadlock(&[
        ("binary data", with_map("binaryData: {host: MTcyLjE4LjAuMg==}", &from_key(""))),
        (
            "a key that need not be there, with the port of a Node",
            with_map("data: {other: a}", &from_key(", optional: true")),
        ),
        ("defined too late, and not in the ConfigMap", from("data: {OTHER: 172.18.0.2}")),
        (
            "replaced by an address of the ConfigMap that is none",
            from("data: {API_HOST: 'https://172.18.0.2'}"),
        ),
    ]);
}

#[test]
fn settings_of_the_program() {
    let limit =
        |value: &str| below(&base(), "        env:\n", 8, &format!("- name: GOMEMLIMIT\n  value: '{value}'"));
    boot(&[
        ("a limit of memory in MiB", limit("200MiB")),
        ("a limit in bytes", limit("209715200")),
        ("no limit", limit("off")),
        ("a short pause between controllers", argument("--controller-start-interval=1s")),
    ]);
    deadlock(&[
        ("a limit as a quantity of Kubernetes", limit("200Mi")),
        ("minutes between controllers", argument("--controller-start-interval=5m")),
    ]);
    let own = |value: &str| {
        below(
            &argument(&format!("--leader-elect-resource-namespace={value}")),
            "        env:\n",
            8,
            "- name: OWN\n  value: kube-system",
        )
    };
    boot(&[("a namespace that the kubelet fills in", own("$(OWN)"))]);
    deadlock(&[("one that only a shell would fill in", own("${OWN}"))]);
}

/// The base with a kubeconfig in a Secret.
fn kubeconfig(server: &str, user: &str) -> String {
    let secret = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: own, namespace: kube-system}}\nstringData:\n  config: |\n    \
         current-context: a\n    contexts: [{{name: a, context: {{cluster: c, user: u}}}}]\n    clusters: [{{name: c, \
         cluster: {{server: '{server}', certificate-authority: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt}}}}]\n    \
         users: [{{name: u, user: {{{user}}}}}]\n"
    );
    let text = changed(
        &argument("--kubeconfig=/etc/own/config"),
        "      serviceAccountName: ccm\n",
        "      serviceAccountName: ccm\n      volumes: [{name: own, secret: {secretName: own}}]\n",
    );
    let mounts = "        imagePullPolicy: IfNotPresent\n";
    let text = changed(
        &text,
        mounts,
        &format!("{mounts}        volumeMounts: [{{name: own, mountPath: /etc/own, readOnly: true}}]\n"),
    );
    format!("{secret}---\n{text}")
}

#[test]
fn kubeconfigs() {
    const TOKEN: &str = "tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token";
    boot(&[("with a scheme", kubeconfig("https://172.18.0.2:6443", TOKEN))]);
    deadlock(&[
        ("without a scheme", kubeconfig("172.18.0.2:6443", TOKEN)),
        (
            "with a password as well",
            kubeconfig("https://172.18.0.2:6443", &format!("{TOKEN}, username: a, password: b")),
        ),
    ]);
}

/// The base with the kubeconfig of a component of kubeadm.
fn of_component(file: &str) -> String {
    let text =
        pod(&format!("volumes: [{{name: own, hostPath: {{path: /etc/kubernetes/{file}, type: File}}}}]"));
    let text = changed(&text, "        - -v=1\n", "        - -v=1\n        - --kubeconfig=/etc/own\n");
    let mounts = "        imagePullPolicy: IfNotPresent\n";
    changed(
        &text,
        mounts,
        &format!("{mounts}        volumeMounts: [{{name: own, mountPath: /etc/own, readOnly: true}}]\n"),
    )
}

#[test]
fn files_of_the_node() {
    let nested = |path: &str, below: &str| {
        let text = pod(&format!(
            "volumes: [{{name: outer, hostPath: {{path: {path}, type: Directory}}}}, {{name: inner, emptyDir: {{}}}}]"
        ));
        let mounts = "        imagePullPolicy: IfNotPresent\n";
        let own = format!(
            "{mounts}        volumeMounts: [{{name: outer, mountPath: /etc/own, readOnly: true}}, {{name: inner, mountPath: \
             /etc/own/{below}}}]\n"
        );
        changed(&text, mounts, &own)
    };
    boot(&[
        ("the kubeconfig of an administrator", of_component("admin.conf")),
        ("a volume on a folder that is there", nested("/etc/kubernetes", "pki")),
        (
            "one below a folder that may be changed",
            nested("/etc/kubernetes", "own").replace("/etc/own, readOnly: true", "/etc/own"),
        ),
    ]);
    deadlock(&[
        ("the kubeconfig of the controller manager", of_component("controller-manager.conf")),
        ("a volume on a folder that is not there", nested("/etc/kubernetes/pki", "own")),
    ]);
    all(Outcome::BootsIf, &[("a volume on a folder that may be there", nested("/opt/own", "inner"))]);
}

#[test]
fn what_comes_before_the_program() {
    let before = |seconds: u32| {
        below(
            &pod("terminationGracePeriodSeconds: 900"),
            "      containers:\n",
            6,
            &format!(
                "- name: first\n  image: registry.k8s.io/pause:3.10\n  imagePullPolicy: IfNotPresent\n  lifecycle: {{postStart: \
                 {{sleep: {{seconds: {seconds}}}}}}}"
            ),
        )
    };
    boot(&[("a hook that sleeps for a moment", before(5))]);
    deadlock(&[
        ("a hook that sleeps for ten minutes", before(600)),
        (
            "a quota without room for revisions",
            in_namespace(
                "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: own, namespace: ccm-system}\nspec: {hard: {count/controllerrevisions.apps: '0'}}",
            )
            .replace("kind: Deployment", "kind: DaemonSet")
            .replace("  replicas: 1\n  strategy:\n    type: Recreate\n", ""),
        ),
    ]);
    let own = below(
        &pod("terminationGracePeriodSeconds: 900"),
        "        imagePullPolicy: IfNotPresent\n",
        8,
        "lifecycle: {postStart: {sleep: {seconds: 600}}}",
    );
    boot(&[("a hook of the program itself", own)]);
}

#[test]
fn the_class_of_pods_that_name_none() {
    let limited = |default: bool| {
        in_namespace(&format!(
            "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: usual}}\nvalue: 5\nglobalDefault: {default}\n---\napiVersion: v1\nkind: ResourceQuota\nmetadata: {{name: own, namespace: ccm-system}}\nspec: {{hard: {{pods: '0'}}, scopeSelector: {{matchExpressions: [{{scopeName: PriorityClass, operator: In, values: [usual]}}]}}}}"
        ))
    };
    boot(&[("a class that is not the default", limited(false))]);
    deadlock(&[("the default", limited(true))]);
}

#[test]
fn all_parameters_that_a_selector_chooses_count() {
    let limits = |strict: &str| {
        let map = |name: &str, own: &str, most: &str| {
            format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: kube-system, labels: {{own: '{own}'}}}}\ndata: {{taints: '{most}'}}\n---\n"
            )
        };
        let fields = "  paramKind: {apiVersion: v1, kind: ConfigMap}\n  validations: [{expression: \"(has(object.spec.taints) ? size(object.spec.taints) : 0) <= int(params.data.taints)\"}]\n";
        let chosen = ", paramRef: {namespace: kube-system, parameterNotFoundAction: Deny, selector: {matchLabels: {own: 'true'}}}";
        map("wide", "true", "4") + &map("strict", strict, "-1") + &policy("nodes", fields, chosen)
    };
    boot(&[("only one is chosen", limits("false"))]);
    deadlock(&[("the strict one as well", limits("true"))]);
}

#[test]
fn the_authority_of_a_new_namespace() {
    let hook = |resources: &str| {
        let text = in_namespace("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own, namespace: default}");
        format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {{name: own}}\nwebhooks: [{{name: own.example.com, admissionReviewVersions: [v1], sideEffects: None, clientConfig: {{service: {{namespace: kube-system, name: absent}}}}, rules: [{{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [{resources}]}}], namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: ccm-system}}}}}}]\n---\n{text}"
        )
    };
    boot(&[("a webhook on Secrets", hook("secrets"))]);
    deadlock(&[("a webhook on ConfigMaps", hook("configmaps"))]);
}
