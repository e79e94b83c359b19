//! Recognises which workload is the cloud controller manager, which the network plugin, and so on.

use super::controllers::Controllers;
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

impl Workload {
    /// The list of `--controllers`, and where it begins.
    fn controllers(&self) -> Option<(Controllers, Place)> {
        let containers = self.containers.iter().filter(|container| !container.init);
        let all: Vec<(String, Place)> =
            containers.flat_map(|container| container.flags("controllers")).collect();
        let (_, place) = all.first()?.clone();
        Some((Controllers::of(all.iter().map(|(list, _)| list.as_str())), place))
    }

    /// Whether a controller of the framework with one of these names runs.
    pub fn runs_controller(&self, names: &[&str]) -> bool {
        self.controllers().is_none_or(|(controllers, _)| controllers.run(names))
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
        let is_of_framework = ["cloud-provider", "leader-elect"].iter().any(|flag| self.flag(flag).is_some());
        if let Some(several) =
            list.entries().iter().find(|name| name.contains(',')).filter(|_| is_of_framework)
        {
            self.hindrances.push(Hindrance::new(
                Stage::Work,
                format!("the process exits, as '{several}' in quotes is one name, and no controller has it"),
                place,
                String::from("remove the quotes around the list of --controllers"),
            ));
            return;
        }
        let stops = |name: &String| name.starts_with("-cloud-node") && !name.contains("lifecycle");
        if !list.are_of_framework() && !list.entries().iter().any(stops) {
            let words = format!("its program initialises Nodes with --controllers={list}");
            self.conditions.push(Condition { words, place });
            return;
        }
        self.hindrances.push(Hindrance::new(
            Stage::Initialisation,
            format!("--controllers={list} runs no cloud-node controller, which initialises Nodes"),
            place,
            String::from(
                "add cloud-node to --controllers, or pass '--assume NodeManager/NAME' if another program initialises \
                 Nodes",
            ),
        ));
    }
}
