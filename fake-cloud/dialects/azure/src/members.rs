//! Backend pools of load balancers and their members: by network interface, which join by themselves, or by address.
//!
//! The members of a pool are the backends of every frontend whose rules lead to it. The driver API can change the
//! backends of one frontend; a pool whose frontends differ shows what was changed.

use super::balancer::{self, Balancer, PoolSpec};
use super::names::{POOLS, configuration_id, part_id, same};
use super::query::tagged;
use fake_cloud_kit::Error;
use fake_cloud_model::{Cloud, LbSpec};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

/// A pool.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    pub(super) balancer: String,
    pub(super) name: String,
    /// Whether its members are addresses.
    pub(super) by_address: bool,
    /// The ids of its machines, and addresses that no machine has.
    pub(super) members: BTreeSet<String>,
}

impl Pool {
    pub(super) fn of(balancer: &Balancer, spec: &PoolSpec, cloud: &Cloud) -> Pool {
        let fronts: Vec<_> = balancer.fronts_of(&spec.name).collect();
        let candidates = spec.members.iter().chain(fronts.iter().flat_map(|front| &front.backends));
        let is_member = |id: &&String| {
            let present = cloud.instance(id).is_ok() || id.parse::<IpAddr>().is_ok();
            let inside = fronts.iter().filter(|front| front.backends.contains(id)).count();
            let stored = spec.members.contains(*id);
            present && if stored { inside == fronts.len() } else { inside > 0 }
        };
        Pool {
            balancer: balancer.name.clone(),
            name: spec.name.clone(),
            by_address: !spec.network.is_null() || !spec.addresses.is_empty(),
            members: candidates.filter(is_member).cloned().collect(),
        }
    }

    /// The pools of a load balancer.
    pub(super) fn all_of(balancer: &Balancer, cloud: &Cloud) -> Vec<Pool> {
        let Some((_, shared)) = &balancer.shared else { return Vec::new() };
        shared.pools.iter().map(|spec| Pool::of(balancer, spec, cloud)).collect()
    }

    pub(super) fn id(&self) -> String {
        part_id(&self.balancer, POOLS, &self.name)
    }
}

/// The pools of all load balancers.
pub(super) fn all(cloud: &mut Cloud, now: Duration) -> Vec<Pool> {
    let balancers = balancer::all(cloud, now);
    balancers.iter().flat_map(|balancer| Pool::all_of(balancer, cloud)).collect()
}

/// Puts a machine into a pool, or takes it out.
pub(super) fn set(
    cloud: &mut Cloud,
    pool: &Pool,
    machine: &str,
    joins: bool,
    now: Duration,
) -> Result<(), Error> {
    let mut members = pool.members.clone();
    if joins {
        members.insert(machine.to_owned());
    } else {
        members.remove(machine);
    }
    let Some(balancer) = balancer::find(cloud, &pool.balancer, now) else { return Ok(()) };
    replace(cloud, &balancer, &pool.name, members, now, |_| ())
}

/// Replaces the members of a pool, and changes its stored form.
pub(super) fn replace(
    cloud: &mut Cloud,
    balancer: &Balancer,
    pool: &str,
    members: BTreeSet<String>,
    now: Duration,
    change: impl FnOnce(&mut PoolSpec),
) -> Result<(), Error> {
    let mut shared = balancer.shared.as_ref().map(|(_, shared)| shared.clone()).unwrap_or_default();
    let spec = match shared.pools.iter_mut().position(|spec| same(&spec.name, pool)) {
        Some(index) => &mut shared.pools[index],
        None => {
            shared.pools.push(PoolSpec { name: pool.to_owned(), ..PoolSpec::default() });
            let last = shared.pools.len() - 1;
            &mut shared.pools[last]
        }
    };
    spec.members.clone_from(&members);
    change(spec);
    balancer::store(cloud, balancer, &shared, now)?;
    let backends: Vec<String> = members.into_iter().collect();
    for front in balancer.fronts_of(pool) {
        let backends = backends.clone();
        cloud.update_load_balancer(&front.id, now, move |spec| LbSpec { backends, ..spec })?;
    }
    Ok(())
}

/// The machines with the addresses in the body of a pool, and the addresses that no machine has.
pub(super) fn members_in(cloud: &Cloud, addresses: &[Value]) -> BTreeSet<String> {
    let ips = addresses.iter().filter_map(|one| one["properties"]["ipAddress"].as_str());
    ips.filter(|ip| !ip.is_empty()).map(|ip| machine_at(cloud, ip)).collect()
}

/// The id of the machine with this private address; otherwise the address itself.
pub(super) fn machine_at(cloud: &Cloud, ip: &str) -> String {
    let wanted = ip.parse::<IpAddr>().ok();
    let has = |address: &fake_cloud_driver::Address| {
        address.kind == "InternalIP" && address.address.parse().ok() == wanted
    };
    let machine = cloud.instances().find(|machine| wanted.is_some() && machine.addresses.iter().any(has));
    machine.map_or_else(|| ip.to_owned(), |machine| machine.id.clone())
}

/// The addresses of a pool by address: as they were written, and those that the driver API has added.
pub(super) fn addresses(pool: &Pool, spec: &PoolSpec, cloud: &Cloud) -> Vec<Value> {
    let mut left = pool.members.clone();
    let mut shown: Vec<Value> = Vec::new();
    for written in &spec.addresses {
        let ip = written["properties"]["ipAddress"].as_str().unwrap_or_default();
        if left.remove(&machine_at(cloud, ip)) {
            shown.push(written.clone());
        }
    }
    let ip_of = |id: &String| match cloud.instance(id) {
        Ok(machine) => machine.addresses.iter().find(|a| a.kind == "InternalIP").map(|a| a.address.clone()),
        Err(_) => Some(id.clone()),
    };
    shown.extend(
        left.iter().filter_map(|id| Some(json!({"name": id, "properties": {"ipAddress": ip_of(id)?}}))),
    );
    shown
}

/// The shown form of a pool.
pub(super) fn shown(pool: &Pool, spec: &PoolSpec, rules: Vec<Value>, cloud: &Cloud) -> Value {
    let mut properties = json!({"provisioningState": "Succeeded", "loadBalancingRules": rules});
    if pool.by_address {
        properties["loadBalancerBackendAddresses"] = json!(addresses(pool, spec, cloud));
        properties["virtualNetwork"] = spec.network.clone();
    } else {
        let interfaces: Vec<Value> = pool
            .members
            .iter()
            .filter_map(|id| cloud.instance(id).ok())
            .map(|machine| json!({"id": configuration_id(&machine.name)}))
            .collect();
        properties["backendIPConfigurations"] = json!(interfaces);
    }
    tagged(json!({"name": pool.name, "id": pool.id(), "properties": properties,
        "type": "Microsoft.Network/loadBalancers/backendAddressPools"}))
}
