//! Which Pods are on which machine, and which component handles each: a worker if it runs a program,
//! otherwise the simulation.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;

use super::bounds::Guard;
use super::logs::Logs;
use super::note::Note;
use super::probe;
use super::process::Spawner;
use super::sandbox;
use super::shared::{Known, Shared};
use super::worker::Worker;
use crate::nodes::fleet::Fleet;
use embedded_runtime::cache::Key;
use embedded_runtime::context::ControllerContext;
use embedded_runtime::node;
use embedded_runtime::queue::Queue;

/// The reason why Pods cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum PodsError {
    /// There is no folder for their files.
    #[error("cannot make a folder for the files of Pods")]
    Folder(#[source] std::io::Error),
    /// There is no thread that could start programs.
    #[error("cannot start the thread that starts programs")]
    Spawner(#[source] std::io::Error),
    /// There is no client for probes.
    #[error("cannot make the client that probes ask with")]
    Probes(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Shared {
    /// Finds out what this machine allows, and registers for changes.
    pub(crate) async fn new(
        world: Arc<ControllerContext>,
        fleet: Arc<Fleet>,
    ) -> Result<Arc<Shared>, PodsError> {
        let mut builder = tempfile::Builder::new();
        // Tokens of service accounts will be in it.
        builder.prefix("embedded-cluster-").permissions(Permissions::from_mode(0o700));
        let folder = match &world.settings.folder {
            Some(parent) => builder.tempdir_in(parent),
            None => builder.tempdir(),
        }
        .map_err(PodsError::Folder)?;
        let isolation = sandbox::detect(world.settings.mounts, folder.path()).await;
        let shared = Arc::new(Shared {
            spawner: Spawner::start().map_err(PodsError::Spawner)?,
            guard: Guard::shared().map_err(PodsError::Spawner)?,
            isolation,
            probes: probe::client().map_err(PodsError::Probes)?,
            logs: Logs::default(),
            simulated: Queue::new(),
            folder,
            workers: Mutex::default(),
            relays: Mutex::default(),
            given: AtomicU32::new(0),
            world,
            fleet,
        });
        shared.register();
        super::simulated::start(&shared);
        Ok(shared)
    }

    fn register(self: &Arc<Self>) {
        // Weak, because the caches live in the world, which lives in this.
        let weak = Arc::downgrade(self);
        self.world.pods.on_change(move |before, after| {
            let Some(shared) = weak.upgrade() else { return };
            match (before, after) {
                (_, Some(pod)) => shared.consider(pod),
                (Some(pod), None) => {
                    shared.note(&pod.uid().unwrap_or_default(), Note::PathAccess);
                    shared.simulated.forget(&Key::of(pod.as_ref()));
                }
                (None, None) => {}
            }
        });
        let weak = Arc::downgrade(self);
        self.world.nodes.on_change(move |before: Option<&Arc<Node>>, after: Option<&Arc<Node>>| {
            let facts =
                |node: Option<&Arc<Node>>| node.map(|node| (node::is_ready(node), node::host_ips(node)));
            if let (Some(shared), Some(node)) = (weak.upgrade(), after)
                && facts(before) != facts(after)
            {
                shared.look_at_node(&node.name_any());
            }
        });
        let weak = Arc::downgrade(self);
        self.world.config_maps.on_key(move |key| {
            weak.upgrade().iter().for_each(|shared| shared.look_at_namespace(&key.namespace));
        });
        let weak = Arc::downgrade(self);
        self.world.secrets.on_key(move |key| {
            weak.upgrade().iter().for_each(|shared| shared.look_at_namespace(&key.namespace));
        });
    }

    /// A Pod is on one of the machines: its worker or the simulation has to look at it.
    fn consider(self: &Arc<Self>, pod: &Arc<Pod>) {
        let Some(node) = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()) else { return };
        if self.fleet.state(&node).is_none() {
            return;
        }
        if !self.has_programs(pod) {
            self.simulated.add(Key::of(pod.as_ref()));
            return;
        }
        let uid = pod.uid().unwrap_or_default();
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = workers.get(&uid) {
            // A worker that has just ended is removed from the list in a moment, and needs no notes.
            let _ = known.notes.send(Note::PathAccess);
            return;
        }
        let ended = matches!(
            pod.status.as_ref().and_then(|status| status.phase.as_deref()),
            Some("Failed" | "Succeeded")
        );
        // A kubelet that is not informed about the Pod does not start it.
        if !self.fleet.speaks(&node) || (ended && pod.metadata.deletion_timestamp.is_none()) {
            return;
        }
        let folder = self.folder.path().join("pods").join(&uid);
        let (worker, notes) = Worker::new(self.clone(), pod.clone(), folder);
        workers.insert(uid, Known { key: Key::of(pod.as_ref()), node, notes: worker.notes.clone() });
        self.world.tasks.spawn_to_the_end(worker.work(notes));
    }

    fn has_programs(&self, pod: &Pod) -> bool {
        let containers = pod.spec.as_ref().map(|spec| spec.containers.as_slice()).unwrap_or_default();
        containers
            .iter()
            .any(|one| self.world.settings.program(one.image.as_deref().unwrap_or_default()).is_some())
    }

    /// Looks at every Pod of a machine.
    pub(crate) fn look_at_node(self: &Arc<Self>, node: &str) {
        for pod in self.world.pods_on(node) {
            self.consider(&pod);
        }
    }
}
