//! Taints on the cluster's own Nodes, which are removed when the check ends.

use super::node_plan::taint;
use super::undo_steps::Undo;
use super::{CheckCx, Cold, Subject};
use harness_core::check::{CheckError, Verdict};
use harness_core::probe::ReadSource;
use harness_session::k8s::{T_CONTROL_PLANE, T_TO_BE_DELETED, has_taint};
use kube::ResourceExt;

impl CheckCx {
    /// Keeps ordinary Pods off the Nodes, as kubeadm does on the control planes of clusters with workers: a CCM that does
    /// not tolerate this cannot run if there are no workers.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn dedicated_control_plane(&self, cold: &mut Cold) -> Verdict {
        cold.circumstances.keeps_taint = true;
        for name in &cold.nodes {
            self.taints_own_node(name, T_CONTROL_PLANE, "").await?;
        }
        Ok(())
    }

    /// Sets the autoscaler's taint on all Nodes, so that no load balancer may use them. All load balancers lose their
    /// Nodes, so a check that uses this must run alone.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn condemn_all_nodes(&self) -> Verdict {
        for node in self.all_nodes()? {
            self.taints_own_node(&node.name_any(), T_TO_BE_DELETED, "1").await?;
        }
        Ok(())
    }

    pub(super) async fn taints_own_node(&self, name: &str, key: &str, value: &str) -> Result<(), CheckError> {
        let node = self.real_node(name);
        // The taint of an earlier check may have been removed in between.
        if node.read(ReadSource::Origin).await?.is_none_or(|present| has_taint(&present, key)) {
            return Ok(());
        }
        self.on_end(Undo::Taint { node: name.to_owned(), key: key.to_owned() });
        node.adds_taint(taint(key, value, "NoSchedule")).await
    }

    pub(super) async fn undo_taint(&self, node: &str, key: &str) -> Result<(), String> {
        self.real_node(node).removes_taint(key).await.map_err(CheckError::in_words)
    }
}
