//! The boot model's expectation for a profile's manifests, and its explanation for a cluster that did not boot.

use bootstrap::{
    CloudEndpoint, Cluster, Cni, Effect, Expectation, Finding, Source, Taint, Topology, Version, YesNo,
    expect,
};
use harness_clusters::{PlannedMachine, Role, planned_machines};
use harness_config::{Deployment, DesiredCluster, Kubernetes, NodeIp, OwnCluster, Profile};
use harness_core::check::chain;
use harness_core::files;
use std::path::PathBuf;

/// The model's result for the profile's manifests on such a cluster, with each of these pod networks. `None` if nothing
/// is deployed, or the harness does not create the cluster.
///
/// # Errors
/// Manifests that cannot be read, with file and line.
pub fn expectation(
    profile: &Profile,
    cluster: &DesiredCluster,
    networks: &[Cni],
) -> Option<Result<Expectation, String>> {
    let own = cluster.own()?;
    if profile.deploys_nothing() {
        return None;
    }
    let clusters = match clusters(profile, own, networks) {
        Ok(clusters) => clusters,
        Err(why) => return Some(Err(why)),
    };
    Some(expected(profile, &clusters))
}

/// The lint's findings for the profile's manifests, on the cluster that is created or, if an existing one is used, on one
/// with a control plane and a worker. `None` if nothing is deployed.
///
/// # Errors
/// Those of [`expectation`].
pub fn manifest_findings(
    profile: &Profile,
    cluster: &DesiredCluster,
) -> Option<Result<Vec<Finding>, String>> {
    if profile.deploys_nothing() {
        return None;
    }
    let network = Cni::Independent;
    let anywhere = || {
        let topology = match profile.deployment {
            Deployment::Hosted => Topology::Hosted,
            Deployment::InCluster => Topology::ControlPlaneAndWorker,
        };
        expected(profile, &[Cluster::new(topology, network)])
    };
    let said = expectation(profile, cluster, &[network]).unwrap_or_else(anywhere);
    Some(said.map(|expectation| expectation.findings))
}

fn expected(profile: &Profile, clusters: &[Cluster]) -> Result<Expectation, String> {
    let ccm = profile.workload.as_ref().map(|workload| workload.name.as_str());
    let source = |path: &PathBuf| {
        let text = files::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Source::new(&path.display().to_string(), &text))
    };
    let sources: Result<Vec<Source>, String> = profile.manifests.iter().map(source).collect();
    expect(sources?, clusters, &[], ccm)
}

/// The cluster that will be created, as the model's input, for each of the pod networks.
fn clusters(profile: &Profile, own: &OwnCluster, networks: &[Cni]) -> Result<Vec<Cluster>, String> {
    let machines = match profile.deployment {
        // The CCM runs on a management cluster that is up, so this cluster does not affect it.
        Deployment::Hosted => None,
        Deployment::InCluster => Some(planned_machines(&own.topology).map_err(|error| chain(&error))?),
    };
    let topology = match &machines {
        None => Topology::Hosted,
        Some(machines) if machines.len() == 1 => Topology::SingleNode,
        Some(machines) if machines.iter().all(|machine| machine.role == Role::ControlPlane) => {
            Topology::ThreeControlPlanes
        }
        Some(_) => Topology::ControlPlaneAndWorker,
    };
    let machines = match machines {
        None => None,
        Some(machines) => Some(machines.iter().map(machine).collect::<Result<Vec<_>, String>>()?),
    };
    let version = match own.kubernetes {
        Kubernetes::Version { minor, .. } => Version { major: 1, minor },
        Kubernetes::Newest | Kubernetes::Image(_) => Version::DEFAULT,
    };
    let cluster = |network: &Cni| Cluster {
        // The harness gives the CCM the addresses of the API server and of the fake cloud.
        cloud_endpoint: CloudEndpoint::Address,
        // A network that waits for addresses waits for those of the CCM, whatever the kubelet reports.
        node_ip: if own.node_ip == NodeIp::Kept && *network != Cni::WaitsForAddresses {
            YesNo::Yes
        } else {
            YesNo::No
        },
        machines: machines.clone(),
        version,
        ..Cluster::new(topology, *network)
    };
    Ok(networks.iter().map(cluster).collect())
}

/// A machine of the topology, as the model's input.
fn machine(planned: &PlannedMachine) -> Result<bootstrap::PlannedMachine, String> {
    let registration = &planned.registration;
    if let Some(why) = &registration.unknown {
        return Err(format!("the taints of a {} are not known: {why}", planned.role));
    }
    let taint = |taint: &harness_clusters::PlannedTaint| {
        let effect = match taint.effect.as_str() {
            "NoExecute" => Effect::NoExecute,
            "PreferNoSchedule" => Effect::PreferNoSchedule,
            _ => Effect::NoSchedule,
        };
        Taint::new(&taint.key, &taint.value, effect)
    };
    Ok(bootstrap::PlannedMachine {
        control_plane: planned.role == Role::ControlPlane,
        kubeadms_taints: registration.kubeadms_taint,
        taints: registration.taints.iter().map(taint).collect(),
        labels: registration.labels.clone(),
    })
}

/// The expectation, one line for each pod network of the bootstrap checks, for the user before the run.
pub fn expected_boot(profile: &Profile, cluster: &DesiredCluster) -> Option<String> {
    match expectation(profile, cluster, &[Cni::Independent, Cni::None])? {
        Ok(expectation) => Some(expectation.summary().trim_end().to_owned()),
        // Manifests that cannot be read are reported when they are loaded; a vendor's templates may be too much for the
        // model.
        Err(why) => Some(format!("unknown: {}", why.trim_end())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_config::{ProviderId, RunFile, Source, plan};
    use std::io::Write;

    /// The expectation for the reference CCM on a topology with these nodes, without a network that waits for it.
    fn expected(nodes: &str) -> String {
        let mut file = tempfile::Builder::new().suffix(".yaml").tempfile().expect("a file");
        write!(file, "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n{nodes}\n").expect("written");
        let profile = plan(&Source::Defaults, RunFile::default()).expect("a plan").profile;
        let own = OwnCluster {
            topology: harness_config::Topology::File(file.path().to_owned()),
            kubernetes: Kubernetes::Newest,
            provider_id: ProviderId::Empty,
            node_ip: NodeIp::Kept,
            serving: harness_config::ServingCertificates::SelfSigned,
            seed: None,
        };
        match expectation(&profile, &DesiredCluster::Own(own), &[Cni::Independent]).expect("a deployment") {
            Ok(expectation) => expectation.summary().trim_end().to_owned(),
            Err(why) => why,
        }
    }

    #[test]
    fn the_model_is_asked_about_the_machines_that_a_topology_has() {
        assert_eq!(expected("nodes: [{role: control-plane}]"), "single-node with CNI independent: boots");
        assert_eq!(
            expected("nodes: [{role: control-plane}, {role: worker}, {role: worker}]"),
            "1 control plane and 2 workers (1 tainted) with CNI independent: boots"
        );
        assert_eq!(
            expected("nodes: [{role: control-plane}, {role: control-plane}, {role: control-plane}]"),
            "3 control planes (3 tainted) with CNI independent: boots"
        );
        let removed = "kubeadmConfigPatches: ['{kind: InitConfiguration, nodeRegistration: {taints: []}}']\n\
                       nodes: [{role: control-plane}, {role: worker}]";
        assert_eq!(
            expected(removed),
            "1 control plane and 1 worker (none tainted) with CNI independent: boots"
        );
    }

    #[test]
    fn a_taint_that_the_ccm_does_not_tolerate_everywhere_is_a_deadlock() {
        let tainted = "kubeadmConfigPatches: ['{kind: InitConfiguration, nodeRegistration: \
                       {taints: [{key: mine, effect: NoSchedule}]}}']\n\
                       nodes: [{role: control-plane}]";
        let said = expected(tainted);
        assert!(said.starts_with("single-node with CNI independent: "), "{said}");
        assert!(!said.ends_with(": boots"), "{said}");
    }

    /// The expectation for a CCM that does not tolerate not-ready:NoSchedule, on Nodes with addresses from their
    /// kubelets.
    #[test]
    fn a_network_that_waits_for_the_ccms_addresses_does_not_come_without_them() {
        let profile = Profile::load("hcloud").expect("a profile of this program");
        let own = OwnCluster {
            topology: harness_config::Topology::Single,
            kubernetes: Kubernetes::Newest,
            provider_id: ProviderId::Empty,
            node_ip: NodeIp::Kept,
            serving: harness_config::ServingCertificates::SelfSigned,
            seed: None,
        };
        let expected = expectation(&profile, &DesiredCluster::Own(own), &[Cni::WaitsForAddresses]);
        let summary = expected.expect("a deployment").expect("manifests").summary();
        assert!(summary.contains("deadlock"), "{summary}");
    }

    #[test]
    fn what_is_not_known_of_a_topology_is_said() {
        let versioned = "kubeadmConfigPatches: ['{kind: InitConfiguration, apiVersion: kubeadm.k8s.io/v1beta2, \
                         nodeRegistration: {taints: []}}']";
        assert_eq!(
            expected(versioned),
            "the taints of a control-plane are not known: a patch of InitConfiguration applies to \
             kubeadm.k8s.io/v1beta2 only"
        );
    }
}
