//! Calls about servers: the model's instances, which cannot be changed through this API here.

use super::calls::{Now, number, planned};
use super::catalog::{Location, place};
use super::clock::Clock;
use super::errors;
use super::networks::NETWORK_ID;
use super::query;
use super::shown::Shown as Texts;
use fake_cloud_driver::{Instance, InstanceState, Op};
use fake_cloud_kit::{Answer, Call, Error, Plan, Request};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// A server. Attachments other than its networks are left out, as no caller reads them.
#[derive(Serialize)]
struct Shown<'a> {
    id: u64,
    name: &'a str,
    status: &'static str,
    created: String,
    server_type: ServerType<'a>,
    location: Place<'a>,
    datacenter: Datacenter<'a>,
    public_net: PublicNet<'a>,
    private_net: Vec<PrivateNet<'a>>,
    labels: &'a BTreeMap<String, String>,
}

#[derive(Serialize)]
struct ServerType<'a> {
    id: u64,
    name: &'a str,
}

#[derive(Serialize)]
struct Datacenter<'a> {
    id: u64,
    name: &'a str,
    location: Place<'a>,
}

/// A location, with the fields that callers read.
#[derive(Clone, Copy, Serialize)]
struct Place<'a> {
    id: u64,
    name: &'a str,
    network_zone: &'a str,
}

#[derive(Serialize)]
struct PublicNet<'a> {
    ipv4: Option<PublicIpv4<'a>>,
    ipv6: Option<PublicIpv6>,
    floating_ips: [(); 0],
    firewalls: [(); 0],
}

#[derive(Serialize)]
struct PublicIpv4<'a> {
    id: u64,
    ip: &'a str,
    blocked: bool,
    dns_ptr: &'static str,
}

#[derive(Serialize)]
struct PublicIpv6 {
    id: u64,
    ip: String,
    blocked: bool,
    dns_ptr: [(); 0],
}

#[derive(Serialize)]
struct PrivateNet<'a> {
    network: u64,
    ip: &'a str,
    alias_ips: [(); 0],
    mac_address: String,
}

/// The shown form of an instance. It is attached to the only network with its internal address; the vendor
/// rejects a second attachment (`server_already_attached`), so there is no second address.
fn show(instance: &Instance, created: String) -> Shown<'_> {
    let id = number(&instance.id);
    let Location { id: location, name, network_zone, .. } = place(&instance.region);
    let location = Place { id: location, name, network_zone };
    let of_kind = |kind: &'static str| {
        instance.addresses.iter().filter(move |a| a.kind == kind).map(|a| a.address.as_str())
    };
    let v4 = of_kind("ExternalIP").find(|ip| ip.parse::<Ipv4Addr>().is_ok());
    let v6 = of_kind("ExternalIP").find_map(|ip| ip.parse::<Ipv6Addr>().ok());
    let private = of_kind("InternalIP").zip(0_u64..).map(|(ip, index)| PrivateNet {
        network: NETWORK_ID,
        ip,
        alias_ips: [],
        mac_address: mac_address(id.wrapping_add(index)),
    });
    Shown {
        id,
        name: &instance.name,
        status: status(instance.state),
        created,
        server_type: ServerType { id: 22, name: &instance.instance_type },
        location,
        datacenter: Datacenter { id: 4, name: &instance.zone, location },
        public_net: PublicNet {
            ipv4: v4.map(|ip| PublicIpv4 { id, ip, blocked: false, dns_ptr: "" }),
            ipv6: v6.map(|ip| PublicIpv6 { id, ip: network_of(ip), blocked: false, dns_ptr: [] }),
            floating_ips: [],
            firewalls: [],
        },
        private_net: private.collect(),
        labels: &instance.labels,
    }
}

fn status(state: InstanceState) -> &'static str {
    match state {
        InstanceState::Running => "running",
        InstanceState::Stopped => "off",
    }
}

/// The IPv6 network of a machine; its own address is the first in it.
fn network_of(ip: Ipv6Addr) -> String {
    let network = Ipv6Addr::from(u128::from(ip) >> 64 << 64);
    format!("{network}/64")
}

fn mac_address(number: u64) -> String {
    let [.., a, b, c, d, e] = number.to_be_bytes();
    format!("86:{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}")
}

pub(super) fn list(clock: Clock, texts: &Arc<Texts>, request: &Request) -> Plan {
    let texts = texts.clone();
    let query = query::list(request, &["name", "label_selector", "status"], &["id", "name", "created"]);
    let op = if query.filters().is_empty() { Op::InstanceList } else { Op::InstanceGet };
    let mut call = Call::new(op);
    for (key, value) in query.filters() {
        call = call.keyed(key, value);
    }
    planned(clock, call, query, move |query, cloud, now| {
        let limit = cloud.page_size();
        let fits = |instance: &&Instance| {
            query.fits("name", &instance.name)
                && query.fits("status", status(instance.state))
                && query.besides.selects(|key| instance.labels.get(key).map(String::as_str))
        };
        // A look-up is always fresh; only lists may be stale.
        let found: Vec<&Instance> = match op {
            Op::InstanceList => cloud.list_instances(now.time),
            _ => match query.filters() {
                [(key, name)] if key == "name" => cloud.instances_named(name).filter(fits).collect(),
                _ => cloud.instances().filter(fits).collect(),
            },
        };
        let value = |instance: &&Instance, key: &str| match key {
            "name" => instance.name.clone(),
            _ => instance.id.clone(),
        };
        let mut texts = texts.servers.open();
        Ok(query::page(query, "servers", limit, found, value, |instance| {
            texts.text(&instance.id, instance, &[], || show(instance, created(now)))
        }))
    })
}

pub(super) fn read(clock: Clock, texts: &Arc<Texts>, request: &Request, id: &str) -> Plan {
    let (texts, id) = (texts.clone(), id.to_owned());
    planned(clock, Call::on(Op::InstanceGet, &id), query::none(request), move |_, cloud, now| {
        let instance = cloud.instance(&id).map_err(|_| errors::not_found("server", &id))?;
        let server = texts.servers.open().text(&id, instance, &[], || show(instance, created(now)));
        Ok(Answer::one(200, "server", &server))
    })
}

/// The creation time of servers: all of them exist from the start.
fn created(now: Now) -> String {
    now.clock.text(std::time::Duration::ZERO)
}

/// The plan of a call that would change a server.
pub(super) fn forbidden(call: Call) -> Plan {
    let refusal = || Error::said(403, "forbidden", "no token of this cloud may change servers");
    Plan::new(call, move |_, _| errors::shown(refusal()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_the_api_does() {
        assert_eq!(network_of("2001:db8:1:2:3::9".parse().expect("an address")), "2001:db8:1:2::/64");
        assert_eq!(mac_address(0x0102_0304_05ff), "86:02:03:04:05:ff");
    }
}
