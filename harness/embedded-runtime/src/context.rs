//! The state that all controllers share: clients, settings, tasks and the watched copies of the cluster's objects.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    ConfigMap, Endpoints, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, Secret, Service,
    ServiceAccount,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::api::storage::v1::VolumeAttributesClass;
use kube::{Api, Client};

use crate::cache::{Cache, Key};
use crate::clients::Clients;
use crate::events::Recorder;
use crate::settings::{KubernetesVersion, PodNetwork, Settings};
use crate::tasks::Tasks;

/// The shared part of a running set of controllers.
pub struct ControllerContext {
    /// The clients for the API server.
    pub clients: Clients,
    /// The settings of the cluster.
    pub settings: Settings,
    /// The current version of the control plane.
    control_plane: RwLock<KubernetesVersion>,
    /// The current pod network.
    network: RwLock<PodNetwork>,
    /// Whether new Nodes currently get no pod ranges.
    withholds_pod_cidrs: AtomicBool,
    /// All running tasks.
    pub tasks: Tasks,
    /// Writes Events.
    pub recorder: Recorder,
    /// All Nodes.
    pub nodes: Arc<Cache<Node>>,
    /// All Pods.
    pub pods: Arc<Cache<Pod>>,
    /// All Leases.
    pub leases: Arc<Cache<Lease>>,
    /// All namespaces.
    pub namespaces: Arc<Cache<Namespace>>,
    /// All Services.
    pub services: Arc<Cache<Service>>,
    /// All Endpoints.
    pub endpoints: Arc<Cache<Endpoints>>,
    /// All EndpointSlices.
    pub slices: Arc<Cache<EndpointSlice>>,
    /// All Deployments.
    pub deployments: Arc<Cache<Deployment>>,
    /// All ReplicaSets.
    pub replica_sets: Arc<Cache<ReplicaSet>>,
    /// All DaemonSets.
    pub daemon_sets: Arc<Cache<DaemonSet>>,
    /// All StatefulSets.
    pub stateful_sets: Arc<Cache<StatefulSet>>,
    /// All ConfigMaps.
    pub config_maps: Arc<Cache<ConfigMap>>,
    /// All Secrets.
    pub secrets: Arc<Cache<Secret>>,
    /// All ServiceAccounts.
    pub service_accounts: Arc<Cache<ServiceAccount>>,
    /// All ClusterRoles.
    pub cluster_roles: Arc<Cache<ClusterRole>>,
    /// All PersistentVolumes.
    pub volumes: Arc<Cache<PersistentVolume>>,
    /// All PersistentVolumeClaims.
    pub claims: Arc<Cache<PersistentVolumeClaim>>,
    /// All VolumeAttributesClasses.
    pub attributes_classes: Arc<Cache<VolumeAttributesClass>>,
    /// The Pods on each node.
    pub placed: Arc<Placed>,
}

impl ControllerContext {
    /// Creates the state. Nothing is watched before [`ControllerContext::watch`].
    pub fn new(clients: Clients, settings: Settings) -> Arc<ControllerContext> {
        let tasks = Tasks::default();
        let recorder = Recorder::new(tasks.clone());
        let pods = Cache::new();
        let placed = Arc::new(Placed::default());
        let index = placed.clone();
        pods.on_change(move |before: Option<&Arc<Pod>>, after: Option<&Arc<Pod>>| {
            index.moved(before.map(Arc::as_ref), after.map(Arc::as_ref));
        });
        Arc::new(ControllerContext {
            clients,
            control_plane: RwLock::new(settings.kubernetes),
            network: RwLock::new(settings.network.clone()),
            withholds_pod_cidrs: AtomicBool::new(false),
            settings,
            tasks,
            recorder,
            nodes: Cache::new(),
            pods,
            leases: Cache::new(),
            namespaces: Cache::new(),
            services: Cache::new(),
            endpoints: Cache::new(),
            slices: Cache::new(),
            deployments: Cache::new(),
            replica_sets: Cache::new(),
            daemon_sets: Cache::new(),
            stateful_sets: Cache::new(),
            config_maps: Cache::new(),
            secrets: Cache::new(),
            service_accounts: Cache::new(),
            cluster_roles: Cache::new(),
            volumes: Cache::new(),
            claims: Cache::new(),
            attributes_classes: Cache::new(),
            placed,
        })
    }

    /// The controller manager's client.
    pub fn client(&self) -> Client {
        self.clients.controller_manager.clone()
    }

    /// The current version of the scheduler and the controllers; kubelets have their own.
    pub fn control_plane(&self) -> KubernetesVersion {
        *self.control_plane.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the version of the scheduler and the controllers.
    pub fn set_control_plane(&self, version: KubernetesVersion) {
        *self.control_plane.write().unwrap_or_else(PoisonError::into_inner) = version;
    }

    /// The current pod network.
    pub fn network(&self) -> PodNetwork {
        self.network.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the pod network. The caller notifies the affected components.
    pub fn set_network(&self, network: PodNetwork) {
        *self.network.write().unwrap_or_else(PoisonError::into_inner) = network;
    }

    /// Whether new Nodes currently get no pod ranges.
    pub fn withholds_pod_cidrs(&self) -> bool {
        self.withholds_pod_cidrs.load(Ordering::Relaxed)
    }

    /// Stops or resumes the assignment of pod ranges to new Nodes.
    pub fn withhold_pod_cidrs(&self, withheld: bool) {
        self.withholds_pod_cidrs.store(withheld, Ordering::Relaxed);
    }

    /// Starts every watch. Reactions to changes have to be registered before.
    pub fn watch(&self) {
        let (tasks, client) = (&self.tasks, || self.client());
        self.nodes.run(tasks, Api::all(client()));
        self.pods.run(tasks, Api::all(client()));
        self.leases.run(tasks, Api::namespaced(client(), "kube-node-lease"));
        self.namespaces.run(tasks, Api::all(client()));
        self.services.run(tasks, Api::all(client()));
        self.endpoints.run(tasks, Api::all(client()));
        self.slices.run(tasks, Api::all(client()));
        self.deployments.run(tasks, Api::all(client()));
        self.replica_sets.run(tasks, Api::all(client()));
        self.daemon_sets.run(tasks, Api::all(client()));
        self.stateful_sets.run(tasks, Api::all(client()));
        self.config_maps.run(tasks, Api::all(client()));
        self.secrets.run(tasks, Api::all(client()));
        self.service_accounts.run(tasks, Api::all(client()));
        self.cluster_roles.run(tasks, Api::all(client()));
        self.volumes.run(tasks, Api::all(client()));
        self.claims.run(tasks, Api::all(client()));
        self.attributes_classes.run(tasks, Api::all(client()));
    }

    /// Waits until everything has been listed once.
    pub async fn synced(&self) {
        self.nodes.synced().await;
        self.pods.synced().await;
        self.leases.synced().await;
        self.namespaces.synced().await;
        self.services.synced().await;
        self.endpoints.synced().await;
        self.slices.synced().await;
        self.deployments.synced().await;
        self.replica_sets.synced().await;
        self.daemon_sets.synced().await;
        self.stateful_sets.synced().await;
        self.config_maps.synced().await;
        self.secrets.synced().await;
        self.service_accounts.synced().await;
        self.cluster_roles.synced().await;
        self.volumes.synced().await;
        self.claims.synced().await;
        self.attributes_classes.synced().await;
    }

    /// The Node of this name.
    pub fn node(&self, name: &str) -> Option<Arc<Node>> {
        self.nodes.get(&Key::cluster(name))
    }

    /// The Pods on this node, ordered by name.
    pub fn pods_on(&self, node: &str) -> Vec<Arc<Pod>> {
        self.placed.on(node).iter().filter_map(|key| self.pods.get(key)).collect()
    }
}

/// The Pods on each node, updated with every change of a Pod.
#[derive(Default)]
pub struct Placed {
    by_node: RwLock<HashMap<String, HashSet<Key>>>,
}

impl Placed {
    fn moved(&self, before: Option<&Pod>, after: Option<&Pod>) {
        let node = |pod: Option<&Pod>| pod.and_then(|pod| pod.spec.as_ref()?.node_name.clone());
        let (from, to) = (node(before), node(after));
        if from == to {
            return;
        }
        let mut by_node = self.by_node.write().unwrap_or_else(PoisonError::into_inner);
        if let (Some(from), Some(pod)) = (from, before)
            && let Some(keys) = by_node.get_mut(&from)
        {
            keys.remove(&Key::of(pod));
            if keys.is_empty() {
                by_node.remove(&from);
            }
        }
        if let (Some(to), Some(pod)) = (to, after) {
            by_node.entry(to).or_default().insert(Key::of(pod));
        }
    }

    /// The Pods on this node.
    pub fn on(&self, node: &str) -> BTreeSet<Key> {
        let by_node = self.by_node.read().unwrap_or_else(PoisonError::into_inner);
        by_node.get(node).map(|keys| keys.iter().cloned().collect()).unwrap_or_default()
    }
}
