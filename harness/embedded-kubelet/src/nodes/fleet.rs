//! The machines and their states. No I/O: kubelets and Pods act on the states.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::{Arc, PoisonError, RwLock};

use kube::Client;
use tokio::sync::watch;
use tokio::time::Instant;

use embedded_runtime::clients::Clients;
use embedded_runtime::settings::{KubernetesVersion, NodeSpec};

/// The loopback address of the first machine; the others follow.
const FIRST_LOOPBACK: Ipv4Addr = Ipv4Addr::new(127, 16, 0, 1);

/// Whether a machine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Power {
    /// The machine runs.
    On,
    /// The machine is off: nothing on it runs.
    Off,
    /// The machine is frozen: nothing on it runs, and nothing has ended.
    Frozen,
}

/// The current state of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineState {
    /// Whether the machine runs.
    pub power: Power,
    /// Whether its kubelet runs.
    pub kubelet_runs: bool,
    /// Whether it is cut off from the API server.
    pub cut_off: bool,
    /// The version of its kubelet.
    pub kubelet: KubernetesVersion,
    /// Its address on this computer.
    pub loopback: Ipv4Addr,
}

impl MachineState {
    /// Whether its kubelet works and reaches the API server.
    pub(crate) fn speaks(&self) -> bool {
        self.power == Power::On && self.kubelet_runs && !self.cut_off
    }
}

/// One machine.
struct Machine {
    spec: Arc<NodeSpec>,
    state: MachineState,
    client: Option<Client>,
    heartbeat: watch::Sender<Heartbeat>,
    cut: watch::Sender<bool>,
}

/// What a kubelet has sent so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Heartbeat {
    /// Whether this run of the kubelet has registered its Node. This happens once per run.
    pub(crate) registered: bool,
    /// When the status was last posted.
    pub(crate) status: Option<Instant>,
    /// When the Lease was last renewed.
    pub(crate) lease: Option<Instant>,
}

#[derive(Default)]
struct Machines {
    by_name: BTreeMap<String, Machine>,
    taken: BTreeSet<Ipv4Addr>,
    /// All addresses before this one are taken, so that adding thousands of machines needs no search.
    next: u32,
}

/// All machines.
pub(crate) struct Fleet {
    clients: Clients,
    /// The version of the kubelets of new machines.
    kubelets: KubernetesVersion,
    machines: RwLock<Machines>,
}

impl Fleet {
    pub(crate) fn new(clients: Clients, kubelets: KubernetesVersion) -> Fleet {
        Fleet { clients, kubelets, machines: RwLock::new(Machines::default()) }
    }

    /// Adds a machine with a running kubelet. `None` if there is already one with this name.
    pub(crate) fn add(&self, spec: NodeSpec) -> Option<MachineState> {
        let mut machines = self.machines.write().unwrap_or_else(PoisonError::into_inner);
        if machines.by_name.contains_key(&spec.name) {
            return None;
        }
        let mut spec = spec;
        let loopback = match spec.loopback {
            Some(chosen) => chosen,
            None => {
                let mut next = u32::from(FIRST_LOOPBACK);
                while machines.taken.contains(&Ipv4Addr::from(next)) || next < machines.next {
                    next = next.max(machines.next.saturating_sub(1)).saturating_add(1);
                }
                machines.next = next;
                Ipv4Addr::from(next)
            }
        };
        spec.loopback = Some(loopback);
        let state = MachineState {
            power: Power::On,
            kubelet_runs: true,
            cut_off: false,
            kubelet: self.kubelets,
            loopback,
        };
        let name = spec.name.clone();
        let machine = Machine {
            spec: Arc::new(spec),
            state: state.clone(),
            client: None,
            heartbeat: watch::Sender::default(),
            cut: watch::Sender::new(false),
        };
        machines.taken.insert(loopback);
        machines.by_name.insert(name, machine);
        Some(state)
    }

    /// Removes a machine. Returns whether it existed.
    pub(crate) fn remove(&self, name: &str) -> bool {
        self.machines.write().unwrap_or_else(PoisonError::into_inner).by_name.remove(name).is_some()
    }

    /// The names of all machines.
    pub(crate) fn names(&self) -> Vec<String> {
        self.machines.read().unwrap_or_else(PoisonError::into_inner).by_name.keys().cloned().collect()
    }

    /// The current state of a machine.
    pub(crate) fn state(&self, name: &str) -> Option<MachineState> {
        self.read(name, |machine| machine.state.clone())
    }

    /// The version of a machine's kubelet.
    pub(crate) fn kubelet(&self, name: &str) -> KubernetesVersion {
        self.read(name, |machine| machine.state.kubelet).unwrap_or(self.kubelets)
    }

    /// Whether a machine's kubelet works and reaches the API server.
    pub(crate) fn speaks(&self, name: &str) -> bool {
        self.read(name, |machine| machine.state.speaks()).unwrap_or(false)
    }

    /// The description of a machine.
    pub(crate) fn spec(&self, name: &str) -> Option<Arc<NodeSpec>> {
        self.read(name, |machine| machine.spec.clone())
    }

    /// What a machine's kubelet has sent so far.
    pub(crate) fn heartbeat(&self, name: &str) -> Option<Heartbeat> {
        self.read(name, |machine| *machine.heartbeat.borrow())
    }

    /// What a machine's kubelet has sent so far, with all later changes.
    pub(crate) fn heartbeats(&self, name: &str) -> Option<watch::Receiver<Heartbeat>> {
        self.read(name, |machine| machine.heartbeat.subscribe())
    }

    /// Whether a machine is cut off, with all later changes.
    pub(crate) fn cut(&self, name: &str) -> Option<watch::Receiver<bool>> {
        self.read(name, |machine| machine.cut.subscribe())
    }

    /// The client of a machine's kubelet, created when it is first needed.
    pub(crate) fn client(&self, name: &str) -> Option<Client> {
        if let Some(known) = self.read(name, |machine| machine.client.clone())? {
            return Some(known);
        }
        let client = (self.clients.kubelet)(name);
        self.write(name, |machine| machine.client.get_or_insert(client).clone())
    }

    /// Changes a machine's state; returns the states before and after.
    pub(crate) fn change(
        &self,
        name: &str,
        change: impl FnOnce(&mut MachineState),
    ) -> Option<(MachineState, MachineState)> {
        self.write(name, |machine| {
            let before = machine.state.clone();
            change(&mut machine.state);
            let after = machine.state.clone();
            machine.cut.send_if_modified(|cut| {
                let changed = *cut != after.cut_off;
                *cut = after.cut_off;
                changed
            });
            (before, after)
        })
    }

    /// Records what a machine's kubelet has sent.
    pub(crate) fn note(&self, name: &str, note: impl FnOnce(&mut Heartbeat)) {
        self.read(name, |machine| machine.heartbeat.send_modify(note));
    }

    fn read<T>(&self, name: &str, read: impl FnOnce(&Machine) -> T) -> Option<T> {
        self.machines.read().unwrap_or_else(PoisonError::into_inner).by_name.get(name).map(read)
    }

    fn write<T>(&self, name: &str, write: impl FnOnce(&mut Machine) -> T) -> Option<T> {
        self.machines.write().unwrap_or_else(PoisonError::into_inner).by_name.get_mut(name).map(write)
    }
}
