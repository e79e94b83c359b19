//! Variants about files of the machine that a Pod mounts.

use super::{all, below, boot, changed, judge, pod};
use bootstrap::{Outcome, Topology};

fn mounted(path: &str, kind: &str) -> String {
    let text = pod(&format!("volumes: [{{name: own, hostPath: {{path: {path}, type: {kind}}}}}]"));
    below(&text, "        imagePullPolicy: IfNotPresent\n", 8, "volumeMounts: [{name: own, mountPath: /own}]")
}

#[test]
fn files_of_kubeadm_and_of_the_system_are_there() {
    boot(&[
        ("the kubeconfig of administrators", mounted("/etc/kubernetes/admin.conf", "File")),
        ("certificates", mounted("/etc/kubernetes/pki", "Directory")),
        ("a kubelet's kubeconfig", mounted("/etc/kubernetes/kubelet.conf", "File")),
        ("names", mounted("/etc/hosts", "File")),
        ("containerd", mounted("/run/containerd/containerd.sock", "Socket")),
    ]);
    all(
        Outcome::BootsIf,
        &[
            ("a vendor's file", mounted("/etc/acme.conf", "File")),
            ("a file as a folder", mounted("/etc/kubernetes/admin.conf", "Directory")),
        ],
    );
}

#[test]
fn only_control_planes_have_those_of_the_control_plane() {
    let on_workers = |path: &str, kind: &str| {
        let selector = "      nodeSelector:\n        node-role.kubernetes.io/control-plane: ''\n";
        let affinity = "      affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: node-role.kubernetes.io/control-plane, operator: DoesNotExist}]}]}}}\n";
        changed(&mounted(path, kind), selector, affinity)
    };
    let on_worker = |text: &str| judge(text, Topology::ControlPlaneAndWorker);
    let (found, why) = on_worker(&on_workers("/etc/kubernetes/scheduler.conf", "File"));
    assert_eq!(found, Outcome::Deadlock, "{why}");
    let (found, why) = on_worker(&on_workers("/etc/kubernetes/kubelet.conf", "File"));
    assert_eq!(found, Outcome::Boots, "{why}");
}
