//! Neutron: networks, ports of servers, extensions. Security groups are left to their creators, so there are none.

use super::identity::PROJECT;
use super::query;
use super::services::{Service, not_found};
use fake_cloud_driver::{Instance, Op};
use fake_cloud_kit::{Answer, Call, Plan, Request, planned};
use serde_json::{Value, json};

/// The project's network, its subnet, and the name under which servers show their addresses in it.
pub(super) const NETWORK: &str = "fa4ec10d-0000-8000-8000-a00000000001";
/// See [`NETWORK`].
pub(super) const SUBNET: &str = "fa4ec10d-0000-8000-8000-a00000000002";
/// See [`NETWORK`].
pub(super) const NETWORK_NAME: &str = "private";
/// The network of floating IPs.
pub(super) const EXTERNAL_NETWORK: &str = "fa4ec10d-0000-8000-8000-a00000000003";
const EXTERNAL_SUBNET: &str = "fa4ec10d-0000-8000-8000-a00000000004";
/// The router between them.
pub(super) const ROUTER: &str = "fa4ec10d-0000-8000-8000-a00000000005";
const ROUTER_PORT: &str = "fa4ec10d-0000-8000-8000-a00000000006";

fn networks() -> [Value; 2] {
    [(NETWORK, NETWORK_NAME, SUBNET, false), (EXTERNAL_NETWORK, "public", EXTERNAL_SUBNET, true)].map(
        |(id, name, subnet, external)| {
            json!({"id": id, "name": name, "status": "ACTIVE", "subnets": [subnet], "router:external": external,
                "shared": external, "admin_state_up": true, "mtu": 1450, "tags": [], "project_id": PROJECT})
        },
    )
}

fn subnets() -> [Value; 2] {
    [
        (SUBNET, NETWORK, "10.0.0.0/8", "10.0.0.1"),
        (EXTERNAL_SUBNET, EXTERNAL_NETWORK, "203.0.113.0/24", "203.0.113.254"),
    ]
    .map(|(id, network, cidr, gateway)| {
        json!({"id": id, "name": "", "network_id": network, "ip_version": 4, "cidr": cidr,
                "gateway_ip": gateway, "enable_dhcp": true, "allocation_pools": [], "tags": [],
                "project_id": PROJECT})
    })
}

/// The port of a server with all its private addresses.
fn port_of(instance: &Instance) -> Value {
    let internal = instance.addresses.iter().filter(|address| address.kind == "InternalIP");
    let fixed: Vec<Value> =
        internal.map(|address| json!({"subnet_id": SUBNET, "ip_address": address.address})).collect();
    port(&format!("port-{}", instance.id), &instance.id, "compute:nova", &fixed)
}

fn port(id: &str, device: &str, owner: &str, fixed: &[Value]) -> Value {
    json!({"id": id, "name": "", "network_id": NETWORK, "status": "ACTIVE", "mac_address": "fa:16:3e:00:00:01",
        "device_id": device, "device_owner": owner, "fixed_ips": fixed, "security_groups": [],
        "allowed_address_pairs": [], "port_security_enabled": true, "tags": [], "admin_state_up": true,
        "project_id": PROJECT})
}

fn router_port() -> Value {
    let fixed = [json!({"subnet_id": SUBNET, "ip_address": "10.0.0.1"})];
    port(ROUTER_PORT, ROUTER, "network:router_interface", &fixed)
}

/// Lists ports of servers or of the router. In the model that is a look-up of the machine, as the ports
/// contain its addresses.
pub(super) fn ports(request: &Request) -> Plan {
    let query = query::list(request, &["device_id"]);
    let call = match query.filter("device_id") {
        // Part of reading the routes, which are in the router itself.
        Some(ROUTER) => Call::new(Op::Other),
        Some(device) => Call::new(Op::InstanceGet).keyed("device_id", device),
        None => Call::new(Op::InstanceList),
    };
    planned(&Service::Network, call, query, |_, query, cloud, now| {
        let limit = cloud.page_size();
        let found: Vec<Value> = match query.filter("device_id") {
            Some(ROUTER) => vec![router_port()],
            Some(device) => cloud.instance(device).map(port_of).into_iter().collect(),
            None => cloud.list_instances(now).into_iter().map(port_of).chain([router_port()]).collect(),
        };
        Ok(query::page(query, "ports", limit, found.into_iter()))
    })
}

/// Lists constant objects.
pub(super) fn fixed(request: &Request, many: &'static str, filters: &[&str]) -> Plan {
    let query = query::list(request, filters);
    planned(&Service::Network, Call::new(Op::Other), query, move |_, query, cloud, _| {
        let mut found = all(many);
        for (key, wanted) in query.filters() {
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            found.retain(|item| text(&item[key.as_str()]).eq_ignore_ascii_case(wanted));
        }
        // Neutron lists all its extensions on one page.
        let limit = if many == "extensions" { u32::MAX } else { cloud.page_size() };
        Ok(query::page(query, many, limit, found.into_iter()))
    })
}

/// One constant object.
pub(super) fn one(request: &Request, many: &'static str, id: &str) -> Plan {
    let id = id.to_owned();
    planned(&Service::Network, Call::new(Op::Other), query::none(request), move |_, _, _, _| {
        let one = many.trim_end_matches('s');
        let found = all(many).into_iter().find(|item| item["id"] == id.as_str());
        Ok(Answer::one(200, one, &found.ok_or_else(|| not_found(one, &id))?))
    })
}

fn all(many: &str) -> Vec<Value> {
    match many {
        "networks" => networks().into(),
        "subnets" => subnets().into(),
        "extensions" => ["extraroute", "extraroute-atomic", "router", "external-net"]
            .map(|alias| {
                json!({"alias": alias, "name": alias, "description": "", "updated": "2026-01-02T03:04:05Z",
                    "links": []})
            })
            .into(),
        _ => Vec::new(),
    }
}

/// Lists security groups: none.
pub(super) fn security_groups(request: &Request) -> Plan {
    let query = query::list(request, &["name", "id"]);
    planned(&Service::Network, query.call(Op::AuxRead), query, |_, query, cloud, _| {
        Ok(query::page(query, "security_groups", cloud.page_size(), std::iter::empty::<()>()))
    })
}
