//! A cluster that was there before: the harness has its kubeconfig and nothing else, or runs in a Pod of it.

mod inside;
mod kubeconfig;

pub use inside::InsideCluster;

use super::backend::{Backend, BackendEntry, Facts, Fidelity, Lifetime, Runs};
use super::error::ClusterError;
use super::leftovers::cleanup;
use super::record::{About, CloudSite, ClusterRecord, Ownership};
use super::requirement::{Requirement, State};
use super::spec::ClusterSpec;
use crate::images::Engine;
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use harness_config::{BackendKind, ExistingCluster};
use harness_core::check::chain;
use harness_core::secrets;
use kubeconfig::usual_kubeconfig;
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
        // There is only the one.
        side_by_side: 1,
        memory_gib: 0,
        facilities: &[],
        lacks_because: "the harness did not make it and has no access to its machines",
    },
    requirements: || requirements().boxed_local(),
    begin: |spec| {
        let inside = InsideCluster::around(&spec.existing());
        Arc::new(Existing { spec, inside, engine: OnceCell::new() })
    },
    attach: |_| Ok(None),
};

/// Asks for a kubeconfig and the engine; in a Pod of the cluster for neither.
async fn requirements() -> Vec<Requirement> {
    let (cluster, cloud) = ("there has to be a cluster", "the fake cloud is a container beside its machines");
    let unnamed = ExistingCluster { kubeconfig: None, allow_foreign: false };
    if let Some(inside) = InsideCluster::around(&unnamed) {
        let found = format!("this is a Pod of one, in namespace {}", inside.namespace);
        return vec![Requirement::fine("service account", cluster, found)];
    }
    vec![
        match record(None) {
            Ok(record) => Requirement::fine("kubeconfig", cluster, record.name),
            Err(_) => Requirement::fine(
                "kubeconfig",
                cluster,
                "neither KUBECONFIG nor ~/.kube/config names one that is there",
            )
            .but(State::Missing, "set KUBECONFIG, or give '--kubeconfig FILE'"),
        },
        match Engine::connect().await {
            Ok(engine) => Requirement::fine("Docker", cloud, engine.host()),
            Err(error) => Requirement::fine("Docker", cloud, chain(&error))
                .but(State::Missing, "install and start Docker, or set DOCKER_HOST to where one listens"),
        },
    ]
}

/// The cluster of a run that was there before it.
#[derive(Debug)]
struct Existing {
    spec: ClusterSpec,
    /// The Pod of the cluster that this process runs in.
    inside: Option<InsideCluster>,
    /// The engine that the fake cloud runs on, beside the cluster's machines.
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
        futures::future::ready(site).boxed_local()
    }

    fn up(&self) -> LocalBoxFuture<'_, Result<ClusterRecord, ClusterError>> {
        let record = match &self.inside {
            Some(inside) => self.of_pod(inside),
            None => record(self.spec.existing().kubeconfig.as_deref()),
        };
        futures::future::ready(record).boxed_local()
    }

    /// The cluster stays; what the run has put beside it goes.
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
    /// The cluster around the Pod that this process runs in.
    fn of_pod(&self, inside: &InsideCluster) -> Result<ClusterRecord, ClusterError> {
        inside.token().iter().for_each(|token| secrets::know(token));
        let kubeconfig = self.spec.folder.join("kubeconfig");
        std::fs::write(&kubeconfig, inside.kubeconfig())
            .map_err(ClusterError::file("write the kubeconfig", &kubeconfig))?;
        let name = format!("this Pod (namespace {})", inside.namespace);
        Ok(ClusterRecord { name, cloud_site: inside.site()?, ..of_kubeconfig(kubeconfig) })
    }
}

/// The cluster of a kubeconfig; without one, that of `KUBECONFIG` or `~/.kube/config`, as kubectl chooses.
fn record(kubeconfig: Option<&Path>) -> Result<ClusterRecord, ClusterError> {
    let missing = || {
        ClusterError::Usage {
        what: "the existing cluster".to_owned(),
        why: "no kubeconfig is given, neither KUBECONFIG nor ~/.kube/config names one, and this is not a Pod of it".to_owned(),
        way_out: "give its path".to_owned(),
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
        api_server_from_beside: None,
        replica_group: None,
        cloud_site: CloudSite::BesideNodes,
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
