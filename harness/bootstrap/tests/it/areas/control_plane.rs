//! The control plane: its static Pods, the way to its API server, tokens and Leases.

use super::{Parts, args, before, boots, boots_if, container, never_boots, outcome, spec};

#[test]
fn static_pods_of_the_control_plane() {
    let near = |kind: &str, label: &str| {
        format!(
            "      affinity: {{{kind}: {{requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: \
             kubernetes.io/hostname, labelSelector: {{matchLabels: {{{label}}}}}}}]}}}}\n"
        )
    };
    boots(&spec(&near("podAffinity", "component: etcd")));
    boots(&spec(&near("podAffinity", "k8s-app: kube-proxy")));
    boots(&spec(&near("podAntiAffinity", "component: other")));
    boots(&container("        ports: [{containerPort: 10258}]\n"));
    never_boots(&spec(&near("podAntiAffinity", "tier: control-plane")), "anti-affinity keeps it away");
    never_boots(&spec(&near("podAffinity", "component: other")), "no Pod that the affinity");
    never_boots(
        &container("        ports: [{containerPort: 10257}]\n"),
        "static Pod kube-controller-manager",
    );
    never_boots(&container("        ports: [{containerPort: 6443}]\n"), "static Pod kube-apiserver");
}

#[test]
fn the_way_to_the_api_server() {
    let env = |env| Parts { env, without_address: true, ..Parts::default() };
    boots(&env(""));
    boots(&env(
        "{name: KUBERNETES_SERVICE_HOST, value: 127.0.0.1}, {name: KUBERNETES_SERVICE_PORT, value: '6443'}",
    ));
    // The proxy of Talos.
    boots_if(
        &env(
            "{name: KUBERNETES_SERVICE_HOST, value: localhost}, {name: KUBERNETES_SERVICE_PORT, value: '7445'}",
        ),
        "listens on port 7445",
    );
    never_boots(&env("{name: KUBERNETES_SERVICE_HOST, value: 127.0.0.1}"), "the kubelet sets port 443");
    never_boots(
        &env("{name: KUBERNETES_SERVICE_HOST, value: kubernetes.default.svc}"),
        "only cluster DNS knows",
    );
    never_boots(
        &Parts {
            spec: "      dnsPolicy: ClusterFirstWithHostNet\n",
            ..env("{name: KUBERNETES_SERVICE_HOST, value: kubernetes.default.svc}")
        },
        "cluster DNS",
    );
    never_boots(
        &Parts { args: "'--master=https://172.18.0.2:6443'", without_address: true, ..Parts::default() },
        "gives it no credentials",
    );
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf, namespace: kube-system}\ndata: {kubeconfig: \
               'clusters: [{cluster: {server: https://172.18.0.2:6443}}]'}\n---\n";
    let mount = "        volumeMounts: [{name: v, mountPath: /v}]\n";
    let kubeconfig = |spec| Parts {
        before: map,
        container: mount,
        args: "'--kubeconfig=/v/kubeconfig'",
        without_address: true,
        spec,
        ..Parts::default()
    };
    let user = "      volumes: [{name: v, configMap: {name: conf, defaultMode: 256}}]\n      securityContext: {runAsUser: 65532, fsGroup: 65532}\n";
    boots(&kubeconfig("      volumes: [{name: v, configMap: {name: conf}}]\n"));
    boots(&kubeconfig(user));
    let without_group = user.replace(", fsGroup: 65532", "");
    never_boots(&kubeconfig(&without_group), "may not read its kubeconfig");
    never_boots(
        &kubeconfig(
            "      volumes: [{name: v, configMap: {name: conf, items: [{key: kubeconfig, path: other}]}}]\n",
        ),
        "does not provide the file 'kubeconfig'",
    );
    never_boots(&kubeconfig("      volumes: [{name: v, emptyDir: {}}]\n"), "nothing writes its kubeconfig");
    let of_kubeadm = |spec| Parts {
        container: "        volumeMounts: [{name: v, mountPath: /etc/kubernetes/admin.conf}]\n",
        args: "'--kubeconfig=/etc/kubernetes/admin.conf'",
        spec,
        ..Parts::default()
    };
    let host = "      volumes: [{name: v, hostPath: {path: /etc/kubernetes/admin.conf}}]\n";
    boots(&of_kubeadm(host));
    never_boots(
        &of_kubeadm(&format!("{host}      securityContext: {{runAsUser: 1000}}\n")),
        "only root may read",
    );
}

#[test]
fn tokens() {
    let folder =
        "        volumeMounts: [{name: v, mountPath: /var/run/secrets/kubernetes.io/serviceaccount}]\n";
    let with = |volume: &str| {
        Parts { spec: "SPEC", container: folder, ..Parts::default() }
            .text()
            .replace("SPEC", &format!("      volumes: [{{name: v, {volume}}}]\n"))
    };
    let verdict = |volume: &str| outcome(&with(volume)).0;
    let token = |token: &str, more: &str| {
        format!("projected: {{sources: [{{serviceAccountToken: {{path: token{token}}}}}{more}]}}")
    };
    let authority = ", {configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}}";
    assert_eq!(verdict(&token("", authority)), "boots");
    assert_eq!(
        verdict(&token(", audience: 'https://kubernetes.default.svc.cluster.local'", authority)),
        "boots"
    );
    assert_eq!(verdict(&token("", "")), "deadlock");
    assert_eq!(verdict(&token(", audience: vault", authority)), "deadlock");
    assert_eq!(verdict("emptyDir: {}"), "deadlock");
    let elsewhere = Parts {
        container: "        volumeMounts: [{name: v, mountPath: /v}]\n",
        spec: "      volumes: [{name: v, emptyDir: {}}]\n",
        ..Parts::default()
    };
    boots(&elsewhere);
    let account = |listed: &str| {
        let text =
            Parts { spec: "      volumes: [{name: v, secret: {secretName: conf}}]\n", ..Parts::default() }
                .text();
        let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: conf, namespace: kube-system}\n---\n";
        let plain = "metadata: {name: ccm, namespace: kube-system}\n";
        let strict = "metadata: {name: ccm, namespace: kube-system, annotations: {kubernetes.io/enforce-mountable-secrets: 'true'}}\n";
        format!("{secret}{}", text.replacen(plain, &format!("{strict}{listed}"), 1))
    };
    assert_eq!(outcome(&account("secrets: [{name: conf}]\n")).0, "boots");
    assert_eq!(outcome(&account("secrets: [{name: other}]\n")).0, "deadlock");
}

#[test]
fn leases() {
    let lease = |spec: &str| {
        format!(
            "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {{name: cloud-controller-manager, namespace: \
             kube-system}}\nspec: {{{spec}}}\n---\n"
        )
    };
    let held = lease("holderIdentity: a, leaseDurationSeconds: 3600");
    boots(&before(&lease("holderIdentity: a, leaseDurationSeconds: 15")));
    boots(&before(&lease("holderIdentity: '', leaseDurationSeconds: 3600")));
    boots(&Parts { before: &held, args: "'--leader-elect=false'", ..Parts::default() });
    boots(&Parts { before: &held, args: "'--leader-elect-resource-name=own'", ..Parts::default() });
    never_boots(&before(&held), "is held by 'a'");
    never_boots(&args("'--leader-elect-resource-name=kube-scheduler'"), "belongs to kube-scheduler");
    never_boots(&args("'--leader-elect-resource-namespace=absent'"), "Namespace/absent, in which");
    never_boots(&args("'--leader-elect-resource-lock=endpoints'"), "is not supported any more");
}
