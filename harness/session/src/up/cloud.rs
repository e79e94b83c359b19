//! Starts the cloud where the cluster's machines can reach it.

use super::prepared::Artifacts;
use super::stage::stage;
use super::teardown::Teardown;
use crate::SessionError;
use crate::k8s::addresses;
use futures::FutureExt;
use harness_clouds::{CloudRecord, CloudSpec, OnMessage, Place, RunningCloud, network_of, start};
use harness_clusters::images::{Engine, ImageError, RunId};
use harness_clusters::{CloudSite, cleanup};
use harness_config::{CloudSource, RunPlan};
use harness_core::check::chain;
use harness_core::events::Events;
use k8s_openapi::api::core::v1::Node;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A lane's cloud, before it is started.
#[derive(Clone, Copy)]
pub(super) struct WantedCloud<'a> {
    pub(super) run: &'a RunId,
    pub(super) cloud: &'a CloudSource,
    /// Names of the CCM's replicas.
    pub(super) replicas: &'a [String],
    /// The lane's folder.
    pub(super) folder: &'a Path,
    pub(super) events: &'a Events,
}

impl WantedCloud<'_> {
    /// Starts it at `site`. Its removal is registered with the teardown before it is started.
    ///
    /// # Errors
    /// It does not start, or there is no address that `nodes` can reach.
    pub(super) async fn start(
        self,
        teardown: &mut Teardown,
        site: &CloudSite,
        nodes: &[Node],
        artifacts: &Artifacts,
    ) -> Result<CloudRecord, SessionError> {
        let running: Arc<Mutex<Option<RunningCloud>>> = Arc::default();
        let held = running.clone();
        let contained = self.cloud.driver_image().map(|_| self.run.clone());
        teardown.push("cloud", move || {
            async move {
                let cloud = held.lock().expect("no holder of this lock panics").take();
                match (cloud, contained) {
                    (Some(cloud), _) => cloud.stop().await.map_err(|error| chain(&error)),
                    (None, Some(run)) => by_label(&run).await,
                    // The container of one that did not start is removed with the cluster, by the lane's label.
                    (None, None) => Ok(()),
                }
            }
            .boxed_local()
        });
        let cloud = stage(self.events, "cloud", self.begin(site, nodes, artifacts)).await?;
        let record = cloud.record().clone();
        *running.lock().expect("no holder of this lock panics") = Some(cloud);
        Ok(record)
    }

    async fn begin(
        self,
        site: &CloudSite,
        nodes: &[Node],
        artifacts: &Artifacts,
    ) -> Result<RunningCloud, SessionError> {
        let WantedCloud { run, cloud, replicas, folder, events } = self;
        let events = events.clone();
        // An indented message is a detail; the others are about trouble.
        let on_message: OnMessage = Arc::new(move |what| match what.starts_with(' ') {
            true => events.say_detail(what),
            false => events.say(what),
        });
        let here =
            CloudSpec { run, cloud, place: Place::LOOPBACK, replicas, folder, on_message: &on_message };
        let network = match site {
            CloudSite::ThisMachine { address, name } => {
                let place = Place::ThisProcess { address: *address, name: name.as_deref() };
                return Ok(start(CloudSpec { place, ..here }).await?);
            }
            // The address of an existing cloud is fixed; a proxy for it must be where the CCM can reach it.
            _ if !cloud.is_many() && !matches!(cloud, CloudSource::Proxied { .. }) => {
                return Ok(start(here).await?);
            }
            CloudSite::Network(network) => network.clone(),
            CloudSite::NextToNodes => network_next_to_cluster(nodes).await?,
        };
        let Some(images) = &artifacts.images else {
            return Err(SessionError::Precondition(format!(
                "this backend runs the fake cloud as a program, so there is no image of it for network {network}"
            )));
        };
        let engine = Engine::connect().await.map_err(ImageError::from)?;
        let place = Place::NextToMachines { engine: &engine, network: &network, image: &images.cloud };
        Ok(start(CloudSpec { place, ..here }).await?)
    }
}

/// Removes the container of a driver that did not start, if no cluster will do so.
async fn by_label(run: &RunId) -> Result<(), String> {
    let engine = match Engine::connect().await {
        Ok(engine) => engine,
        // Then there was no container either.
        Err(_) => return Ok(()),
    };
    cleanup(&engine, run).await.map(drop).map_err(|error| chain(&error))
}

/// Whether the driver of the plan's cloud can be a container, if its cluster needs no engine and so does not check that.
///
/// # Errors
/// [`SessionError::Usage`]: there is no engine, or it is not on this machine.
pub(super) async fn check_engine(plan: &RunPlan) -> Result<(), SessionError> {
    let Some(image) = plan.profile.cloud.driver_image() else { return Ok(()) };
    let why = match Engine::connect().await {
        Ok(engine) if engine.is_local() => return Ok(()),
        Ok(engine) => format!("the Docker engine at {} is not on this machine", engine.host()),
        Err(error) => chain(&error),
    };
    Err(SessionError::Usage(format!(
        "{}: cloud.driver.image: on backend '{}' the container of {image} is on this machine's own network, and {why}; or start \
         the driver as a program, with 'cloud.driver.command'",
        plan.profile.file.display(),
        plan.cluster.backend()
    )))
}

/// Where the fake cloud must run so that the Nodes of an existing cluster can reach it.
async fn network_next_to_cluster(nodes: &[Node]) -> Result<String, SessionError> {
    let engine = Engine::connect().await.map_err(ImageError::from)?;
    let own: Vec<IpAddr> =
        nodes.iter().flat_map(addresses).filter_map(|(_, address)| address.parse().ok()).collect();
    let found = network_of(&engine, &own).await.map_err(ImageError::from)?;
    found.ok_or_else(|| {
        SessionError::Precondition(
            "the existing cluster's nodes are not containers of this Docker engine, so they could not reach a \
             fake cloud that runs here; use a cluster on this engine (kind, k3d, minikube with Docker)"
                .to_owned(),
        )
    })
}
