//! Load balancers of the model: each is a forwarding rule with what depends on its other parts.
//!
//! Its open ports and its source ranges are what firewalls admit to its address, its backends those of the target pool,
//! its health check the first one of the pool. A change of a part changes only what follows from it, so that what the
//! driver API has changed stays until the CCM corrects it.

use super::names::Scope;
use super::parts::{self, CHECK, FIREWALL, POOL, all, names, opened, ports, probe, stored, texts};
use fake_cloud_driver::{Frontend, HealthCheck, LbState, LoadBalancer};
use fake_cloud_kit::Error;
use fake_cloud_model::{Cloud, LbSpec};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

/// The address of a load balancer, also of one that is being provisioned.
pub(super) fn address_of(rule: &LoadBalancer) -> Option<IpAddr> {
    let shown = rule.addresses.iter().find_map(|address| address.ip);
    shown.or_else(|| rule.details["rule"]["IPAddress"].as_str()?.parse().ok())
}

fn present(cloud: &mut Cloud, now: Duration) -> impl Iterator<Item = &LoadBalancer> {
    cloud.load_balancers(now).filter(|rule| rule.state != LbState::Deleting)
}

/// The forwarding rule with this address.
pub(super) fn at(cloud: &mut Cloud, address: &str, now: Duration) -> Option<LoadBalancer> {
    let wanted = address.parse().ok()?;
    present(cloud, now).find(|rule| address_of(rule) == Some(wanted)).cloned()
}

/// The forwarding rule that leads to this target pool.
pub(super) fn rule_of(cloud: &mut Cloud, scope: &Scope, pool: &str, now: Duration) -> Option<LoadBalancer> {
    let Scope::Region(region) = scope else { return None };
    let leads = |rule: &&LoadBalancer| rule.details["pool"] == *pool && rule.details["region"] == **region;
    present(cloud, now).find(leads).cloned()
}

/// The range of ports in the stored form of a forwarding rule.
fn range_of(rule: &Value) -> Option<std::ops::RangeInclusive<u16>> {
    ports(rule["portRange"].as_str()?)
}

/// The open ports of a stored forwarding rule, by what firewalls admit to its address.
pub(super) fn frontends(cloud: &Cloud, rule: &Value) -> Vec<Frontend> {
    let Some(range) = range_of(rule) else { return Vec::new() };
    let protocol = rule["IPProtocol"].as_str().unwrap_or("TCP");
    let admitting = admitting(cloud, rule["IPAddress"].as_str().unwrap_or_default());
    let open: BTreeSet<u16> = admitting
        .iter()
        .flat_map(|firewall| opened(firewall, protocol, &range))
        .filter(|port| *port > 0)
        .collect();
    open.into_iter().map(|port| Frontend::new(port, protocol, port)).collect()
}

/// The source ranges of a stored forwarding rule; none if everybody is admitted.
pub(super) fn sources(cloud: &Cloud, rule: &Value) -> Vec<String> {
    let Some(range) = range_of(rule) else { return Vec::new() };
    let protocol = rule["IPProtocol"].as_str().unwrap_or("TCP");
    let admitting = admitting(cloud, rule["IPAddress"].as_str().unwrap_or_default());
    let own = admitting.iter().filter(|firewall| !opened(firewall, protocol, &range).is_empty());
    let ranges: BTreeSet<String> =
        own.flat_map(|firewall| texts(&firewall["sourceRanges"])).map(str::to_owned).collect();
    if ranges.iter().any(|range| range == "0.0.0.0/0") { Vec::new() } else { ranges.into_iter().collect() }
}

/// The firewalls that admit something to this address.
fn admitting(cloud: &Cloud, address: &str) -> Vec<Value> {
    let mut firewalls = all(cloud, FIREWALL);
    firewalls.retain(|firewall| {
        firewall["disabled"] != true && texts(&firewall["destinationRanges"]).any(|range| range == address)
    });
    firewalls
}

/// The backends of a target pool, its health check, and its session affinity.
pub(super) fn pooled(cloud: &Cloud, scope: &Scope, pool: &str) -> (Vec<String>, Option<HealthCheck>, String) {
    let Some(aux) = parts::find(cloud, POOL, scope, pool) else { return Default::default() };
    let stored = stored(&aux);
    let members = texts(&stored["members"]).filter(|id| cloud.instance(id).is_ok()).map(str::to_owned);
    let affinity = if stored["sessionAffinity"] == "NONE" { "None" } else { "ClientIP" };
    (members.collect(), check_of(cloud, &stored), affinity.to_owned())
}

fn check_of(cloud: &Cloud, pool: &Value) -> Option<HealthCheck> {
    let name = names(&pool["healthChecks"]).next()?;
    probe(&stored(&parts::find(cloud, CHECK, &Scope::Global, name)?))
}

/// What firewalls admit to an address has changed.
pub(super) fn admission_changed(cloud: &mut Cloud, address: &str, now: Duration) -> Result<(), Error> {
    let Some(rule) = at(cloud, address, now).filter(|rule| rule.details["rule"].is_object()) else {
        return Ok(());
    };
    let stored = &rule.details["rule"];
    let (frontends, sources) = (frontends(cloud, stored), sources(cloud, stored));
    cloud.update_load_balancer(&rule.id, now, move |spec| {
        // As long as no port is open, no client is admitted, which source ranges cannot say.
        let source_ranges = if frontends.is_empty() { spec.source_ranges } else { sources };
        LbSpec { frontends, source_ranges, ..spec }
    })?;
    Ok(())
}

/// The health check of a target pool has changed.
pub(super) fn check_changed(cloud: &mut Cloud, pool: &Value, now: Duration) -> Result<(), Error> {
    let name = pool["name"].as_str().unwrap_or_default();
    let health_check = check_of(cloud, pool);
    let leading: Vec<String> = present(cloud, now)
        .filter(|rule| rule.details["pool"] == *name)
        .map(|rule| rule.id.clone())
        .collect();
    for id in leading {
        let health_check = health_check.clone();
        cloud.update_load_balancer(&id, now, move |spec| LbSpec { health_check, ..spec })?;
    }
    Ok(())
}

/// Sets the backends of a forwarding rule's target pool.
pub(super) fn set_backends(
    cloud: &mut Cloud,
    rule: &LoadBalancer,
    members: BTreeSet<String>,
    now: Duration,
) -> Result<(), Error> {
    let backends = members.into_iter().collect();
    cloud.update_load_balancer(&rule.id, now, move |spec| LbSpec { backends, ..spec })?;
    Ok(())
}

/// The source ranges that the driver API has given to the load balancer of a firewall; `None` if it has not.
pub(super) fn changed_sources(cloud: &mut Cloud, firewall: &Value, now: Duration) -> Option<Vec<String>> {
    let addresses: Vec<String> = texts(&firewall["destinationRanges"]).map(str::to_owned).collect();
    let [address] = addresses.as_slice() else { return None };
    let rule = at(cloud, address, now)?;
    let stored = rule.details["rule"].clone();
    let opens = opened(firewall, stored["IPProtocol"].as_str()?, &range_of(&stored)?);
    if opens.is_empty() || sources(cloud, &stored) == rule.source_ranges {
        return None;
    }
    let everybody = || vec!["0.0.0.0/0".to_owned()];
    Some(if rule.source_ranges.is_empty() { everybody() } else { rule.source_ranges })
}
