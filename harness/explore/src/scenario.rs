//! Scenarios: short histories of what users, kubelets and the cloud do, as data.

use harness_config::yaml;
use harness_core::check::Capability;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

/// A history, without any fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Scenario {
    /// Its name: lower-case letters, digits and hyphens.
    pub name: String,
    /// What happens in it, in one sentence.
    pub about: String,
    /// What happens, in this order.
    pub steps: Vec<Step>,
}

/// One step of a history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Step {
    /// A user creates a Service of type LoadBalancer with these ports.
    CreateService {
        /// The Service.
        service: String,
        /// Its ports.
        ports: Vec<u16>,
    },
    /// A user replaces the ports of a Service.
    SetPorts {
        /// The Service.
        service: String,
        /// Its ports.
        ports: Vec<u16>,
    },
    /// A user gives the first port of a Service another node port.
    SetNodePort {
        /// The Service.
        service: String,
    },
    /// A user wants a client to stay with the same backend, or no longer.
    SetAffinity {
        /// The Service.
        service: String,
        /// Whether it stays.
        affinity: bool,
    },
    /// A user replaces the addresses from which clients are admitted.
    SetRanges {
        /// The Service.
        service: String,
        /// The ranges, at least one.
        ranges: Vec<String>,
    },
    /// A user changes the type of a Service.
    SetType {
        /// The Service.
        service: String,
        /// The type.
        #[serde(rename = "type")]
        to: ServiceType,
    },
    /// A user deletes a Service.
    DeleteService {
        /// The Service.
        service: String,
    },
    /// A machine appears in the cloud.
    CreateMachine {
        /// The machine.
        machine: String,
    },
    /// The kubelet of a machine registers its Node, which is excluded from load balancers.
    RegisterNode {
        /// The machine.
        machine: String,
    },
    /// The kubelet of a machine registers its Node, which load balancers may use.
    RegisterBackend {
        /// The machine.
        machine: String,
    },
    /// A user excludes a Node from load balancers.
    ExcludeNode {
        /// Its machine.
        machine: String,
    },
    /// A user deletes the Node of a machine.
    DeleteNode {
        /// The machine.
        machine: String,
    },
    /// A machine disappears from the cloud, and its kubelet reports no more.
    DeleteMachine {
        /// The machine.
        machine: String,
    },
    /// Nothing more happens until cluster and cloud are as the steps so far require.
    Settle,
}

impl Step {
    /// The name of the Service or machine; `None` for a wait.
    pub(crate) fn object(&self) -> Option<&str> {
        match self {
            Step::CreateService { service, .. }
            | Step::SetPorts { service, .. }
            | Step::SetNodePort { service }
            | Step::SetAffinity { service, .. }
            | Step::SetRanges { service, .. }
            | Step::SetType { service, .. }
            | Step::DeleteService { service } => Some(service),
            Step::CreateMachine { machine }
            | Step::RegisterNode { machine }
            | Step::RegisterBackend { machine }
            | Step::ExcludeNode { machine }
            | Step::DeleteNode { machine }
            | Step::DeleteMachine { machine } => Some(machine),
            Step::Settle => None,
        }
    }
}

/// The types of Services that a scenario uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServiceType {
    /// Without a load balancer.
    #[serde(rename = "ClusterIP")]
    ClusterIp,
    /// With one.
    LoadBalancer,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::CreateService { service, ports } => {
                write!(f, "create Service {service} with {}", Ports(ports))
            }
            Step::SetPorts { service, ports } => write!(f, "change Service {service} to {}", Ports(ports)),
            Step::SetNodePort { service } => write!(f, "change the node port of Service {service}"),
            Step::SetAffinity { service, affinity: true } => {
                write!(f, "change Service {service} to session affinity by client address")
            }
            Step::SetAffinity { service, affinity: false } => {
                write!(f, "change Service {service} to no session affinity")
            }
            Step::SetRanges { service, ranges } => {
                write!(f, "change Service {service} to admit clients from {}", ranges.join(" and "))
            }
            Step::SetType { service, to: ServiceType::ClusterIp } => {
                write!(f, "change Service {service} to type ClusterIP")
            }
            Step::SetType { service, to: ServiceType::LoadBalancer } => {
                write!(f, "change Service {service} to type LoadBalancer")
            }
            Step::DeleteService { service } => write!(f, "delete Service {service}"),
            Step::CreateMachine { machine } => write!(f, "create machine {machine}"),
            Step::RegisterNode { machine } => write!(f, "register the Node of {machine}"),
            Step::RegisterBackend { machine } => write!(f, "register the Node of {machine} as a backend"),
            Step::ExcludeNode { machine } => write!(f, "exclude the Node of {machine} from load balancers"),
            Step::DeleteNode { machine } => write!(f, "delete the Node of {machine}"),
            Step::DeleteMachine { machine } => write!(f, "delete machine {machine}"),
            Step::Settle => f.write_str("wait until cluster and cloud agree"),
        }
    }
}

struct Ports<'a>(&'a [u16]);

impl fmt::Display for Ports<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(u16::to_string).collect();
        write!(f, "port{} {}", if all.len() == 1 { "" } else { "s" }, all.join(", "))
    }
}

macro_rules! built_in {
    ($($name:literal),+ $(,)?) => {
        /// The scenarios that come with the program.
        const BUILT_IN: &[(&str, &str)] = &[$(($name, include_str!(concat!("../scenarios/", $name, ".yaml")))),+];
    };
}

built_in![
    "service-life",
    "quick-edits",
    "settings",
    "type-change",
    "deleted-while-created",
    "two-services",
    "node-life",
    "node-renewed",
    "backends",
];

impl Scenario {
    /// The scenarios that come with the program, or those of them with these names.
    ///
    /// # Errors
    /// A name that no scenario has.
    pub fn built_in(names: &[String]) -> Result<Vec<Scenario>, String> {
        let known: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
        if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(format!(
                "--scenario: unknown scenario '{unknown}'; the scenarios are {}",
                known.join(", ")
            ));
        }
        let wanted = BUILT_IN.iter().filter(|(name, _)| names.is_empty() || names.iter().any(|n| n == name));
        wanted.map(|(name, text)| Scenario::parse(text, Path::new(&format!("{name}.yaml")))).collect()
    }

    /// All of the program's scenarios and the random ones, or those of them with these names.
    ///
    /// # Errors
    /// A name that none of them has.
    pub fn choose(names: &[String], random: Vec<Scenario>) -> Result<Vec<Scenario>, String> {
        let mut all = Scenario::built_in(&[])?;
        all.extend(random);
        if let Some(unknown) = names.iter().find(|name| all.iter().all(|one| one.name != **name)) {
            let known: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
            return Err(format!(
                "--scenario: unknown scenario '{unknown}'; the scenarios are {}",
                known.join(", ")
            ));
        }
        all.retain(|one| names.is_empty() || names.contains(&one.name));
        Ok(all)
    }

    /// Reads a scenario. `file` is named in errors and not read.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str, file: &Path) -> Result<Scenario, String> {
        let scenario: Scenario = yaml::from_str(text, file).map_err(|error| error.to_string())?;
        let sound = scenario.check().map_err(|why| format!("{}: {why}", file.display()));
        sound.map(|()| scenario)
    }

    /// Whether something happens at a step, which is not only a wait.
    pub(crate) fn acts_at(&self, step: usize) -> bool {
        self.steps.get(step).is_some_and(|step| *step != Step::Settle)
    }

    /// What a CCM must declare so that the scenario makes sense for it.
    pub fn needs(&self) -> BTreeSet<Capability> {
        let need = |step: &Step| match step {
            Step::SetAffinity { .. } => Some(Capability::Affinity),
            Step::SetRanges { .. } => Some(Capability::SourceRanges),
            Step::RegisterBackend { .. } => Some(Capability::NodeTargets),
            Step::CreateService { .. } => Some(Capability::LoadBalancer),
            Step::RegisterNode { .. } => Some(Capability::Instances),
            _ => None,
        };
        self.steps.iter().filter_map(need).collect()
    }

    /// The Services and machines in it, in the order in which they appear.
    pub(crate) fn objects(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for object in self.steps.iter().filter_map(Step::object) {
            if !all.iter().any(|known| known == object) {
                all.push(object.to_owned());
            }
        }
        all
    }

    /// The machines that appear in it.
    pub(crate) fn machines(&self) -> Vec<String> {
        let machine = |step: &Step| match step {
            Step::CreateMachine { machine } => Some(machine.clone()),
            _ => None,
        };
        self.steps.iter().filter_map(machine).collect()
    }

    /// Whether each step uses only what an earlier one has created.
    ///
    /// # Errors
    /// The first step that does not.
    pub fn check(&self) -> Result<(), String> {
        let (mut services, mut machines, mut nodes) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for (at, step) in self.steps.iter().enumerate() {
            let fits = match step {
                Step::CreateService { service, ports } => !ports.is_empty() && services.insert(service),
                Step::SetPorts { service, ports } => !ports.is_empty() && services.contains(service),
                Step::SetNodePort { service }
                | Step::SetAffinity { service, .. }
                | Step::SetType { service, .. } => services.contains(service),
                Step::SetRanges { service, ranges } => !ranges.is_empty() && services.contains(service),
                Step::DeleteService { service } => services.remove(service),
                Step::CreateMachine { machine } => machines.insert(machine),
                Step::RegisterNode { machine } | Step::RegisterBackend { machine } => {
                    machines.contains(machine) && nodes.insert(machine)
                }
                Step::ExcludeNode { machine } => nodes.contains(machine),
                Step::DeleteNode { machine } => nodes.remove(machine),
                Step::DeleteMachine { machine } => {
                    nodes.remove(machine);
                    machines.remove(machine)
                }
                Step::Settle => true,
            };
            if !fits {
                return Err(format!("steps[{at}]: '{step}' is not possible after the steps before it"));
            }
        }
        match self.steps.last() {
            Some(Step::Settle) => Ok(()),
            _ => Err("steps: the last one must be 'settle'".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_scenarios_are_sound_and_named_like_their_files() {
        let all = Scenario::built_in(&[]).expect("sound");
        let names: Vec<&str> = all.iter().map(|scenario| scenario.name.as_str()).collect();
        assert_eq!(names, BUILT_IN.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        let error = Scenario::built_in(&["nope".to_owned()]).expect_err("no such scenario");
        assert!(error.contains("'nope'") && error.contains("node-life"), "{error}");
    }

    #[test]
    fn a_step_that_is_not_possible_is_named() {
        let of = |steps: &str| {
            Scenario::parse(&format!("name: a\nabout: b\nsteps:\n{steps}"), Path::new("a.yaml"))
        };
        let error = of("- delete-service: {service: web}\n- settle\n").expect_err("nothing to delete");
        assert_eq!(error, "a.yaml: steps[0]: 'delete Service web' is not possible after the steps before it");
        let error = of("- create-machine: {machine: m}\n").expect_err("does not settle");
        assert_eq!(error, "a.yaml: steps: the last one must be 'settle'");
        assert!(of("- dance\n").is_err());
    }
}
