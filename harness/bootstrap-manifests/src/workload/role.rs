//! Recognises which workload is the cloud controller manager, which the network plugin, and so on.

use super::hindrance::Hindrance;
use super::kind::{Role, WorkloadKind};
use super::outside::Condition;
use super::pods::Workload;
use super::refs::Stage;
use crate::manifest::Place;

/// Why the CCM cannot be determined for certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CcmDoubt {
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
    // A program of the framework, which has a list of controllers, initialises all Nodes whatever it is called.
    if named("cloud-node-manager") && workload.flag("controllers").is_none() {
        return Role::NodeManager;
    }
    let own_flag = workload.flag("cloud-provider").is_some();
    let short = name == "ccm" || name.ends_with("-ccm") || name.starts_with("ccm-") || name.contains("-ccm-");
    let image = images.iter().any(|i| i.contains("-ccm") || i.contains("/ccm"));
    // Other programs with the same flag.
    let others = ["kube-apiserver", "kube-controller-manager", "kubelet", "autoscaler", "csi"];
    let another = others.iter().any(|own| named(own));
    // Such as harvester-cloud-provider.
    let provider = name.ends_with("cloud-provider")
        || images.iter().any(|i| i.rsplit('/').next().is_some_and(|last| last.contains("cloud-provider")));
    if provider && !another && workload.kind != WorkloadKind::Job {
        return Role::Ccm;
    }
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
pub fn cloud_controllers(workloads: &[Workload]) -> (Vec<usize>, Option<CcmDoubt>) {
    let is_ccm = |workload: &Workload| matches!(workload.role, Role::Ccm | Role::NodeManager);
    let found: Vec<usize> =
        workloads.iter().enumerate().filter(|(_, w)| is_ccm(w)).map(|(index, _)| index).collect();
    let is_main =
        |workload: &Workload| workload.role == Role::Ccm && !workload.name.contains("cloud-node-manager");
    let managers = found.iter().filter(|index| is_main(&workloads[**index])).count();
    let doubt = match managers {
        0 if found.is_empty() => Some(CcmDoubt::None),
        0 | 1 => None,
        _ => Some(CcmDoubt::Several),
    };
    (found, doubt)
}

/// The controllers of the framework, by both of their names (`cloud-provider/names`).
const OF_FRAMEWORK: &[&str] = &[
    "cloud-node",
    "cloud-node-controller",
    "cloud-node-lifecycle",
    "cloud-node-lifecycle-controller",
    "node-ipam-controller",
    "node-route-controller",
    "nodeipam",
    "route",
    "service",
    "service-lb-controller",
];

/// The names in a list flag, which is read like a line of CSV: what is in quotes is one name.
fn names_of(list: &str) -> Vec<String> {
    match list.strip_prefix('"').and_then(|list| list.strip_suffix('"')) {
        Some(one) if !one.contains('"') => vec![one.to_owned()],
        _ => list.split(',').map(|name| name.trim().to_owned()).collect(),
    }
}

impl Workload {
    /// The list of `--controllers`: a list flag that is given several times is one list.
    pub fn controllers(&self) -> Option<(Vec<String>, Place)> {
        let containers = self.containers.iter().filter(|container| !container.init);
        let all: Vec<(String, Place)> =
            containers.flat_map(|container| container.flags("controllers")).collect();
        let (_, place) = all.first()?.clone();
        let names = all.iter().flat_map(|(list, _)| names_of(list));
        Some((names.collect(), place))
    }

    /// Whether a controller of the framework runs: the first entry that names it decides (`IsControllerEnabled`).
    pub fn runs_controller(&self, names: &[&str]) -> bool {
        let Some((list, _)) = self.controllers() else { return true };
        for entry in &list {
            if names.contains(&entry.as_str()) {
                return true;
            }
            if entry.strip_prefix('-').is_some_and(|entry| names.contains(&entry)) {
                return false;
            }
        }
        list.iter().any(|entry| entry == "*")
    }

    /// An argument that contains several flags, or a flag and its value without `=`: no shell separates them.
    fn joined_flags(&self) -> Option<Hindrance> {
        let containers = self.containers.iter().filter(|container| !container.init);
        let joined = |argument: &str| {
            let name = argument.split('=').next().unwrap_or_default();
            argument.starts_with("--") && (name.contains(' ') || argument.contains(" --"))
        };
        let mut arguments = containers.flat_map(|container| &container.arguments);
        let (argument, place) = arguments.find(|(argument, _)| joined(argument))?;
        Some(Hindrance::new(
            Stage::Work,
            format!("the process exits, as it gets '{argument}' as one argument"),
            place.clone(),
            String::from("write each flag as an item of the list, and its value after ="),
        ))
    }

    /// Records whether `--controllers` keeps it from initialising Nodes. What a program that is not built with the
    /// framework does with the flag is not known.
    pub(super) fn judge_controllers(&mut self) {
        if !matches!(self.role, Role::Ccm | Role::NodeManager) {
            return;
        }
        self.hindrances.extend(self.joined_flags());
        let Some((list, place)) = self.controllers() else { return };
        if self.runs_controller(&["cloud-node", "cloud-node-controller"]) {
            return;
        }
        let shown = list.join(",");
        let is_of_framework = ["cloud-provider", "leader-elect"].iter().any(|flag| self.flag(flag).is_some());
        if let Some(several) = list.iter().find(|name| name.contains(',')).filter(|_| is_of_framework) {
            self.hindrances.push(Hindrance::new(
                Stage::Work,
                format!("the process exits, as '{several}' in quotes is one name, and no controller has it"),
                place,
                String::from("remove the quotes around the list of --controllers"),
            ));
            return;
        }
        let foreign = |name: &String| {
            let bare = name.trim_start_matches('-');
            bare != "*" && !bare.is_empty() && !OF_FRAMEWORK.contains(&bare)
        };
        let refused = list.iter().any(|name| name.starts_with("-cloud-node") && !name.contains("lifecycle"));
        if list.iter().any(foreign) && !refused {
            let words = format!("its program initialises Nodes with --controllers={shown}");
            self.conditions.push(Condition { words, place });
            return;
        }
        self.hindrances.push(Hindrance::new(
            Stage::Initialisation,
            format!("--controllers={shown} runs no cloud-node controller, which initialises Nodes"),
            place,
            String::from(
                "add cloud-node to --controllers, or pass '--assume NodeManager/NAME' if another program initialises \
                 Nodes",
            ),
        ));
    }
}
