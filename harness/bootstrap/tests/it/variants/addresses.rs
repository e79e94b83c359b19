//! Variants about the address and port of the API server, and about the contents of a kubeconfig.

use super::{argument, base, below, boot, changed, deadlock, judge, pod, variable};
use bootstrap::{Outcome, Topology};

const PORT: &str = "        - name: KUBERNETES_SERVICE_PORT\n          value: '6443'\n";

fn host(value: &str) -> String {
    variable("172.18.0.2", &format!("          value: '{value}'\n"))
}

fn port(value: &str) -> String {
    changed(&base(), "value: '6443'", &format!("value: '{value}'"))
}

#[test]
fn hosts_and_ports() {
    let alias = "hostAliases: [{ip: 172.18.0.2, hostnames: [kubernetes.default.svc]}]";
    let named =
        changed(&pod(alias), "          value: 172.18.0.2\n", "          value: kubernetes.default.svc\n");
    let hosts = below(
        &below(
            &named,
            "      serviceAccountName: ccm\n",
            6,
            "volumes: [{name: hosts, hostPath: {path: /etc/hosts}}]",
        ),
        "        imagePullPolicy: IfNotPresent\n",
        8,
        "volumeMounts: [{name: hosts, mountPath: /etc/hosts}]",
    );
    deadlock(&[("an alias that a mounted file replaces", hosts)]);
    boot(&[
        ("a cluster name that is an alias", named),
        ("the Service and its port", host("10.96.0.1").replace("value: '6443'", "value: '443'")),
    ]);
    deadlock(&[
        ("the Service and the port of the Pods", host("10.96.0.1")),
        ("a URL", host("https://172.18.0.2")),
        ("a variable that does not exist", host("$(HOST_IP)")),
        ("an empty port", port("")),
        ("without TLS", argument("--master=http://172.18.0.2:6443")),
    ]);
    for text in [port("443"), changed(&base(), PORT, "")] {
        let (outcome, why) = judge(&text, Topology::SingleControlPlane);
        assert_eq!(outcome, Outcome::BootsIf, "{why}");
    }
}

/// The base with these variables before that of the host, whose value is this.
fn referring(before: &str, value: &str) -> String {
    changed(
        &base(),
        "        - name: KUBERNETES_SERVICE_HOST\n          value: 172.18.0.2\n",
        &format!("{before}        - name: KUBERNETES_SERVICE_HOST\n          value: {value}\n"),
    )
}

#[test]
fn variables_that_the_kubelet_knows() {
    let own = "        - name: HOST_IP\n          valueFrom: {fieldRef: {fieldPath: status.hostIP}}\n";
    let secret = "        - name: API\n          valueFrom: {secretKeyRef: {name: api, key: host}}\n";
    let with_secret = |text: &str| {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: api, namespace: kube-system}}\nstringData: {{host: a}}\n---\n{text}"
        )
    };
    boot(&[
        ("the address of its Node", referring(own, "$(HOST_IP)")),
        ("a key of a Secret", with_secret(&referring(secret, "$(API)"))),
        ("a variable of a Service", referring("", "$(WEB_SERVICE_HOST)")),
    ]);
    deadlock(&[
        ("a variable that comes later", {
            let text = referring("", "$(API)");
            changed(
                &text,
                "value: $(API)\n",
                "value: $(API)\n        - name: API\n          value: 172.18.0.2\n",
            )
        }),
        ("a host with a port", host("172.18.0.2:6443")),
        ("a port that is not decimal", port("0x192B")),
    ]);
    let alias = pod("hostAliases: [{ip: 172.18.0.2, hostnames: [api.example]}]");
    let alias = changed(&alias, "          value: 172.18.0.2\n", "          value: api.example\n");
    assert_eq!(
        judge(&alias, Topology::SingleControlPlane).0,
        Outcome::BootsIf,
        "its certificate is not known"
    );
}

#[test]
fn the_address_of_a_node_is_that_of_an_api_server_on_control_planes() {
    let own = variable("172.18.0.2", "          valueFrom: {fieldRef: {fieldPath: status.hostIP}}\n");
    boot(&[("on control planes", own.clone())]);
    let worker = changed(
        &own,
        "      nodeSelector:\n        node-role.kubernetes.io/control-plane: ''\n",
        "      affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: \
         [{matchExpressions: [{key: node-role.kubernetes.io/control-plane, operator: DoesNotExist}]}]}}}\n",
    );
    assert_eq!(judge(&worker, Topology::ControlPlaneAndWorker).0, Outcome::Deadlock);
}

#[test]
fn a_service_called_kubernetes_replaces_the_variables_of_the_api_server() {
    let without = changed(
        &changed(&base(), PORT, ""),
        "        - name: KUBERNETES_SERVICE_HOST\n          value: 172.18.0.2\n",
        "",
    );
    let service = |namespace: &str, more: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: kubernetes, namespace: {namespace}}}\nspec: {{{more}ports: \
             [{{port: 443}}]}}\n---\n{without}"
        )
    };
    boot(&[
        ("in another namespace", service("other", "")),
        ("without an address", service("kube-system", "clusterIP: None, ")),
        (
            "without variables of Services",
            below(
                &service("kube-system", ""),
                "      serviceAccountName: ccm\n",
                6,
                "enableServiceLinks: false",
            ),
        ),
    ]);
    deadlock(&[("next to it", service("kube-system", ""))]);
}

/// The base with a kubeconfig in a ConfigMap; `change` replaces a part of it.
fn kubeconfig((from, to): (&str, &str)) -> String {
    let folder = "/var/run/secrets/kubernetes.io/serviceaccount";
    let file = format!(
        "    apiVersion: v1\n    kind: Config\n    current-context: x\n    clusters: [{{name: c, cluster: {{server: \
         'https://172.18.0.2:6443', certificate-authority: {folder}/ca.crt}}}}]\n    users: [{{name: u, user: {{tokenFile: \
         {folder}/token}}}}]\n    contexts: [{{name: x, context: {{cluster: c, user: u}}}}]\n"
    );
    let text = below(
        &argument("--kubeconfig=/v/kubeconfig"),
        "        imagePullPolicy: IfNotPresent\n",
        8,
        "volumeMounts: [{name: v, mountPath: /v}]",
    );
    let text =
        below(&text, "      serviceAccountName: ccm\n", 6, "volumes: [{name: v, configMap: {name: conf}}]");
    let map = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: conf, namespace: kube-system}}\ndata:\n  kubeconfig: |\n{}",
        changed(&file, from, to)
    );
    format!("{map}---\n{text}")
}

#[test]
fn the_contents_of_a_kubeconfig() {
    let authority = ", certificate-authority: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
    boot(&[
        ("complete", kubeconfig(("x", "x"))),
        ("without a check of the certificate", kubeconfig((authority, ", insecure-skip-tls-verify: true"))),
        ("without a current context", kubeconfig(("    current-context: x\n", ""))),
        ("a token", kubeconfig(("tokenFile: ", "token: "))),
    ]);
    deadlock(&[
        ("another current context", kubeconfig(("current-context: x", "current-context: other"))),
        ("another user", kubeconfig(("user: u", "user: v"))),
        ("another cluster", kubeconfig(("cluster: c", "cluster: d"))),
        ("no authority", kubeconfig((authority, ""))),
        (
            "an authority, and no check of it",
            kubeconfig((authority, &format!("{authority}, insecure-skip-tls-verify: true"))),
        ),
        ("without TLS", kubeconfig(("https://", "http://"))),
        ("the port of the Pods at the Service", kubeconfig(("172.18.0.2", "10.96.0.1"))),
        ("another kind", kubeconfig(("kind: Config\n", "kind: ConfigMap\n"))),
        ("no credentials", kubeconfig(("tokenFile: ", "comment: "))),
    ]);
    let mounted = |file: &str| {
        let text = below(
            &argument("--kubeconfig=/k/kubelet.conf"),
            "        imagePullPolicy: IfNotPresent\n",
            8,
            "volumeMounts: [{name: k, mountPath: /k/kubelet.conf}]",
        );
        below(
            &text,
            "      serviceAccountName: ccm\n",
            6,
            &format!("volumes: [{{name: k, hostPath: {{path: /etc/kubernetes/{file}}}}}]"),
        )
    };
    deadlock(&[("that of the kubelet", mounted("kubelet.conf"))]);
    let by_variable = |name: &str| {
        let text = kubeconfig(("x", "x"));
        let text = changed(&text, "mountPath: /v", "mountPath: /v/kubeconfig, subPathExpr: $(OWN)");
        below(&text, "        env:\n", 8, &format!("- {{name: OWN, value: {name}}}"))
    };
    boot(&[("a file that a variable names", by_variable("kubeconfig"))]);
    deadlock(&[("another file", by_variable("other"))]);
    let sources = "projected: {sources: [{configMap: {name: kube-root-ca.crt}}, {configMap: {name: conf}}]}";
    let among_others = changed(&kubeconfig(("x", "x")), "configMap: {name: conf}", sources);
    let (outcome, why) = judge(&among_others, Topology::SingleControlPlane);
    assert_eq!(outcome, Outcome::Boots, "{why}");
    let wrong = changed(&among_others, "current-context: x", "current-context: other");
    deadlock(&[("a source among others", wrong)]);
    let stale = changed(&kubeconfig(("x", "x")), "value: '6443'", "value: '443'");
    let (outcome, why) = judge(&stale, Topology::SingleControlPlane);
    assert!(outcome == Outcome::BootsIf && why.contains("no API server answers at 172.18.0.2:443"), "{why}");
    let skipped = below(&stale, "        - -v=1\n", 8, "- --authentication-skip-lookup=true");
    boot(&[("it does not look up", skipped)]);
    let acting = kubeconfig(("tokenFile: ", "as: robot, tokenFile: "));
    let (outcome, why) = judge(&acting, Topology::SingleControlPlane);
    assert!(outcome == Outcome::BootsIf && why.contains("impersonate robot"), "{why}");
}
