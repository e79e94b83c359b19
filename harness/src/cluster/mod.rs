//! Clusters: made with kind, in this process, or there already.
//!
//! A [`Cluster`] does to its machines what suites ask for, and says `not possible here` where its backend cannot.
//! Knows no Kubernetes API: Nodes, taints and readiness are [`crate::k8s`]'s.

mod condense;
mod embedded;
mod error;
mod evidence;
mod exec;
mod existing;
mod family;
mod kind;
mod kind_cli;
mod leftovers;
mod network;
mod node_image;
mod node_ops;
mod pod_network;
mod preflight;
mod record;
mod render;
mod spec;
mod topology;
mod version;

pub use embedded::{EmbeddedCluster, EmbeddedSpec, EmbeddedVersion};
pub use error::ClusterError;
pub use exec::ExecOutput;
pub use existing::ExistingCluster;
pub use kind::KindCluster;
pub use leftovers::{
    LeftBehind, Leftover, LeftoverKind, RemovalError, cleanup, list_leftovers, remove_leftovers,
};
pub use network::ensure_network;
pub use node_ops::Target;
pub use pod_network::PodNetwork;
pub use preflight::{Preflight, PreflightError, preflight};
pub use record::{API_SERVER_PORT, ClusterRecord, KindRecord, KubeProxy, Machine, PodNetworkWish, Role};
pub use spec::{KindSpec, Progress, ProviderIds};
pub use topology::Families;

use crate::check::Facility;
use crate::images::Engine;
use node_ops::{KubeletOp, TaskOp};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// A cluster.
#[derive(Clone, Debug)]
pub enum Cluster {
    /// Made with kind by the harness.
    Kind(KindCluster),
    /// There before.
    Existing(ExistingCluster),
}

impl Cluster {
    /// Makes a cluster with kind and its network, and waits until its machines have joined. Nothing is waited for
    /// beyond that: Nodes register a moment later, and there is no pod network until [`Cluster::set_pod_network`].
    ///
    /// When this fails, what was half made is removed. When the future is dropped, kind and its children are killed and
    /// [`cleanup`] removes the rest.
    ///
    /// # Errors
    /// This machine cannot run kind, there is no node image, the topology or version does not exist
    /// ([`ClusterError::is_usage`]), or kind failed.
    pub async fn create(
        engine: &Engine,
        spec: &KindSpec,
        progress: Progress<'_>,
    ) -> Result<Cluster, ClusterError> {
        KindCluster::create(engine, spec, progress).await.map(Cluster::Kind)
    }

    /// Uses the cluster of a kubeconfig; without one, that which kubectl would use.
    ///
    /// # Errors
    /// There is no kubeconfig, or it cannot be read.
    pub fn existing(kubeconfig: Option<&Path>) -> Result<Cluster, ClusterError> {
        ExistingCluster::new(kubeconfig).map(Cluster::Existing)
    }

    /// Uses the cluster that another process of the run has made. Asks nobody; the first operation shows whether it is
    /// still there.
    ///
    /// # Errors
    /// The Docker engine's address cannot be used any more.
    pub fn attach(record: ClusterRecord) -> Result<Cluster, ClusterError> {
        match record.kind {
            Some(_) => KindCluster::attach(record).map(Cluster::Kind),
            None => Ok(Cluster::Existing(ExistingCluster { record })),
        }
    }

    /// All another process needs to [`Cluster::attach`] to it.
    pub fn record(&self) -> &ClusterRecord {
        match self {
            Cluster::Kind(cluster) => &cluster.record,
            Cluster::Existing(cluster) => &cluster.record,
        }
    }

    /// What can be done to its machines. What the cloud and the CCM need beyond that is not known here.
    pub fn facilities(&self) -> BTreeSet<Facility> {
        match self {
            Cluster::Kind(cluster) => cluster.kind.facilities.clone(),
            Cluster::Existing(_) => BTreeSet::new(),
        }
    }

    /// Its machines, control planes first; none for an existing cluster.
    pub fn machines(&self) -> &[Machine] {
        self.record().machines()
    }

    /// Loads an image archive (`docker save` format) into every machine at once.
    ///
    /// # Errors
    /// A machine refuses it, or the cluster is an existing one.
    pub async fn load_image(&self, archive: &Path) -> Result<(), ClusterError> {
        self.kind("loading an image")?.load_image(archive).await
    }

    /// Runs a command on a machine as root and waits for its end, whatever its status.
    ///
    /// # Errors
    /// It does not end within `limit`, or cannot be begun.
    pub async fn exec(
        &self,
        machine: &Machine,
        argv: &[&str],
        limit: Duration,
    ) -> Result<ExecOutput, ClusterError> {
        self.kind("running a command on a machine")?.exec(machine, argv, limit).await
    }

    /// Starts the kubelet again from the beginning: it registers its Node when that is gone (contract ENV-06).
    ///
    /// # Errors
    /// As all operations on machines: the command failed, or the cluster is an existing one.
    pub async fn restart_kubelet(&self, machine: &Machine) -> Result<(), ClusterError> {
        self.kind("restarting a kubelet")?.kubelet(machine, KubeletOp::Restart).await
    }

    /// Stops the kubelet; its Pods run on, its Node turns Unknown.
    ///
    /// # Errors
    /// As [`Cluster::restart_kubelet`].
    pub async fn stop_kubelet(&self, machine: &Machine) -> Result<(), ClusterError> {
        self.kind("stopping a kubelet")?.kubelet(machine, KubeletOp::Stop).await
    }

    /// Starts a stopped kubelet.
    ///
    /// # Errors
    /// As [`Cluster::restart_kubelet`].
    pub async fn start_kubelet(&self, machine: &Machine) -> Result<(), ClusterError> {
        self.kind("starting a kubelet")?.kubelet(machine, KubeletOp::Start).await
    }

    /// Freezes every process of a machine.
    ///
    /// # Errors
    /// As [`Cluster::restart_kubelet`]; also when it is frozen already.
    pub async fn pause(&self, machine: &Machine) -> Result<(), ClusterError> {
        self.kind("freezing a machine")?.pause(machine).await
    }

    /// Lets a frozen machine go on.
    ///
    /// # Errors
    /// As [`Cluster::restart_kubelet`]; also when it is not frozen.
    pub async fn unpause(&self, machine: &Machine) -> Result<(), ClusterError> {
        self.kind("thawing a machine")?.unpause(machine).await
    }

    /// Switches a machine off at once, as a power failure would, and waits until it is off.
    ///
    /// # Errors
    /// As [`Cluster::restart_kubelet`].
    pub async fn stop(&self, machine: &Machine) -> Result<(), ClusterError> {
        self.kind("switching a machine off")?.stop(machine).await
    }

    /// Switches a machine on and waits until its services have been started. Returns it with the addresses it has now.
    ///
    /// # Errors
    /// As [`Cluster::restart_kubelet`]; also when it does not boot.
    pub async fn start(&self, machine: &Machine) -> Result<Machine, ClusterError> {
        self.kind("switching a machine on")?.start(machine).await
    }

    /// Lets packets of a machine and its Pods to `target` vanish, those of open connections too. Twice is as once.
    ///
    /// # Errors
    /// [`ClusterError::NotObservable`] where the node image has no iptables; else as [`Cluster::restart_kubelet`].
    pub async fn cut(&self, machine: &Machine, target: Target) -> Result<(), ClusterError> {
        self.kind("cutting a machine off")?.cut(machine, target).await
    }

    /// Undoes [`Cluster::cut`]; where nothing is cut, nothing happens.
    ///
    /// # Errors
    /// As [`Cluster::cut`].
    pub async fn mend(&self, machine: &Machine, target: Target) -> Result<(), ClusterError> {
        self.kind("mending a machine's connection")?.mend(machine, target).await
    }

    /// Sets the pod network up or takes it away, on all machines at once. Kubelets notice within seconds.
    ///
    /// # Errors
    /// [`ClusterError::NotObservable`] where the node image lacks the plugins or a Node has no pod CIDR.
    pub async fn set_pod_network(&self, wanted: PodNetwork) -> Result<(), ClusterError> {
        self.kind("changing the pod network")?.set_pod_network(&wanted).await
    }

    /// Sends a signal (`SIGKILL`, `SIGTERM` ...) to the first process of a container. `id` is containerd's, with or
    /// without `containerd://`.
    ///
    /// # Errors
    /// The container does not run; else as [`Cluster::restart_kubelet`].
    pub async fn kill_container(
        &self,
        machine: &Machine,
        id: &str,
        signal: &str,
    ) -> Result<(), ClusterError> {
        self.kind("killing a process")?.task(machine, id, TaskOp::Kill { signal }).await
    }

    /// Freezes every process of a container.
    ///
    /// # Errors
    /// As [`Cluster::kill_container`].
    pub async fn pause_container(&self, machine: &Machine, id: &str) -> Result<(), ClusterError> {
        self.kind("freezing a process")?.task(machine, id, TaskOp::Pause).await
    }

    /// Lets a frozen container go on.
    ///
    /// # Errors
    /// As [`Cluster::kill_container`].
    pub async fn resume_container(&self, machine: &Machine, id: &str) -> Result<(), ClusterError> {
        self.kind("thawing a process")?.task(machine, id, TaskOp::Resume).await
    }

    /// Writes the machines' logs into a folder each below `folder`, as far as they can be had. Nothing for an existing
    /// cluster.
    pub async fn logs_bundle(&self, folder: &Path) {
        if let Cluster::Kind(cluster) = self {
            evidence::collect(&cluster.engine, &cluster.kind.machines, folder).await;
        }
    }

    /// Removes machines, volumes, network and kubeconfig of a cluster that the harness made; parts that are gone already
    /// are fine. An existing cluster is left alone.
    ///
    /// # Errors
    /// Something could not be removed; [`cleanup`] can be tried.
    pub async fn delete(&self) -> Result<(), ClusterError> {
        match self {
            Cluster::Kind(cluster) => cluster.delete().await,
            Cluster::Existing(_) => Ok(()),
        }
    }

    fn kind(&self, what: &str) -> Result<&KindCluster, ClusterError> {
        match self {
            Cluster::Kind(cluster) => Ok(cluster),
            Cluster::Existing(_) => Err(ClusterError::NotObservable {
                what: what.to_owned(),
                why: "the harness did not make this cluster and has no access to its machines".to_owned(),
            }),
        }
    }
}
