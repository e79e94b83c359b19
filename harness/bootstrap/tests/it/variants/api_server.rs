//! Variants about the way to the API server, and about names.

use super::{argument, base, below, boot, changed, deadlock, pod, variable};

fn host(value: &str) -> String {
    variable("172.18.0.2", &format!("          value: '{value}'\n"))
}

/// A ConfigMap with a kubeconfig, mounted at `/v` with these fields of the volume, and the flag.
fn kubeconfig(server: &str, volume: &str, file: &str) -> String {
    let text = below(
        &argument(&format!("--kubeconfig={file}")),
        "        imagePullPolicy: IfNotPresent\n",
        8,
        "volumeMounts:\n- name: v\n  mountPath: /v",
    );
    let text = below(
        &text,
        "      serviceAccountName: ccm\n",
        6,
        &format!("volumes:\n- name: v\n  configMap: {{name: conf{volume}}}"),
    );
    let host = "        - name: KUBERNETES_SERVICE_HOST\n          value: 172.18.0.2\n        - name: KUBERNETES_SERVICE_PORT\n          value: '6443'\n";
    let text = changed(&text, host, "");
    let folder = "/var/run/secrets/kubernetes.io/serviceaccount";
    let map = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: conf, namespace: kube-system}}\ndata:\n  kubeconfig: |\n    apiVersion: v1\n    kind: Config\n    clusters:\n    - name: c\n      cluster: {{server: '{server}', certificate-authority: {folder}/ca.crt}}\n    users:\n    - name: u\n      user: {{tokenFile: {folder}/token}}\n    contexts:\n    - name: x\n      context: {{cluster: c, user: u}}\n    current-context: x\n"
    );
    format!("{map}---\n{text}")
}

fn as_user(text: &str, security: &str) -> String {
    below(text, "      serviceAccountName: ccm\n", 6, &format!("securityContext: {security}"))
}

#[test]
fn the_host_of_the_api_server() {
    boot(&[
        (
            "its Service address, which kube-proxy serves",
            host("10.96.0.1").replace("value: '6443'", "value: '443'"),
        ),
        (
            "the address of its own Node",
            variable("172.18.0.2", "          valueFrom: {fieldRef: {fieldPath: status.hostIP}}\n"),
        ),
        ("this machine, on a control plane", host("127.0.0.1")),
    ]);
    deadlock(&[
        ("a cluster name, resolved by the Node", host("kubernetes.default.svc")),
        (
            "a cluster name, resolved by cluster DNS that cannot run",
            changed(
                &host("kubernetes.default.svc"),
                "dnsPolicy: Default",
                "dnsPolicy: ClusterFirstWithHostNet",
            ),
        ),
        ("nothing", host("")),
        ("an address without a kubeconfig", argument("--master=https://172.18.0.2:6443")),
        ("this machine, on the pod network", changed(&host("127.0.0.1"), "      hostNetwork: true\n", "")),
    ]);
}

#[test]
fn a_kubeconfig() {
    let server = "https://172.18.0.2:6443";
    boot(&[
        ("readable by all", kubeconfig(server, "", "/v/kubeconfig")),
        (
            "for root, who it is",
            as_user(&kubeconfig(server, ", defaultMode: 0400", "/v/kubeconfig"), "{runAsUser: 0}"),
        ),
        (
            "for root, with a group of the file system",
            as_user(
                &kubeconfig(server, ", defaultMode: 0400", "/v/kubeconfig"),
                "{runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532}",
            ),
        ),
        ("under another name", kubeconfig(server, ", items: [{key: kubeconfig, path: c}]", "/v/c")),
        ("with the Service address", kubeconfig("https://10.96.0.1:443", "", "/v/kubeconfig")),
    ]);
    deadlock(&[
        ("a file that is not in the map", kubeconfig(server, "", "/v/other")),
        (
            "a key under another name",
            kubeconfig(server, ", items: [{key: kubeconfig, path: c}]", "/v/kubeconfig"),
        ),
        (
            "for the group of root, which it is not in",
            as_user(
                &kubeconfig(server, ", defaultMode: 0440", "/v/kubeconfig"),
                "{runAsUser: 65532, runAsGroup: 65532}",
            ),
        ),
        ("with a cluster name", kubeconfig("https://kubernetes.default.svc", "", "/v/kubeconfig")),
        (
            "with the token of a folder that is not mounted",
            below(
                &kubeconfig(server, "", "/v/kubeconfig"),
                "      serviceAccountName: ccm\n",
                6,
                "automountServiceAccountToken: false",
            ),
        ),
    ]);
}

#[test]
fn names() {
    let cloud = |host: &str| {
        variable("http://172.18.0.1:18093/", &format!("          value: http://{host}:18093/\n"))
    };
    let cluster_dns = |text: &str| changed(text, "dnsPolicy: Default", "dnsPolicy: ClusterFirstWithHostNet");
    let none = |text: &str, server: &str| {
        let text = changed(text, "dnsPolicy: Default", "dnsPolicy: None");
        below(&text, "      serviceAccountName: ccm\n", 6, &format!("dnsConfig: {{nameservers: [{server}]}}"))
    };
    let alias = |text: &str, name: &str| {
        below(
            text,
            "      serviceAccountName: ccm\n",
            6,
            &format!("hostAliases: [{{ip: 172.18.0.1, hostnames: [{name}]}}]"),
        )
    };
    boot(&[
        ("the Node's resolver", cloud("cloud.example.test")),
        ("an outside name server", none(&cloud("cloud.example.test"), "172.18.0.1")),
        ("an alias with its own servers", alias(&none(&cloud("a.test"), "10.96.0.10"), "a.test")),
        ("an address with cluster DNS", cluster_dns(&base())),
    ]);
    deadlock(&[
        ("cluster DNS", cluster_dns(&cloud("cloud.example.test"))),
        ("an alias for another name", alias(&cluster_dns(&cloud("a.test")), "b.test")),
        ("a cluster name, resolved by the Node", cloud("cloud.kube-system.svc.cluster.local")),
    ]);
    deadlock(&[(
        "cluster DNS on the pod network",
        changed(&cloud("a.test"), "      hostNetwork: true\n      dnsPolicy: Default\n", ""),
    )]);
    boot(&[("no alias is needed", pod("hostAliases: [{ip: 172.18.0.1, hostnames: [x.test]}]"))]);
}
