//! The state that all Pods of this process share: machines, workers, logs, addresses.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tempfile::TempDir;
use tokio::sync::mpsc;

use super::bounds::Guard;
use super::logs::Logs;
use super::note::Note;
use super::process::Spawner;
use super::sandbox::Isolation;
use super::{relay, volumes};
use crate::nodes::fleet::{Fleet, Power};
use embedded_runtime::cache::Key;
use embedded_runtime::context::ControllerContext;
use embedded_runtime::queue::Queue;
use embedded_runtime::settings::ServiceVip;

/// The loopback address of the first Pod that is not on the host network.
const FIRST_POD: Ipv4Addr = Ipv4Addr::new(127, 64, 0, 1);

/// The state that all Pods of this process share.
pub(crate) struct Shared {
    pub(crate) world: Arc<ControllerContext>,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) spawner: Spawner,
    pub(crate) guard: Arc<Guard>,
    pub(crate) isolation: Isolation,
    pub(crate) probes: reqwest::Client,
    pub(crate) logs: Logs,
    pub(crate) simulated: Arc<Queue<Key>>,
    pub(super) folder: TempDir,
    pub(super) workers: Mutex<HashMap<String, Known>>,
    pub(super) relays: Mutex<HashMap<String, SocketAddr>>,
    /// How many addresses of the Nodes' ranges Pods have been given.
    pub(super) given: AtomicU32,
}

/// How many loopback addresses the Pods of this process have been given: those of all its clusters differ.
static LOOPBACKS: AtomicU32 = AtomicU32::new(0);
/// How many loopback addresses follow the first one, and how many of them are between those of two processes.
const LOOPBACK_MASK: u32 = 0x003f_ffff;
const OF_A_PROCESS: u32 = 4096;

pub(super) struct Known {
    pub(super) key: Key,
    pub(super) node: String,
    pub(super) notes: mpsc::UnboundedSender<Note>,
}

impl Shared {
    /// Records that a worker has ended.
    pub(crate) fn gone(&self, key: &Key, uid: &str) {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
        self.logs.gone(key);
    }

    /// Sends a note to the worker of a Pod by its uid; returns whether there is one.
    pub(crate) fn note(&self, uid: &str, note: Note) -> bool {
        let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        workers.get(uid).is_some_and(|known| known.notes.send(note).is_ok())
    }

    pub(super) fn look_at_namespace(&self, namespace: &str) {
        let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        for known in workers.values().filter(|known| known.key.namespace == namespace) {
            let _ = known.notes.send(Note::PathAccess);
        }
    }

    /// Sends a note to every worker of a machine.
    pub(crate) fn tell_node(&self, node: &str, note: impl Fn() -> Note) {
        let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        for known in workers.values().filter(|known| known.node == node) {
            let _ = known.notes.send(note());
        }
    }

    /// Sends a note to the worker of a Pod; returns whether there is one.
    pub(crate) fn tell_pod(&self, key: &Key, note: Note) -> bool {
        let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        workers.values().find(|known| known.key == *key).is_some_and(|known| known.notes.send(note).is_ok())
    }

    /// Whether a machine's kubelet works, connected or not.
    pub(crate) fn acts(&self, node: &str) -> bool {
        self.fleet.state(node).is_some_and(|state| state.power == Power::On && state.kubelet_runs)
    }

    /// A number for the address of a Pod in the ranges of its Node.
    pub(crate) fn next_number(&self) -> u32 {
        self.given.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// A loopback address that no other Pod of this process has, nor one of a process with a number near this one's.
    pub(crate) fn next_loopback() -> Ipv4Addr {
        let given = LOOPBACKS.fetch_add(1, Ordering::Relaxed);
        let offset = std::process::id().wrapping_mul(OF_A_PROCESS).wrapping_add(given) & LOOPBACK_MASK;
        Ipv4Addr::from(u32::from(FIRST_POD).saturating_add(offset))
    }

    /// The root folder of a machine, which contains its `hostPath` volumes.
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

    /// The address at which programs of a machine reach the API server.
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
