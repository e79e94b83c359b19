//! Variants about the static Pods of a control plane.

use super::{boot, changed, container, deadlock, pod};

fn affinity(kind: &str, term: &str) -> String {
    pod(&format!(
        "affinity:\n  {kind}:\n    requiredDuringSchedulingIgnoredDuringExecution:\n    - {}",
        term.replace('\n', "\n      ")
    ))
}

fn near(selector: &str) -> String {
    affinity(
        "podAffinity",
        &format!("topologyKey: kubernetes.io/hostname\nlabelSelector: {{matchLabels: {selector}}}"),
    )
}

fn apart(selector: &str) -> String {
    affinity(
        "podAntiAffinity",
        &format!("topologyKey: kubernetes.io/hostname\nlabelSelector: {{matchLabels: {selector}}}"),
    )
}

fn port(number: u32) -> String {
    container(&format!("ports:\n- containerPort: {number}\n  name: one"))
}

#[test]
fn affinity_to_static_pods() {
    boot(&[
        ("near the scheduler", near("{component: kube-scheduler}")),
        ("near etcd", near("{component: etcd, tier: control-plane}")),
        ("near kube-proxy", near("{k8s-app: kube-proxy}")),
        (
            "near them in the same system",
            affinity(
                "podAffinity",
                "topologyKey: kubernetes.io/os\nlabelSelector: {matchLabels: {tier: control-plane}}",
            ),
        ),
        ("apart from a Pod that is not there", apart("{component: kube-apiserver, tier: other}")),
        (
            "apart from the API servers of another namespace",
            affinity(
                "podAntiAffinity",
                "topologyKey: kubernetes.io/hostname\nnamespaces: [default]\nlabelSelector: {matchLabels: {component: kube-apiserver}}",
            ),
        ),
    ]);
    deadlock(&[
        ("near a component that is not there", near("{component: cloud-controller-manager}")),
        ("near another tier", near("{component: etcd, tier: node}")),
        ("apart from the API server", apart("{component: kube-apiserver}")),
        ("apart from kube-proxy", apart("{k8s-app: kube-proxy}")),
        (
            "near API servers of another namespace",
            affinity(
                "podAffinity",
                "topologyKey: kubernetes.io/hostname\nnamespaces: [default]\nlabelSelector: {matchLabels: {component: kube-apiserver}}",
            ),
        ),
    ]);
}

#[test]
fn host_ports_of_static_pods() {
    boot(&[("its own port", port(10_258)), ("the port by UDP", udp(&port(10_259)))]);
    deadlock(&[
        ("the port of kube-controller-manager", port(10_257)),
        ("the port of the API server", port(6443)),
        ("the probe port of etcd", port(2381)),
    ]);
}

fn udp(text: &str) -> String {
    changed(text, "          name: one\n", "          name: one\n          protocol: UDP\n")
}
