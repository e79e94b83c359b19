//! Addresses and ports that a Service allocates and releases.
//!
//! Source: `pkg/registry/core/service/storage/alloc.go`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::Context;
use super::families::keeps_preferred_families;
use super::needs::{is_headless, needs_cluster_ip, needs_health_check};
use super::transitions::node_ports;
use crate::alloc::{Allocator, Family, Refusal};
use embedded_objects::cause::Cause;
use embedded_objects::rules::net;
use embedded_objects::status::{self, Status};
use embedded_objects::value::{Edit as _, PathAccess as _};

/// Allocates for a new Service.
pub(super) fn create(service: &mut Value, cx: &mut Context<'_>) -> Result<(), Status> {
    cluster_ips(service, 0, cx.allocator)?;
    if matches!(service.text("spec.type"), "NodePort" | "LoadBalancer") {
        new_node_ports(service, cx.allocator)?;
    }
    if needs_health_check(service) {
        health_check_port(service, cx.allocator)?;
    }
    Ok(())
}

/// Allocates and releases for a changed Service.
pub(super) fn update(old: &Value, new: &mut Value, cx: &mut Context<'_>) -> Result<(), Status> {
    update_cluster_ips(old, new, cx.allocator)?;
    let has_ports = |service: &Value| matches!(service.text("spec.type"), "NodePort" | "LoadBalancer");
    if has_ports(old) && matches!(new.text("spec.type"), "ExternalName" | "ClusterIP") {
        release_node_ports(old, cx.allocator);
    }
    if has_ports(new) {
        update_node_ports(old, new, cx.allocator)?;
    }
    match (needs_health_check(old), needs_health_check(new)) {
        (false, true) => health_check_port(new, cx.allocator)?,
        (true, false) => release_port(old.int("spec.healthCheckNodePort"), cx.allocator),
        _ => {}
    }
    Ok(())
}

/// Releases the addresses and ports of a Service.
pub(super) fn release(service: &Value, allocator: &mut Allocator) {
    release_ips(service, 0, allocator);
    release_node_ports(service, allocator);
    if needs_health_check(service) {
        release_port(service.int("spec.healthCheckNodePort"), allocator);
    }
}

/// Allocates the addresses and ports of a stored Service, except those that are already in use.
pub(super) fn restore(service: &Value, allocator: &mut Allocator) {
    if needs_cluster_ip(service) {
        for ip in service.list("spec.clusterIPs").iter().filter_map(Value::as_str).filter_map(net::parse_ip) {
            let _already_taken = allocator.take_ip(ip).is_err();
        }
    }
    let health = needs_health_check(service).then(|| service.int("spec.healthCheckNodePort"));
    for port in node_ports(service).into_iter().chain(health) {
        if let Ok(port) = u16::try_from(port) {
            let _already_taken = allocator.take_port(port).is_err();
        }
    }
}

/// Allocates an address for each family, beginning at this position.
fn cluster_ips(service: &mut Value, from: usize, allocator: &mut Allocator) -> Result<(), Status> {
    if !needs_cluster_ip(service) || service.list("spec.clusterIPs").first().is_some_and(|ip| ip == "None") {
        return Ok(());
    }
    let name = service.text("metadata.name").to_owned();
    let asked = service.list("spec.clusterIPs").to_vec();
    let families = service.list("spec.ipFamilies").to_vec();
    let mut ips = asked.clone();
    ips.resize(ips.len().max(families.len()), "".into());
    for (at, family) in families.iter().enumerate().skip(from) {
        let wanted = ips.get(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        let refusal = |why: String| {
            let cause = Cause::invalid("spec.clusterIPs", Value::Array(asked.clone()), why);
            status::invalid_of("", "Service", &name, &[cause])
        };
        let given = if wanted.is_empty() {
            let family = if family == "IPv6" { Family::V6 } else { Family::V4 };
            match allocator.take_any_ip(family) {
                Ok(ip) => ip.to_string(),
                Err(Refusal::Full) => {
                    return Err(status::internal(&format!(
                        "failed to allocate a serviceIP for Service {name:?}: range is full"
                    )));
                }
                Err(why) => return Err(refusal(format!("failed to allocate IP: {why}"))),
            }
        } else {
            let ip = net::parse_ip(&wanted)
                .ok_or_else(|| status::internal(&format!("failed to parse service IP {wanted:?}")))?;
            allocator.take_ip(ip).map_err(|why| refusal(format!("failed to allocate IP {wanted}: {why}")))?;
            wanted
        };
        if at == 0 {
            service.put("spec.clusterIP", given.as_str());
        }
        ips[at] = given.into();
    }
    if !ips.is_empty() {
        service.put("spec.clusterIPs", ips);
    }
    Ok(())
}

fn update_cluster_ips(old: &Value, new: &mut Value, allocator: &mut Allocator) -> Result<(), Status> {
    if keeps_preferred_families(old, new) {
        return Ok(());
    }
    if !needs_cluster_ip(old) {
        return cluster_ips(new, 0, allocator);
    }
    if is_headless(old) {
        return Ok(());
    }
    if !needs_cluster_ip(new) {
        release_ips(old, 0, allocator);
        return Ok(());
    }
    match (old.list("spec.ipFamilies").len(), new.list("spec.ipFamilies").len()) {
        (1, 2) => cluster_ips(new, 1, allocator),
        (2, 1) => {
            release_ips(old, 1, allocator);
            Ok(())
        }
        _ => Ok(()),
    }
}

fn release_ips(service: &Value, from: usize, allocator: &mut Allocator) {
    if !needs_cluster_ip(service) {
        return;
    }
    for ip in service.list("spec.clusterIPs").iter().skip(from).filter_map(Value::as_str) {
        if let Some(ip) = net::parse_ip(ip) {
            allocator.release_ip(ip);
        }
    }
}

fn release_port(port: i64, allocator: &mut Allocator) {
    if let Ok(port) = u16::try_from(port) {
        allocator.release_port(port);
    }
}

fn release_node_ports(service: &Value, allocator: &mut Allocator) {
    for port in node_ports(service) {
        release_port(port, allocator);
    }
}

/// Whether ports without a node port get one.
fn allocates(service: &Value) -> bool {
    match service.text("spec.type") {
        "NodePort" => true,
        "LoadBalancer" => service.truth("spec.allocateLoadBalancerNodePorts"),
        _ => false,
    }
}

fn take_port(port: i64, allocator: &mut Allocator) -> Result<(), String> {
    if !allocator.is_node_port(port) {
        return Err(format!(
            "provided port is not in the valid range. The range of valid ports is {}",
            allocator.port_range()
        ));
    }
    let port = u16::try_from(port).map_err(|error| error.to_string())?;
    allocator.take_port(port).map_err(|why| why.to_string())
}

fn take_any_port(allocator: &mut Allocator) -> Result<u16, Status> {
    allocator
        .take_any_port()
        .map_err(|why| status::internal(&format!("failed to allocate a nodePort: {why}")))
}

fn port_refused(service: &Value, at: usize, port: i64, why: &str) -> Status {
    let cause = Cause::invalid(format!("spec.ports[{at}].nodePort"), port, why);
    status::invalid_of("", "Service", service.text("metadata.name"), &[cause])
}

/// Allocates node ports. Ports with the same number (TCP and UDP) share one node port, unless the Service
/// requests otherwise.
fn new_node_ports(service: &mut Value, allocator: &mut Allocator) -> Result<(), Status> {
    let allocates = allocates(service);
    let mut by_port: BTreeMap<i64, i64> = BTreeMap::new();
    let ports = service.list("spec.ports").to_vec();
    let mut given = ports.clone();
    for (at, port) in ports.iter().enumerate() {
        let (number, wanted) = (port.int("port"), port.int("nodePort"));
        if wanted == 0 && !allocates {
            continue;
        }
        let chosen = match by_port.get(&number) {
            Some(&shared) if wanted == 0 => shared,
            Some(&shared) if wanted == shared => shared,
            Some(_) => {
                take_port(wanted, allocator).map_err(|why| port_refused(service, at, wanted, &why))?;
                wanted
            }
            None => {
                let requested = ports
                    .iter()
                    .find(|other| other.int("port") == number && other.int("nodePort") != 0)
                    .map(|other| other.int("nodePort"));
                let chosen = match requested {
                    Some(wanted) => {
                        take_port(wanted, allocator)
                            .map_err(|why| port_refused(service, at, wanted, &why))?;
                        wanted
                    }
                    None => i64::from(take_any_port(allocator)?),
                };
                by_port.insert(number, chosen);
                chosen
            }
        };
        given[at].put("nodePort", chosen);
    }
    if !given.is_empty() {
        service.put("spec.ports", given);
    }
    Ok(())
}

fn update_node_ports(old: &Value, new: &mut Value, allocator: &mut Allocator) -> Result<(), Status> {
    let allocates = allocates(new);
    let before = node_ports(old);
    let mut given = new.list("spec.ports").to_vec();
    let mut taken: Vec<i64> = Vec::new();
    let mut seen: Vec<(String, i64)> = Vec::new();
    for (at, port) in given.iter_mut().enumerate() {
        let wanted = port.int("nodePort");
        if wanted == 0 && !allocates {
            continue;
        }
        let chosen = if wanted != 0 {
            if !before.contains(&wanted) && !taken.contains(&wanted) {
                take_port(wanted, allocator).map_err(|why| port_refused(new, at, wanted, &why))?;
                taken.push(wanted);
            }
            wanted
        } else {
            i64::from(take_any_port(allocator)?)
        };
        port.put("nodePort", chosen);
        let key = (port.text("protocol").to_owned(), chosen);
        if seen.contains(&key) {
            return Err(status::unexplained(format!("duplicate nodePort: {{{} {}}}", key.0, key.1)));
        }
        seen.push(key);
    }
    if !given.is_empty() {
        new.put("spec.ports", given);
    }
    let after = node_ports(new);
    for port in before.difference(&after) {
        release_port(*port, allocator);
    }
    Ok(())
}

fn health_check_port(service: &mut Value, allocator: &mut Allocator) -> Result<(), Status> {
    let wanted = service.int("spec.healthCheckNodePort");
    if wanted != 0 {
        return take_port(wanted, allocator).map_err(|why| {
            status::internal(&format!("failed to allocate requested HealthCheck NodePort {wanted}: {why}"))
        });
    }
    let port = allocator
        .take_any_port()
        .map_err(|why| status::internal(&format!("failed to allocate a HealthCheck NodePort 0: {why}")))?;
    service.put("spec.healthCheckNodePort", json!(port));
    Ok(())
}
