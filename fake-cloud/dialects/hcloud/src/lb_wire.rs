//! Load balancers as the API shows them.

use super::calls::{Now, number};
use super::catalog::{BalancerType, Location, location_named};
use super::details::{Details, Http, OWNER_LABEL, Probe, Service};
use super::networks::NETWORK_ID;
use fake_cloud_driver::LoadBalancer;
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

/// A load balancer.
#[derive(Serialize)]
pub(super) struct Shown {
    id: u64,
    name: String,
    created: String,
    public_net: PublicNet,
    private_net: Vec<PrivateNet>,
    location: Location<'static>,
    load_balancer_type: &'static BalancerType,
    protection: Protection,
    labels: BTreeMap<String, String>,
    algorithm: Algorithm,
    services: Vec<ShownService>,
    targets: Vec<Target>,
    included_traffic: u64,
    outgoing_traffic: Option<u64>,
    ingoing_traffic: Option<u64>,
}

#[derive(Serialize)]
struct PublicNet {
    enabled: bool,
    ipv4: Address,
    ipv6: Address,
}

#[derive(Serialize)]
struct Address {
    ip: Option<IpAddr>,
    dns_ptr: Option<String>,
}

#[derive(Serialize)]
struct PrivateNet {
    network: u64,
    ip: Ipv4Addr,
}

#[derive(Serialize)]
struct Protection {
    delete: bool,
}

#[derive(Serialize)]
struct Algorithm {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Serialize)]
struct ShownService {
    protocol: String,
    listen_port: u16,
    destination_port: u16,
    proxyprotocol: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    http: Option<Http>,
    health_check: Probe,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Target {
    Server { server: Id, use_private_ip: bool, health_status: Vec<Health> },
    Ip { ip: OneIp, health_status: Vec<Health> },
}

#[derive(Serialize)]
struct Id {
    id: u64,
}

#[derive(Serialize)]
struct OneIp {
    ip: String,
}

#[derive(Clone, Serialize)]
struct Health {
    listen_port: u16,
    status: &'static str,
}

/// A load balancer in the form that is shown. One that is still being provisioned has no addresses; the
/// action that creates it runs for that time.
pub(super) fn show(lb: &LoadBalancer, now: Now) -> Shown {
    let details = Details::of(lb);
    let health: Vec<Health> = lb
        .frontends
        .iter()
        .map(|frontend| Health { listen_port: frontend.port, status: "healthy" })
        .collect();
    let servers = lb.backends.iter().map(|id| Target::Server {
        server: Id { id: number(id) },
        use_private_ip: details.private_targets.contains(id),
        health_status: health.clone(),
    });
    let ips = details
        .ip_targets
        .iter()
        .map(|ip| Target::Ip { ip: OneIp { ip: ip.clone() }, health_status: health.clone() });
    let services = lb.frontends.iter().map(|frontend| {
        let Service { protocol, proxyprotocol, http, health_check } =
            match details.services.get(&frontend.port) {
                Some(service) => service.clone(),
                None => Service::plain(frontend.node_port),
            };
        ShownService {
            protocol,
            listen_port: frontend.port,
            destination_port: frontend.node_port,
            proxyprotocol,
            http,
            health_check,
        }
    });
    let services = services.collect();
    let targets = servers.chain(ips).collect();
    Shown {
        id: number(&lb.id),
        name: lb.name.clone(),
        created: if lb.details.is_null() {
            now.clock.text(std::time::Duration::ZERO)
        } else {
            details.created.clone()
        },
        public_net: PublicNet {
            enabled: details.public_interface,
            ipv4: address(lb, &details, IpAddr::is_ipv4),
            ipv6: address(lb, &details, IpAddr::is_ipv6),
        },
        private_net: details
            .private_ip
            .map(|ip| PrivateNet { network: NETWORK_ID, ip })
            .into_iter()
            .collect(),
        location: location_named(&details.location),
        load_balancer_type: details.balancer_type(),
        protection: Protection { delete: details.protected },
        labels: labels(lb, details.labels),
        algorithm: Algorithm { kind: details.algorithm },
        services,
        targets,
        included_traffic: 21_990_232_555_520,
        outgoing_traffic: None,
        ingoing_traffic: None,
    }
}

fn address(lb: &LoadBalancer, details: &Details, family: impl Fn(&IpAddr) -> bool) -> Address {
    let ip = lb.addresses.iter().filter_map(|address| address.ip).find(family);
    Address { ip, dns_ptr: ip.and_then(|ip| details.dns_ptr.get(&ip.to_string()).cloned()) }
}

fn labels(lb: &LoadBalancer, mut labels: BTreeMap<String, String>) -> BTreeMap<String, String> {
    if !lb.owner.is_empty() {
        labels.insert(OWNER_LABEL.to_owned(), lb.owner.clone());
    }
    labels
}

/// A label of a load balancer, without parsing all of its details.
pub(super) fn label<'a>(lb: &'a LoadBalancer, key: &str) -> Option<&'a str> {
    if key == OWNER_LABEL {
        return Some(lb.owner.as_str()).filter(|owner| !owner.is_empty());
    }
    lb.details.get("labels")?.get(key)?.as_str()
}
