//! A load balancer and its auxiliaries as comparable settings.

use super::spec::Part;
use harness_clouds::{Auxiliary, HealthCheck, LbParts, LbState};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A kind of setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A port on which it listens, with its node port.
    Port,
    /// A health check.
    HealthCheck,
    /// The permitted ranges of client addresses.
    Ranges,
    /// The session affinity.
    Affinity,
}

impl Kind {
    /// The parts of a Service that can explain a change of it.
    pub(super) fn explained_by(self) -> &'static [Part] {
        match self {
            Kind::Port => &[Part::Wanted, Part::Annotations, Part::Ports, Part::Addresses],
            Kind::HealthCheck => {
                &[Part::Wanted, Part::Annotations, Part::Ports, Part::Policy, Part::Addresses]
            }
            Kind::Ranges => &[Part::Wanted, Part::Annotations, Part::Ranges],
            Kind::Affinity => &[Part::Wanted, Part::Annotations, Part::Affinity],
        }
    }
}

/// A setting by kind and name, e.g. `port 80/TCP`.
pub(super) type Key = (Kind, String);

/// One load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// Its owner.
    pub(super) owner: String,
    /// Its backends; those of a single port with that port.
    pub(super) backends: BTreeSet<(String, String)>,
    /// The ports on which it listens.
    pub(super) ports: BTreeSet<String>,
    /// Its settings that have a value, without those that are absent or the default of every cloud.
    pub(super) settings: BTreeMap<Key, String>,
    /// The lists of its firewalls that have entries, e.g. `ports`.
    pub(super) admits: BTreeSet<String>,
}

/// The load balancers that are active or being created, by id.
pub(super) fn facts(parts: &LbParts) -> BTreeMap<String, Facts> {
    let there = parts.load_balancers.iter().filter(|lb| lb.state != LbState::Deleting);
    there
        .map(|lb| {
            let mut facts = Facts { owner: lb.owner.clone(), ..Facts::default() };
            facts.backends.extend(lb.backends.iter().map(|backend| (String::new(), backend.clone())));
            for port in &lb.frontends {
                let name = format!("{}/{}", port.port, port.protocol);
                let own = port.backends.iter().flatten();
                facts.backends.extend(own.map(|backend| (name.clone(), backend.clone())));
                let key = (Kind::Port, format!("port {name}"));
                facts.settings.insert(key, format!("to node port {}", port.node_port));
                let own = port.health_check.as_ref().map(health_check);
                let key = (Kind::HealthCheck, format!("health check of port {name}"));
                facts.settings.extend(own.map(|text| (key, text)));
                facts.ports.insert(name);
            }
            let check = lb.health_check.as_ref().map(health_check);
            facts.settings.extend(check.map(|text| ((Kind::HealthCheck, "health check".to_owned()), text)));
            let mut ranges = lb.source_ranges.clone();
            ranges.sort_unstable();
            if !ranges.is_empty() {
                facts.settings.insert((Kind::Ranges, "source ranges".to_owned()), ranges.join(", "));
            }
            if !matches!(lb.session_affinity.as_str(), "" | "None") {
                let key = (Kind::Affinity, "session affinity".to_owned());
                facts.settings.insert(key, lb.session_affinity.clone());
            }
            let serves = |aux: &&Auxiliary| aux.load_balancer.as_deref() == Some(lb.id.as_str());
            for firewall in parts.auxiliaries.iter().filter(serves).filter(|aux| is_firewall(&aux.kind)) {
                let lists = firewall.spec.as_object().into_iter().flatten();
                let filled = lists.filter(|(_, list)| list.as_array().is_some_and(|list| !list.is_empty()));
                facts.admits.extend(filled.map(|(name, _)| name.clone()));
                let ranges = ranges_of(&firewall.spec);
                if !ranges.is_empty() {
                    let key = (Kind::Ranges, "the firewall's source ranges".to_owned());
                    facts.settings.entry(key).or_insert(ranges);
                }
            }
            (lb.id.clone(), facts)
        })
        .collect()
}

fn health_check(check: &HealthCheck) -> String {
    format!("{} {}:{}", check.protocol, check.path, check.port)
}

/// Whether an auxiliary of a load balancer restricts its clients.
pub(super) fn is_firewall(kind: &str) -> bool {
    kind.contains("firewall") || kind.contains("security")
}

fn ranges_of(spec: &Value) -> String {
    let mut ranges: Vec<&str> =
        spec["source_ranges"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    ranges.sort_unstable();
    ranges.join(", ")
}
