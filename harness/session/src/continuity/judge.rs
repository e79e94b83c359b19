//! Decides which of the losses count. Pure functions.

use super::spec::Part;
use super::timeline::{Rewrite, Rule, Timeline, Withdrawal, Write};
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

/// How long before a loss the Service and the Node concerned must have been unchanged, if nothing else is known: a CCM may act
/// on what it read before, and calls can be slow.
const STEADY: Duration = Duration::from_secs(20);
/// How much later than the CCM the harness may learn of a change.
const HEARD: Duration = Duration::from_millis(1_500);

/// Which losses to look for.
#[derive(Clone, Debug)]
pub struct Window {
    /// The rules; all of them if empty.
    pub rules: Vec<Rule>,
    /// The owner whose load balancers are looked at; all of them if absent.
    pub owner: Option<String>,
    /// Since when. The CCM had finished all earlier work by then. If absent, the whole run is looked at, and every loss must lie in
    /// a steady time of its own.
    pub since: Option<Instant>,
    /// For how long after a loss nothing may have changed: the harness may learn of a change later than the CCM. None
    /// for a check that makes all changes itself, and waits until it has seen them.
    pub heard: Duration,
}

impl Window {
    /// The whole run, with all rules.
    pub fn whole() -> Window {
        Window { rules: Vec::new(), owner: None, since: None, heard: HEARD }
    }

    fn covers(&self, rule: Rule, owner: &str, at: Instant) -> bool {
        (self.rules.is_empty() || self.rules.contains(&rule))
            && self.owner.as_deref().is_none_or(|wanted| wanted == owner)
            && self.since.is_none_or(|since| at >= since)
    }

    /// From when on nothing may have changed, so that a loss at `at` counts.
    fn steady_from(&self, at: Instant) -> Instant {
        self.since.unwrap_or_else(|| at.checked_sub(STEADY).unwrap_or(at))
    }

    /// Until when nothing may have changed.
    fn steady_until(&self, at: Instant) -> Instant {
        at + self.heard
    }
}

/// A loss that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Break {
    /// The rule it broke.
    pub rule: Rule,
    /// Namespace and name of the Service, if one is known.
    pub service: Option<String>,
    /// When.
    pub at: Instant,
    /// From when on it is certain: until then the harness may learn of a change that explains it.
    pub certain_from: Instant,
    /// A description, with the call that caused it.
    pub what: String,
}

impl harness_core::probe::Observed for Break {
    fn observed(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.service {
            Some(service) => write!(f, "Service {service}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// All losses that count, in the order in which they were observed.
pub(super) fn breaks(timeline: &Timeline, window: &Window) -> Vec<Break> {
    let judge = Judge { timeline, window };
    let mut breaks: Vec<Break> = timeline.withdrawals.iter().filter_map(|lost| judge.address(lost)).collect();
    for (position, write) in timeline.writes.iter().enumerate() {
        breaks.extend(judge.backends(position, write));
        breaks.extend(write.rewrites.iter().filter_map(|rewrite| judge.setting(write, rewrite)));
        breaks.extend(judge.firewall(write));
    }
    breaks.sort_by_key(|broken| broken.at);
    breaks
}

fn concerns(parts: &[Part], changed: &BTreeSet<Part>) -> bool {
    parts.iter().any(|part| changed.contains(part))
}

struct Judge<'a> {
    timeline: &'a Timeline,
    window: &'a Window,
}

impl Judge<'_> {
    fn broken(&self, rule: Rule, owner: &str, (at, certain_from): (Instant, Instant), what: String) -> Break {
        let service = self.timeline.services.get(owner).map(|service| service.place.clone());
        Break { rule, service, at, certain_from, what }
    }

    /// Whether none of these parts of the Service changed around that time. An unknown Service may have changed at any time.
    fn service_is_steady(&self, owner: &str, parts: &[Part], from: Instant, until: Instant) -> bool {
        self.timeline.services.get(owner).is_some_and(|service| {
            let mut changes = service.changes.iter();
            !changes.any(|(at, changed)| *at >= from && *at <= until && concerns(parts, changed))
        })
    }

    /// Whether this backend's Node is known and did not change in that time.
    fn node_is_steady(&self, backend: &str, from: Instant, until: Instant) -> bool {
        let mut meant = self.timeline.nodes.values().filter(|node| node.names.contains(backend)).peekable();
        let changed = |at: &Instant| *at >= from && *at <= until;
        meant.peek().is_some() && meant.all(|node| !node.changes.iter().any(changed))
    }

    fn backends(&self, position: usize, write: &Write) -> Vec<Break> {
        const PARTS: &[Part] = &[Part::Wanted, Part::Annotations, Part::Policy, Part::Addresses];
        if !write.in_use || !self.window.covers(Rule::Backends, &write.owner, write.at) {
            return Vec::new();
        }
        let broken = |backend: &(String, String)| {
            // A backend that never comes back was removed for good; whether that is right is judged by the end state.
            let mut later = self.timeline.writes[position + 1..].iter();
            let back = later.find(|one| one.balancer == write.balancer && one.gained.contains(backend))?;
            let from = self.window.steady_from(write.at);
            let until = self.window.steady_until(back.at);
            let denied = self.timeline.denials.iter().any(|at| *at >= from && *at <= until);
            let steady = !denied
                && self.node_is_steady(&backend.1, from, until)
                && self.service_is_steady(&write.owner, PARTS, from, until);
            let port = if backend.0.is_empty() { String::new() } else { format!(" of port {}", backend.0) };
            let what = format!(
                "load balancer {} lost backend {}{port} by {}, and got it back {:.1} s later by {}, though neither its Node nor \
                 the Service changed",
                write.balancer,
                backend.1,
                write.call,
                (back.at - write.at).as_secs_f64(),
                back.call,
            );
            steady.then(|| self.broken(Rule::Backends, &write.owner, (write.at, until), what))
        };
        write.lost.iter().filter_map(broken).collect()
    }

    fn setting(&self, write: &Write, rewrite: &Rewrite) -> Option<Break> {
        if !write.in_use || !self.window.covers(Rule::Settings, &write.owner, write.at) {
            return None;
        }
        let parts = rewrite.key.0.explained_by();
        let (from, until) = (self.window.steady_from(write.at), self.window.steady_until(write.at));
        let service = self.timeline.services.get(&write.owner)?;
        let edits = service.changes.iter().filter(|(at, changed)| *at <= until && concerns(parts, changed));
        let settled = match (edits.map(|(at, _)| *at).next_back(), self.window.since) {
            (None, _) => true,
            (Some(edit), Some(since)) => edit < since,
            // An edit may need several steps. It is finished when the settings have stayed unchanged for a while.
            (Some(edit), None) => edit < rewrite.since && rewrite.since < from,
        };
        if !settled {
            return None;
        }
        let new = rewrite.new.as_deref().unwrap_or("nothing");
        let what = format!(
            "{} of load balancer {} was changed from {} to {new} by {}, though this setting of the Service had not \
             changed",
            rewrite.key.1, write.balancer, rewrite.old, write.call
        );
        Some(self.broken(Rule::Settings, &write.owner, (write.at, until), what))
    }

    fn firewall(&self, write: &Write) -> Option<Break> {
        const PARTS: &[Part] = &[Part::Wanted, Part::Annotations, Part::Ranges];
        if write.emptied.is_empty()
            || !write.in_use
            || !self.window.covers(Rule::Firewall, &write.owner, write.at)
        {
            return None;
        }
        let from = self.window.steady_from(write.at);
        let until = self.window.steady_until(write.at);
        let lists: Vec<&str> = write.emptied.iter().map(String::as_str).collect();
        let what = format!(
            "the firewall of load balancer {} was left without {} by {}, though the Service still needs it",
            write.balancer,
            lists.join(" and "),
            write.call
        );
        self.service_is_steady(&write.owner, PARTS, from, until)
            .then(|| self.broken(Rule::Firewall, &write.owner, (write.at, until), what))
    }

    fn address(&self, withdrawal: &Withdrawal) -> Option<Break> {
        const PARTS: &[Part] = &[Part::Wanted, Part::Annotations, Part::Addresses];
        let Withdrawal { owner, balancer, lost } = withdrawal;
        if !self.window.covers(Rule::Addresses, owner, lost.at) {
            return None;
        }
        let from = self.window.steady_from(lost.at);
        let until = self.window.steady_until(lost.at);
        let addresses: Vec<&str> = lost.addresses.iter().map(String::as_str).collect();
        let by = lost.by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
        let what = format!(
            "{} was withdrawn from the status{by} while load balancer {balancer} has it",
            addresses.join(", ")
        );
        self.service_is_steady(owner, PARTS, from, until)
            .then(|| self.broken(Rule::Addresses, owner, (lost.at, until), what))
    }
}
