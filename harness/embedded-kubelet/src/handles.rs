//! The operations of the harness on machines and Pods.

use std::fmt;
use std::sync::Arc;

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::nodes::fleet::{Fleet, Heartbeat, MachineState, Power};
use crate::nodes::kubelets::KubeletLoop;
use crate::pods::logs::{LogLine, LogReader};
use crate::pods::manager::PodsError;
use crate::pods::note::Note;
use crate::pods::shared::Shared;
use embedded_runtime::cache::Key;
use embedded_runtime::clients::Clients;
use embedded_runtime::context::ControllerContext;
use embedded_runtime::settings::{KubernetesVersion, NodeSpec, PodNetwork};

/// The reason why an operation on a machine or Pod is impossible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSuch {
    /// There is no machine with this name: it was never added, or was removed.
    #[error("there is no machine {0:?}")]
    Machine(String),
    /// There is already a machine with this name.
    #[error("there is a machine {0:?} already")]
    MachineTwice(String),
    /// No container with this id runs.
    #[error("no container {0:?} runs")]
    Container(String),
    /// No program runs for this Pod: it is unknown, simulated, or gone.
    #[error("no program runs for the Pod {namespace}/{name}")]
    Pod {
        /// The Pod's namespace.
        namespace: String,
        /// The Pod's name.
        name: String,
    },
}

/// The length of a Pod's uid in a container's id.
const UID: usize = 36;

/// The signals for the program of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContainerSignal {
    /// Ends the program at once.
    Kill,
    /// Requests the program to end.
    Terminate,
    /// Freezes the program.
    Pause,
    /// Lets the program continue.
    Resume,
}

/// The machines of the cluster.
#[derive(Clone)]
pub struct Nodes {
    fleet: Arc<Fleet>,
    kubelets: Arc<KubeletLoop>,
    pods: Arc<Shared>,
}

impl fmt::Debug for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Nodes").field(&self.fleet.names()).finish()
    }
}

impl Nodes {
    /// The kubelets of a cluster without machines. They do nothing before [`Nodes::run`].
    ///
    /// # Errors
    /// When this machine has no folder for the files of Pods.
    pub async fn new(clients: Clients, world: &Arc<ControllerContext>) -> Result<Nodes, PodsError> {
        let fleet = Arc::new(Fleet::new(clients, world.settings.kubernetes));
        let kubelets = KubeletLoop::new(world.clone(), fleet.clone());
        let pods = Shared::new(world.clone(), fleet.clone()).await?;
        Ok(Nodes { fleet, kubelets, pods })
    }

    /// Starts the kubelets and adds these machines. The caches of the cluster have to be filled.
    pub fn run(&self, specs: Vec<NodeSpec>) {
        self.kubelets.run();
        for spec in specs {
            let name = spec.name.clone();
            self.fleet.add(spec);
            self.kubelets.queue.add(name);
        }
    }

    /// The programs of Pods.
    #[must_use]
    pub fn pods(&self) -> Pods {
        Pods { pods: self.pods.clone() }
    }

    /// The names of all machines.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.fleet.names()
    }

    /// The current state of a machine.
    ///
    /// # Errors
    /// When the machine does not exist.
    pub fn state(&self, name: &str) -> Result<MachineState, NoSuch> {
        self.fleet.state(name).ok_or_else(|| NoSuch::Machine(name.to_owned()))
    }

    /// Adds a machine; its kubelet registers at once.
    ///
    /// # Errors
    /// When there is already a machine with this name.
    pub fn add(&self, spec: NodeSpec) -> Result<MachineState, NoSuch> {
        let name = spec.name.clone();
        let state = self.fleet.add(spec).ok_or_else(|| NoSuch::MachineTwice(name.clone()))?;
        self.kubelets.queue.add(name);
        Ok(state)
    }

    /// Waits until the kubelet of a machine has registered its Node, in its current run.
    ///
    /// # Errors
    /// When there is no such machine, or it is removed while waiting.
    pub async fn registered(&self, name: &str) -> Result<(), NoSuch> {
        let gone = || NoSuch::Machine(name.to_owned());
        let mut said = self.fleet.heartbeats(name).ok_or_else(gone)?;
        said.wait_for(|heartbeat| heartbeat.registered).await.map(|_| ()).map_err(|_| gone())
    }

    /// Removes a machine, with everything that runs on it. Its Node stays, as if the machine had been destroyed.
    ///
    /// # Errors
    /// When the machine does not exist.
    pub fn remove(&self, name: &str) -> Result<(), NoSuch> {
        self.pods.tell_node(name, || Note::PowerLost);
        if !self.fleet.remove(name) {
            return Err(NoSuch::Machine(name.to_owned()));
        }
        self.pods.tell_node(name, || Note::PathAccess);
        Ok(())
    }

    /// Stops a machine's kubelet; its programs keep running.
    ///
    /// # Errors
    /// When the machine does not exist.
    pub fn stop_kubelet(&self, name: &str) -> Result<(), NoSuch> {
        self.change(name, |state| state.kubelet_runs = false)
    }

    /// Starts a machine's kubelet again: it registers, or takes its Node over.
    ///
    /// # Errors
    /// When the machine does not exist.
    pub fn start_kubelet(&self, name: &str) -> Result<(), NoSuch> {
        self.fleet.note(name, |heartbeat| *heartbeat = Heartbeat::default());
        self.change(name, |state| state.kubelet_runs = true)
    }

    /// Stops and starts a machine's kubelet.
    ///
    /// # Errors
    /// When the machine does not exist.
    pub fn restart_kubelet(&self, name: &str) -> Result<(), NoSuch> {
        self.stop_kubelet(name)?;
        self.start_kubelet(name)
    }

    /// Replaces a machine's kubelet by that of another version, which starts at once and takes the Node over. Programs keep
    /// running.
    ///
    /// # Errors
    /// When the machine does not exist.
    pub fn replace_kubelet(&self, name: &str, version: KubernetesVersion) -> Result<(), NoSuch> {
        self.stop_kubelet(name)?;
        self.change(name, |state| state.kubelet = version)?;
        self.start_kubelet(name)
    }

    /// Replaces scheduler and controllers by those of another version.
    pub fn replace_control_plane(&self, version: KubernetesVersion) {
        self.pods.world.set_control_plane(version);
    }

    /// Freezes a machine: nothing on it runs, and nothing ends.
    ///
    /// # Errors
    /// When the machine does not exist.
    pub fn freeze(&self, name: &str) -> Result<(), NoSuch> {
        self.change(name, |state| state.power = Power::Frozen)?;
        self.pods.tell_node(name, || Note::Signal { container: None, run: None, signal: Signal::STOP });
        Ok(())
    }

    /// Lets a frozen machine continue.
    ///
    /// # Errors
    /// When the machine does not exist.
    pub fn thaw(&self, name: &str) -> Result<(), NoSuch> {
        self.pods.tell_node(name, || Note::Signal { container: None, run: None, signal: Signal::CONT });
        self.change(name, |state| state.power = Power::On)
    }

    /// Switches a machine off: everything on it ends at once.
    ///
    /// # Errors
    /// When the machine does not exist.
    pub fn power_off(&self, name: &str) -> Result<(), NoSuch> {
        self.change(name, |state| state.power = Power::Off)?;
        self.pods.tell_node(name, || Note::PowerLost);
        Ok(())
    }

    /// Switches a machine on again: its kubelet starts, then its Pods.
    ///
    /// # Errors
    /// When the machine does not exist.
    pub fn power_on(&self, name: &str) -> Result<(), NoSuch> {
        self.fleet.note(name, |heartbeat| *heartbeat = Heartbeat::default());
        self.change(name, |state| {
            state.power = Power::On;
            state.kubelet_runs = true;
        })
    }

    /// Cuts a machine off from the API server: kubelet and programs keep running but cannot reach it.
    ///
    /// # Errors
    /// When the machine does not exist.
    pub fn cut_off(&self, name: &str) -> Result<(), NoSuch> {
        self.change(name, |state| state.cut_off = true)
    }

    /// Reconnects a machine.
    ///
    /// # Errors
    /// When the machine does not exist.
    pub fn reconnect(&self, name: &str) -> Result<(), NoSuch> {
        self.change(name, |state| state.cut_off = false)
    }

    /// Replaces the cluster's pod network, as installing or removing a CNI plugin does. Kubelets notice at once.
    pub fn set_network(&self, network: PodNetwork) {
        self.pods.world.set_network(network);
        for name in self.fleet.names() {
            self.kubelets.queue.add(name.clone());
            self.pods.look_at_node(&name);
        }
    }

    /// With `true`, new Nodes get no pod ranges, as with a controller manager that does not allocate them.
    /// With `false`, Nodes without ranges get them within half a second.
    pub fn withhold_pod_cidrs(&self, withheld: bool) {
        self.pods.world.withhold_pod_cidrs(withheld);
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut MachineState)) -> Result<(), NoSuch> {
        let (before, after) =
            self.fleet.change(name, change).ok_or_else(|| NoSuch::Machine(name.to_owned()))?;
        if before != after || after.speaks() {
            self.kubelets.queue.add(name.to_owned());
            self.pods.tell_node(name, || Note::PathAccess);
            self.pods.look_at_node(name);
        }
        Ok(())
    }
}

/// The programs of Pods.
#[derive(Clone)]
pub struct Pods {
    pods: Arc<Shared>,
}

impl fmt::Debug for Pods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pods")
    }
}

impl Pods {
    /// The newest output of a container in its current run; also of a Pod that was removed recently.
    #[must_use]
    pub fn log(&self, namespace: &str, pod: &str, container: &str) -> Option<Vec<LogLine>> {
        self.pods.logs.current(&Key::new(namespace, pod), container)
    }

    /// The output of a container in its previous run.
    #[must_use]
    pub fn previous_log(&self, namespace: &str, pod: &str, container: &str) -> Option<Vec<LogLine>> {
        self.pods.logs.previous(&Key::new(namespace, pod), container)
    }

    /// A reader of a container's output in its current run: what it has written and will write, up to the end
    /// of the run.
    #[must_use]
    pub fn follow(&self, namespace: &str, pod: &str, container: &str) -> Option<LogReader> {
        self.pods.logs.follow(&Key::new(namespace, pod), container)
    }

    /// Whether programs are confined here, so that they see files where their Pods mount them.
    #[must_use]
    pub fn have_namespaces(&self) -> bool {
        self.pods.isolation.confines()
    }

    /// Kills a container's program; its kubelet restarts it. `None` kills those of all containers.
    ///
    /// # Errors
    /// When no program runs for the Pod.
    pub fn kill(&self, namespace: &str, pod: &str, container: Option<&str>) -> Result<(), NoSuch> {
        self.signal(namespace, pod, container, Signal::KILL)
    }

    /// Freezes a container's program.
    ///
    /// # Errors
    /// When no program runs for the Pod.
    pub fn pause(&self, namespace: &str, pod: &str, container: Option<&str>) -> Result<(), NoSuch> {
        self.signal(namespace, pod, container, Signal::STOP)
    }

    /// Lets a frozen program continue.
    ///
    /// # Errors
    /// When no program runs for the Pod.
    pub fn resume(&self, namespace: &str, pod: &str, container: Option<&str>) -> Result<(), NoSuch> {
        self.signal(namespace, pod, container, Signal::CONT)
    }

    /// Sends a signal to the program of one container by its id, which is `containerID` in the Pod's status.
    /// The id of an earlier run is not valid any more.
    ///
    /// # Errors
    /// When no such container runs.
    pub fn signal_container(&self, id: &str, signal: ContainerSignal) -> Result<(), NoSuch> {
        let gone = || NoSuch::Container(id.to_owned());
        let bare = id.strip_prefix("embedded://").unwrap_or(id);
        let (uid, rest) = bare.split_at_checked(UID).ok_or_else(gone)?;
        let (container, run) =
            rest.strip_prefix('-').and_then(|rest| rest.rsplit_once('-')).ok_or_else(gone)?;
        let signal = match signal {
            ContainerSignal::Kill => Signal::KILL,
            ContainerSignal::Terminate => Signal::TERM,
            ContainerSignal::Pause => Signal::STOP,
            ContainerSignal::Resume => Signal::CONT,
        };
        let run = run.parse().map_err(|_| gone())?;
        let note = Note::Signal { container: Some(container.to_owned()), run: Some(run), signal };
        if self.pods.note(uid, note) { Ok(()) } else { Err(gone()) }
    }

    fn signal(
        &self,
        namespace: &str,
        pod: &str,
        container: Option<&str>,
        signal: Signal,
    ) -> Result<(), NoSuch> {
        let note = Note::Signal { container: container.map(str::to_owned), run: None, signal };
        if self.pods.tell_pod(&Key::new(namespace, pod), note) {
            return Ok(());
        }
        Err(NoSuch::Pod { namespace: namespace.to_owned(), name: pod.to_owned() })
    }
}
