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

pub use embedded::{EmbeddedAttachment, EmbeddedCluster, EmbeddedWish};
pub use error::ClusterError;
pub use exec::ExecOutput;
pub use existing::ExistingCluster;
pub use kind::KindCluster;
pub use leftovers::{
    LeftBehind, Leftover, LeftoverKind, RemovalError, cleanup, list_leftovers, remove_leftovers,
};
pub use network::ensure_network;
pub use node_image::at_hand as node_image_at_hand;
pub use node_ops::Target;
pub use pod_network::PodNetwork;
pub use preflight::{Preflight, PreflightError, preflight};
pub use record::{
    API_SERVER_PORT, ClusterRecord, EmbeddedRecord, KindRecord, KubeProxy, Machine, Origin, PodNetworkWish,
    Role,
};
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
    /// In a process of the run.
    Embedded(EmbeddedAttachment),
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
        match record.origin.clone() {
            Origin::Kind(kind) => KindCluster::attach(record, kind).map(Cluster::Kind),
            Origin::Embedded(embedded) => Ok(Cluster::Embedded(EmbeddedAttachment { record, embedded })),
            Origin::Existing => Ok(Cluster::Existing(ExistingCluster { record })),
        }
    }

    /// All another process needs to [`Cluster::attach`] to it.
    pub fn record(&self) -> &ClusterRecord {
        match self {
            Cluster::Kind(cluster) => &cluster.record,
            Cluster::Embedded(cluster) => &cluster.record,
            Cluster::Existing(cluster) => &cluster.record,
        }
    }

    /// What can be done to its machines. What the cloud and the CCM need beyond that is not known here.
    pub fn facilities(&self) -> BTreeSet<Facility> {
        match self {
            Cluster::Kind(cluster) => cluster.kind.facilities.clone(),
            Cluster::Embedded(_) => EmbeddedAttachment::facilities(),
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
        match self {
            Cluster::Kind(cluster) => cluster.kubelet(machine, KubeletOp::Restart).await,
            Cluster::Embedded(cluster) => cluster.kubelet(machine, KubeletOp::Restart).await,
            Cluster::Existing(_) => Err(no_access("restarting a kubelet")),
        }
    }

    /// Stops the kubelet; its Pods run on, its Node turns Unknown.
    ///
    /// # Errors
    /// As [`Cluster::restart_kubelet`].
    pub async fn stop_kubelet(&self, machine: &Machine) -> Result<(), ClusterError> {
        match self {
            Cluster::Kind(cluster) => cluster.kubelet(machine, KubeletOp::Stop).await,
            Cluster::Embedded(cluster) => cluster.kubelet(machine, KubeletOp::Stop).await,
            Cluster::Existing(_) => Err(no_access("stopping a kubelet")),
        }
    }

    /// Starts a stopped kubelet.
    ///
    /// # Errors
    /// As [`Cluster::restart_kubelet`].
    pub async fn start_kubelet(&self, machine: &Machine) -> Result<(), ClusterError> {
        match self {
            Cluster::Kind(cluster) => cluster.kubelet(machine, KubeletOp::Start).await,
            Cluster::Embedded(cluster) => cluster.kubelet(machine, KubeletOp::Start).await,
            Cluster::Existing(_) => Err(no_access("starting a kubelet")),
        }
    }

    /// Freezes every process of a machine.
    ///
    /// # Errors
    /// As [`Cluster::restart_kubelet`]; also when it is frozen already.
    pub async fn pause(&self, machine: &Machine) -> Result<(), ClusterError> {
        match self {
            Cluster::Kind(cluster) => cluster.pause(machine).await,
            Cluster::Embedded(cluster) => cluster.freeze(machine).await,
            Cluster::Existing(_) => Err(no_access("freezing a machine")),
        }
    }

    /// Lets a frozen machine go on.
    ///
    /// # Errors
    /// As [`Cluster::restart_kubelet`]; also when it is not frozen.
    pub async fn unpause(&self, machine: &Machine) -> Result<(), ClusterError> {
        match self {
            Cluster::Kind(cluster) => cluster.unpause(machine).await,
            Cluster::Embedded(cluster) => cluster.thaw(machine).await,
            Cluster::Existing(_) => Err(no_access("thawing a machine")),
        }
    }

    /// Switches a machine off at once, as a power failure would, and waits until it is off.
    ///
    /// # Errors
    /// As [`Cluster::restart_kubelet`].
    pub async fn stop(&self, machine: &Machine) -> Result<(), ClusterError> {
        match self {
            Cluster::Kind(cluster) => cluster.stop(machine).await,
            Cluster::Embedded(cluster) => cluster.power_off(machine).await,
            Cluster::Existing(_) => Err(no_access("switching a machine off")),
        }
    }

    /// Switches a machine on and waits until its services have been started. Returns it with the addresses it has now.
    ///
    /// # Errors
    /// As [`Cluster::restart_kubelet`]; also when it does not boot.
    pub async fn start(&self, machine: &Machine) -> Result<Machine, ClusterError> {
        match self {
            Cluster::Kind(cluster) => cluster.start(machine).await,
            Cluster::Embedded(cluster) => cluster.power_on(machine).await,
            Cluster::Existing(_) => Err(no_access("switching a machine on")),
        }
    }

    /// Lets packets of a machine and its Pods to `target` vanish, those of open connections too. Twice is as once.
    ///
    /// # Errors
    /// [`ClusterError::NotObservable`] where the node image has no iptables; else as [`Cluster::restart_kubelet`].
    pub async fn cut(&self, machine: &Machine, target: Target) -> Result<(), ClusterError> {
        match self {
            Cluster::Kind(cluster) => cluster.cut(machine, target).await,
            Cluster::Embedded(cluster) => cluster.cut(machine, target).await,
            Cluster::Existing(_) => Err(no_access("cutting a machine off")),
        }
    }

    /// Undoes [`Cluster::cut`]; where nothing is cut, nothing happens.
    ///
    /// # Errors
    /// As [`Cluster::cut`].
    pub async fn mend(&self, machine: &Machine, target: Target) -> Result<(), ClusterError> {
        match self {
            Cluster::Kind(cluster) => cluster.mend(machine, target).await,
            Cluster::Embedded(cluster) => cluster.mend(machine, target).await,
            Cluster::Existing(_) => Err(no_access("mending a machine's connection")),
        }
    }

    /// Sets the pod network up or takes it away, on all machines at once. Kubelets notice within seconds.
    ///
    /// # Errors
    /// [`ClusterError::NotObservable`] where the node image lacks the plugins or a Node has no pod CIDR.
    pub async fn set_pod_network(&self, wanted: PodNetwork) -> Result<(), ClusterError> {
        match self {
            Cluster::Kind(cluster) => cluster.set_pod_network(&wanted).await,
            Cluster::Embedded(cluster) => cluster.set_pod_network(&wanted).await,
            Cluster::Existing(_) => Err(no_access("changing the pod network")),
        }
    }

    /// Sends a signal (`SIGKILL`, `SIGTERM` ...) to the first process of a container. `id` is the container
    /// runtime's, with or without its name before it.
    ///
    /// # Errors
    /// The container does not run; else as [`Cluster::restart_kubelet`].
    pub async fn kill_container(
        &self,
        machine: &Machine,
        id: &str,
        signal: &str,
    ) -> Result<(), ClusterError> {
        match self {
            Cluster::Kind(cluster) => cluster.task(machine, id, TaskOp::Kill { signal }).await,
            Cluster::Embedded(cluster) => cluster.task(id, TaskOp::Kill { signal }).await,
            Cluster::Existing(_) => Err(no_access("killing a process")),
        }
    }

    /// Freezes every process of a container.
    ///
    /// # Errors
    /// As [`Cluster::kill_container`].
    pub async fn pause_container(&self, machine: &Machine, id: &str) -> Result<(), ClusterError> {
        match self {
            Cluster::Kind(cluster) => cluster.task(machine, id, TaskOp::Pause).await,
            Cluster::Embedded(cluster) => cluster.task(id, TaskOp::Pause).await,
            Cluster::Existing(_) => Err(no_access("freezing a process")),
        }
    }

    /// Lets a frozen container go on.
    ///
    /// # Errors
    /// As [`Cluster::kill_container`].
    pub async fn resume_container(&self, machine: &Machine, id: &str) -> Result<(), ClusterError> {
        match self {
            Cluster::Kind(cluster) => cluster.task(machine, id, TaskOp::Resume).await,
            Cluster::Embedded(cluster) => cluster.task(id, TaskOp::Resume).await,
            Cluster::Existing(_) => Err(no_access("thawing a process")),
        }
    }

    /// Writes the machines' logs into a folder each below `folder`, as far as they can be had. Nothing for an existing
    /// cluster.
    pub async fn logs_bundle(&self, folder: &Path) {
        if let Cluster::Kind(cluster) = self {
            evidence::collect(&cluster.engine, &cluster.kind.machines, folder).await;
        }
    }

    /// Removes machines, volumes, network and kubeconfig of a cluster that the harness made; parts that are gone already
    /// are fine. An existing cluster is left alone, and an embedded one goes with its process.
    ///
    /// # Errors
    /// Something could not be removed; [`cleanup`] can be tried.
    pub async fn delete(&self) -> Result<(), ClusterError> {
        match self {
            Cluster::Kind(cluster) => cluster.delete().await,
            Cluster::Embedded(_) | Cluster::Existing(_) => Ok(()),
        }
    }

    fn kind(&self, what: &str) -> Result<&KindCluster, ClusterError> {
        match self {
            Cluster::Kind(cluster) => Ok(cluster),
            Cluster::Embedded(_) => Err(ClusterError::NotObservable {
                what: what.to_owned(),
                why: "the machines of an embedded cluster are simulated".to_owned(),
            }),
            Cluster::Existing(_) => Err(no_access(what)),
        }
    }
}

fn no_access(what: &str) -> ClusterError {
    ClusterError::NotObservable {
        what: what.to_owned(),
        why: "the harness did not make this cluster and has no access to its machines".to_owned(),
    }
}
