//! Network interfaces: one for each machine, with its addresses. They exist as long as their machine, and a
//! change of one puts its machine into backend pools, or takes it out.

use super::errors::{Arm, dangling, forbidden, not_found};
use super::machines::{self, MACHINES, region};
use super::members::{self, Pool};
use super::names::{
    FIRST_CONFIGURATION, INTERFACE_SUFFIX, INTERFACES, NETWORK, PUBLIC_ADDRESSES, SUBNET, compute_id,
    interface_of, network_id, parent_in, public_address_of,
};
use super::operations;
use super::query::{self, Precondition, query, tagged, with_body};
use fake_cloud_driver::{Instance, Op};
use fake_cloud_kit::{Answer, Call, Error, Plan, Request, planned};
use fake_cloud_model::Cloud;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

const PROVIDER: &str = "Microsoft.Network";
/// The machine of the network interface with this name.
fn machine_of(interface: &str) -> &str {
    interface.strip_suffix(INTERFACE_SUFFIX).unwrap_or(interface)
}

fn find<'a>(cloud: &'a Cloud, name: &str) -> Result<&'a Instance, Error> {
    let machine = name.strip_suffix(INTERFACE_SUFFIX).and_then(|machine| machines::find(cloud, machine));
    machine.ok_or_else(|| not_found(PROVIDER, INTERFACES, name))
}

pub(super) fn list(request: &Request) -> Plan {
    planned(&Arm, Call::new(Op::InstanceList), query(request), |_, query, cloud, now| {
        let limit = cloud.page_size();
        let all: Vec<Instance> = cloud.list_instances(now).into_iter().cloned().collect();
        let pools = members::all(cloud, now);
        Ok(query::page(query, limit, all.iter().map(|machine| shown(machine, &pools))))
    })
}

pub(super) fn get(request: &Request, name: &str) -> Plan {
    let name = name.to_owned();
    let call = Call::on(Op::InstanceGet, &name).naming(machine_of(&name));
    planned(&Arm, call, query(request), move |_, _, cloud, now| {
        let machine = find(cloud, &name)?.clone();
        Ok(Answer::json(200, &shown(&machine, &members::all(cloud, now))))
    })
}

/// Puts the machine of an interface into the given pools, and takes it out of all others.
pub(super) fn put(request: &Request, name: &str) -> Plan {
    let (name, guard, base) = (name.to_owned(), Precondition::of(&request.headers), query::base(request));
    let call = Call::on(Op::LbUpdate, machine_of(&name));
    with_body(request, call, move |body, cloud, now| {
        let id = network_id(INTERFACES, &name);
        let Ok(machine) = find(cloud, &name).cloned() else {
            return Err(forbidden("Microsoft.Network/networkInterfaces/write", &id));
        };
        guard.check(Some(&shown(&machine, &members::all(cloud, now))), &id)?;
        let change = Change::of(&machine, &body, cloud, now);
        if let Some(missing) = change.missing.first() {
            return Err(dangling(missing, &id));
        }
        let failure = cloud.take_action_failure();
        if failure.is_none() {
            for (pool, joins) in change
                .joined
                .iter()
                .map(|pool| (pool, true))
                .chain(change.left.iter().map(|pool| (pool, false)))
            {
                members::set(cloud, pool, &machine.id, joins, now)?;
            }
        }
        let answer = Answer::json(200, &shown(&machine, &members::all(cloud, now)));
        Ok(operations::began(cloud, &base, "networkInterfaces", answer, failure, (now, now)))
    })
}

/// How a request changes the pools of a machine.
pub(super) struct Change {
    /// The pools that it joins.
    pub(super) joined: Vec<Pool>,
    /// The pools that it leaves.
    pub(super) left: Vec<Pool>,
    /// The ids of pools that do not exist.
    missing: Vec<String>,
}

impl Change {
    pub(super) fn of(machine: &Instance, body: &Value, cloud: &mut Cloud, now: Duration) -> Change {
        let wanted = wanted_pools(body);
        let known = members::all(cloud, now);
        let has = |pool: &Pool| wanted.contains(&pool.id().to_ascii_lowercase());
        let missing = wanted.iter().filter(|id| !known.iter().any(|pool| pool.id().eq_ignore_ascii_case(id)));
        let missing = missing.cloned().collect();
        let (inside, outside): (Vec<Pool>, Vec<Pool>) =
            known.into_iter().partition(|pool| pool.members.contains(&machine.id));
        Change {
            joined: outside.into_iter().filter(|pool| has(pool)).collect(),
            left: inside.into_iter().filter(|pool| !pool.by_address && !has(pool)).collect(),
            missing,
        }
    }
}

/// The ids of the pools in the configurations of an interface, in lower case.
fn wanted_pools(body: &Value) -> BTreeSet<String> {
    let configurations = body["properties"]["ipConfigurations"].as_array().into_iter().flatten();
    let pools = configurations.flat_map(|one| {
        one["properties"]["loadBalancerBackendAddressPools"].as_array().into_iter().flatten()
    });
    pools.filter_map(|pool| pool["id"].as_str()).map(str::to_ascii_lowercase).collect()
}

/// The machine whose interface a request is about, if it exists.
pub(super) fn machine_in<'a>(cloud: &'a Cloud, path: &str) -> Option<&'a Instance> {
    find(cloud, parent_in(path, INTERFACES)?).ok()
}

fn shown(machine: &Instance, pools: &[Pool]) -> Value {
    let name = interface_of(&machine.name);
    let id = network_id(INTERFACES, &name);
    let addresses = |kind: &str| -> Vec<IpAddr> {
        let of_kind = machine.addresses.iter().filter(|address| address.kind == kind);
        of_kind.filter_map(|address| address.address.parse().ok()).collect()
    };
    let public = addresses("ExternalIP").into_iter().next();
    let configurations: Vec<Value> = addresses("InternalIP")
        .into_iter()
        .zip(1_u32..)
        .map(|(ip, number)| {
            let mut properties = json!({
                "provisioningState": "Succeeded",
                "privateIPAddress": ip,
                "privateIPAllocationMethod": "Dynamic",
                "privateIPAddressVersion": if ip.is_ipv4() { "IPv4" } else { "IPv6" },
                "primary": number == 1,
                "subnet": {"id": format!("{}/subnets/{SUBNET}", network_id("virtualNetworks", NETWORK))},
            });
            if number == 1 {
                let joined: Vec<Value> = pools
                    .iter()
                    .filter(|pool| !pool.by_address && pool.members.contains(&machine.id))
                    .map(|pool| json!({"id": pool.id()}))
                    .collect();
                properties["loadBalancerBackendAddressPools"] = json!(joined);
                if public.is_some() {
                    let address = network_id(PUBLIC_ADDRESSES, &public_address_of(&machine.name));
                    properties["publicIPAddress"] = json!({ "id": address });
                }
            }
            let name = format!("{}{number}", FIRST_CONFIGURATION.trim_end_matches('1'));
            json!({"name": name, "id": format!("{id}/ipConfigurations/{name}"), "properties": properties,
                "type": "Microsoft.Network/networkInterfaces/ipConfigurations"})
        })
        .collect();
    tagged(json!({
        "id": id,
        "name": name,
        "type": "Microsoft.Network/networkInterfaces",
        "location": region(machine),
        "properties": {
            "provisioningState": "Succeeded",
            "primary": true,
            "ipConfigurations": configurations,
            "virtualMachine": {"id": compute_id(MACHINES, &machine.name)},
        },
    }))
}
