//! A cluster that was there before: the harness has its kubeconfig and nothing else.

use super::backend::{Backend, BackendEntry, Facts, Fidelity, Lifetime, Runs};
use super::error::ClusterError;
use super::leftovers::cleanup;
use super::record::{About, CloudSite, ClusterRecord, Ownership};
use super::requirement::{Requirement, State};
use super::spec::ClusterSpec;
use crate::check::chain;
use crate::config::BackendKind;
use crate::images::Engine;
use futures::FutureExt;
use futures::future::LocalBoxFuture;
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
    begin: |spec| Arc::new(Existing { spec, engine: OnceCell::new() }),
    attach: |_| Ok(None),
};

/// Asks for a kubeconfig and the engine.
async fn requirements() -> Vec<Requirement> {
    let (cluster, cloud) = ("there has to be a cluster", "the fake cloud is a container beside its machines");
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
    /// The engine that the fake cloud runs on, beside the cluster's machines.
    engine: OnceCell<Engine>,
}

impl Backend for Existing {
    fn preflight(&self) -> LocalBoxFuture<'_, Result<Vec<String>, ClusterError>> {
        async { Ok(self.engine.get_or_try_init(Engine::connect).await.map(|_| Vec::new())?) }.boxed_local()
    }

    fn up(&self) -> LocalBoxFuture<'_, Result<ClusterRecord, ClusterError>> {
        let existing = self.spec.existing();
        futures::future::ready(record(existing.kubeconfig.as_deref())).boxed_local()
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

/// The cluster of a kubeconfig; without one, that of `KUBECONFIG` or `~/.kube/config`, as kubectl chooses.
fn record(kubeconfig: Option<&Path>) -> Result<ClusterRecord, ClusterError> {
    let missing = || ClusterError::Usage {
        what: "the existing cluster".to_owned(),
        why: "no kubeconfig is given, and neither KUBECONFIG nor ~/.kube/config names one".to_owned(),
        way_out: "give its path".to_owned(),
    };
    let chosen = match kubeconfig {
        Some(path) => path.to_owned(),
        None => {
            default_kubeconfig(std::env::var_os("KUBECONFIG"), std::env::home_dir()).ok_or_else(missing)?
        }
    };
    std::fs::File::open(&chosen).map_err(ClusterError::file("read the kubeconfig", &chosen))?;
    Ok(ClusterRecord {
        backend: BackendKind::Existing,
        name: chosen.display().to_string(),
        kubeconfig: chosen,
        ownership: Ownership::Others,
        machines: Vec::new(),
        facilities: BTreeSet::new(),
        pod_network: None,
        api_server_for_pods: None,
        cloud_site: CloudSite::BesideNodes,
        about: About::default(),
        own: serde_json::Value::Null,
    })
}

fn default_kubeconfig(variable: Option<std::ffi::OsString>, home: Option<PathBuf>) -> Option<PathBuf> {
    let listed =
        variable.and_then(|list| std::env::split_paths(&list).find(|path| !path.as_os_str().is_empty()));
    listed.or_else(|| home.map(|home| home.join(".kube/config")).filter(|path| path.is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kubeconfig_is_found_as_kubectl_finds_it() {
        assert_eq!(default_kubeconfig(Some("/a:/b".into()), None), Some(PathBuf::from("/a")));
        assert_eq!(default_kubeconfig(Some("".into()), Some(PathBuf::from("/nowhere"))), None);
    }

    #[test]
    fn a_kubeconfig_that_is_not_there_is_named() {
        let error = record(Some(Path::new("/nowhere/config"))).expect_err("missing");
        assert_eq!(error.to_string(), "cannot read the kubeconfig /nowhere/config");
    }
}
