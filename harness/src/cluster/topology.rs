//! Topologies: kind configurations that say which machines and which network a cluster has, and no more.

use super::error::ClusterError;
use super::record::{PodNetworkPlan, Role};
use crate::config::{Topology, yaml};
use crate::files;
use serde_json::{Map, Value, json};
use std::path::Path;

/// A topology as it was written, checked as far as the harness depends on it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Layout {
    /// Name for the report.
    pub(super) name: String,
    /// The kind configuration.
    pub(super) config: Map<String, Value>,
    /// Its machines, in the file's order.
    pub(super) roles: Vec<Role>,
    /// Whether it wants a pod network.
    pub(super) pod_network: PodNetworkPlan,
    /// Which IP families it wants.
    pub(super) families: Families,
}

impl Layout {
    /// Whether it wants IPv6 and no IPv4.
    pub(super) fn is_ipv6_only(&self) -> bool {
        self.config.get("networking").and_then(|networking| networking.get("ipFamily"))
            == Some(&json!("ipv6"))
    }
}

/// IP families of a cluster's network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Families {
    /// IPv4; IPv6 as well where it can be had.
    Ipv4,
    /// IPv4 and IPv6, or none at all.
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
        way_out: "kind-configs/three-node.yaml is an example".to_owned(),
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
    let networking = config.get("networking");
    let setting = |key: &str| networking.and_then(|networking| networking.get(key));
    let pod_network = match setting("disableDefaultCNI").and_then(Value::as_bool) {
        Some(true) => PodNetworkPlan::Never,
        Some(false) | None => PodNetworkPlan::Switchable,
    };
    let families = match setting("ipFamily").and_then(Value::as_str) {
        Some("ipv4") | None => Families::Ipv4,
        Some("dual" | "ipv6") => Families::Both,
        Some(other) => return Err(wrong(format!("its ipFamily '{other}' is none of ipv4, ipv6, dual"))),
    };
    Ok(Layout { name, config, roles, pod_network, families })
}

fn roles(nodes: &Value) -> Result<Vec<Role>, String> {
    let nodes = nodes.as_array().ok_or("its nodes are not a list")?;
    nodes
        .iter()
        .map(|node| match node.get("role").and_then(Value::as_str) {
            Some("control-plane") | None => Ok(Role::ControlPlane),
            Some("worker") => Ok(Role::Worker),
            Some(other) => Err(format!("a node has the role '{other}', neither control-plane nor worker")),
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
        assert_eq!(of(Topology::Single).roles, [one]);
        assert_eq!(of(Topology::Single).pod_network, PodNetworkPlan::Switchable);
        assert_eq!(of(Topology::ThreeNode).roles, [one, worker, worker]);
        assert_eq!(of(Topology::NoCni).pod_network, PodNetworkPlan::Never);
        assert_eq!(of(Topology::DualStack).families, Families::Both);
    }

    #[test]
    fn a_file_that_is_no_topology_is_refused_with_its_fault() {
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
}
