//! The names of objects. An empty name does not count.

use fake_cloud_driver::{Auxiliary, Instance, LoadBalancer, Route};
use std::net::IpAddr;

pub(super) fn names_of_instance(instance: &Instance) -> [&str; 3] {
    [&instance.id, &instance.name, instance.provider_id.as_deref().unwrap_or_default()]
}

pub(super) fn names_of_load_balancer(lb: &LoadBalancer) -> [&str; 3] {
    [&lb.id, &lb.name, &lb.owner]
}

/// Whether a load balancer has this address or host name.
pub(super) fn is_at(lb: &LoadBalancer, name: &str) -> bool {
    let ip = name.parse::<IpAddr>().ok();
    lb.addresses.iter().any(|a| (ip.is_some() && a.ip == ip) || a.hostname.as_deref() == Some(name))
}

pub(super) fn names_of_auxiliary(aux: &Auxiliary) -> [&str; 4] {
    [&aux.id, &aux.name, &aux.owner, aux.load_balancer.as_deref().unwrap_or_default()]
}

pub(super) fn names_of_route(route: &Route) -> [&str; 3] {
    [&route.id, &route.destination, route.target_instance.as_deref().unwrap_or_default()]
}
