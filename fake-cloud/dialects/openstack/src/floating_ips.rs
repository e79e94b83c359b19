//! Neutron: floating IPs, auxiliary objects of the load balancers whose ports they are attached to. Their
//! address is the public address of the load balancer in the model.

use super::balancers::{find, vip_of};
use super::identity::PROJECT;
use super::networks::EXTERNAL_NETWORK;
use super::parts::{balancer_of, vip_port};
use super::query;
use super::services::{Service, conflict, not_found};
use super::tree::owner;
use fake_cloud_driver::{Auxiliary, Op};
use fake_cloud_kit::{Answer, Body, Call, Error, Plan, Request, planned, planned_with};
use fake_cloud_model::{AuxSpec, Cloud};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

const NEUTRON: Service = Service::Network;
/// The kind of floating IPs in the model.
const KIND: &str = "floating-ip";

/// The body of a request that creates or changes a floating IP.
#[derive(Deserialize)]
struct Wanted {
    floatingip: Fields,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Fields {
    #[serde(skip_serializing_if = "Option::is_none")]
    floating_network_id: Option<String>,
    port_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subnet_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    floating_ip_address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

/// The shown form of a floating IP. It has no port once its load balancer is gone.
fn show(aux: &Auxiliary, cloud_has: impl Fn(&str) -> bool) -> Value {
    let balancer = aux.load_balancer.as_deref().filter(|id| cloud_has(id));
    json!({
        "id": aux.id,
        "floating_ip_address": aux.name,
        "floating_network_id": EXTERNAL_NETWORK,
        "port_id": balancer.map(vip_port),
        "fixed_ip_address": balancer.map(vip_of),
        "description": aux.spec["description"],
        "status": if balancer.is_some() { "ACTIVE" } else { "DOWN" },
        "router_id": null,
        "project_id": PROJECT,
        "tags": [],
    })
}

fn shown(cloud: &mut Cloud, found: &[Auxiliary], now: Duration) -> Vec<Value> {
    let balancers: Vec<String> = cloud.load_balancers(now).map(|lb| lb.id.clone()).collect();
    found.iter().map(|aux| show(aux, |id| balancers.iter().any(|known| known == id))).collect()
}

pub(super) fn list(request: &Request) -> Plan {
    let keys = ["port_id", "floating_ip_address", "floating_network_id", "status", "description"];
    let query = query::list(request, &keys);
    let mut call = query.call(Op::AuxRead);
    if let Some(port) = query.filter("port_id") {
        call = call.naming(&balancer_of(port));
    }
    planned(&NEUTRON, call, query, move |_, query, cloud, now| {
        let limit = cloud.page_size();
        let found: Vec<Auxiliary> =
            cloud.list_auxiliaries(now).into_iter().filter(|aux| aux.kind == KIND).cloned().collect();
        let mut found = shown(cloud, &found, now);
        found
            .retain(|item| query.filters().iter().all(|(key, wanted)| item[key.as_str()] == wanted.as_str()));
        Ok(query::page(query, "floatingips", limit, found.into_iter()))
    })
}

pub(super) fn get(request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(&NEUTRON, Call::on(Op::AuxRead, &id), query::none(request), move |_, _, cloud, now| {
        one(200, cloud, &id, now)
    })
}

pub(super) fn create(request: &Request) -> Plan {
    let body = Body::<Wanted>::of(request);
    let mut call = Call::new(Op::AuxCreate);
    if let Ok(Wanted { floatingip }) = &body.value {
        let port = floatingip.port_id.as_deref().unwrap_or_default();
        call = call.keyed("port_id", port).naming(&balancer_of(port));
        call = call.owned_by(&owner(floatingip.description.as_deref().unwrap_or_default()));
    }
    planned_with(&NEUTRON, call, request, body, |_, Wanted { floatingip: wanted }, cloud, now| {
        if wanted.floating_network_id.as_deref() != Some(EXTERNAL_NETWORK) {
            return Err(not_found("Network", wanted.floating_network_id.as_deref().unwrap_or_default()));
        }
        if wanted.floating_ip_address.is_some() {
            return Err(Error::new(
                403,
                "Policy doesn't allow create_floatingip:floating_ip_address to be performed.",
            ));
        }
        let port = wanted.port_id.clone().unwrap_or_default();
        let balancer = leads_to(cloud, &port, now)?;
        let lb = find(cloud, &balancer, now).map_err(|_| not_found("Port", &port))?;
        let address = lb.addresses.iter().find_map(|address| address.ip);
        let address =
            address.ok_or_else(|| conflict("No more IP addresses available on network".to_owned()))?;
        let description = wanted.description.unwrap_or_default();
        let spec = AuxSpec {
            name: address.to_string(),
            owner: owner(&description),
            load_balancer: Some(balancer),
            spec: json!({"description": description}),
        };
        let id = cloud.create_auxiliary(KIND, KIND, spec, now)?.id.clone();
        Ok(one(201, cloud, &id, now)?.creating(&id))
    })
}

/// Attaches a floating IP to another port, or to none.
pub(super) fn update(request: &Request, id: &str) -> Plan {
    let (id, body) = (id.to_owned(), Body::<Wanted>::of(request));
    let call = Call::on(Op::AuxUpdate, &id);
    planned_with(&NEUTRON, call, request, body, move |_, Wanted { floatingip: wanted }, cloud, now| {
        let load_balancer = match &wanted.port_id {
            Some(port) => Some(leads_to(cloud, port, now)?),
            None => None,
        };
        let present = cloud.auxiliary(KIND, &id).map_err(|_| not_found("Floating IP", &id))?;
        let spec = AuxSpec {
            name: present.name.clone(),
            owner: present.owner.clone(),
            load_balancer,
            spec: present.spec.clone(),
        };
        cloud.update_auxiliary(KIND, &id, spec, now)?;
        one(200, cloud, &id, now)
    })
}

pub(super) fn delete(request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(&NEUTRON, Call::on(Op::AuxDelete, &id), query::none(request), move |_, _, cloud, _| {
        cloud.delete_auxiliary(KIND, &id).map_err(|_| not_found("Floating IP", &id))?;
        Ok(Answer::empty(204))
    })
}

/// The load balancer with this port, if no other floating IP is attached to it.
fn leads_to(cloud: &mut Cloud, port: &str, now: Duration) -> Result<String, Error> {
    let balancer = balancer_of(port);
    if vip_port(&balancer) != port || find(cloud, &balancer, now).is_err() {
        return Err(not_found("Port", port));
    }
    let leads_there = |aux: &Auxiliary| aux.kind == KIND && aux.load_balancer.as_deref() == Some(&balancer);
    if cloud.auxiliaries().any(leads_there) {
        return Err(conflict(format!("Cannot associate floating IP with port {port}: it has one already")));
    }
    Ok(balancer)
}

fn one(status: u16, cloud: &mut Cloud, id: &str, now: Duration) -> Result<Answer, Error> {
    let found = cloud.auxiliary(KIND, id).map_err(|_| not_found("Floating IP", id))?.clone();
    let shown = shown(cloud, &[found], now);
    Ok(Answer::one(status, "floatingip", &shown.first()))
}
