//! The loop of all kubelets: registration, Node Leases and status posts of all nodes, driven by one queue.
//!
//! A kubelet registers its Node once per run. A deleted Node is not created again until the kubelet is
//! restarted, as with a real kubelet. Its Lease is renewed only while the Node exists.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio::time::Instant;

use super::fleet::{Fleet, Heartbeat};
use super::serving::{self, Wanted};
use embedded_runtime::cache::Key;
use embedded_runtime::context::ControllerContext;
use embedded_runtime::events::{Source, Weight};
use embedded_runtime::node;
use embedded_runtime::queue::{Next, Outcome, Queue};
use embedded_runtime::settings::{NodeSpec, ServingCertificate};
use embedded_runtime::writing;

/// The namespace of Node Leases.
pub(crate) const LEASES: &str = "kube-node-lease";
/// How many kubelets send requests at the same time.
const AT_ONCE: usize = 32;

/// The driver of all kubelets.
pub(crate) struct KubeletLoop {
    pub(crate) world: Arc<ControllerContext>,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) queue: Arc<Queue<String>>,
    /// The content of each kubelet's last request for a serving certificate.
    asked: Mutex<BTreeMap<String, Wanted>>,
}

impl KubeletLoop {
    /// Registers for changes of Nodes; nothing runs yet.
    pub(crate) fn new(world: Arc<ControllerContext>, fleet: Arc<Fleet>) -> Arc<KubeletLoop> {
        let queue = Queue::new();
        let turn = queue.clone();
        let known = fleet.clone();
        world.nodes.on_key(move |key| {
            if known.state(&key.name).is_some() {
                turn.add(key.name);
            }
        });
        Arc::new(KubeletLoop { world, fleet, queue, asked: Mutex::default() })
    }

    /// Starts the workers.
    pub(crate) fn run(self: &Arc<Self>) {
        let kubelets = self.clone();
        self.queue.spawn(&self.world.tasks, "kubelet", AT_ONCE, move |name| {
            let kubelets = kubelets.clone();
            async move { kubelets.turn(&name).await }
        });
    }

    async fn turn(&self, name: &str) -> Outcome {
        let (Some(spec), Some(heartbeat)) = (self.fleet.spec(name), self.fleet.heartbeat(name)) else {
            return Ok(Next::Done);
        };
        // A kubelet that cannot reach the API server is put back into the queue by the operation that
        // reconnects it.
        if !self.fleet.speaks(name) {
            return Ok(Next::Done);
        }
        let Some(client) = self.fleet.client(name) else { return Ok(Next::Done) };
        if !heartbeat.registered {
            self.asked.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
            let status = self.register(&spec, &client).await?;
            self.fleet.note(name, |heartbeat| (heartbeat.registered, heartbeat.status) = (true, status));
            return Ok(Next::After(Duration::from_millis(1)));
        }
        let Some(node) = self.world.node(name) else { return Ok(Next::Done) };
        if spec.serving == ServingCertificate::Requested {
            self.ask_for_certificate(&node, &client).await?;
        }
        let pace = &self.world.settings.pace;
        let status_in = self.post_status(&spec, &node, heartbeat, &client).await?;
        let lease_in = match left(heartbeat.lease, pace.lease_renewal) {
            Some(left) => left,
            None => {
                self.renew_lease(&node, &client).await?;
                self.fleet.note(name, |heartbeat| heartbeat.lease = Some(Instant::now()));
                pace.lease_renewal
            }
        };
        Ok(Next::After(status_in.min(lease_in)))
    }

    /// Creates the Node, or adopts the Node of an earlier run: then taints and addresses stay as they are.
    /// Returns when the status was posted: a new Node has it from the beginning.
    async fn register(&self, spec: &NodeSpec, client: &Client) -> Result<Option<Instant>, kube::Error> {
        let api: Api<Node> = writing::api(client);
        let version = self.fleet.kubelet(&spec.name);
        let known = self.world.node(&spec.name);
        let ready = node::network_ready(&self.world.network(), known.as_deref());
        let node = node::registration(spec, version, ready, Timestamp::now());
        match writing::create(&api, &self.world.nodes, &node).await {
            Ok(created) => {
                self.tell(&created, client, "Starting", "Starting kubelet.");
                Ok(Some(Instant::now()))
            }
            Err(error) if writing::is_already_exists(&error) => {
                let labels = Patch::Merge(json!({
                    "metadata": {"labels": node.metadata.labels, "annotations": node.metadata.annotations}
                }));
                let taken_over = api.patch(&spec.name, &PatchParams::default(), &labels).await?;
                self.tell(&taken_over, client, "Starting", "Starting kubelet.");
                self.world.nodes.observe(taken_over);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Posts the status if it differs from that of the Node, or when it is due. Returns the time until the
    /// next post.
    async fn post_status(
        &self,
        spec: &NodeSpec,
        node: &Node,
        heartbeat: Heartbeat,
        client: &Client,
    ) -> Result<Duration, kube::Error> {
        let settings = &self.world.settings;
        let ready = node::network_ready(&self.world.network(), Some(node));
        let says = |type_: &str| node::condition(node, type_).map(|condition| condition.status.as_str());
        let unchanged = says("Ready") == Some(if ready { "True" } else { "False" })
            && ["MemoryPressure", "DiskPressure", "PIDPressure"]
                .iter()
                .all(|type_| says(type_) == Some("False"));
        if unchanged && let Some(left) = left(heartbeat.status, settings.pace.status_report) {
            return Ok(left);
        }
        let version = self.fleet.kubelet(&spec.name);
        let was_ready = node::is_ready(node);
        let status = node::status(spec, version, node.status.as_ref(), ready, Timestamp::now());
        let mut patch = json!({
            "conditions": status.conditions,
            "allocatable": status.allocatable,
            "capacity": status.capacity,
            "nodeInfo": status.node_info,
            "daemonEndpoints": status.daemon_endpoints,
        });
        let addressless =
            node.status.as_ref().and_then(|status| status.addresses.as_ref()).is_none_or(Vec::is_empty);
        if addressless && let Some(addresses) = status.addresses {
            patch["addresses"] = json!(addresses);
        }
        let api: Api<Node> = writing::api(client);
        match writing::patch_status(&api, &self.world.nodes, &spec.name, node.uid(), patch).await {
            // The Node was deleted, or replaced, between the look and the post.
            Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => {}
            other => other?,
        }
        if ready && !was_ready {
            self.tell(node, client, "NodeReady", &format!("Node {} status is now: NodeReady", spec.name));
        }
        self.fleet.note(&spec.name, |heartbeat| heartbeat.status = Some(Instant::now()));
        Ok(settings.pace.status_report)
    }

    async fn renew_lease(&self, node: &Node, client: &Client) -> Result<(), kube::Error> {
        let name = node.name_any();
        let api: Api<Lease> = Api::namespaced(client.clone(), LEASES);
        let now = MicroTime(Timestamp::now());
        let seconds = i32::try_from(self.world.settings.pace.lease_duration.as_secs()).unwrap_or(i32::MAX);
        if let Some(known) = self.world.leases.get(&Key::new(LEASES, &name)) {
            let mut lease = known.as_ref().clone();
            let spec = lease.spec.get_or_insert_default();
            spec.renew_time = Some(now.clone());
            spec.holder_identity = Some(name.clone());
            spec.lease_duration_seconds = Some(seconds);
            match api.replace(&name, &PostParams::default(), &lease).await {
                Ok(renewed) => {
                    self.world.leases.observe(renewed);
                    return Ok(());
                }
                Err(error) if writing::is_not_found(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: Some(LEASES.to_owned()),
                owner_references: Some(vec![OwnerReference {
                    api_version: "v1".to_owned(),
                    kind: "Node".to_owned(),
                    name: name.clone(),
                    uid: node.uid().unwrap_or_default(),
                    ..OwnerReference::default()
                }]),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(name),
                lease_duration_seconds: Some(seconds),
                renew_time: Some(now),
                ..LeaseSpec::default()
            }),
        };
        match writing::create(&api, &self.world.leases, &lease).await {
            Ok(_) => Ok(()),
            Err(error) if writing::is_already_exists(&error) => {
                // The watch has not reported it yet: read it, so that it is renewed next time.
                let there = api.get(&lease.name_any()).await?;
                self.world.leases.observe(there);
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Requests a serving certificate if the last request had another content.
    async fn ask_for_certificate(&self, node: &Node, client: &Client) -> Result<(), kube::Error> {
        let name = node.name_any();
        let Some(wanted) = serving::wanted(node) else { return Ok(()) };
        let asked = || self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked().get(&name) == Some(&wanted) {
            return Ok(());
        }
        match serving::request(&name, &wanted) {
            Ok(request) => {
                let api: Api<CertificateSigningRequest> = Api::all(client.clone());
                api.create(&PostParams::default(), &request).await?;
            }
            Err(error) => tracing::error!(%error, node = name, "no request for a serving certificate"),
        }
        asked().insert(name, wanted);
        Ok(())
    }

    fn tell(&self, node: &Node, client: &Client, reason: &str, message: &str) {
        let name = node.name_any();
        let source = Source { component: "kubelet", host: Some(&name) };
        self.world.recorder.tell(client, source, node, Weight::Normal, reason, message.to_owned());
    }
}

/// The time left until something that was done at `done` is due again; `None` if it is due.
fn left(done: Option<Instant>, period: Duration) -> Option<Duration> {
    let left = (done? + period).saturating_duration_since(Instant::now());
    Some(left).filter(|left| !left.is_zero())
}
