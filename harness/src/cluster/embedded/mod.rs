//! The cluster of a run in this process: what the run wants, said in the embedded cluster's terms.

mod attached;

pub use attached::EmbeddedAttachment;

use super::topology::{self, Layout};
use super::{ClusterError, ClusterRecord, EmbeddedRecord, Families, Machine, Origin, ProviderIds, Role};
use crate::check::chain;
use crate::config::{Kubernetes, NodeIp, Topology};
use crate::images::RunId;
use embedded_cluster::{Cluster, ClusterSpec, IpFamilies, KubernetesVersion, MachineSpec, Program, Serving};
use std::path::PathBuf;

/// What a run wants of an embedded cluster.
#[derive(Clone, Debug)]
pub struct EmbeddedWish {
    /// The run it is for; machines are named after it, as kind names its own.
    pub run: RunId,
    /// Its machines and network.
    pub topology: Topology,
    /// Its Kubernetes.
    pub kubernetes: Kubernetes,
    /// What kubelets write into `spec.providerID`.
    pub provider_id: ProviderIds,
    /// Whether kubelets announce a node IP.
    pub node_ip: NodeIp,
    /// Which images are programs of this machine.
    pub programs: Vec<Program>,
    /// The run's own folder, for kubeconfig (0600), control socket and files of Pods.
    pub folder: PathBuf,
}

/// The embedded cluster of a run. Ends with [`EmbeddedCluster::stop`].
#[derive(Debug)]
pub struct EmbeddedCluster {
    cluster: Cluster,
    serving: Serving,
}

impl EmbeddedCluster {
    /// Starts the cluster of a run: with its kubeconfig, a socket by which the run's processes reach its machines, and
    /// all Nodes registered.
    ///
    /// # Errors
    /// What was asked for cannot be ([`ClusterError::is_usage`]), or the cluster does not come up.
    pub async fn of_run(wish: EmbeddedWish) -> Result<(EmbeddedCluster, ClusterRecord), ClusterError> {
        let layout = topology::load(&wish.topology)?;
        let kubernetes = version(&wish.kubernetes).map_err(|why| ClusterError::Usage {
            what: format!("Kubernetes {}", wish.kubernetes),
            why,
            way_out: "name a version, or use '--cluster kind'".to_owned(),
        })?;
        check_families(&layout, kubernetes, wish.node_ip)?;
        let families = match layout.families {
            Families::Ipv4 => IpFamilies::Ipv4,
            Families::Both => IpFamilies::Dual,
        };
        let machines = machines(&wish, &layout);
        let records = records(&machines, families);
        let spec = ClusterSpec {
            families,
            kubernetes,
            programs: wish.programs,
            network: embedded_cluster::PodNetwork::None,
            folder: Some(wish.folder.clone()),
            ..ClusterSpec::new(machines.into_iter().map(|(_, machine)| machine).collect())
        };
        let failed = |error| ClusterError::Embedded { cause: chain(&error) };
        let cluster = Cluster::start(spec).await.map_err(failed)?;
        let kubeconfig = wish.folder.join("kubeconfig");
        let socket = wish.folder.join("cluster.socket");
        let served = cluster
            .write_kubeconfig(&kubeconfig)
            .map_err(ClusterError::file("write", &kubeconfig))
            .and_then(|()| cluster.serve(&socket).map_err(ClusterError::file("listen at", &socket)));
        let serving = match served {
            Ok(serving) => serving,
            Err(error) => {
                cluster.stop().await;
                return Err(error);
            }
        };
        let record = EmbeddedRecord {
            socket,
            kubernetes: kubernetes.to_string(),
            topology: layout.name,
            pod_network: layout.pod_network,
            machines: records,
        };
        let origin = Origin::Embedded(Box::new(record));
        let record = ClusterRecord { name: wish.run.name(), kubeconfig, origin };
        Ok((EmbeddedCluster { cluster, serving }, record))
    }

    /// Stops controllers, programs of Pods and the API server.
    pub async fn stop(self) {
        drop(self.serving);
        self.cluster.stop().await;
    }
}

/// The version that is asked for; the newest is the one whose answers were recorded. Else why it cannot be: a node
/// image, or a version nobody knows.
fn version(wanted: &Kubernetes) -> Result<KubernetesVersion, String> {
    match wanted {
        Kubernetes::Newest => Ok(KubernetesVersion::default()),
        Kubernetes::Image(image) => Err(format!("{image} is a node image, which only kind takes")),
        Kubernetes::Version { minor, patch } => {
            let newest = KubernetesVersion::default();
            let patch = patch.unwrap_or(if *minor == newest.minor() { newest.patch() } else { 0 });
            let text = format!("1.{minor}.{patch}");
            text.parse().map_err(|error: embedded_cluster::UnknownVersion| error.to_string())
        }
    }
}

/// The machines of a run with their roles, control planes first, named as kind names its own.
fn machines(wish: &EmbeddedWish, layout: &Layout) -> Vec<(Role, MachineSpec)> {
    let (mut control_planes, mut workers) = (0, 0);
    let machine = |role: &Role| {
        let (count, embedded_role) = match role {
            Role::ControlPlane => (&mut control_planes, embedded_cluster::Role::ControlPlane),
            Role::Worker => (&mut workers, embedded_cluster::Role::Worker),
        };
        *count += 1;
        let number = if *count == 1 { String::new() } else { count.to_string() };
        let name = format!("{}-{role}{number}", wish.run.name());
        let machine = MachineSpec {
            node_ip: match wish.node_ip {
                NodeIp::Kept => embedded_cluster::NodeIp::Announced,
                NodeIp::Dropped => embedded_cluster::NodeIp::Unset,
            },
            provider_id: wish.provider_id.of(&name),
            kubeadm_taint: layout.roles.len() > 1,
            ..MachineSpec::awaiting_cloud(name, embedded_role)
        };
        (*role, machine)
    };
    let mut machines: Vec<_> = layout.roles.iter().map(machine).collect();
    machines.sort_by_key(|(role, _)| *role != Role::ControlPlane);
    machines
}

/// The machines as the run knows them.
fn records(machines: &[(Role, MachineSpec)], families: IpFamilies) -> Vec<Machine> {
    let record = |(index, (role, machine)): (u32, &(Role, MachineSpec))| Machine {
        name: machine.name.clone(),
        role: *role,
        ipv4: Some(Cluster::node_ipv4(index)),
        ipv6: Cluster::node_ipv6(families, index),
        container_id: String::new(),
    };
    (0_u32..).zip(machines).map(record).collect()
}

/// The first version whose kubelets take two addresses beside an external cloud provider.
const TWO_NODE_IPS: u32 = 29;

/// Whether there can be a cluster of these families.
fn check_families(
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
            "before Kubernetes 1.29 kubelets with an external cloud provider take one address only",
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
