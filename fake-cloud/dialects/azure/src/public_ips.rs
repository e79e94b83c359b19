//! Public IP addresses: auxiliary objects of the load balancers whose frontends use them, which they outlive; and
//! one for each machine with a public address, which exists as long as the machine.

use super::errors::{Arm, forbidden, invalid, not_found};
use super::machines::region;
use super::names::{
    ADDRESS_SUFFIX, LOCATION, PUBLIC_ADDRESSES, configuration_id, network_id, owner_in, part_id,
    public_address_of, same,
};
use super::query::{self, Precondition, query, tagged, with_body};
use super::{balancer, operations};
use fake_cloud_driver::{Auxiliary, Instance, Op};
use fake_cloud_kit::{Answer, Call, Error, Plan, Request, planned};
use fake_cloud_model::{AuxSpec, Cloud};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

const PROVIDER: &str = "Microsoft.Network";
/// Their kind in the model.
pub(super) const AUX: &str = "public-ip";
/// The properties that are kept of a request; the cloud adds all others.
const KEPT: &[&str] = &[
    "publicIPAddressVersion",
    "idleTimeoutInMinutes",
    "dnsSettings",
    "ipTags",
    "publicIPPrefix",
    "ddosSettings",
];

/// The address with this name that is not a machine's.
pub(super) fn find(cloud: &Cloud, name: &str) -> Option<Auxiliary> {
    cloud.auxiliaries().find(|aux| aux.kind == AUX && same(&aux.name, name)).cloned()
}

/// The address itself.
pub(super) fn address_of(aux: &Auxiliary) -> IpAddr {
    let text = aux.spec["address"].as_str().unwrap_or_default();
    text.parse().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
}

/// The id of the frontend that uses an address.
pub(super) fn user_of(aux: &Auxiliary, cloud: &mut Cloud, now: Duration) -> Option<String> {
    let id = aux.load_balancer.as_deref()?;
    let front = cloud.load_balancer(id, now).ok()?;
    Some(part_id(balancer::balancer_of(front), "frontendIPConfigurations", &front.name))
}

/// Notes that a frontend uses an address.
pub(super) fn attach(cloud: &mut Cloud, name: &str, front: &str, now: Duration) -> Result<(), Error> {
    let Some(aux) = find(cloud, name).filter(|aux| aux.load_balancer.as_deref() != Some(front)) else {
        return Ok(());
    };
    let spec =
        AuxSpec { name: aux.name, owner: aux.owner, load_balancer: Some(front.to_owned()), spec: aux.spec };
    cloud.update_auxiliary(AUX, &aux.id, spec, now)?;
    Ok(())
}

pub(super) fn list(request: &Request) -> Plan {
    planned(&Arm, Call::new(Op::AuxRead), query(request), |_, query, cloud, now| {
        let limit = cloud.page_size();
        let own: Vec<Auxiliary> =
            cloud.list_auxiliaries(now).into_iter().filter(|aux| aux.kind == AUX).cloned().collect();
        let mut shown: Vec<Value> = own.iter().map(|aux| show(aux, cloud, now)).collect();
        shown.extend(cloud.instances().filter_map(machines));
        Ok(query::page(query, limit, shown.into_iter()))
    })
}

pub(super) fn get(request: &Request, name: &str) -> Plan {
    let name = name.to_owned();
    let call = Call::on(Op::AuxRead, &name).owned_by(owner_in(&name));
    planned(&Arm, call, query(request), move |_, _, cloud, now| {
        let shown = one(cloud, &name, now).ok_or_else(|| not_found(PROVIDER, PUBLIC_ADDRESSES, &name))?;
        Ok(Answer::json(200, &shown))
    })
}

pub(super) fn put(request: &Request, name: &str) -> Plan {
    let (name, guard, base) = (name.to_owned(), Precondition::of(&request.headers), query::base(request));
    let call = Call::new(Op::AuxUpdate).keyed("name", &name).owned_by(owner_in(&name));
    with_body(request, call, move |body, cloud, now| {
        let before = one(cloud, &name, now);
        let id = network_id(PUBLIC_ADDRESSES, &name);
        guard.check(before.as_ref(), &id)?;
        let aux = find(cloud, &name);
        if aux.is_none() && before.is_some() {
            return Err(forbidden("Microsoft.Network/publicIPAddresses/write", &id));
        }
        let failure = cloud.take_action_failure();
        let mut made = None;
        if failure.is_none() {
            let address = match &aux {
                Some(aux) => address_of(aux),
                None => free(cloud, &body, now)?,
            };
            let spec = AuxSpec {
                name: name.clone(),
                owner: owner_in(&name).to_owned(),
                load_balancer: aux.as_ref().and_then(|aux| aux.load_balancer.clone()),
                spec: stored(&body, address),
            };
            match aux {
                Some(aux) => cloud.update_auxiliary(AUX, &aux.id, spec, now).map(drop)?,
                None => made = Some(cloud.create_auxiliary(AUX, "pip", spec, now)?.id.clone()),
            }
        }
        let mut answer = Answer::json(if before.is_some() { 200 } else { 201 }, &one(cloud, &name, now));
        if let Some(made) = made {
            answer = answer.creating(&made);
        }
        Ok(operations::began(cloud, &base, PUBLIC_ADDRESSES, answer, failure, (now, now)))
    })
}

pub(super) fn delete(request: &Request, name: &str) -> Plan {
    let (name, base) = (name.to_owned(), query::base(request));
    let call = Call::on(Op::AuxDelete, &name).owned_by(owner_in(&name));
    planned(&Arm, call, query(request), move |_, _, cloud, now| {
        let id = network_id(PUBLIC_ADDRESSES, &name);
        let Some(aux) = find(cloud, &name) else {
            return match one(cloud, &name, now) {
                Some(_) => Err(forbidden("Microsoft.Network/publicIPAddresses/delete", &id)),
                None => Ok(Answer::empty(204)),
            };
        };
        if let Some(user) = user_of(&aux, cloud, now) {
            let text = format!(
                "Public IP address {id} can not be deleted since it is still allocated to resource {user}. In order to \
                 delete the public IP, disassociate/detach the Public IP address from the resource."
            );
            return Err(invalid("PublicIPAddressCannotBeDeleted", text));
        }
        let failure = cloud.take_action_failure();
        if failure.is_none() {
            cloud.delete_auxiliary(AUX, &aux.id)?;
        }
        Ok(operations::began(cloud, &base, PUBLIC_ADDRESSES, Answer::empty(200), failure, (now, now)))
    })
}

/// A free address of the family in the body.
fn free(cloud: &mut Cloud, body: &Value, now: Duration) -> Result<IpAddr, Error> {
    let used: BTreeSet<IpAddr> = cloud
        .auxiliaries()
        .filter(|aux| aux.kind == AUX)
        .map(|aux| match address_of(aux) {
            IpAddr::V6(address) => IpAddr::V4(v4_in(address)),
            address => address,
        })
        .collect();
    let address = cloud.free_address(used, now)?;
    Ok(match (body["properties"]["publicIPAddressVersion"].as_str(), address) {
        (Some(version), IpAddr::V4(address)) if same(version, "IPv6") => IpAddr::V6(v6_of(address)),
        _ => address,
    })
}

/// An address of 2001:db8::/32, reserved for documentation, with an IPv4 address as its last part.
fn v6_of(address: Ipv4Addr) -> Ipv6Addr {
    const DOCUMENTATION: u128 = 0x2001_0db8 << 96;
    Ipv6Addr::from(DOCUMENTATION | u128::from(u32::from(address)))
}

fn v4_in(address: Ipv6Addr) -> Ipv4Addr {
    let [.., a, b, c, d] = address.octets();
    Ipv4Addr::new(a, b, c, d)
}

fn stored(body: &Value, address: IpAddr) -> Value {
    let kept = KEPT.iter().filter_map(|key| Some(((*key).to_owned(), body["properties"].get(key)?.clone())));
    let properties: Map<String, Value> = kept.filter(|(_, value)| !value.is_null()).collect();
    let mut stored = json!({"address": address, "properties": properties,
        "location": body["location"].as_str().unwrap_or(LOCATION)});
    for key in ["tags", "zones"] {
        if body[key].as_object().is_some_and(|tags| !tags.is_empty()) || body[key].is_array() {
            stored[key] = body[key].clone();
        }
    }
    stored
}

fn one(cloud: &mut Cloud, name: &str, now: Duration) -> Option<Value> {
    if let Some(aux) = find(cloud, name) {
        return Some(show(&aux, cloud, now));
    }
    let machine = name.strip_suffix(ADDRESS_SUFFIX)?;
    super::machines::find(cloud, machine).and_then(machines)
}

fn show(aux: &Auxiliary, cloud: &mut Cloud, now: Duration) -> Value {
    let mut shown = resource(&aux.name, address_of(aux), aux.spec["location"].as_str().unwrap_or(LOCATION));
    for (key, value) in aux.spec["properties"].as_object().into_iter().flatten() {
        shown["properties"][key] = value.clone();
    }
    if let Some(label) = aux.spec["properties"]["dnsSettings"]["domainNameLabel"].as_str() {
        let fqdn = format!("{label}.{LOCATION}.cloudapp.azure.com");
        shown["properties"]["dnsSettings"]["fqdn"] = json!(fqdn);
    }
    for key in ["tags", "zones"] {
        if !aux.spec[key].is_null() {
            shown[key] = aux.spec[key].clone();
        }
    }
    if let Some(user) = user_of(aux, cloud, now) {
        shown["properties"]["ipConfiguration"] = json!({ "id": user });
    }
    tagged(shown)
}

/// The public address of a machine, if it has one.
fn machines(machine: &Instance) -> Option<Value> {
    let external = machine.addresses.iter().filter(|address| address.kind == "ExternalIP");
    let address = external.filter_map(|address| address.address.parse().ok()).next()?;
    let mut shown = resource(&public_address_of(&machine.name), address, region(machine));
    shown["properties"]["ipConfiguration"] = json!({"id": configuration_id(&machine.name)});
    Some(tagged(shown))
}

fn resource(name: &str, address: IpAddr, location: &str) -> Value {
    json!({
        "id": network_id(PUBLIC_ADDRESSES, name), "name": name, "location": location,
        "type": "Microsoft.Network/publicIPAddresses",
        "sku": {"name": "Standard", "tier": "Regional"},
        "properties": {
            "provisioningState": "Succeeded",
            "ipAddress": address,
            "publicIPAddressVersion": if address.is_ipv4() { "IPv4" } else { "IPv6" },
            "publicIPAllocationMethod": "Static",
            "idleTimeoutInMinutes": 4,
        },
    })
}
