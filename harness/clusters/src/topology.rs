//! Topologies: kind configurations that define only the machines and the network of a cluster.

use super::error::ClusterError;
use super::record::{PodNetworkPlan, Role};
use super::registration::{Place, Registration, registration};
use harness_config::{Topology, yaml};
use harness_core::files;
use serde_json::{Map, Value, json};
use std::path::Path;

/// A topology as it was written, validated as far as the harness depends on it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Layout {
    /// Name for the report.
    pub(super) name: String,
    /// The kind configuration.
    pub(super) config: Map<String, Value>,
    /// Its machines, in the file's order.
    pub(super) machines: Vec<PlannedMachine>,
    /// Whether it has a pod network.
    pub(super) pod_network: PodNetworkPlan,
    /// Its IP families.
    pub(super) families: Families,
}

/// A machine of a topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedMachine {
    /// Its role in the cluster.
    pub role: Role,
    /// The initial state of its Node.
    pub registration: Registration,
}

/// The machines of a topology, in the file's order.
///
/// # Errors
/// The file cannot be read, or is not a topology.
pub fn planned_machines(topology: &Topology) -> Result<Vec<PlannedMachine>, ClusterError> {
    Ok(load(topology)?.machines)
}

impl Layout {
    /// The role of each machine, in the file's order.
    pub(super) fn roles(&self) -> Vec<Role> {
        self.machines.iter().map(|machine| machine.role).collect()
    }

    /// Whether it has only IPv6.
    pub(super) fn is_ipv6_only(&self) -> bool {
        self.config.get("networking").and_then(|networking| networking.get("ipFamily"))
            == Some(&json!("ipv6"))
    }
}

/// IP families of a cluster's network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Families {
    /// IPv4; also IPv6 if it is available.
    Ipv4,
    /// IPv4 and IPv6, otherwise it fails.
    Both,
}

/// Reads a topology: a built-in one, or a file.
pub(super) fn load(topology: &Topology) -> Result<Layout, ClusterError> {
    let file = match topology {
        Topology::File(file) => file.clone(),
        Topology::Single | Topology::ThreeNode | Topology::NoCni | Topology::DualStack => {
            files::built_in(&format!("kind-configs/{}.yaml", topology.name()))
        }
    };
    let text = files::read(&file).map_err(ClusterError::file("read the topology", &file))?;
    parse(topology.name(), &text, &file)
}

fn parse(name: String, text: &str, file: &Path) -> Result<Layout, ClusterError> {
    let wrong = |why: String| ClusterError::Usage {
        what: format!("topology {}", file.display()),
        why,
        way_out: "give a configuration file of kind (https://kind.sigs.k8s.io/docs/user/configuration)"
            .to_owned(),
    };
    let mut config: Map<String, Value> = yaml::from_str(text, file).map_err(|error| wrong(error.what))?;
    for (key, expected) in [("kind", "Cluster"), ("apiVersion", "kind.x-k8s.io/v1alpha4")] {
        if config.get(key).and_then(Value::as_str) != Some(expected) {
            return Err(wrong(format!("its {key} is not '{expected}'")));
        }
    }
    let nodes = config.entry("nodes").or_insert_with(|| json!([{ "role": "control-plane" }]));
    let roles = roles(nodes).map_err(wrong)?;
    if !roles.contains(&Role::ControlPlane) {
        return Err(wrong("it has no node with role control-plane".to_owned()));
    }
    let machines = machines(&config, &roles).map_err(wrong)?;
    let networking = config.get("networking");
    let setting = |key: &str| networking.and_then(|networking| networking.get(key));
    let pod_network = match setting("disableDefaultCNI").and_then(Value::as_bool) {
        Some(true) => PodNetworkPlan::Never,
        Some(false) | None => PodNetworkPlan::Switchable,
    };
    let families = match setting("ipFamily").and_then(Value::as_str) {
        Some("ipv4") | None => Families::Ipv4,
        Some("dual" | "ipv6") => Families::Both,
        Some(other) => {
            return Err(wrong(format!("its ipFamily '{other}' is invalid: expected ipv4, ipv6 or dual")));
        }
    };
    Ok(Layout { name, config, machines, pod_network, families })
}

fn roles(nodes: &Value) -> Result<Vec<Role>, String> {
    let nodes = nodes.as_array().ok_or("its nodes are not a list")?;
    nodes
        .iter()
        .map(|node| match node.get("role").and_then(Value::as_str) {
            Some("control-plane") | None => Ok(Role::ControlPlane),
            Some("worker") => Ok(Role::Worker),
            Some(other) => Err(format!("a node has the role '{other}': expected control-plane or worker")),
        })
        .collect()
}

/// The initial state of each machine's Node.
fn machines(config: &Map<String, Value>, roles: &[Role]) -> Result<Vec<PlannedMachine>, String> {
    let nodes = config.get("nodes").and_then(Value::as_array).into_iter().flatten();
    let first = roles.iter().position(|role| *role == Role::ControlPlane);
    let place = |index: usize, role: Role| match role {
        _ if roles.len() == 1 => Place::Only,
        Role::ControlPlane if Some(index) == first => Place::FirstControlPlane,
        Role::ControlPlane => Place::ControlPlane,
        Role::Worker => Place::Worker,
    };
    nodes
        .zip(roles)
        .enumerate()
        .map(|(index, (node, role))| {
            let registration = registration(config, node, place(index, *role))?;
            Ok(PlannedMachine { role: *role, registration })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_topologies_are_what_their_names_say() {
        let of = |topology| load(&topology).expect("sound");
        let (one, worker) = (Role::ControlPlane, Role::Worker);
        assert_eq!(of(Topology::Single).roles(), [one]);
        assert_eq!(of(Topology::Single).pod_network, PodNetworkPlan::Switchable);
        assert_eq!(of(Topology::ThreeNode).roles(), [one, worker, worker]);
        assert_eq!(of(Topology::NoCni).pod_network, PodNetworkPlan::Never);
        assert_eq!(of(Topology::DualStack).families, Families::Both);
    }

    #[test]
    fn an_invalid_topology_file_is_refused_with_its_fault() {
        let refuse = |text: &str| {
            let error = parse("mine".into(), text, Path::new("mine.yaml")).expect_err("unsound");
            assert!(error.is_usage());
            error.to_string()
        };
        let head = "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n";
        assert!(
            refuse("kind: Pod\napiVersion: v1\n")
                .starts_with("topology mine.yaml: its kind is not 'Cluster'")
        );
        assert!(
            refuse(&format!("{head}nodes: [{{role: worker}}]")).contains("no node with role control-plane")
        );
        assert!(refuse(&format!("{head}nodes: [{{role: master}}]")).contains("the role 'master'"));
        assert!(refuse(&format!("{head}networking: {{ipFamily: v6}}")).contains("ipFamily 'v6'"));
        assert!(refuse("kind: [").contains("topology mine.yaml: "));
    }

    const HEAD: &str = "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n";

    fn machines_of(text: &str) -> Vec<PlannedMachine> {
        parse("mine".into(), &format!("{HEAD}{text}"), Path::new("mine.yaml")).expect("sound").machines
    }

    /// For each machine, whether it has kubeadm's taint, and its own taints as `key:Effect`.
    fn taints(text: &str) -> Vec<(bool, Vec<String>)> {
        let own = |machine: &PlannedMachine| {
            let taints = machine.registration.taints.iter();
            taints.map(|taint| format!("{}:{}", taint.key, taint.effect)).collect()
        };
        let machines = machines_of(text);
        machines.iter().map(|machine| (machine.registration.kubeadms_taint, own(machine))).collect()
    }

    #[test]
    fn control_planes_keep_their_taint_unless_there_is_only_one_machine() {
        let (kept, none) = ((true, Vec::new()), (false, Vec::new()));
        assert_eq!(taints("nodes: [{role: control-plane}]"), std::slice::from_ref(&none));
        assert_eq!(taints(""), std::slice::from_ref(&none));
        assert_eq!(
            taints("nodes: [{role: worker}, {role: control-plane}, {role: worker}]"),
            [none.clone(), kept.clone(), none.clone()]
        );
        let three = "nodes: [{role: control-plane}, {role: control-plane}, {role: control-plane}]";
        assert_eq!(taints(three), [kept.clone(), kept.clone(), kept]);
    }

    #[test]
    fn a_patch_removes_the_taint_of_the_machines_that_its_kind_sets_up() {
        let (kept, none) = ((true, Vec::new()), (false, Vec::new()));
        let init = "kubeadmConfigPatches: ['{kind: InitConfiguration, nodeRegistration: {taints: []}}']\n";
        let three = "nodes: [{role: control-plane}, {role: control-plane}, {role: worker}]";
        assert_eq!(taints(&format!("{init}{three}")), [none.clone(), kept.clone(), none.clone()]);
        let join = "kubeadmConfigPatches: ['{kind: JoinConfiguration, nodeRegistration: {taints: []}}']\n";
        assert_eq!(taints(&format!("{join}{three}")), [kept.clone(), none.clone(), none.clone()]);
        // A node's own patch comes after the cluster's, and null restores kubeadm's default.
        let own = "nodes: [{role: control-plane, kubeadmConfigPatches: \
                   ['{kind: InitConfiguration, nodeRegistration: {taints: null}}']}, {role: worker}]";
        assert_eq!(taints(&format!("{init}{own}")), [kept, none]);
    }

    #[test]
    fn taints_and_labels_of_workers_are_read_in_both_forms_of_arguments() {
        let text = "nodes:\n\
            - role: control-plane\n\
            - role: worker\n  \
              labels: {tier: front}\n  \
              kubeadmConfigPatches:\n  \
              - |\n    kind: JoinConfiguration\n    nodeRegistration:\n      \
                kubeletExtraArgs: {register-with-taints: 'a=b:NoExecute,c:NoSchedule'}\n\
            - role: worker\n  \
              kubeadmConfigPatches:\n  \
              - |\n    kind: JoinConfiguration\n    nodeRegistration:\n      \
                taints: [{key: own, effect: NoSchedule}]\n      \
                kubeletExtraArgs: [{name: node-labels, value: 'tier=back,zone='}]\n";
        let all = taints(text);
        assert_eq!(all[1], (false, vec!["a:NoExecute".to_owned(), "c:NoSchedule".to_owned()]));
        assert_eq!(all[2], (false, vec!["own:NoSchedule".to_owned()]));
        let labels = |index: usize| {
            let machines = machines_of(text);
            machines[index].registration.labels.iter().map(|(key, value)| format!("{key}={value}")).collect()
        };
        let (front, back): (Vec<String>, Vec<String>) = (labels(1), labels(2));
        assert_eq!(
            (front, back),
            (vec!["tier=front".to_owned()], vec!["tier=back".to_owned(), "zone=".to_owned()])
        );
    }

    #[test]
    fn ignored_fields_are_reported_and_invalid_taints_refused() {
        let unknown = |text: &str| machines_of(text)[0].registration.unknown.clone();
        let operations = "kubeadmConfigPatchesJSON6902: [{kind: InitConfiguration, \
                          patch: '[{op: add, path: /nodeRegistration/taints/-, value: {key: x}}]'}]";
        assert_eq!(
            unknown(operations).as_deref(),
            Some("a JSON 6902 patch of InitConfiguration changes nodeRegistration")
        );
        let versioned = "kubeadmConfigPatches: ['{kind: InitConfiguration, apiVersion: kubeadm.k8s.io/v1beta2, \
                         nodeRegistration: {taints: []}}']";
        assert_eq!(
            unknown(versioned).as_deref(),
            Some("a patch of InitConfiguration applies to kubeadm.k8s.io/v1beta2 only")
        );
        let elsewhere =
            "kubeadmConfigPatches: ['{kind: ClusterConfiguration, apiVersion: kubeadm.k8s.io/v1beta2}']";
        assert_eq!(unknown(elsewhere), None);
        let bad =
            "kubeadmConfigPatches: ['{kind: InitConfiguration, nodeRegistration: {taints: [{key: x}]}}']";
        let error =
            parse("mine".into(), &format!("{HEAD}{bad}"), Path::new("mine.yaml")).expect_err("no taint");
        assert!(error.is_usage() && error.to_string().contains("the invalid taint 'x=:'"), "{error}");
    }
}
