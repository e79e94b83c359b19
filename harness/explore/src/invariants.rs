//! What must hold at every moment of a history, and not only when the CCM has finished. Each rule has the id of a
//! contract row.

use crate::divergence::Divergence;
use crate::world::World;
use harness_core::check::CheckError;
use harness_core::objects::{T_UNINIT, has_taint};
use harness_session::{Session, Window};
use harness_testkit::matchers::missing_metadata;
use harness_testkit::prelude::{CheckCx, Entry};
use std::collections::{BTreeMap, BTreeSet};
use tokio::time::Instant;

/// Judges what happened since the last time that the CCM had finished.
pub(crate) struct Invariants<'a> {
    session: &'a Session,
    /// The namespace of the scenario's Services.
    namespace: String,
    /// The journal's position when the trial began.
    mark: u64,
    /// When the CCM had finished the last time; `None` before the first time.
    finished: Option<Instant>,
    /// How many times the leadership may change.
    most_changes: usize,
}

impl<'a> Invariants<'a> {
    pub(crate) fn new(session: &'a Session, cx: &CheckCx, mark: u64, has_standby: bool) -> Invariants<'a> {
        let namespace = cx.prefix().to_owned();
        Invariants { session, namespace, mark, finished: None, most_changes: usize::from(has_standby) }
    }

    /// What did not hold. Called when cluster and cloud are as they must be.
    pub(crate) async fn broken(&mut self, world: &World<'_>) -> Result<Vec<Divergence>, CheckError> {
        self.session.journal().catch_up().await?;
        let (_, calls) = self.session.journal().kept_since(self.mark)?;
        let mut all = several_at_once(&calls);
        all.extend(several_writers(&calls, self.most_changes));
        all.extend(self.lost());
        for (name, node, instance) in world.nodes() {
            let history = node.history()?;
            let early = history.iter().find_map(|version| {
                let missing = missing_metadata(&version.object, &instance);
                (!has_taint(&version.object, T_UNINIT) && !missing.is_empty()).then_some(missing)
            });
            all.extend(early.map(|missing| Divergence {
                subject: format!("Node of machine {name}"),
                expected: format!("the taint {T_UNINIT} until providerID and labels are set (NODE-INIT-04)"),
                actual: format!("a version without the taint that lacks {}", missing.join(", ")),
            }));
        }
        self.finished = Some(Instant::now());
        Ok(all)
    }

    /// What load balancers lost although it was to stay.
    fn lost(&self) -> Vec<Divergence> {
        let Some(since) = self.finished else { return Vec::new() };
        let window = Window { since: Some(since), ..Window::whole() };
        let breaks = self.session.continuity().breaks(&window);
        let ours = breaks.into_iter().filter_map(|broken| {
            let service = broken.service.as_deref()?.strip_prefix(&self.namespace)?.strip_prefix('/')?;
            Some(Divergence {
                subject: format!("load balancer of Service {service}"),
                expected: "nothing that stays is lost on the way (SVC-UPD-11)".to_owned(),
                actual: broken.what.clone(),
            })
        });
        ours.collect()
    }
}

/// Owners that had more than one load balancer at the same time.
fn several_at_once(calls: &[Entry]) -> Vec<Divergence> {
    let mut existing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut found: BTreeMap<&str, Divergence> = BTreeMap::new();
    for call in calls {
        let Some(change) = &call.change else { continue };
        for gone in &change.before.load_balancers {
            existing.entry(&gone.owner).or_default().remove(gone.id.as_str());
        }
        for now in change.after.load_balancers.iter().filter(|lb| !lb.owner.is_empty()) {
            let of_owner = existing.entry(&now.owner).or_default();
            of_owner.insert(&now.id);
            if of_owner.len() > 1 {
                let ids: Vec<&str> = of_owner.iter().copied().collect();
                found.entry(&now.owner).or_insert_with(|| Divergence {
                    subject: "the cloud".to_owned(),
                    expected: "at most one load balancer for a Service (SVC-CREATE-04)".to_owned(),
                    actual: format!("{} at the same time after {}", ids.join(" and "), call.request),
                });
            }
        }
    }
    found.into_values().collect()
}

/// Replicas that wrote to the cloud by turns, although only the leader may.
fn several_writers(calls: &[Entry], most_changes: usize) -> Option<Divergence> {
    let mut writers: Vec<&str> =
        calls.iter().filter(|call| call.write).filter_map(|call| call.credential.as_deref()).collect();
    writers.dedup();
    (writers.len() > most_changes + 1).then(|| Divergence {
        subject: "the replicas".to_owned(),
        expected: "only the leader writes to the cloud (HA-06)".to_owned(),
        actual: format!("writes by {}", writers.join(", then ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(seq: u64, credential: &str, before: &[&str], after: &[&str]) -> Entry {
        let balancers = |ids: &[&str]| -> serde_json::Value {
            ids.iter()
                .map(|id| {
                    json!({"id": id, "name": id, "owner": "uid", "frontends": [], "backends": [], "addresses": [],
                        "state": "active"})
                })
                .collect()
        };
        serde_json::from_value(json!({
            "seq": seq, "at_ms": seq, "took_ms": 1, "peer": "127.0.0.1", "credential": credential,
            "op": "lb.create", "write": true, "resource": null, "owner": "uid", "request": format!("POST /{seq}"),
            "outcome": {"kind": "answered", "status": 200},
            "change": {"before": {"load_balancers": balancers(before)},
                "after": {"load_balancers": balancers(after)}},
        }))
        .expect("a call")
    }

    #[test]
    fn two_load_balancers_of_one_service_are_seen_even_if_one_goes() {
        let replaced = [call(1, "a", &[], &["x"]), call(2, "a", &["x"], &[]), call(3, "a", &[], &["y"])];
        assert!(several_at_once(&replaced).is_empty());
        let twice = [call(1, "a", &[], &["x"]), call(2, "a", &[], &["y"]), call(3, "a", &["x"], &[])];
        let found = several_at_once(&twice);
        assert_eq!(found.len(), 1);
        assert!(found[0].actual.contains("x and y at the same time after POST /2"), "{}", found[0]);
    }

    #[test]
    fn writers_may_change_only_as_often_as_the_leader() {
        let calls = |names: &[&str]| -> Vec<Entry> {
            names.iter().enumerate().map(|(at, name)| call(at as u64 + 1, name, &[], &[])).collect()
        };
        assert!(several_writers(&calls(&["a", "a", "b"]), 1).is_none());
        assert!(several_writers(&calls(&["a", "b"]), 0).is_some());
        assert!(several_writers(&calls(&["a", "b", "a"]), 1).is_some());
    }
}
