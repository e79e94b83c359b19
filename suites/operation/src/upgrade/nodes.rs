//! An upgrade changes nothing about Nodes (contract UPG-03), and what a CCM has written on them, for other checks.

use super::rollout::upgraded;
use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1 as core;
use kube::ResourceExt;
use std::collections::BTreeMap;
use suites_common::joining::joined;
use tokio::time::Instant;

pub(super) const CHECKS: &[Check] = &[Check::of("UPG-03", |cx| Box::pin(keeps_nodes(cx)))
    .needs(&[Capability::Instances])
    .on_a_fresh_cluster()
    .upgrades()
    .takes(20)];

/// What a CCM has written on a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Written {
    provider_id: Option<String>,
    addresses: Vec<(String, String)>,
    labels: BTreeMap<String, String>,
}

impl Written {
    fn on(node: &core::Node) -> Written {
        let mut addresses = addresses(node);
        addresses.sort();
        Written { provider_id: provider_id(node), addresses, labels: node.labels().clone() }
    }

    /// What a later version of the Node lacks of it, in words.
    fn lost_in(&self, later: &core::Node) -> Option<String> {
        let now = Written::on(later);
        if has_taint(later, T_UNINIT) {
            return Some(format!("the taint {T_UNINIT} again"));
        }
        if now.provider_id != self.provider_id {
            let id = now.provider_id.unwrap_or_else(|| "none".to_owned());
            return Some(format!("providerID {id}"));
        }
        if now.addresses != self.addresses {
            return Some(format!("addresses {}", show_addresses(&now.addresses)));
        }
        let changed = self.labels.iter().find(|(key, value)| now.labels.get(*key) != Some(value));
        changed.map(|(key, _)| match now.labels.get(key) {
            Some(value) => format!("label {key}={value}"),
            None => format!("no label {key}"),
        })
    }
}

/// A Node that the CCM has initialised, with what it has written there.
pub(super) struct Initialised<'a> {
    node: Node<'a>,
    before: Written,
}

impl<'a> Initialised<'a> {
    /// The Node as it is now.
    pub(super) async fn now(node: Node<'a>) -> Result<Initialised<'a>, CheckError> {
        let object = node.read(ReadSource::Origin).await?;
        let object = object.ok_or_else(|| CheckError::Error("a Node of the check is gone".to_owned()))?;
        Ok(Initialised { before: Written::on(&object), node })
    }

    /// Whether no version of the Node since then lacks anything of it.
    pub(super) fn has_stayed_since(&self, since: Instant) -> Verdict {
        let history = self.node.history()?;
        let later = history.iter().filter(|version| version.at >= since);
        let Some(lost) = later.into_iter().find_map(|version| self.before.lost_in(&version.object)) else {
            return Ok(());
        };
        let id = self.before.provider_id.as_deref().unwrap_or("none");
        let expected =
            format!("in every version no taint, providerID {id}, and the addresses and labels from before");
        Err(self.node.breaks("an upgrade leaves an initialised Node as it is", &expected, &lost))
    }
}

async fn keeps_nodes(cx: &CheckCx) -> Verdict {
    cx.old_release().await?;
    let mut nodes = Vec::new();
    for suffix in ["a", "b"] {
        let (_, node) = joined(cx, machine(suffix)).await?;
        node.becomes(addressed()).await?;
        nodes.push(Initialised::now(node).await?);
    }
    let rollout = upgraded(cx).await?;
    // The node controllers of the new release have looked at each Node once.
    let window = cx.limits().life().max(cx.limits().status_period());
    let present = nodes
        .iter()
        .map(async |one| one.node.keeps(present()).within(window).when("after the upgrade").await);
    futures::future::try_join_all(present).await?;
    nodes.iter().try_for_each(|one| one.has_stayed_since(rollout.at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn node(change: impl FnOnce(&mut Value)) -> core::Node {
        let mut node = json!({
            "metadata": {"name": "n", "labels": {"zone": "z"}},
            "spec": {"providerID": "p://1"},
            "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]},
        });
        change(&mut node);
        serde_json::from_value(node).expect("a Node")
    }

    #[test]
    fn what_a_node_lost_is_named() {
        let before = Written::on(&node(|_| ()));
        let lost = |change: fn(&mut Value)| before.lost_in(&node(change));
        assert_eq!(lost(|_| ()), None);
        assert_eq!(lost(|node| node["metadata"]["labels"]["more"] = json!("m")), None);
        let taint = json!([{"key": T_UNINIT, "effect": "NoSchedule"}]);
        let tainted = node(|node| node["spec"]["taints"] = taint);
        assert!(before.lost_in(&tainted).is_some_and(|lost| lost.contains(T_UNINIT)));
        assert_eq!(
            lost(|node| node["spec"]["providerID"] = json!("p2://1")).as_deref(),
            Some("providerID p2://1")
        );
        assert!(
            lost(|node| node["status"]["addresses"] = json!([]))
                .is_some_and(|lost| lost.contains("addresses"))
        );
        assert_eq!(lost(|node| node["metadata"]["labels"] = json!({})).as_deref(), Some("no label zone"));
    }
}
