//! Which Pods are on which machine and who looks after each: a worker where a program runs, else the simulation.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::logs::Logs;
use super::note::Note;
use super::process::Spawner;
use super::sandbox::{self, Isolation};
use super::worker::Worker;
use super::{probe, relay, volumes};
use crate::cache::Key;
use crate::nodes::fleet::{Fleet, Power};
use crate::nodes::object;
use crate::queue::Queue;
use crate::settings::ServiceVip;
use crate::world::World;

/// The first loopback address that is given to a Pod with a network of its own.
const FIRST_POD: Ipv4Addr = Ipv4Addr::new(127, 64, 0, 1);

/// What all Pods of this process share.
pub(crate) struct Shared {
    pub(crate) world: Arc<World>,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) spawner: Spawner,
    pub(crate) isolation: Isolation,
    pub(crate) probes: reqwest::Client,
    pub(crate) logs: Logs,
    pub(crate) simulated: Arc<Queue<Key>>,
    folder: TempDir,
    workers: Mutex<HashMap<String, Known>>,
    relays: Mutex<HashMap<String, SocketAddr>>,
    given: AtomicU32,
}

struct Known {
    key: Key,
    node: String,
    notes: mpsc::UnboundedSender<Note>,
}

/// Why Pods cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum PodsError {
    /// No folder for their files.
    #[error("cannot make a folder for the files of Pods")]
    Folder(#[source] std::io::Error),
    /// No thread to start programs from.
    #[error("cannot start the thread that starts programs")]
    Spawner(#[source] std::io::Error),
    /// No client for probes.
    #[error("cannot make the client that probes ask with")]
    Probes(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Shared {
    /// Finds out what this machine allows; registers for changes.
    pub(crate) async fn new(world: Arc<World>, fleet: Arc<Fleet>) -> Result<Arc<Shared>, PodsError> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("embedded-cluster-");
        let folder = match &world.settings.folder {
            Some(parent) => builder.tempdir_in(parent),
            None => builder.tempdir(),
        }
        .map_err(PodsError::Folder)?;
        let isolation = sandbox::detect(world.settings.mounts, folder.path()).await;
        let shared = Arc::new(Shared {
            spawner: Spawner::start().map_err(PodsError::Spawner)?,
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
                    shared.note(&pod.uid().unwrap_or_default(), Note::Look);
                    shared.simulated.forget(&Key::of(pod.as_ref()));
                }
                (None, None) => {}
            }
        });
        let weak = Arc::downgrade(self);
        self.world.nodes.on_change(move |before: Option<&Arc<Node>>, after: Option<&Arc<Node>>| {
            let facts =
                |node: Option<&Arc<Node>>| node.map(|node| (object::is_ready(node), object::host_ips(node)));
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

    /// A Pod is on one of the machines: whoever looks after it shall look.
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
            // A worker that has just ended is out of the list in a moment, and needs no notes.
            let _ = known.notes.send(Note::Look);
            return;
        }
        let ended = matches!(
            pod.status.as_ref().and_then(|status| status.phase.as_deref()),
            Some("Failed" | "Succeeded")
        );
        // A kubelet that does not hear of the Pod does not start it.
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

    /// A worker has ended.
    pub(crate) fn gone(&self, key: &Key, uid: &str) {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
        self.logs.gone(key);
    }

    /// Tells the worker of a Pod by its uid; whether there is one.
    pub(crate) fn note(&self, uid: &str, note: Note) -> bool {
        let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        workers.get(uid).is_some_and(|known| known.notes.send(note).is_ok())
    }

    /// Every Pod of a machine is looked at.
    pub(crate) fn look_at_node(self: &Arc<Self>, node: &str) {
        for pod in self.world.pods_on(node) {
            self.consider(&pod);
        }
    }

    fn look_at_namespace(&self, namespace: &str) {
        let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        for known in workers.values().filter(|known| known.key.namespace == namespace) {
            let _ = known.notes.send(Note::Look);
        }
    }

    /// Tells every worker of a machine.
    pub(crate) fn tell_node(&self, node: &str, note: impl Fn() -> Note) {
        let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        for known in workers.values().filter(|known| known.node == node) {
            let _ = known.notes.send(note());
        }
    }

    /// Tells the worker of a Pod; whether there is one.
    pub(crate) fn tell_pod(&self, key: &Key, note: Note) -> bool {
        let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        workers.values().find(|known| known.key == *key).is_some_and(|known| known.notes.send(note).is_ok())
    }

    /// Whether a machine's kubelet works, connected or not.
    pub(crate) fn acts(&self, node: &str) -> bool {
        self.fleet.state(node).is_some_and(|state| state.power == Power::On && state.kubelet_runs)
    }

    /// A loopback address nobody else has.
    pub(crate) fn next_loopback(&self) -> IpAddr {
        let offset = self.given.fetch_add(1, Ordering::Relaxed) & 0x003f_ffff;
        IpAddr::V4(Ipv4Addr::from(u32::from(FIRST_POD).saturating_add(offset)))
    }

    /// The root folder of a machine: what `hostPath` volumes are below.
    pub(crate) fn machine_folder(&self, node: &str) -> PathBuf {
        let folder = self.folder.path().join("machines").join(node.replace('/', "_"));
        if let Some(spec) = self.fleet.spec(node)
            && !folder.exists()
        {
            for (path, content) in &spec.files {
                let written = volumes::inside(&path.to_string_lossy())
                    .map_err(|refusal| std::io::Error::other(refusal.0))
                    .and_then(|inside| volumes::write_file(&folder.join(inside), content));
                if let Err(error) = written {
                    tracing::warn!(node, path = %path.display(), %error, "a file of the machine was not written");
                }
            }
        }
        folder
    }

    /// Where programs of a machine reach the API server.
    pub(crate) fn api_server_for(&self, node: &str) -> (String, u16) {
        let server = self.world.settings.api_server;
        if self.world.settings.service_vip == ServiceVip::Absent {
            let service = self.world.services.get(&Key::new("default", "kubernetes"));
            let spec = service.as_ref().and_then(|service| service.spec.as_ref());
            let address =
                spec.and_then(|spec| spec.cluster_ip.clone()).unwrap_or_else(|| "10.96.0.1".to_owned());
            return (address, 443);
        }
        let mut relays = self.relays.lock().unwrap_or_else(PoisonError::into_inner);
        let address = match relays.get(node) {
            Some(known) => *known,
            None => {
                let started = self.fleet.cut(node).map(|cut| relay::start(&self.world.tasks, server, cut));
                let address = match started {
                    Some(Ok(address)) => address,
                    Some(Err(error)) => {
                        tracing::warn!(node, %error, "no relay to the API server: this node cannot be cut off");
                        server
                    }
                    None => server,
                };
                relays.insert(node.to_owned(), address);
                address
            }
        };
        (address.ip().to_string(), address.port())
    }
}
