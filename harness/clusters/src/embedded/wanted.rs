//! Translates a run's request into a request for an embedded cluster. Pure functions.

use crate::error::ClusterError;
use crate::record::{Machine, Role};
use crate::registration::PlannedTaint;
use crate::spec::{ClusterSpec, Purpose};
use crate::topology::{Families, Layout, PlannedMachine};
use embedded_cluster::{
    CloudProvider, Cluster, IpFamilies, KubernetesVersion, MachineSpec, NodeTaint, ServingCertificate,
};
use harness_config::{Kubernetes, NodeIp, ServingCertificates};

/// The requested version; the newest is the one whose answers were recorded. Otherwise why it is not possible: it is a
/// node image, or an unknown version.
pub(super) fn version(wanted: &Kubernetes) -> Result<KubernetesVersion, String> {
    match wanted {
        Kubernetes::Newest => Ok(KubernetesVersion::default()),
        Kubernetes::Image(image) => Err(format!("{image} is a node image, which only kind can use")),
        Kubernetes::Version { minor, patch } => {
            let text = match (patch, KubernetesVersion::of_minor(*minor)) {
                (None, Some(known)) => known.to_string(),
                (patch, _) => format!("1.{minor}.{}", patch.unwrap_or_default()),
            };
            text.parse().map_err(|error: embedded_cluster::UnknownVersion| error.to_string())
        }
    }
}

fn taint(planned: &PlannedTaint) -> NodeTaint {
    let PlannedTaint { key, value, effect } = planned.clone();
    NodeTaint { key, value, effect }
}

/// Whether the initial taints and labels of all Nodes are known.
pub(super) fn check_registrations(layout: &Layout) -> Result<(), ClusterError> {
    let unknown = layout.machines.iter().find_map(|machine| machine.registration.unknown.clone());
    unknown.map_or(Ok(()), |why| {
        Err(ClusterError::Usage {
            what: format!("topology {}", layout.name),
            why: format!("the taints of its Nodes cannot be determined: {why}"),
            way_out: "use a patch without apiVersion, or '--cluster kind'".to_owned(),
        })
    })
}

/// The machines of a run with their roles, control planes first, named as kind would name them. Those of a management
/// cluster do not wait for a cloud.
pub(super) fn machines(spec: &ClusterSpec, layout: &Layout) -> Vec<(Role, MachineSpec)> {
    let cloud = match spec.purpose {
        Purpose::Served => CloudProvider::External,
        Purpose::Management => CloudProvider::None,
    };
    let (mut control_planes, mut workers) = (0, 0);
    let machine = |PlannedMachine { role, registration }: &PlannedMachine| {
        let (count, embedded_role) = match role {
            Role::ControlPlane => (&mut control_planes, embedded_cluster::Role::ControlPlane),
            Role::Worker => (&mut workers, embedded_cluster::Role::Worker),
        };
        *count += 1;
        let number = if *count == 1 { String::new() } else { count.to_string() };
        let name = format!("{}-{role}{number}", spec.name());
        let machine = MachineSpec {
            node_ip: match spec.own().node_ip {
                NodeIp::Kept => embedded_cluster::NodeIp::Announced,
                NodeIp::Dropped => embedded_cluster::NodeIp::Unset,
            },
            provider_id: spec.provider_ids.of(&name),
            serving: match spec.own().serving {
                ServingCertificates::SelfSigned => ServingCertificate::SelfSigned,
                ServingCertificates::Requested => ServingCertificate::Requested,
            },
            kubeadm_taint: registration.kubeadms_taint,
            taints: registration.taints.iter().map(taint).collect(),
            labels: registration.labels.clone(),
            cloud,
            ..MachineSpec::awaiting_cloud(name, embedded_role)
        };
        (*role, machine)
    };
    let mut machines: Vec<_> = layout.machines.iter().map(machine).collect();
    machines.sort_by_key(|(role, _)| *role != Role::ControlPlane);
    machines
}

/// The IP families of a topology.
pub(super) fn families(layout: &Layout) -> IpFamilies {
    match layout.families {
        Families::Ipv4 => IpFamilies::Ipv4,
        Families::Both => IpFamilies::Dual,
    }
}

/// The machines for the run's record.
pub(super) fn records(machines: &[(Role, MachineSpec)], families: IpFamilies) -> Vec<Machine> {
    let record = |(index, (role, machine)): (u32, &(Role, MachineSpec))| Machine {
        name: machine.name.clone(),
        role: *role,
        ipv4: Some(Cluster::node_ipv4(index)),
        ipv6: Cluster::node_ipv6(families, index),
        container_id: String::new(),
        reached_at: None,
    };
    (0_u32..).zip(machines).map(record).collect()
}

/// The first version whose kubelets accept two addresses with an external cloud provider.
const TWO_NODE_IPS: u32 = 29;

/// Whether a cluster with these families is possible.
pub(super) fn check_families(
    layout: &Layout,
    kubernetes: KubernetesVersion,
    node_ip: NodeIp,
) -> Result<(), ClusterError> {
    let (why, way_out) = if layout.is_ipv6_only() {
        ("an embedded cluster has IPv4, or IPv4 and IPv6", "use ipFamily dual, or '--cluster kind'")
    } else if layout.families == Families::Both
        && node_ip == NodeIp::Kept
        && kubernetes.minor() < TWO_NODE_IPS
    {
        (
            "before Kubernetes 1.29, kubelets with an external cloud provider accept only one address",
            "use a newer version, or '--node-ip dropped'",
        )
    } else {
        return Ok(());
    };
    Err(ClusterError::Usage {
        what: format!("topology {}", layout.name),
        why: why.to_owned(),
        way_out: way_out.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_is_the_recorded_one_and_node_images_are_kinds() {
        let newest = KubernetesVersion::default();
        assert_eq!(version(&Kubernetes::Newest), Ok(newest));
        assert_eq!(version(&Kubernetes::Version { minor: newest.minor(), patch: None }), Ok(newest));
        let older = version(&Kubernetes::Version { minor: 31, patch: None });
        assert_eq!(older.map(|version| version.to_string()), Ok("v1.31.0".to_owned()));
        assert!(version(&Kubernetes::Version { minor: 99, patch: None }).is_err());
        let image = version(&Kubernetes::Image("kindest/node:v1.36.2".to_owned()));
        assert!(image.is_err_and(|why| why.contains("kindest/node:v1.36.2")));
    }
}
