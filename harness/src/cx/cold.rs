//! A cold cluster and the CCM as shipped, for bootstrap checks.

use super::made::Undo;
use super::{CheckCx, Subject};
use crate::ccm::Form;
use crate::check::{Stop, Verdict};
use crate::probe::Reach;
use crate::session::Network;
use bootstrap::Cni;

/// A cluster no CCM has touched: its Nodes.
#[derive(Clone, Debug)]
pub struct Cold {
    pub(super) nodes: Vec<String>,
    /// How its pod network comes up.
    pub(super) cni: Cni,
}

impl Cold {
    /// The same, and its pod network will come once Nodes have addresses.
    #[must_use]
    pub fn whose_network_waits(self) -> Cold {
        Cold { cni: Cni::WaitsForAddresses, ..self }
    }
}

impl CheckCx {
    /// Takes the CCM away and makes the cluster cold, with or without a pod network. Undone when the check ends.
    ///
    /// # Errors
    /// When a node does not come back as its kubelet registers it.
    pub async fn cold_cluster(&self, network: Network) -> Result<Cold, Stop> {
        self.session.ensure_ccm(Form::Absent).await?;
        self.on_end(Undo::Cold);
        self.session
            .unless_interrupted(async { Ok(self.session.make_uninitialised(network).await?) })
            .await?;
        let cni = if network == Network::Present { Cni::Independent } else { Cni::None };
        Ok(Cold { nodes: self.session.real_nodes(), cni })
    }

    /// Sets the pod network up, as its plugin would that has what it waited for, and sees every Node Ready.
    ///
    /// # Errors
    /// When a Node does not become Ready.
    pub async fn pod_network_comes(&self) -> Verdict {
        self.session.unless_interrupted(async { Ok(self.session.set_network(Network::Present).await?) }).await
    }

    /// Applies the vendor's manifests as they are; waits for nothing.
    ///
    /// # Errors
    /// What the API server refuses.
    pub async fn apply_as_shipped(&self) -> Verdict {
        self.session.note_form(Form::AsShipped)?;
        Ok(self.session.ccm().apply(Form::AsShipped).await?)
    }

    /// That no real Node is Ready: without a pod network none can be, and if one is, a boot without network shows
    /// nothing.
    ///
    /// # Errors
    /// [`Stop::Error`] naming those that are.
    pub async fn none_is_ready(&self, cold: &Cold) -> Verdict {
        let mut ready = Vec::new();
        for name in &cold.nodes {
            let node = self.real_node(name).read(Reach::Origin).await?;
            if node.and_then(|node| crate::k8s::ready(&node)).as_deref() == Some("True") {
                ready.push(name.as_str());
            }
        }
        if ready.is_empty() {
            return Ok(());
        }
        Err(Stop::Error(format!("Nodes are Ready although no pod network was set up: {}", ready.join(", "))))
    }

    /// Takes the CCM as shipped away again and gives the nodes their pod network back.
    pub(super) async fn undo_cold(&self) -> Result<(), String> {
        self.session.ensure_ccm(Form::Absent).await.map_err(in_words)?;
        self.session.set_network(Network::Present).await.map_err(|error| crate::check::chain(&error))
    }
}

pub(super) fn in_words(stop: Stop) -> String {
    match stop {
        Stop::Unmet(unmet) => unmet.to_string(),
        Stop::Blocked { by, seen } => by.broken(seen).to_string(),
        Stop::Error(text) | Stop::NotObservable(text) => text,
    }
}
