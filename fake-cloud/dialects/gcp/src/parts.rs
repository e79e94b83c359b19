//! What is stored of the parts of a load balancer, and what it means: open ports, probes, members of pools.

use super::names::{Scope, link, name_in};
use super::query::merged;
use fake_cloud_driver::{Auxiliary, HealthCheck};
use fake_cloud_model::Cloud;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// The kind of reserved addresses among the auxiliary objects.
pub(super) const ADDRESS: &str = "address";
/// The kind of firewalls.
pub(super) const FIREWALL: &str = "firewall";
/// The kind of health checks.
pub(super) const CHECK: &str = "http-health-check";
/// The kind of target pools.
pub(super) const POOL: &str = "target-pool";
/// The collection of target pools.
pub(super) const POOLS: &str = "targetPools";
/// The collection of health checks.
pub(super) const CHECKS: &str = "httpHealthChecks";
/// The collection of forwarding rules.
pub(super) const RULES: &str = "forwardingRules";

/// The link of a forwarding rule.
pub(super) fn link_of(scope: &Scope, name: &str) -> String {
    link(scope, RULES, name)
}

/// What is stored of a resource: its fields with its name.
pub(super) fn stored(aux: &Auxiliary) -> Value {
    merged(json!({"name": aux.name}), aux.spec["resource"].clone())
}

/// Whether a resource of this kind is there.
pub(super) fn is_at(aux: &Auxiliary, kind: &str, scope: &Scope) -> bool {
    aux.kind == kind && aux.spec["scope"] == json!(scope.path())
}

/// The resource of a kind with this name.
pub(super) fn find(cloud: &Cloud, kind: &str, scope: &Scope, name: &str) -> Option<Auxiliary> {
    cloud.auxiliaries().find(|aux| is_at(aux, kind, scope) && aux.name == name).cloned()
}

/// All resources of a kind, as they are stored.
pub(super) fn all(cloud: &Cloud, kind: &str) -> Vec<Value> {
    cloud.auxiliaries().filter(|aux| aux.kind == kind).map(stored).collect()
}

/// All pools with their places.
pub(super) fn placed_pools(cloud: &Cloud) -> Vec<(Scope, Value)> {
    let own = cloud.auxiliaries().filter(|aux| aux.kind == POOL);
    own.map(|aux| {
        let region = aux.spec["scope"].as_str().map(name_in).unwrap_or_default();
        (Scope::Region(region.to_owned()), stored(aux))
    })
    .collect()
}

/// The addresses that are reserved.
pub(super) fn reserved(cloud: &Cloud) -> BTreeSet<IpAddr> {
    let addresses = all(cloud, ADDRESS).into_iter();
    addresses.filter_map(|address| address["address"].as_str()?.parse().ok()).collect()
}

/// The ports of a text: one, or a range.
pub(super) fn ports(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some(first..=last)
}

/// The ports of this range that a firewall opens for a protocol.
pub(super) fn opened(firewall: &Value, protocol: &str, range: &RangeInclusive<u16>) -> BTreeSet<u16> {
    let allowed = firewall["allowed"].as_array().into_iter().flatten();
    let own = allowed.filter(|one| {
        one["IPProtocol"].as_str().is_some_and(|own| own.eq_ignore_ascii_case(protocol) || own == "all")
    });
    let opened = own.flat_map(|one| match one["ports"].as_array() {
        Some(_) => texts(&one["ports"]).filter_map(ports).collect(),
        None => vec![0..=u16::MAX],
    });
    opened.flat_map(|opened| *opened.start().max(range.start())..=*opened.end().min(range.end())).collect()
}

/// How a health check probes, in the terms of the model.
pub(super) fn probe(check: &Value) -> Option<HealthCheck> {
    let port = check["port"].as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0)?;
    let path = check["requestPath"].as_str().filter(|path| path.starts_with('/'))?;
    Some(HealthCheck { protocol: "HTTP".to_owned(), path: path.to_owned(), port })
}

/// The texts of a list.
pub(super) fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The names that the links of a list end with.
pub(super) fn names(value: &Value) -> impl Iterator<Item = &str> {
    texts(value).map(name_in)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_firewall_opens_the_ports_of_the_range_that_it_names() {
        let firewall = json!({"allowed": [{"IPProtocol": "tcp", "ports": ["80", "443-445"]}]});
        assert_eq!(opened(&firewall, "TCP", &(80..=444)), BTreeSet::from([80, 443, 444]));
        assert!(opened(&firewall, "UDP", &(80..=444)).is_empty());
        assert!(opened(&firewall, "TCP", &(90..=100)).is_empty());
        assert!(ports("90-80").is_none() && ports("x").is_none());
    }
}
