//! Starts all components and stops them cleanly.

use std::sync::Arc;
use std::time::Duration;

use crate::{cluster, lifecycle, scheduler, workloads};
use embedded_kubelet::{Nodes, Pods, PodsError};
use embedded_runtime::clients::Clients;
use embedded_runtime::context::ControllerContext;
use embedded_runtime::settings::{Controller, Settings};

/// How long stopping may take before it is abandoned.
const PATIENCE: Duration = Duration::from_secs(10);

/// The entry point.
#[derive(Debug)]
pub struct Controllers;

/// The reason why nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The settings are contradictory.
    #[error("the cluster's settings cannot work: {}", problems.join("; "))]
    Settings {
        /// Each reason, as a sentence.
        problems: Vec<String>,
    },
    /// The API server rejected an object of the initial installation.
    #[error("cannot install the cluster's own objects")]
    Install(#[source] kube::Error),
    /// This machine cannot run Pods.
    #[error("cannot run Pods")]
    Pods(#[from] PodsError),
}

impl Controllers {
    /// Starts kubelets, scheduler and controllers. Returns as soon as all caches are filled.
    ///
    /// # Errors
    /// When the settings are contradictory, or this machine has no folder for the files of Pods.
    pub async fn start(clients: Clients, settings: Settings) -> Result<Running, StartError> {
        let problems = settings.problems();
        if !problems.is_empty() {
            return Err(StartError::Settings { problems });
        }
        let specs = settings.nodes.clone();
        let world = ControllerContext::new(clients.clone(), settings);
        let nodes = Nodes::new(clients, &world).await?;
        for controller in &world.settings.controllers {
            start(*controller, &world);
        }
        cluster::cni::start(&world);
        world.watch();
        world.synced().await;
        cluster::dns::install(&world).await.map_err(StartError::Install)?;
        nodes.run(specs);
        Ok(Running { world, nodes })
    }
}

/// Registers a controller for the changes it acts on and starts its workers.
fn start(controller: Controller, world: &Arc<ControllerContext>) {
    match controller {
        Controller::Scheduler => scheduler::start(world),
        Controller::Deployment => workloads::deployment::start(world),
        Controller::ReplicaSet => workloads::replica_set::start(world),
        Controller::DaemonSet => workloads::daemon_set::start(world),
        Controller::StatefulSet => workloads::stateful_set::start(world),
        Controller::Endpoints => cluster::endpoints::start(world),
        Controller::Namespace => cluster::namespaces::start(world),
        Controller::GarbageCollector => cluster::garbage::start(world),
        Controller::NodeIpam => cluster::ipam::start(world),
        Controller::NodeLifecycle => lifecycle::health::start(world),
        Controller::TaintEviction => lifecycle::eviction::start(world),
        Controller::ClusterRoleAggregation => cluster::roles::start(world),
        Controller::Ttl => cluster::ttl::start(world),
        Controller::VolumeProtection => cluster::protection::start(world),
        Controller::PodGarbageCollector => lifecycle::orphans::start(world),
    }
}

/// A running set of controllers. When it is dropped, everything begins to stop; [`Running::stop`] waits for that.
pub struct Running {
    world: Arc<ControllerContext>,
    nodes: Nodes,
}

impl Running {
    /// The machines.
    #[must_use]
    pub fn nodes(&self) -> Nodes {
        self.nodes.clone()
    }

    /// The programs of Pods.
    #[must_use]
    pub fn pods(&self) -> Pods {
        self.nodes.pods()
    }

    /// Stops everything and waits for it.
    pub async fn stop(self) {
        if !self.world.tasks.stop(PATIENCE).await {
            tracing::warn!("some controllers did not stop in {PATIENCE:?}");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.world.tasks.cancel();
    }
}
