//! Variants of each area of the model, some that boot and some that do not. They follow the source of Kubernetes 1.36; the
//! real clusters' verdicts are in `measured.rs`.

mod admission;
mod control_plane;
mod pods;
mod requests;

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

/// The line of a security context.
fn spec_text(context: &str) -> String {
    format!("      securityContext: {context}\n")
}
