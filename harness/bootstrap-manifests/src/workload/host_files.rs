//! Files and folders that every machine of a new cluster has, or every control plane: those of the operating system, of
//! kubeadm (`cmd/kubeadm/app/constants`) and of containerd.

/// Which machines have a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Machines {
    All,
    ControlPlanes,
}

/// Files that every machine has.
const FILES: &[&str] = &[
    "/etc/hostname",
    "/etc/hosts",
    "/etc/kubernetes/kubelet.conf",
    "/etc/kubernetes/pki/ca.crt",
    "/etc/machine-id",
    "/etc/os-release",
    "/etc/resolv.conf",
    "/var/lib/kubelet/config.yaml",
];

/// Folders that every machine has.
const FOLDERS: &[&str] = &[
    "/dev",
    "/etc",
    "/etc/kubernetes",
    "/etc/kubernetes/manifests",
    "/etc/kubernetes/pki",
    "/etc/ssl",
    "/etc/ssl/certs",
    "/opt",
    "/proc",
    "/run",
    "/run/containerd",
    "/sys",
    "/tmp",
    "/usr",
    "/usr/bin",
    "/usr/local",
    "/usr/share",
    "/var",
    "/var/lib",
    "/var/lib/containerd",
    "/var/lib/kubelet",
    "/var/lib/kubelet/pki",
    "/var/log",
    "/var/run",
    "/var/tmp",
];

/// Files that only control planes have.
const OF_CONTROL_PLANES: &[&str] = &[
    "/etc/kubernetes/admin.conf",
    "/etc/kubernetes/controller-manager.conf",
    "/etc/kubernetes/manifests/etcd.yaml",
    "/etc/kubernetes/manifests/kube-apiserver.yaml",
    "/etc/kubernetes/manifests/kube-controller-manager.yaml",
    "/etc/kubernetes/manifests/kube-scheduler.yaml",
    "/etc/kubernetes/pki/apiserver-etcd-client.crt",
    "/etc/kubernetes/pki/apiserver-etcd-client.key",
    "/etc/kubernetes/pki/apiserver-kubelet-client.crt",
    "/etc/kubernetes/pki/apiserver-kubelet-client.key",
    "/etc/kubernetes/pki/apiserver.crt",
    "/etc/kubernetes/pki/apiserver.key",
    "/etc/kubernetes/pki/ca.key",
    "/etc/kubernetes/pki/etcd/ca.crt",
    "/etc/kubernetes/pki/etcd/server.crt",
    "/etc/kubernetes/pki/etcd/server.key",
    "/etc/kubernetes/pki/front-proxy-ca.crt",
    "/etc/kubernetes/pki/front-proxy-client.crt",
    "/etc/kubernetes/pki/front-proxy-client.key",
    "/etc/kubernetes/pki/sa.key",
    "/etc/kubernetes/pki/sa.pub",
    "/etc/kubernetes/scheduler.conf",
];

/// Folders that only control planes have.
const FOLDERS_OF_CONTROL_PLANES: &[&str] = &["/etc/kubernetes/pki/etcd", "/var/lib/etcd"];

/// The machines that have the path of a `hostPath` volume of this type; `None` if that is not known. A volume of another
/// type than `File`, `Directory` and `Socket` is not looked for.
pub(super) fn machines_with(path: &str, kind: &str) -> Option<Machines> {
    let path = if path.len() > 1 { path.trim_end_matches('/') } else { path };
    let (all, of_control_planes): (&[&str], &[&str]) = match kind {
        "File" => (FILES, OF_CONTROL_PLANES),
        "Directory" => (FOLDERS, FOLDERS_OF_CONTROL_PLANES),
        "Socket" => (&["/run/containerd/containerd.sock"], &[]),
        _ => return None,
    };
    if all.contains(&path) {
        Some(Machines::All)
    } else {
        of_control_planes.contains(&path).then_some(Machines::ControlPlanes)
    }
}

/// Whether the folder of a file is one that every machine has.
pub(super) fn has_known_folder(path: &str) -> bool {
    path.rsplit_once('/').is_some_and(|(folder, _)| folder.is_empty() || FOLDERS.contains(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubeadms_files_are_on_control_planes_and_some_on_every_machine() {
        assert_eq!(machines_with("/etc/kubernetes/admin.conf", "File"), Some(Machines::ControlPlanes));
        assert_eq!(machines_with("/etc/kubernetes/pki/", "Directory"), Some(Machines::All));
        assert_eq!(machines_with("/etc/kubernetes/admin.conf", "Directory"), None);
        assert_eq!(machines_with("/etc/acme/cloud.conf", "File"), None);
        assert_eq!(machines_with("/etc/acme", "DirectoryOrCreate"), None);
        assert!(
            has_known_folder("/etc/acme.conf") && has_known_folder("/x") && !has_known_folder("/etc/acme/x")
        );
    }
}
