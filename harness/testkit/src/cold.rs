//! A cold cluster and the CCM as shipped, for the bootstrap checks.

use super::undo_steps::Undo;
use super::{CheckCx, Subject};
use bootstrap::Cni;
use harness_core::check::{CheckError, Verdict, chain};
use harness_core::probe::{ReadError, ReadSource, poll};
use harness_session::ccm::Form;
use harness_session::{Circumstances, Network};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use serde_json::json;
use std::time::Duration;

/// The namespace of cluster DNS, and the label of its parts.
const DNS_NAMESPACE: &str = "kube-system";
const DNS: &str = "k8s-app=kube-dns";

async fn scale(api: &Api<Deployment>, name: &str, replicas: i32) -> Result<(), kube::Error> {
    let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
    api.patch(name, &PatchParams::default(), &patch).await.map(drop)
}

/// A cluster that no CCM has touched: its Nodes.
#[derive(Clone, Debug)]
pub struct Cold {
    pub(super) nodes: Vec<String>,
    /// What the boot model has to know about its boot.
    pub(super) circumstances: Circumstances,
}

impl Cold {
    /// The number of its machines.
    pub fn machines(&self) -> usize {
        self.nodes.len()
    }

    /// The same cluster, with a pod network that starts once Nodes have addresses.
    #[must_use]
    pub fn with_waiting_network(self) -> Cold {
        Cold { circumstances: Circumstances { cni: Cni::WaitsForAddresses, ..self.circumstances }, ..self }
    }
}

impl CheckCx {
    /// Removes the CCM and makes the cluster cold, with or without a pod network. Undone when the check ends.
    ///
    /// # Errors
    /// When a node does not come back as its kubelet registers it.
    pub async fn cold_cluster(&self, network: Network) -> Result<Cold, CheckError> {
        self.session.ensure_ccm(Form::Absent).await?;
        self.on_end(Undo::Cold);
        self.session
            .unless_interrupted(async { Ok(self.session.make_uninitialised(network).await?) })
            .await?;
        let cni = if network == Network::Present { Cni::Independent } else { Cni::None };
        Ok(Cold { nodes: self.session.real_nodes(), circumstances: Circumstances::usual(cni) })
    }

    /// Like [`CheckCx::apply_as_shipped`], but the CCM gets the address of its cloud as a DNS name, as the customers of a
    /// cloud do.
    ///
    /// # Errors
    /// What the API server refuses; [`CheckError::NotObservable`] for manifests that do not get this address from the
    /// harness.
    pub async fn apply_with_cloud_named(&self, cold: &mut Cold) -> Verdict {
        cold.circumstances.cloud_by_name = true;
        let ccm = self.session.ccm();
        if !ccm.exists() {
            return self.apply_as_shipped().await;
        }
        let cloud = &self.session.state().cloud;
        let name = cloud.name.as_deref().unwrap_or_default();
        let Some(rendered) = ccm.with_cloud_named(&cloud.ip.to_string(), name) else {
            let why = "the manifests do not take the cloud's address from ${CLOUD_ENDPOINT}";
            return Err(CheckError::NotObservable(why.to_owned()));
        };
        self.session.note_form(Form::AsShipped)?;
        Ok(ccm.apply_rendered(&rendered).await?)
    }

    /// Removes the Pods of cluster DNS until the check ends; there may be none.
    ///
    /// # Errors
    /// When the API server refuses, or the Pods are not removed.
    pub async fn cluster_dns_is_away(&self) -> Verdict {
        let api: Api<Deployment> = Api::namespaced(self.client.clone(), DNS_NAMESPACE);
        for found in api.list(&ListParams::default().labels(DNS)).await?.items {
            let replicas = found.spec.replicas.unwrap_or(1);
            self.on_end(Undo::Scale { deployment: found.name_any(), replicas });
            scale(&api, &found.name_any(), 0).await?;
        }
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), DNS_NAMESPACE);
        let away = async |seen: &mut String| {
            let left = pods.list(&ListParams::default().labels(DNS)).await;
            let left = left.map_err(|error| ReadError::passing(chain(&error)))?.items;
            let names: Vec<String> = left.iter().map(ResourceExt::name_any).collect();
            *seen = names.join(", ");
            // If a kubelet no longer knows its Node, nothing ends its Pods.
            for name in &names {
                let gone = pods.delete(name, &DeleteParams::default().grace_period(0)).await;
                gone.map(drop).unwrap_or_default();
            }
            Ok(names.is_empty().then_some(()))
        };
        poll("no Pod of cluster DNS", self.limits().start(), Duration::from_millis(200), away).await?;
        Ok(())
    }

    pub(super) async fn undo_scale(&self, deployment: &str, replicas: i32) -> Result<(), String> {
        let api: Api<Deployment> = Api::namespaced(self.client.clone(), DNS_NAMESPACE);
        scale(&api, deployment, replicas).await.map_err(|error| chain(&error))
    }

    /// Sets up the pod network, as its plugin would once its requirements are met, and waits until all Nodes are Ready.
    ///
    /// # Errors
    /// When a Node does not become Ready.
    pub async fn pod_network_comes(&self) -> Verdict {
        self.session.unless_interrupted(async { Ok(self.session.set_network(Network::Present).await?) }).await
    }

    /// Removes the pod network from Nodes that have one, and waits until none of them is Ready. Undone with the cold
    /// cluster.
    ///
    /// # Errors
    /// When a Node stays Ready.
    pub async fn pod_network_goes(&self) -> Verdict {
        self.session.unless_interrupted(async { Ok(self.session.set_network(Network::Absent).await?) }).await
    }

    /// Applies the vendor's manifests unchanged; does not wait.
    ///
    /// # Errors
    /// What the API server refuses.
    pub async fn apply_as_shipped(&self) -> Verdict {
        self.session.note_form(Form::AsShipped)?;
        Ok(self.session.ccm().apply(Form::AsShipped).await?)
    }

    /// Verifies that no real Node is Ready: none can be without a pod network, and otherwise a boot without network shows
    /// nothing.
    ///
    /// # Errors
    /// [`CheckError::Error`] naming those that are.
    pub async fn none_is_ready(&self, cold: &Cold) -> Verdict {
        let mut ready = Vec::new();
        for name in &cold.nodes {
            let node = self.real_node(name).read(ReadSource::Origin).await?;
            if node.and_then(|node| harness_session::k8s::ready(&node)).as_deref() == Some("True") {
                ready.push(name.as_str());
            }
        }
        if ready.is_empty() {
            return Ok(());
        }
        Err(CheckError::Error(format!(
            "Nodes are Ready although no pod network was set up: {}",
            ready.join(", ")
        )))
    }

    /// Removes the CCM as shipped and sets up the pod network of the nodes again.
    pub(super) async fn undo_cold(&self) -> Result<(), String> {
        self.session.ensure_ccm(Form::Absent).await.map_err(CheckError::in_words)?;
        self.session.set_network(Network::Present).await.map_err(|error| chain(&error))
    }
}
