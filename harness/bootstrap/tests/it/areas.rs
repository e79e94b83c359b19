//! Variants of each area of the model, some that boot and some that do not. They follow the source of Kubernetes 1.36; the
//! real clusters' verdicts are in `measured.rs`.

use super::bootstrap;
use serde_json::Value;

/// The parts of a manifest. The lines of each part have the indentation that their place needs.
#[derive(Clone, Default)]
struct Parts<'a> {
    /// Documents before the workload.
    before: &'a str,
    /// Lines of the Pods' specification, six spaces deep.
    spec: &'a str,
    /// Lines of the container, eight spaces deep.
    container: &'a str,
    /// Arguments in flow style.
    args: &'a str,
    /// Variables in flow style, apart from the address of the API server.
    env: &'a str,
    /// Whether the API server's address is left out.
    without_address: bool,
    /// Another account, role or namespace.
    role: &'a str,
    namespace: &'a str,
}

impl Parts<'_> {
    fn text(&self) -> String {
        let namespace = if self.namespace.is_empty() { "kube-system" } else { self.namespace };
        let role = if self.role.is_empty() { "cluster-admin" } else { self.role };
        let address = if self.without_address {
            ""
        } else {
            "{name: KUBERNETES_SERVICE_HOST, value: 172.18.0.2}, {name: KUBERNETES_SERVICE_PORT, value: '6443'}, "
        };
        let dns = if self.spec.contains("dnsPolicy") { "" } else { "      dnsPolicy: Default\n" };
        let Parts { before, spec, container, args, env, .. } = self;
        format!(
            "{before}apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: ccm, namespace: {namespace}}}\n---\n\
             apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {{name: ccm}}\n\
             roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: '{role}'}}\n\
             subjects: [{{kind: ServiceAccount, name: ccm, namespace: {namespace}}}]\n---\n\
             apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: cloud-controller-manager, namespace: {namespace}}}\n\
             spec:\n  selector: {{matchLabels: {{app: ccm}}}}\n  strategy: {{type: Recreate}}\n  template:\n    \
             metadata: {{labels: {{app: ccm}}}}\n    spec:\n      hostNetwork: true\n{dns}      \
             serviceAccountName: ccm\n      nodeSelector: {{node-role.kubernetes.io/control-plane: ''}}\n      \
             tolerations: [{{operator: Exists}}]\n{spec}      containers:\n      - name: ccm\n        \
             image: example.test/ccm:dev\n{container}        args: ['--leader-elect=true', {args}]\n        \
             env: [{address}{{name: URL, value: 'http://172.18.0.1/'}}, {env}]\n"
        )
    }
}

fn outcome(text: &str) -> (String, String) {
    let options = [
        "--topology",
        "single-control-plane,control-plane-and-worker",
        "--cni",
        "kindnet",
        "--node-ip",
        "yes",
        "--output",
        "json",
    ];
    let (_, out, err) = bootstrap(&[&["check", "-"], &options[..]].concat(), text);
    let value: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("no JSON: {out}{err}\n{text}"));
    let (cell, other) = (&value["cells"][0], &value["cells"][1]);
    assert_eq!(cell["outcome"], other["outcome"], "the worker makes a difference: {value:#}");
    (cell["outcome"].as_str().unwrap_or_default().to_owned(), cell.to_string())
}

#[track_caller]
fn boots(parts: &Parts<'_>) {
    let (outcome, cell) = outcome(&parts.text());
    assert_eq!(outcome, "boots", "{cell}");
}

#[track_caller]
fn boots_if(parts: &Parts<'_>, condition: &str) {
    let (outcome, cell) = outcome(&parts.text());
    assert_eq!(outcome, "boots-if", "{cell}");
    assert!(cell.contains(condition), "'{condition}' is missing: {cell}");
}

#[track_caller]
fn never_boots(parts: &Parts<'_>, because: &str) {
    let (outcome, cell) = outcome(&parts.text());
    assert_eq!(outcome, "deadlock", "{cell}");
    assert!(cell.contains(because), "'{because}' is missing: {cell}");
}

fn spec(spec: &str) -> Parts<'_> {
    Parts { spec, ..Parts::default() }
}

fn container(container: &str) -> Parts<'_> {
    Parts { container, ..Parts::default() }
}

fn args(args: &str) -> Parts<'_> {
    Parts { args, ..Parts::default() }
}

fn before(before: &str) -> Parts<'_> {
    Parts { before, ..Parts::default() }
}

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
    never_boots(
        &env("{name: KUBERNETES_SERVICE_HOST, value: 127.0.0.1}"),
        "port 443 of the loopback address",
    );
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
        "        volumeMounts: [{name: v, mountPath: /var/run/secrets/kubernetes.io/serviceaccount/}]\n";
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

#[test]
fn webhooks() {
    let hook = |rule: &str, more: &str| {
        format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {{name: h}}\n\
             webhooks: [{{name: h.example.test, admissionReviewVersions: [v1], sideEffects: None, clientConfig: {{service: \
             {{namespace: kube-system, name: absent}}}}, rules: [{{apiVersions: [v1], {rule}}}]{more}}}]\n---\n"
        )
    };
    let nodes = "apiGroups: [''], resources: [nodes], operations: [UPDATE]";
    let pods = "apiGroups: [''], resources: [pods], operations: [CREATE]";
    boots(&before(&hook(nodes, ", failurePolicy: Ignore")));
    boots(&before(&hook(&format!("{nodes}, scope: Namespaced"), "")));
    boots(&before(&hook(pods, ", objectSelector: {matchLabels: {app: other}}")));
    boots(&before(&hook(pods, ", namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other}}")));
    boots(&before(&hook("apiGroups: [''], resources: ['pods/status'], operations: [UPDATE]", "")));
    never_boots(&before(&hook(nodes, "")), "cannot be reached");
    never_boots(&before(&hook(nodes, ", objectSelector: {matchLabels: {kubernetes.io/os: linux}}")), "h");
    never_boots(&before(&hook("apiGroups: [''], resources: ['pods/*'], operations: [CREATE]", "")), "h");
    never_boots(&before(&hook("apiGroups: [apps], resources: [replicasets], operations: ['*']", "")), "h");
}

#[test]
fn roles() {
    let role = |name: &str| Parts { role: "ROLE", ..Parts::default() }.text().replace("ROLE", name);
    assert_eq!(outcome(&role("system:node")).0, "boots");
    assert_eq!(outcome(&role("cluster-admin")).0, "boots");
    for name in ["view", "edit", "system:absent", "system:discovery"] {
        assert_eq!(outcome(&role(name)).0, "deadlock", "{name}");
    }
    let gathered = |label: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: all}}\naggregationRule: \
             {{clusterRoleSelectors: [{{matchLabels: {{to: ccm}}}}]}}\nrules: []\n---\napiVersion: \
             rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: part, labels: {{to: {label}}}}}\nrules: \
             [{{apiGroups: ['*'], resources: ['*', '*/*', nodes/status], verbs: ['*']}}]\n---\n"
        )
    };
    boots(&Parts { before: &gathered("ccm"), role: "all", ..Parts::default() });
    never_boots(&Parts { before: &gathered("other"), role: "all", ..Parts::default() }, "AUTH-");
}

#[test]
fn flags_and_variables() {
    boots(&args("'--controllers=*,-service'"));
    boots(&args("'--controllers=-service', '--controllers=*'"));
    boots(&Parts { args: "'--controllers=$(LIST)'", env: "{name: LIST, value: '*'}", ..Parts::default() });
    boots_if(
        &args("'--controllers=node,route,service'"),
        "initialises Nodes with --controllers=node,route,service",
    );
    never_boots(&args("'--controllers=service,route'"), "runs no cloud-node controller");
    never_boots(&args("'--controllers=-cloud-node,*'"), "runs no cloud-node controller");
    never_boots(&args("'--controllers=-cloud-node', '--controllers=*'"), "runs no cloud-node controller");
    never_boots(
        &Parts { args: "'--controllers=$(LIST)'", env: "{name: LIST, value: 'service'}", ..Parts::default() },
        "runs no cloud-node controller",
    );
    never_boots(
        &Parts {
            args: "'--leader-elect-resource-name=$(NAME)'",
            env: "{name: NAME, valueFrom: {configMapKeyRef: {name: names, key: lease}}}",
            before: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: names, namespace: kube-system}\ndata: {lease: kube-scheduler}\n---\n",
            ..Parts::default()
        },
        "belongs to kube-scheduler",
    );
    let text = args("'--controllers=service'").text();
    let options =
        ["check", "-", "--topology", "single-node", "--cni", "independent", "--assume", "NodeManager/other"];
    let (code, out, _) = bootstrap(&options, &text);
    assert_eq!(code, 0, "{out}");
}

#[test]
fn names() {
    let cloud =
        |spec| Parts { spec, env: "{name: CLOUD, value: 'http://cloud.example.test/'}", ..Parts::default() };
    boots(&cloud("      dnsPolicy: Default\n"));
    boots(&cloud("      dnsPolicy: None\n      dnsConfig: {nameservers: [192.0.2.53]}\n"));
    boots(&cloud(
        "      dnsPolicy: ClusterFirstWithHostNet\n      hostAliases: [{ip: 172.18.0.1, hostnames: [cloud.example.test]}]\n",
    ));
    never_boots(&cloud("      dnsPolicy: ClusterFirstWithHostNet\n"), "cluster DNS");
    never_boots(
        &cloud("      dnsPolicy: None\n      dnsConfig: {nameservers: [10.96.0.10]}\n"),
        "cluster DNS",
    );
    never_boots(
        &cloud(
            "      dnsPolicy: ClusterFirstWithHostNet\n      hostAliases: [{ip: 172.18.0.1, hostnames: [other.example.test]}]\n",
        ),
        "cluster DNS",
    );
    never_boots(
        &Parts { env: "{name: CLOUD, value: 'http://cloud.kube-system.svc/'}", ..Parts::default() },
        "only cluster DNS knows",
    );
}

#[test]
fn quotas_and_limit_ranges() {
    let with = |object: &str| {
        let text = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: own}}\n---\n{object}---\n");
        Parts { before: "BEFORE", namespace: "own", ..Parts::default() }.text().replacen("BEFORE", &text, 1)
    };
    let quota = |hard: &str| {
        outcome(&with(&format!(
            "apiVersion: v1\nkind: ResourceQuota\nmetadata: {{name: q, namespace: own}}\nspec: {{{hard}}}\n"
        )))
        .0
    };
    assert_eq!(quota("hard: {pods: '5'}"), "boots");
    assert_eq!(quota("hard: {services: '0'}"), "boots");
    assert_eq!(quota("hard: {pods: '0'}, scopes: [NotBestEffort]"), "boots");
    assert_eq!(quota("hard: {pods: '0'}"), "deadlock");
    assert_eq!(quota("hard: {limits.memory: 1Gi}"), "deadlock");
    assert_eq!(quota("hard: {pods: '0'}, scopes: [BestEffort]"), "deadlock");
    assert_eq!(quota("hard: {count/deployments.apps: '0'}"), "deadlock");
    let range = |item: &str| {
        outcome(&with(&format!("apiVersion: v1\nkind: LimitRange\nmetadata: {{name: l, namespace: own}}\nspec: {{limits: [{{type: Container, {item}}}]}}\n"))).0
    };
    assert_eq!(range("default: {memory: 100Mi}"), "boots");
    assert_eq!(range("max: {cpu: '1'}"), "boots");
    assert_eq!(range("max: {cpu: '1'}, default: {cpu: '2'}"), "deadlock");
    assert_eq!(range("defaultRequest: {memory: 1Ti}"), "boots-if");
}

#[test]
fn admission_policies() {
    let policy = |rule: &str, expression: &str, action: &str| {
        format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {{name: p}}\nspec:\n  \
             matchConstraints: {{resourceRules: [{{apiVersions: ['*'], {rule}}}]}}\n  validations: [{{expression: \
             '{expression}'}}]\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: \
             ValidatingAdmissionPolicyBinding\nmetadata: {{name: p}}\nspec: {{policyName: p, validationActions: \
             [{action}]}}\n---\n"
        )
    };
    let pods = "apiGroups: [''], resources: [pods], operations: [CREATE]";
    boots(&before(&policy(pods, "true", "Deny")));
    boots(&before(&policy(pods, "false", "Audit")));
    boots(&before(&policy("apiGroups: [''], resources: [services], operations: ['*']", "false", "Deny")));
    boots_if(&before(&policy(pods, "object.spec.hostNetwork", "Deny")), "the expressions of");
    never_boots(&before(&policy(pods, "false", "Deny")), "denies its Pods");
    never_boots(
        &before(&policy(
            "apiGroups: [apps], resources: [replicasets], operations: [CREATE]",
            "false",
            "Deny",
        )),
        "denies its Pods",
    );
    never_boots(
        &before(&policy("apiGroups: [''], resources: [nodes], operations: [UPDATE]", "false", "Deny")),
        "denies its writes",
    );
}

#[test]
fn the_order_of_documents() {
    let own = |before| Parts { before, namespace: "own", ..Parts::default() };
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: own}\n---\n";
    boots(&own(namespace));
    let late = format!("{}---\n{namespace}", own("").text());
    assert_eq!(outcome(&late).0, "deadlock");
    assert_eq!(outcome(&format!("{namespace}{late}")).0, "boots");
    boots(&spec("      volumes: [{name: v, emptyDir: {}}]\n"));
    let mount = |expression: &str| {
        format!("        volumeMounts: [{{name: v, mountPath: /v, subPathExpr: {expression}}}]\n")
    };
    let volumes = "      volumes: [{name: v, emptyDir: {}}]\n";
    boots(&Parts { spec: volumes, container: &mount("$(URL)"), ..Parts::default() });
    boots(&Parts { spec: volumes, container: &mount("a"), ..Parts::default() });
    never_boots(
        &Parts { spec: volumes, container: &mount("a/$(NONE)"), ..Parts::default() },
        "the variable 'NONE'",
    );
}

#[test]
fn a_missing_secret_is_answered_at_once() {
    let text = spec("      volumes: [{name: v, secret: {secretName: cloud}}]\n").text();
    let (code, out, _) = bootstrap(&["check", "-", "--topology", "single-node", "--cni", "none"], &text);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("if Secret/kube-system/cloud exists: 1 of 1 cells boot"), "{out}");
    // The controller of a custom resource may create it.
    let custom = "apiVersion: talos.dev/v1alpha1\nkind: ServiceAccount\nmetadata: {name: cloud, namespace: kube-system}\n---\n";
    boots_if(
        &Parts {
            before: custom,
            spec: "      volumes: [{name: v, secret: {secretName: cloud}}]\n",
            ..Parts::default()
        },
        "ServiceAccount.talos.dev/cloud creates Secret/kube-system/cloud",
    );
}

#[test]
fn runtime_classes_and_profiles() {
    let class = |more: &str| {
        format!(
            "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {{name: box}}\nhandler: runc\n{more}---\n"
        )
    };
    fn with(before: &str) -> Parts<'_> {
        Parts { before, spec: "      runtimeClassName: box\n", ..Parts::default() }
    }
    let handler = "has the handler of the RuntimeClass 'box'";
    boots_if(&with(&class("")), handler);
    boots_if(&with(&class("scheduling: {nodeSelector: {kubernetes.io/os: linux}}\n")), handler);
    boots_if(&with(&class("overhead: {podFixed: {memory: 100Mi}}\n")), handler);
    boots_if(&with(&class("overhead: {podFixed: {memory: 1Ti}}\n")), "room for the overhead");
    never_boots(&with(&class("scheduling: {nodeSelector: {box: 'yes'}}\n")), "box=yes");
    never_boots(
        &with(&class("scheduling: {nodeSelector: {node-role.kubernetes.io/control-plane: other}}\n")),
        "RuntimeClass/box selects Nodes",
    );
    let sysctl = |name: &str| spec_text(&format!("{{sysctls: [{{name: {name}, value: '1'}}]}}"));
    boots(&spec(&sysctl("kernel.shm_rmid_forced")));
    never_boots(&spec(&sysctl("net.ipv4.tcp_syncookies")), "net.ipv4.tcp_syncookies");
    boots(&spec(&spec_text("{seccompProfile: {type: RuntimeDefault}}")));
    boots_if(&spec(&spec_text("{appArmorProfile: {type: RuntimeDefault}}")), "AppArmor");
}

/// The line of a security context.
fn spec_text(context: &str) -> String {
    format!("      securityContext: {context}\n")
}

#[test]
fn pod_security() {
    let verdict = |level: &str, spec: &str, container: &str| {
        let before = format!(
            "apiVersion: v1\nkind: Namespace\nmetadata: {{name: own, labels: {{pod-security.kubernetes.io/enforce: \
             {level}}}}}\n---\n"
        );
        let parts = Parts { before: &before, namespace: "own", spec, container, ..Parts::default() };
        // The pod network of kind is there without the CCM, so the host's network is not needed.
        outcome(&parts.text().replace("      hostNetwork: true\n", "")).0
    };
    let strict = "        securityContext: {allowPrivilegeEscalation: false, runAsNonRoot: true, runAsUser: 65532, \
                  capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}}\n";
    assert_eq!(verdict("privileged", "", ""), "boots");
    assert_eq!(verdict("baseline", "", ""), "boots");
    assert_eq!(verdict("restricted", "", strict), "boots");
    assert_eq!(verdict("restricted", "", ""), "deadlock");
    assert_eq!(
        verdict("restricted", "      volumes: [{name: v, hostPath: {path: /a}}]\n", strict),
        "deadlock"
    );
    assert_eq!(verdict("restricted", "", &strict.replace("65532", "0")), "deadlock");
    assert_eq!(verdict("baseline", &spec_text("{seccompProfile: {type: Unconfined}}"), ""), "deadlock");
    assert_eq!(verdict("baseline", "      hostPID: true\n", ""), "deadlock");
}
