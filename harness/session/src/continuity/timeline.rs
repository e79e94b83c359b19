//! Records what happened, in order: changes of Nodes and Services, and what each write removed from a load balancer.

use super::settings::{Facts, Key, facts};
use super::spec::{Part, ServiceVersion};
use harness_clouds::{Entry, LbChange, Op, Outcome};
use harness_core::objects::show_entry;
use std::collections::{BTreeMap, BTreeSet};
use tokio::time::Instant;

/// What must not be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A backend that stays must never be missing.
    Backends,
    /// A published address must stay in the Service's status while its load balancer exists.
    Addresses,
    /// A setting that no edit concerns must keep its value.
    Settings,
    /// A firewall must never be empty or missing.
    Firewall,
}

/// A Node as load balancers refer to it.
#[derive(Debug, Default)]
pub(super) struct NodeRecord {
    /// Every name with which a backend has ever referred to it.
    pub(super) names: BTreeSet<String>,
    /// When it was created, changed or deleted.
    pub(super) changes: Vec<Instant>,
}

/// A Service that has, or had, a load balancer.
#[derive(Debug, Default)]
pub(super) struct ServiceRecord {
    /// Namespace and name.
    pub(super) place: String,
    pub(super) now: ServiceVersion,
    /// The times of changes of its parts.
    pub(super) changes: Vec<(Instant, BTreeSet<Part>)>,
}

/// A setting that a write replaced.
#[derive(Debug)]
pub(super) struct Rewrite {
    pub(super) key: Key,
    pub(super) old: String,
    /// `None`: it was removed.
    pub(super) new: Option<String>,
    /// When a write gave it the old value.
    pub(super) since: Instant,
}

/// A write that removed something from a load balancer or added backends to it.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) at: Instant,
    /// The call in one line.
    pub(super) call: String,
    pub(super) balancer: String,
    pub(super) owner: String,
    /// Backends that existed before; only of ports that stay.
    pub(super) lost: BTreeSet<(String, String)>,
    pub(super) gained: BTreeSet<(String, String)>,
    pub(super) rewrites: Vec<Rewrite>,
    /// The lists of its firewalls that had entries before but not after.
    pub(super) emptied: BTreeSet<String>,
    /// Whether the Service needed its load balancer and published an address. Before that it is being created, and
    /// afterwards removed.
    pub(super) in_use: bool,
}

/// Addresses that were removed from a status.
#[derive(Clone, Debug)]
pub(super) struct Lost {
    pub(super) at: Instant,
    pub(super) addresses: BTreeSet<String>,
    /// The field manager that wrote the status last.
    pub(super) by: Option<String>,
}

/// The same addresses, once the cloud has shown that their load balancer exists.
#[derive(Debug)]
pub(super) struct Withdrawal {
    pub(super) owner: String,
    pub(super) balancer: String,
    pub(super) lost: Lost,
}

/// A load balancer after the last write to it.
#[derive(Debug)]
struct Known {
    facts: Facts,
    /// When a write gave each setting its value.
    since: BTreeMap<Key, Instant>,
}

/// All observations of a lane.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    pub(super) nodes: BTreeMap<String, NodeRecord>,
    /// By the owner of load balancers.
    pub(super) services: BTreeMap<String, ServiceRecord>,
    pub(super) writes: Vec<Write>,
    pub(super) withdrawals: Vec<Withdrawal>,
    /// When a fault made the cloud deny that a machine exists, or answer with a wrong list of machines.
    pub(super) denials: Vec<Instant>,
    known: BTreeMap<String, Known>,
    sees_changes: bool,
}

impl Timeline {
    pub(super) fn sees_changes(&self) -> bool {
        self.sees_changes
    }

    /// Records that a Node was created, changed or deleted.
    pub(super) fn node(&mut self, name: &str, names: BTreeSet<String>, at: Instant) {
        let record = self.nodes.entry(name.to_owned()).or_default();
        record.names.extend(names);
        record.changes.push(at);
    }

    /// Records that a Service was created, changed or deleted. Returns the addresses that it no longer publishes although
    /// it needs a load balancer.
    pub(super) fn service(
        &mut self,
        owner: &str,
        place: &str,
        new: ServiceVersion,
        at: Instant,
    ) -> Option<Lost> {
        let record = self.services.entry(owner.to_owned()).or_insert_with(|| ServiceRecord {
            place: place.to_owned(),
            now: new.clone(),
            changes: Vec::new(),
        });
        let differs = new.differs_in(&record.now);
        let addresses: BTreeSet<String> = record.now.published.difference(&new.published).cloned().collect();
        let lost =
            (new.wants && !addresses.is_empty()).then(|| Lost { at, addresses, by: new.status_by.clone() });
        if !differs.is_empty() {
            record.changes.push((at, differs));
        }
        record.now = new;
        lost
    }

    /// Records that a call has ended.
    pub(super) fn call(&mut self, call: &Entry, at: Instant) {
        if denies_machines(call) {
            self.denials.push(at);
        }
        if let Some(change) = &call.change {
            self.sees_changes = true;
            self.write(call, change, at);
        }
    }

    fn write(&mut self, call: &Entry, change: &LbChange, at: Instant) {
        let (before, mut after) = (facts(&change.before), facts(&change.after));
        for (id, old) in &before {
            let Some(new) = after.get(id) else {
                self.known.remove(id);
                continue;
            };
            let known = self.known.get(id);
            let rewrites: Vec<Rewrite> = old
                .settings
                .iter()
                .filter(|&(key, value)| new.settings.get(key) != Some(value))
                // Only settings that a write of the CCM has set: others may be corrected at any time.
                .filter_map(|(key, value)| {
                    let known = known.filter(|known| known.facts.settings.get(key) == Some(value))?;
                    let since = *known.since.get(key)?;
                    let new = new.settings.get(key).cloned();
                    Some(Rewrite { key: key.clone(), old: value.clone(), new, since })
                })
                .collect();
            let stays = |(port, _): &&(String, String)| port.is_empty() || new.ports.contains(port);
            let write = Write {
                at,
                call: show_entry(call),
                balancer: id.clone(),
                owner: new.owner.clone(),
                lost: old.backends.difference(&new.backends).filter(stays).cloned().collect(),
                gained: new.backends.difference(&old.backends).cloned().collect(),
                rewrites,
                emptied: old.admits.difference(&new.admits).cloned().collect(),
                in_use: self.services.get(&new.owner).is_some_and(|service| service.now.is_in_use()),
            };
            let says = !(write.lost.is_empty()
                && write.gained.is_empty()
                && write.rewrites.is_empty()
                && write.emptied.is_empty());
            if says {
                self.writes.push(write);
            }
        }
        while let Some((id, facts)) = after.pop_first() {
            let old = self.known.remove(&id);
            let mut since = BTreeMap::new();
            for (key, value) in &facts.settings {
                let kept = old.as_ref().filter(|old| old.facts.settings.get(key) == Some(value));
                let set = kept.and_then(|old| old.since.get(key)).copied();
                // A value from before the first known write was set by someone else.
                let foreign =
                    old.is_none() && before.get(&id).is_some_and(|b| b.settings.get(key) == Some(value));
                if !foreign {
                    since.insert(key.clone(), set.unwrap_or(at));
                }
            }
            self.known.insert(id, Known { facts, since });
        }
    }
}

/// Whether a fault made the answer deny that a machine exists. A refusal or an outage does not deny that.
fn denies_machines(call: &Entry) -> bool {
    let about_machines = matches!(call.op, Op::InstanceGet | Op::InstanceList);
    about_machines && matches!(call.outcome, Outcome::Faulted { status: Some(200 | 404), .. })
}
