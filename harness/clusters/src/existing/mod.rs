//! An existing cluster: the harness has only its kubeconfig, or runs in one of its Pods.

mod inside;
mod kubeconfig;

pub use inside::InsideCluster;
pub use kubeconfig::usual_kubeconfig;

use super::backend::{Backend, BackendEntry, Facts, Fidelity, Lifetime, Runs};
use super::error::ClusterError;
use super::leftovers::cleanup;
use super::record::{About, CloudSite, ClusterRecord, Ownership};
use super::requirement::{Requirement, State};
use super::spec::ClusterSpec;
use crate::images::Engine;
use futures::FutureExt;
use futures::future::{LocalBoxFuture, ready};
use harness_config::{BackendKind, DesiredCluster, ExistingCluster};
use harness_core::check::chain;
use harness_core::secrets;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::OnceCell;

pub(super) const BACKEND: BackendEntry = BackendEntry {
    facts: Facts {
        fidelity: Fidelity::Real,
        runs: Runs::Images,
        lifetime: Lifetime::UntilRemoved,
        manages: false,
        // There is only one of it.
        side_by_side: 1,
        memory_gib: 0,
        facilities: &[],
        lacks_because: "the harness did not create it and has no access to its machines",
    },
    requirements: || requirements().boxed_local(),
    has: |_| ready(Ok(false)).boxed_local(),
    check: |desired| {
        let existing = existing(desired);
        match InsideCluster::around(&existing) {
            Some(_) => Ok(()),
            None => record(existing.kubeconfig.as_deref()).map(drop),
        }
    },
    begin: |spec| {
        let inside = InsideCluster::around(&existing(&spec.desired));
        Arc::new(Existing { spec, inside, engine: OnceCell::new() })
    },
    attach: |_| Ok(None),
};

/// The existing cluster that kubectl would use.
const UNNAMED: ExistingCluster = ExistingCluster { kubeconfig: None, allow_foreign: false };

/// Which existing cluster is requested; by default the one that kubectl would use.
fn existing(desired: &DesiredCluster) -> ExistingCluster {
    match desired {
        DesiredCluster::Existing(existing) => existing.clone(),
        DesiredCluster::Own(_) | DesiredCluster::Absent => UNNAMED,
    }
}

/// Requires a kubeconfig and a Docker engine; neither in a Pod of the cluster.
async fn requirements() -> Vec<Requirement> {
    let (cluster, cloud) = ("the run needs a cluster", "the fake cloud is a container next to its machines");
    if let Some(inside) = InsideCluster::around(&UNNAMED) {
        let found = format!("this program runs in a Pod of one, in namespace {}", inside.namespace);
        return vec![Requirement::fine("service account", cluster, found)];
    }
    vec![
        match record(None) {
            Ok(record) => Requirement::fine("kubeconfig", cluster, record.name),
            Err(_) => Requirement::fine(
                "kubeconfig",
                cluster,
                "neither KUBECONFIG nor ~/.kube/config names a cluster",
            )
            .but(
                State::Missing,
                "set KUBECONFIG to the file; commands with '--kubeconfig FILE' also take it there",
            ),
        },
        match Engine::connect().await {
            Ok(engine) => Requirement::fine("Docker", cloud, engine.host()),
            Err(error) => Requirement::fine("Docker", cloud, chain(&error)).but(
                State::Missing,
                "install and start Docker, or set DOCKER_HOST to the address of an engine",
            ),
        },
    ]
}

/// The existing cluster of a run.
#[derive(Debug)]
struct Existing {
    spec: ClusterSpec,
    /// The cluster's Pod in which this process runs.
    inside: Option<InsideCluster>,
    /// The engine that runs the fake cloud, next to the cluster's machines.
    engine: OnceCell<Engine>,
}

impl Backend for Existing {
    fn preflight(&self) -> LocalBoxFuture<'_, Result<Vec<String>, ClusterError>> {
        async {
            if self.inside.is_none() {
                self.engine.get_or_try_init(Engine::connect).await?;
            }
            Ok(Vec::new())
        }
        .boxed_local()
    }

    fn cloud_site(&self) -> LocalBoxFuture<'_, Result<Option<CloudSite>, ClusterError>> {
        let site = self.inside.as_ref().map(InsideCluster::site).transpose();
        ready(site).boxed_local()
    }

    fn up(&self) -> LocalBoxFuture<'_, Result<ClusterRecord, ClusterError>> {
        let record = match &self.inside {
            Some(inside) => self.of_pod(inside),
            None => record(existing(&self.spec.desired).kubeconfig.as_deref()),
        };
        ready(record).boxed_local()
    }

    /// The cluster stays; what the run added next to it is removed.
    fn down(&self) -> LocalBoxFuture<'_, Result<(), ClusterError>> {
        async {
            let Some(engine) = self.engine.get() else { return Ok(()) };
            let removed = cleanup(engine, &self.spec.run).await;
            removed.map(drop).map_err(|error| ClusterError::NotRemoved { what: chain(&error) })
        }
        .boxed_local()
    }
}

impl Existing {
    /// The cluster around the Pod of this process.
    fn of_pod(&self, inside: &InsideCluster) -> Result<ClusterRecord, ClusterError> {
        inside.token().iter().for_each(|token| secrets::know(token));
        let kubeconfig = self.spec.folder.join("kubeconfig");
        std::fs::write(&kubeconfig, inside.kubeconfig())
            .map_err(ClusterError::file("write the kubeconfig", &kubeconfig))?;
        let name = format!("this Pod (namespace {})", inside.namespace);
        Ok(ClusterRecord { name, cloud_site: inside.site()?, ..of_kubeconfig(kubeconfig) })
    }
}

/// The cluster of a kubeconfig; by default that of `KUBECONFIG` or `~/.kube/config`, as kubectl chooses.
fn record(kubeconfig: Option<&Path>) -> Result<ClusterRecord, ClusterError> {
    let missing = || {
        ClusterError::Usage {
        what: "the existing cluster".to_owned(),
        why: "no kubeconfig was passed, neither KUBECONFIG nor ~/.kube/config names one, and this program does not run \
              in a Pod of the cluster".to_owned(),
        way_out: "set KUBECONFIG to the file; commands with '--kubeconfig FILE' also take it there".to_owned(),
    }
    };
    let chosen = kubeconfig.map(Path::to_owned).or_else(usual_kubeconfig).ok_or_else(missing)?;
    std::fs::File::open(&chosen).map_err(ClusterError::file("read the kubeconfig", &chosen))?;
    Ok(of_kubeconfig(chosen))
}

fn of_kubeconfig(kubeconfig: PathBuf) -> ClusterRecord {
    ClusterRecord {
        backend: BackendKind::Existing,
        name: kubeconfig.display().to_string(),
        kubeconfig,
        ownership: Ownership::Others,
        machines: Vec::new(),
        facilities: BTreeSet::new(),
        pod_network: None,
        api_server_for_pods: None,
        api_server_for_other_clusters: None,
        replica_group: None,
        cloud_site: CloudSite::NextToNodes,
        about: About::default(),
        own: serde_json::Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_that_is_not_there_is_named() {
        let error = record(Some(Path::new("/nowhere/config"))).expect_err("missing");
        assert_eq!(error.to_string(), "cannot read the kubeconfig /nowhere/config");
    }
}
