//! Making every real Node uninitialised again: as if no CCM had ever touched the cluster.
//!
//! Every Node object is deleted and its kubelet restarted, so that it registers anew with the uninitialized taint
//! (contract ENV-06); what kubeadm had written on it is put back. That costs a second or two where a fresh cluster
//! costs ten times as much, and to the CCM it is the same.

use super::{NodeRole, Session, SessionError};
use crate::k8s::{L_CONTROL_PLANE, L_EXCL, T_UNINIT, has_taint, provider_id, taint_keys};
use harness_clusters::{KubeletOp, Operation, PodNetwork};
use harness_core::check::Facility;
use harness_core::events::{Payload, StreamError};
use harness_core::probe::poll;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;
use std::time::Duration;

/// Whether the nodes have a pod network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// One that waits for nobody.
    Present,
    /// None: no Node becomes Ready.
    Absent,
}

/// Label prefixes and keys kubeadm writes and a kubelet does not.
fn is_kubeadms(key: &str) -> bool {
    key.starts_with("node-role.kubernetes.io/") || key == L_EXCL
}

/// Taints that come and go with what a Node is like: the cloud provider's and the node lifecycle's.
fn is_of_conditions(key: &str) -> bool {
    ["node.cloudprovider.kubernetes.io/", "node.kubernetes.io/"].iter().any(|prefix| key.starts_with(prefix))
}

/// What kubeadm gave the Nodes that are there now.
pub(super) fn roles_of(nodes: &[Node]) -> Vec<NodeRole> {
    let role = |node: &Node| NodeRole {
        name: node.name_any(),
        labels: node
            .labels()
            .iter()
            .filter(|(k, _)| is_kubeadms(k))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect(),
        taints: node
            .spec
            .as_ref()
            .and_then(|s| s.taints.clone())
            .unwrap_or_default()
            .into_iter()
            .filter(|t| !is_of_conditions(&t.key))
            .collect(),
    };
    nodes.iter().map(role).collect()
}

impl Session {
    /// Names of the cluster's real Nodes.
    pub fn real_nodes(&self) -> Vec<String> {
        self.machines().iter().map(|machine| machine.name.clone()).collect()
    }

    /// Whether every real Node is as its kubelet registered it.
    fn is_uninitialised(&self) -> bool {
        self.real_nodes().iter().all(|name| {
            self.world.nodes.find("", name).is_some_and(|node| {
                has_taint(&node, T_UNINIT)
                    && node.labels().keys().all(|k| !k.starts_with("topology.kubernetes.io/"))
            })
        })
    }

    fn any_ready(&self) -> bool {
        let ready = |name: &String| {
            let node = self.world.nodes.find("", name);
            node.and_then(|node| crate::k8s::ready(&node)).as_deref() == Some("True")
        };
        self.real_nodes().iter().any(ready)
    }

    /// Makes every real Node what its kubelet registers, whatever a CCM that is gone has made of it; on machines that nobody
    /// restarts it stays as it is. No CCM may run.
    ///
    /// # Errors
    /// As [`Session::make_uninitialised`].
    pub async fn renew_nodes(&self) -> Result<(), SessionError> {
        if !self.cluster.facilities().contains(&Facility::KubeletControl) {
            return Ok(());
        }
        self.register_nodes_anew().await?;
        self.set_network(Network::Present).await?;
        self.assert_uninitialised()
    }

    /// Real Nodes of this lane that somebody has deleted in the run so far, in words; `None` when there were none.
    ///
    /// # Errors
    /// When the events of the run's other processes cannot be read.
    pub fn lost_nodes(&self) -> Result<Option<String>, StreamError> {
        if !self.cluster.facilities().contains(&Facility::KubeletControl) {
            // Somebody else's cluster, where others than the CCM delete Nodes.
            return Ok(None);
        }
        if !self.events.is_begun_here() {
            self.events.take_others_in()?;
        }
        let (fold, real) = (self.events.fold(), self.real_nodes());
        let lane = self.events.lane().unwrap_or_default();
        let lost =
            fold.conduct().lost_nodes().iter().filter(|lost| lost.lane == lane && real.contains(&lost.node));
        let lost: Vec<String> = lost.map(ToString::to_string).collect();
        Ok((!lost.is_empty()).then(|| lost.join(", ")))
    }

    /// Makes the cluster's Nodes uninitialised again, with or without a pod network. No CCM may run.
    ///
    /// # Errors
    /// When a node does not come back as its kubelet registers it.
    pub async fn make_uninitialised(&self, network: Network) -> Result<(), SessionError> {
        // A kubelet says within ten seconds that its network has gone, and at once when it starts.
        let must_say_so = network == Network::Absent && self.any_ready();
        if must_say_so || !self.is_uninitialised() {
            self.register_nodes_anew().await?;
        }
        self.set_network(network).await?;
        self.assert_uninitialised()
    }

    /// Deletes every real Node and has its kubelet register it anew, with what kubeadm gave it and no pod network.
    async fn register_nodes_anew(&self) -> Result<(), SessionError> {
        let api: Api<Node> = Api::all(self.client.clone());
        let before = self.uids();
        // Told first: who reads the stream must know of it when the Node goes. One that is not there cannot go.
        let nodes = self.real_nodes().into_iter().filter(|name| self.world.nodes.find("", name).is_some());
        self.events.emit(Payload::NodesWithdrawn { nodes: nodes.collect() });
        // Nobody is left to let go of what holds it.
        let unheld = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        for name in self.real_nodes() {
            let gone = async {
                api.patch(&name, &PatchParams::default(), &unheld).await?;
                api.delete(&name, &DeleteParams::default()).await
            };
            match gone.await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => return Err(error.into()),
            }
        }
        // Without the network first: a kubelet that finds one reports Ready before anybody can look.
        self.cluster.operate(Operation::PodNetwork(&PodNetwork::Absent)).await?;
        for machine in self.machines() {
            self.cluster.operate(Operation::Kubelet { machine, op: KubeletOp::Restart }).await?;
        }
        self.nodes_registered(&before).await?;
        self.restore_roles().await
    }

    /// Sets the pod network up or takes it away, and waits until every Node's readiness agrees.
    ///
    /// # Errors
    /// When a Node does not follow.
    pub async fn set_network(&self, network: Network) -> Result<(), SessionError> {
        let wanted = match network {
            Network::Absent => PodNetwork::Absent,
            Network::Present => PodNetwork::Present(self.pod_cidrs().await?),
        };
        self.cluster.operate(Operation::PodNetwork(&wanted)).await?;
        let expected = if network == Network::Present { "True" } else { "False" };
        let agrees = async |seen: &mut String| {
            let states: Vec<(String, Option<String>)> = self
                .real_nodes()
                .into_iter()
                .map(|name| {
                    let ready = self.world.nodes.find("", &name).and_then(|node| crate::k8s::ready(&node));
                    (name, ready)
                })
                .collect();
            let shown = |(name, ready): &(String, Option<String>)| {
                format!("{name} Ready {}", ready.as_deref().unwrap_or("absent"))
            };
            *seen = states.iter().map(shown).collect::<Vec<_>>().join(", ");
            Ok(states.iter().all(|(_, ready)| ready.as_deref() == Some(expected)).then_some(()))
        };
        poll(
            &format!("Ready {expected} on every Node"),
            Duration::from_secs(60),
            Duration::from_millis(100),
            agrees,
        )
        .await
        .map_err(|error| SessionError::Precondition(error.text))
    }

    /// Pod CIDRs by node name, once the controller manager has assigned them.
    async fn pod_cidrs(&self) -> Result<std::collections::BTreeMap<String, Vec<String>>, SessionError> {
        let names = self.real_nodes();
        let assigned = async |seen: &mut String| {
            let mut found = std::collections::BTreeMap::new();
            for name in &names {
                let node = self.world.nodes.find("", name);
                let spec = node.as_ref().and_then(|n| n.spec.clone()).unwrap_or_default();
                let cidrs = spec.pod_cidrs.unwrap_or_else(|| spec.pod_cidr.into_iter().collect());
                if !cidrs.is_empty() {
                    found.insert(name.clone(), cidrs);
                }
            }
            *seen = json!(found).to_string();
            Ok((found.len() == names.len()).then_some(found))
        };
        poll("a pod CIDR on every Node", Duration::from_secs(60), Duration::from_millis(100), assigned)
            .await
            .map_err(|error| SessionError::Precondition(error.text))
    }

    /// The uids of the real Nodes that are there.
    fn uids(&self) -> Vec<Option<String>> {
        let node = |name: &String| self.world.nodes.find("", name);
        self.real_nodes().iter().map(|name| node(name).and_then(|node| node.uid())).collect()
    }

    /// Waits until every Node is there again, as another than `before`.
    async fn nodes_registered(&self, before: &[Option<String>]) -> Result<(), SessionError> {
        let names = self.real_nodes();
        let back = async |seen: &mut String| {
            let anew = |name: &String| self.world.nodes.find("", name).filter(|n| !before.contains(&n.uid()));
            let states: Vec<(String, Option<Vec<String>>)> =
                names.iter().map(|name| (name.clone(), anew(name).map(|node| taint_keys(&node)))).collect();
            *seen = format!("taints {}", json!(states));
            let tainted =
                |keys: &Option<Vec<String>>| keys.as_ref().is_some_and(|k| k.iter().any(|k| k == T_UNINIT));
            Ok(states.iter().all(|(_, keys)| tainted(keys)).then_some(()))
        };
        poll(
            "every kubelet registers its Node anew",
            Duration::from_secs(60),
            Duration::from_millis(100),
            back,
        )
        .await
        .map_err(|error| SessionError::Precondition(error.text))
    }

    async fn restore_roles(&self) -> Result<(), SessionError> {
        let api: Api<Node> = Api::all(self.client.clone());
        for role in &self.state.roles {
            let node = api.get(&role.name).await?;
            let mut taints = node.spec.and_then(|s| s.taints).unwrap_or_default();
            taints.retain(|t| !role.taints.iter().any(|kept| kept.key == t.key));
            taints.extend(role.taints.iter().cloned());
            let patch = json!({"metadata": {"labels": role.labels}, "spec": {"taints": taints}});
            api.patch(&role.name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        }
        Ok(())
    }

    /// ENV-01 and ENV-03: every real Node carries the taint, and providerID is as the plan wants it.
    pub(super) fn assert_uninitialised(&self) -> Result<(), SessionError> {
        for name in self.real_nodes() {
            let node = self.world.nodes.find("", &name);
            let Some(node) = node else {
                return Err(SessionError::Precondition(format!("ENV-01: Node {name} is not registered")));
            };
            if !has_taint(&node, T_UNINIT) {
                return Err(SessionError::Precondition(format!(
                    "ENV-01: Node {name} has no taint {T_UNINIT}: its kubelet does not run with --cloud-provider=external"
                )));
            }
            if let Some(id) = provider_id(&node).filter(|id| id.starts_with("kind://")) {
                return Err(SessionError::Precondition(format!(
                    "ENV-03: Node {name} still has kind's providerID {id}"
                )));
            }
        }
        Ok(())
    }

    /// Whether a Node belongs to the control plane.
    pub fn is_control_plane(node: &Node) -> bool {
        node.labels().contains_key(L_CONTROL_PLANE)
            || node.labels().contains_key("node-role.kubernetes.io/master")
    }
}
