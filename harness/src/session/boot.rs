//! What the boot model expects of a profile's manifests, and why a cluster that did not boot did not.

use crate::config::{Deployment, DesiredCluster, NodeIp, Profile};
use crate::files;
use bootstrap::{CloudEndpoint, Cluster, Cni, Expectation, Source, YesNo, expect};
use std::path::PathBuf;

/// What the model says of the profile's manifests on a cluster like that, with each of these pod networks; `None` when
/// nothing is deployed, or the cluster is one the harness does not make.
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
    let topology = match own.topology {
        _ if profile.deployment == Deployment::Hosted => bootstrap::Topology::Hosted,
        crate::config::Topology::Single | crate::config::Topology::NoCni => bootstrap::Topology::SingleNode,
        _ => bootstrap::Topology::ControlPlaneAndWorker,
    };
    let clusters: Vec<Cluster> = networks
        .iter()
        .map(|network| Cluster {
            // The harness gives the CCM the addresses of the API server and of the fake cloud.
            cloud_endpoint: CloudEndpoint::Address,
            node_ip: if own.node_ip == NodeIp::Kept { YesNo::Yes } else { YesNo::No },
            ..Cluster::new(topology, *network)
        })
        .collect();
    let ccm = profile.workload.as_ref().map(|workload| workload.name.as_str());
    let source = |path: &PathBuf| {
        let text = files::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Source::new(&path.display().to_string(), &text))
    };
    let sources: Result<Vec<Source>, String> = profile.manifests.iter().map(source).collect();
    Some(sources.and_then(|sources| expect(sources, &clusters, &[], ccm)))
}

/// The expectation in a line for each pod network the bootstrap checks use, for a person before the run.
pub fn expected_boot(profile: &Profile, cluster: &DesiredCluster) -> Option<String> {
    match expectation(profile, cluster, &[Cni::Independent, Cni::None])? {
        Ok(expectation) => Some(expectation.summary().trim_end().to_owned()),
        // What cannot be read is told when the manifests are loaded; templates of a vendor's may be more than we read.
        Err(why) => Some(format!("cannot be told: {}", why.trim_end())),
    }
}
