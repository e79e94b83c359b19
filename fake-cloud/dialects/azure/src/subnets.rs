//! The virtual network with its subnet, and the private addresses of load balancers in it.

use super::errors::{Arm, invalid, not_found};
use super::names::{LOCATION, NETWORK, ROUTE_TABLE, SECURITY_GROUP, SUBNET, network_id, same};
use super::query::{self, query, tagged};
use fake_cloud_driver::Op;
use fake_cloud_kit::{Answer, Call, Error, Plan, Request, planned};
use fake_cloud_model::Cloud;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

const PROVIDER: &str = "Microsoft.Network";
/// The range of the network.
const RANGE: &str = "10.0.0.0/8";
/// The first private address of load balancers, and their number.
const FIRST: Ipv4Addr = Ipv4Addr::new(10, 240, 0, 4);
const COUNT: u32 = 60_000;

pub(super) fn networks(request: &Request) -> Plan {
    planned(&Arm, Call::new(Op::Other), query(request), |_, query, cloud, _| {
        Ok(query::page(query, cloud.page_size(), std::iter::once(network())))
    })
}

pub(super) fn network_named(request: &Request, name: &str) -> Plan {
    let name = name.to_owned();
    planned(&Arm, Call::new(Op::Other), query(request), move |_, _, _, _| {
        known(&name).map(|()| Answer::json(200, &network()))
    })
}

pub(super) fn list(request: &Request, network: &str) -> Plan {
    let network = network.to_owned();
    planned(&Arm, Call::new(Op::Other), query(request), move |_, query, cloud, _| {
        known(&network)?;
        Ok(query::page(query, cloud.page_size(), std::iter::once(subnet())))
    })
}

pub(super) fn get(request: &Request, network: &str, name: &str) -> Plan {
    let (network, name) = (network.to_owned(), name.to_owned());
    planned(&Arm, Call::new(Op::Other), query(request), move |_, _, _, _| {
        known(&network)?;
        if same(&name, SUBNET) {
            return Ok(Answer::json(200, &subnet()));
        }
        Err(not_found(PROVIDER, "virtualNetworks/subnets", &name))
    })
}

fn known(network: &str) -> Result<(), Error> {
    if same(network, NETWORK) { Ok(()) } else { Err(not_found(PROVIDER, "virtualNetworks", network)) }
}

fn network() -> Value {
    tagged(json!({
        "id": network_id("virtualNetworks", NETWORK), "name": NETWORK, "location": LOCATION,
        "type": "Microsoft.Network/virtualNetworks",
        "properties": {"provisioningState": "Succeeded", "addressSpace": {"addressPrefixes": [RANGE]},
            "subnets": [subnet()]},
    }))
}

fn subnet() -> Value {
    tagged(json!({
        "id": format!("{}/subnets/{SUBNET}", network_id("virtualNetworks", NETWORK)), "name": SUBNET,
        "type": "Microsoft.Network/virtualNetworks/subnets",
        "properties": {"provisioningState": "Succeeded", "addressPrefix": RANGE,
            "networkSecurityGroup": {"id": network_id("networkSecurityGroups", SECURITY_GROUP)},
            "routeTable": {"id": network_id("routeTables", ROUTE_TABLE)}},
    }))
}

/// The private address of a frontend: that of the existing one, the wanted one if it is free, or the first free one.
pub(super) fn private_address(
    cloud: &mut Cloud,
    wanted: Option<&str>,
    frontend: &str,
    now: Duration,
) -> Result<IpAddr, Error> {
    let mut used: BTreeSet<IpAddr> = BTreeSet::new();
    for lb in cloud.load_balancers(now) {
        let addresses = lb.addresses.iter().filter_map(|address| address.ip);
        if same(&lb.name, frontend) {
            if let Some(own) = addresses.into_iter().next() {
                return Ok(own);
            }
        } else {
            used.extend(addresses);
        }
    }
    if let Some(text) = wanted {
        let address = text.parse().ok().filter(|address| !used.contains(address));
        let why = format!("The private IP address {text:.60} is not an address, or in use.");
        return address.ok_or_else(|| invalid("PrivateIPAddressIsAllocated", why));
    }
    let nth = |index| IpAddr::V4(Ipv4Addr::from(u32::from(FIRST) + index));
    let free = (0..COUNT).map(nth).find(|address| !used.contains(address));
    free.ok_or_else(|| invalid("SubnetIsFull", format!("The subnet {SUBNET} has no free address.")))
}
