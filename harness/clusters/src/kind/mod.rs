//! Clusters created with kind: one container of the local Docker engine for each machine.

mod access;
mod api_reach;
mod audit;
mod command;
mod condense;
mod control_plane;
mod create;
mod credentials;
mod exec;
mod family;
mod logs;
mod machines;
mod management;
mod metadata;
mod names;
mod network_proxy;
mod node_image;
mod operations;
mod parts;
mod pod_network;
mod ports;
pub(super) mod preflight;
mod published;
mod record;
mod render;
mod survey;
mod upgrade;
mod watching;

use super::audit::{Asked, AuditQuery};
use super::backend::{Backend, BackendEntry, Facts, Fidelity, Lifetime, Machines, Runs};
use super::error::ClusterError;
use super::leftovers::cleanup;
use super::network::ensure_network;
use super::operation::Operation;
use super::record::{CloudSite, ClusterRecord};
use super::spec::ClusterSpec;
use super::topology;
use crate::images::Engine;
use access::KindMachines;
use futures::FutureExt;
use futures::future::{BoxFuture, LocalBoxFuture};
use harness_config::Kubernetes;
use harness_core::check::chain;
use preflight::preflight;
use std::net::SocketAddrV4;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

pub(super) const BACKEND: BackendEntry = BackendEntry {
    facts: Facts {
        fidelity: Fidelity::Real,
        runs: Runs::Images,
        lifetime: Lifetime::UntilRemoved,
        manages: true,
        // One needs most of a small machine.
        side_by_side: 1,
        memory_gib: survey::MEMORY_GIB,
        facilities: create::FACILITIES,
        lacks_because: "its node image does not contain the programs for it, or its Kubernetes is too old",
    },
    requirements: || survey::requirements().boxed_local(),
    // What can be checked without the engine is part of reading the topology.
    check: |_| Ok(()),
    has: |minor| upgrade::has_version(minor).boxed_local(),
    begin: |spec| Arc::new(Kind { spec, engine: OnceCell::new() }),
    attach: |record| Ok(Some(Arc::new(KindMachines::attach(record)?))),
};

/// Whether kind can create a cluster of that Kubernetes with what is on this machine (Docker, kind and a node image), and
/// with which node image.
///
/// # Errors
/// What is missing.
pub async fn available_image(kubernetes: &Kubernetes) -> Result<String, ClusterError> {
    let engine = Engine::connect().await?;
    preflight(&engine).await?;
    node_image::available(&engine, kubernetes).await?.ok_or_else(|| ClusterError::Unavailable {
        what: format!("a node image of Kubernetes {kubernetes}"),
        why: "the local Docker engine has none".to_owned(),
        way_out: "'ccm-conformance doctor' shows whether one can be pulled; ci/node-image/build builds one"
            .to_owned(),
    })
}

/// One cluster of a run.
#[derive(Debug)]
struct Kind {
    spec: ClusterSpec,
    /// Set before anything is created.
    engine: OnceCell<Engine>,
}

impl Kind {
    async fn engine(&self) -> Result<&Engine, ClusterError> {
        Ok(self.engine.get_or_try_init(Engine::connect).await?)
    }
}

impl Backend for Kind {
    fn preflight(&self) -> LocalBoxFuture<'_, Result<Vec<String>, ClusterError>> {
        async { Ok(preflight(self.engine().await?).await?.warnings) }.boxed_local()
    }

    fn cloud_site(&self) -> LocalBoxFuture<'_, Result<Option<CloudSite>, ClusterError>> {
        async {
            let families = topology::load(&self.spec.own().topology)?.families;
            let network = ensure_network(self.engine().await?, &self.spec.run, families).await?;
            Ok(Some(CloudSite::Network(network)))
        }
        .boxed_local()
    }

    fn up(&self) -> LocalBoxFuture<'_, Result<ClusterRecord, ClusterError>> {
        async { create::create(self.engine().await?, &self.spec).await }.boxed_local()
    }

    fn load<'a>(
        &'a self,
        cluster: &'a ClusterRecord,
        archives: &'a [&'a Path],
    ) -> LocalBoxFuture<'a, Result<(), ClusterError>> {
        async move {
            let machines = KindMachines::attach(cluster)?;
            for archive in archives {
                machines.load_image(archive).await?;
            }
            Ok(())
        }
        .boxed_local()
    }

    fn down(&self) -> LocalBoxFuture<'_, Result<(), ClusterError>> {
        async {
            // Without a connection to the engine, nothing was created in it.
            let Some(engine) = self.engine.get() else { return Ok(()) };
            // By label and name, not by the record: a stage that was interrupted recorded nothing.
            let removed = cleanup(engine, &self.spec.run).await;
            removed.map(drop).map_err(|error| ClusterError::NotRemoved { what: chain(&error) })
        }
        .boxed_local()
    }
}

impl Machines for KindMachines {
    fn operate<'a>(&'a self, operation: Operation<'a>) -> BoxFuture<'a, Result<(), ClusterError>> {
        self.carry_out(operation).boxed()
    }

    fn api_outage(&self, lasts: Duration) -> BoxFuture<'_, Result<Duration, ClusterError>> {
        self.api_outage(lasts).boxed()
    }

    fn serve_metadata(&self, at: SocketAddrV4) -> BoxFuture<'_, Result<bool, ClusterError>> {
        metadata::serve(&self.engine, &self.machines, at).boxed()
    }

    fn asked<'a>(&'a self, query: &'a AuditQuery) -> BoxFuture<'a, Result<Vec<Asked>, ClusterError>> {
        self.read_audit_log(query).boxed()
    }

    fn lost(&self) -> BoxFuture<'_, String> {
        KindMachines::lost(self).boxed()
    }
}
