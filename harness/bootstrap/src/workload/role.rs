//! Recognises which workload is the cloud controller manager, which the network plugin, and so on.

use super::kind::{Role, WorkloadKind};
use super::pods::Workload;

/// Why the CCM cannot be determined for certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CcmDoubt {
    /// No workload looks like a CCM.
    None,
    /// Several workloads look like one.
    Several,
}

/// The role, recognised by well-known names and by mounts.
pub(super) fn of(workload: &Workload) -> Role {
    let name = workload.name.to_lowercase();
    let images: Vec<String> = workload.containers.iter().map(|c| c.image.to_lowercase()).collect();
    let named = |part: &str| name.contains(part) || images.iter().any(|image| image.contains(part));
    let labelled = |part: &str| workload.labels.values().any(|value| value.to_lowercase().contains(part));
    if named("cloud-node-manager") {
        return Role::NodeManager;
    }
    let own_flag = workload.flag("cloud-provider").is_some();
    let short = name == "ccm" || name.ends_with("-ccm") || name.starts_with("ccm-") || name.contains("-ccm-");
    let image = images.iter().any(|i| i.contains("-ccm") || i.contains("/ccm"));
    // Other programs with the same flag.
    let others = ["kube-apiserver", "kube-controller-manager", "kubelet", "autoscaler", "csi"];
    let another = others.iter().any(|own| named(own));
    if named("cloud-controller") || labelled("cloud-controller-manager") || short || image {
        return Role::Ccm;
    }
    if own_flag && !another {
        return Role::Ccm;
    }
    if workload.kind == WorkloadKind::DaemonSet && workload.mounts_cni {
        return Role::Cni;
    }
    if workload.labels.get("k8s-app").is_some_and(|app| app == "kube-dns") {
        return Role::Dns;
    }
    Role::Other
}

/// Indices of the CCMs of a set, and whether there is doubt about them.
pub(crate) fn cloud_controllers(workloads: &[Workload]) -> (Vec<usize>, Option<CcmDoubt>) {
    let is_ccm = |workload: &Workload| matches!(workload.role, Role::Ccm | Role::NodeManager);
    let found: Vec<usize> =
        workloads.iter().enumerate().filter(|(_, w)| is_ccm(w)).map(|(index, _)| index).collect();
    let managers = found.iter().filter(|index| workloads[**index].role == Role::Ccm).count();
    let doubt = match managers {
        0 if found.is_empty() => Some(CcmDoubt::None),
        0 | 1 => None,
        _ => Some(CcmDoubt::Several),
    };
    (found, doubt)
}

impl Workload {
    /// Whether it initialises Nodes: `--controllers` may disable that.
    pub(crate) fn initialises_nodes(&self) -> bool {
        let Some((list, _)) = self.flag("controllers") else { return true };
        let names: Vec<&str> = list.split(',').map(str::trim).collect();
        let own = ["cloud-node", "cloud-node-controller"];
        if names.iter().any(|name| own.iter().any(|own| name.strip_prefix('-') == Some(own))) {
            return false;
        }
        names.contains(&"*") || names.iter().any(|name| own.contains(name))
    }
}
