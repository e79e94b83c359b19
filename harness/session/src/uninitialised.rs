//! Makes all real Nodes uninitialised again, as if no CCM had ever run on the cluster.
//!
//! All Node objects are deleted and their kubelets restarted, so that they register again with the uninitialized taint
//! (contract ENV-06); what kubeadm had set on them is restored. That takes a second or two, a tenth of the time for a new
//! cluster, and makes no difference for the CCM.

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
    /// It does not depend on anything else.
    Present,
    /// There is none: no Node becomes Ready.
    Absent,
}

/// Prefixes and keys of labels that kubeadm sets and a kubelet does not.
fn is_kubeadms(key: &str) -> bool {
    key.starts_with("node-role.kubernetes.io/") || key == L_EXCL
}

/// Taints that depend on a Node's state: those of the cloud provider and the node lifecycle controller.
fn is_of_conditions(key: &str) -> bool {
    ["node.cloudprovider.kubernetes.io/", "node.kubernetes.io/"].iter().any(|prefix| key.starts_with(prefix))
}

/// What kubeadm set on the existing Nodes.
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

    /// Resets all real Nodes to what their kubelets register, whatever an earlier CCM did; on machines that cannot be
    /// restarted they stay unchanged. No CCM may run.
    ///
    /// # Errors
    /// Those of [`Session::make_uninitialised`].
    pub async fn renew_nodes(&self) -> Result<(), SessionError> {
        if !self.cluster.facilities().contains(&Facility::KubeletControl) {
            return Ok(());
        }
        self.register_nodes_again().await?;
        self.set_network(Network::Present).await?;
        self.assert_uninitialised()
    }

    /// Real Nodes of this lane that were deleted in the run so far, as text; `None` if there were none.
    ///
    /// # Errors
    /// The events of the run's other processes cannot be read.
    pub fn lost_nodes(&self) -> Result<Option<String>, StreamError> {
        if !self.cluster.facilities().contains(&Facility::KubeletControl) {
            // On an existing cluster, others than the CCM may delete Nodes.
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
        // A kubelet notices within ten seconds that its network is gone, and at once when it starts.
        let must_say_so = network == Network::Absent && self.any_ready();
        if must_say_so || !self.is_uninitialised() {
            self.register_nodes_again().await?;
        }
        self.set_network(network).await?;
        self.assert_uninitialised()
    }

    /// Deletes all real Nodes and lets their kubelets register them again, with what kubeadm set and without a pod
    /// network.
    async fn register_nodes_again(&self) -> Result<(), SessionError> {
        let api: Api<Node> = Api::all(self.client.clone());
        let before = self.uids();
        // Recorded first: readers of the stream must know of it when the Node is deleted. A missing one cannot be
        // deleted.
        let nodes = self.real_nodes().into_iter().filter(|name| self.world.nodes.find("", name).is_some());
        self.events.emit(Payload::NodesWithdrawn { nodes: nodes.collect() });
        // Nothing is left that would remove its finalizers.
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
        // The network is removed first: a kubelet that finds one reports Ready immediately.
        self.cluster.operate(Operation::PodNetwork(&PodNetwork::Absent)).await?;
        for machine in self.machines() {
            self.cluster.operate(Operation::Kubelet { machine, op: KubeletOp::Restart }).await?;
        }
        self.nodes_registered(&before).await?;
        self.restore_roles().await
    }

    /// Sets up or removes the pod network, and waits until the readiness of all Nodes agrees.
    ///
    /// # Errors
    /// A Node does not follow.
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

    /// The uids of the existing real Nodes.
    fn uids(&self) -> Vec<Option<String>> {
        let node = |name: &String| self.world.nodes.find("", name);
        self.real_nodes().iter().map(|name| node(name).and_then(|node| node.uid())).collect()
    }

    /// Waits until all Nodes exist again, as other objects than `before`.
    async fn nodes_registered(&self, before: &[Option<String>]) -> Result<(), SessionError> {
        let names = self.real_nodes();
        let back = async |seen: &mut String| {
            let registered =
                |name: &String| self.world.nodes.find("", name).filter(|n| !before.contains(&n.uid()));
            let states: Vec<(String, Option<Vec<String>>)> = names
                .iter()
                .map(|name| (name.clone(), registered(name).map(|node| taint_keys(&node))))
                .collect();
            *seen = format!("taints {}", json!(states));
            let tainted =
                |keys: &Option<Vec<String>>| keys.as_ref().is_some_and(|k| k.iter().any(|k| k == T_UNINIT));
            Ok(states.iter().all(|(_, keys)| tainted(keys)).then_some(()))
        };
        poll(
            "every kubelet registers its Node again",
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

    /// ENV-01 and ENV-03: all real Nodes have the taint, and a providerID as the plan requires.
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
