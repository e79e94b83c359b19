//! The metadata service: requests of a server about itself, at `169.254.169.254` in the real cloud.

use super::catalog::place;
use super::networks::{NETWORK_ID, NETWORK_NAME};
use fake_cloud_driver::Instance;
use fake_cloud_kit::{Asker, Plan, Request, about_the_asker};
use hyper::Method;
use std::net::Ipv4Addr;

/// The plan of a call.
pub(super) fn plan(request: &Request, asker: Asker) -> Plan {
    let segments = request.segments();
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    let (&Method::GET, ["hetzner", "v1", "metadata", key]) = (&request.method, parts.as_slice()) else {
        return Plan::unknown(request);
    };
    let shown: fn(&Instance) -> Option<String> = match *key {
        "hostname" => |server| Some(server.name.clone()),
        "instance-id" => |server| Some(server.id.clone()),
        "public-ipv4" => |server| address(server, "ExternalIP"),
        "private-networks" => |server| Some(private_networks(server)),
        "availability-zone" => |server| Some(server.zone.clone()),
        "region" => |server| Some(place(&server.region).network_zone.to_owned()),
        _ => return Plan::unknown(request),
    };
    about_the_asker(asker, if *key == "private-networks" { "text/yaml" } else { "text/plain" }, shown)
}

/// The first IPv4 address of this type.
fn address(server: &Instance, kind: &str) -> Option<String> {
    let mut own = server.addresses.iter().filter(|own| own.kind == kind).map(|own| own.address.clone());
    own.find(|own| own.parse::<Ipv4Addr>().is_ok())
}

/// The private networks as a YAML list: the only network, if the server is attached to it.
fn private_networks(server: &Instance) -> String {
    match address(server, "InternalIP") {
        Some(ip) => format!("- ip: {ip}\n  network_id: {NETWORK_ID}\n  network_name: {NETWORK_NAME}\n"),
        None => "[]\n".to_owned(),
    }
}
