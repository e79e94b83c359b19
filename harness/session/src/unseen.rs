//! What the CCM did in the cloud without any call being seen: then the request log proves nothing, and the environment is at
//! fault. An API that puts absolute URLs into its answers leads calls past a proxy.

use super::Session;
use crate::k8s::{L_TYPE, T_UNINIT, has_taint, label};
use harness_clouds::{Instance, Inventory, Op};
use harness_config::Instances;
use harness_core::check::Facility;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How the owner of a load balancer begins that the harness itself creates.
pub const OWNER_OF_NO_CCM: &str = "somebody-elses-";

/// Calls with which a CCM reads machines.
const LOOK_UPS: &[Op] = &[Op::InstanceGet, Op::InstanceList];
/// Calls that create a load balancer.
const WRITES: &[Op] = &[Op::LbCreate, Op::LbUpdate, Op::AuxCreate, Op::AuxUpdate];

impl Session {
    /// Whether it is known that calls of the CCM are not seen.
    pub fn calls_are_unseen(&self) -> bool {
        self.unseen.get().is_some()
    }

    /// What the CCM knows or did without a call that was seen, and what to do about it; `None` if there is no such thing. Once
    /// there was one, it is known for good.
    pub async fn acted_unseen(&self) -> Option<String> {
        if let Some(known) = self.unseen.get() {
            return Some(known.clone());
        }
        let profile = &self.plan.profile;
        let facilities = self.cloud.facilities();
        let is_watched = facilities.contains(&Facility::Journal) && facilities.contains(&Facility::Inventory);
        // Others use a real cloud as well, and what came before this session is not known.
        if !is_watched || profile.cloud.real().is_some() || self.state.journal_from > 0 {
            return None;
        }
        let capabilities = &profile.capabilities;
        let wanted = Wanted {
            // A metadata service and the profile's own type need no call.
            machines: capabilities.instances != Instances::None
                && profile.instance_type.is_none()
                && self.state.metadata.is_none(),
            balancers: capabilities.load_balancer,
        };
        if wanted.without(&self.journal.operations()).is_nothing() {
            return None;
        }
        let held = self.cloud.inventory().await.ok()?;
        self.journal.catch_up().await.ok()?;
        let missing = wanted.without(&self.journal.operations());
        let before: BTreeSet<&str> = self.cloud_before.iter().flat_map(ids).collect();
        let what = missing.found(&self.world.nodes.all(), &held, &before)?;
        let calls = self.journal.position();
        Some(self.unseen.get_or_init(|| explained(&what, calls, self.cloud.driver())).clone())
    }
}

fn ids(held: &Inventory) -> impl Iterator<Item = &str> {
    held.load_balancers.iter().map(|lb| lb.id.as_str())
}

/// The kinds of calls that were not seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wanted {
    machines: bool,
    balancers: bool,
}

impl Wanted {
    /// Without those for which a call was seen.
    fn without(self, seen: &BTreeSet<Op>) -> Wanted {
        let none_of = |ops: &[Op]| !ops.iter().any(|op| seen.contains(op));
        Wanted { machines: self.machines && none_of(LOOK_UPS), balancers: self.balancers && none_of(WRITES) }
    }

    fn is_nothing(self) -> bool {
        !self.machines && !self.balancers
    }

    /// What shows that there were calls all the same, in words. A Node counts only if it has what the CCM cannot know without
    /// the cloud: a CCM that removes taints without asking is judged.
    fn found(self, nodes: &[Arc<Node>], held: &Inventory, before: &BTreeSet<&str>) -> Option<String> {
        let made = held
            .load_balancers
            .iter()
            .find(|lb| !before.contains(lb.id.as_str()) && !lb.owner.starts_with(OWNER_OF_NO_CCM));
        let made = made.filter(|_| self.balancers).map(|lb| {
            format!("load balancer {} was created, but the request log has no call that creates one", lb.id)
        });
        let known = nodes.iter().find(|node| knows(node, &held.instances)).filter(|_| self.machines);
        made.or_else(|| {
            let node = known?;
            let kind = label(node, L_TYPE).unwrap_or_default();
            Some(format!(
                "Node {} was initialised with the instance type {kind} of its machine, but the request log has no call that \
                 looks up a machine",
                node.name_any()
            ))
        })
    }
}

/// Whether a Node has the type of its machine.
fn knows(node: &Node, machines: &[Instance]) -> bool {
    let kind = label(node, L_TYPE).filter(|kind| !kind.is_empty());
    let is_its = |machine: &&Instance| machine.name == node.name_any();
    !has_taint(node, T_UNINIT)
        && kind.is_some_and(|kind| machines.iter().find(is_its).is_some_and(|m| m.instance_type == kind))
}

fn explained(what: &str, calls: u64, driver: &str) -> String {
    let seen = match calls {
        0 => "it has no call at all".to_owned(),
        1 => "it has 1 call".to_owned(),
        _ => format!("it has {calls} calls"),
    };
    format!(
        "the calls of the CCM are not seen: {what} ({seen}, from driver {driver}). Either the calls take another way to the cloud, \
         for example by absolute URLs in answers of the API: add them to 'rewrite' in the routes file, or set \
         'cloud.proxy.httpProxy' in the profile. Or the routes file does not say what these calls mean"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ALL: Wanted = Wanted { machines: true, balancers: true };

    fn node(kind: &str, taints: serde_json::Value) -> Arc<Node> {
        let labels = json!({L_TYPE: kind});
        let node = json!({"metadata": {"name": "n1", "labels": labels}, "spec": {"taints": taints}});
        Arc::new(serde_json::from_value(node).expect("a Node"))
    }

    fn held(owner: Option<&str>) -> Inventory {
        let lb = |owner: &str| json!({"id": "lb-1", "name": "web", "owner": owner, "frontends": [], "backends": [], "addresses": [], "state": "active"});
        let lbs: Vec<_> = owner.into_iter().map(lb).collect();
        let machine = json!({"id": "i-1", "name": "n1", "instance_type": "m1"});
        let held = json!({"instances": [machine], "load_balancers": lbs, "auxiliaries": []});
        serde_json::from_value(held).expect("an inventory")
    }

    #[test]
    fn effects_without_a_call_are_named() {
        let none = BTreeSet::new();
        let made = ALL.found(&[], &held(Some("uid")), &none).expect("a balancer");
        assert!(made.starts_with("load balancer lb-1 was created"), "{made}");
        assert_eq!(
            ALL.found(&[], &held(Some("uid")), &BTreeSet::from(["lb-1"])),
            None,
            "it was there before"
        );
        assert_eq!(ALL.found(&[], &held(Some("somebody-elses-x")), &none), None, "the harness put it there");
        let known = ALL.found(&[node("m1", json!([]))], &held(None), &none).expect("a Node");
        assert!(known.starts_with("Node n1 was initialised with the instance type m1"), "{known}");
    }

    #[test]
    fn a_ccm_that_does_not_ask_is_judged() {
        let none = BTreeSet::new();
        let tainted = json!([{"key": T_UNINIT, "effect": "NoSchedule"}]);
        for node in [node("", json!([])), node("m2", json!([])), node("m1", tainted)] {
            assert_eq!(ALL.found(&[node], &held(None), &none), None);
        }
    }

    #[test]
    fn calls_that_were_seen_explain_what_came_about() {
        let seen = |ops: &[Op]| ALL.without(&ops.iter().copied().collect());
        assert_eq!(seen(&[Op::Other]), ALL);
        assert!(seen(&[Op::InstanceList, Op::LbCreate]).is_nothing());
        let balancers = seen(&[Op::InstanceGet]);
        assert_eq!(balancers.found(&[node("m1", json!([]))], &held(None), &BTreeSet::new()), None);
        assert!(explained("x", 0, "acme").contains("it has no call at all, from driver acme"));
    }
}
