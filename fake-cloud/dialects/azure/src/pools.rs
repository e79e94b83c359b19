//! The calls for backend pools of load balancers.

use super::balancer::{self, Balancer};
use super::errors::{Arm, invalid, no_part, not_found};
use super::members::Pool;
use super::names::{POOLS, part_id, same};
use super::query::{self, Precondition, query, with_body};
use super::{balancer_view, members, operations};
use fake_cloud_driver::Op;
use fake_cloud_kit::{Answer, Call, Error, Plan, Request, planned};
use fake_cloud_model::Cloud;
use serde_json::Value;
use std::time::Duration;

pub(super) fn list(request: &Request, balancer: &str) -> Plan {
    let name = balancer.to_owned();
    planned(&Arm, Call::on(Op::LbGet, &name), query(request), move |_, query, cloud, now| {
        let balancer = found(cloud, &name, now)?;
        let shown = balancer_view::pools(&balancer, cloud);
        Ok(query::page(query, cloud.page_size(), shown.into_iter()))
    })
}

pub(super) fn get(request: &Request, balancer: &str, pool: &str) -> Plan {
    let (name, pool) = (balancer.to_owned(), pool.to_owned());
    planned(&Arm, Call::on(Op::LbGet, &name), query(request), move |_, _, cloud, now| {
        let balancer = found(cloud, &name, now)?;
        let shown = one(&balancer, &pool, cloud).ok_or_else(|| no_part(&part_id(&name, POOLS, &pool)))?;
        Ok(Answer::json(200, &shown))
    })
}

pub(super) fn put(request: &Request, balancer: &str, pool: &str) -> Plan {
    let (name, pool) = (balancer.to_owned(), pool.to_owned());
    let (guard, base) = (Precondition::of(&request.headers), query::base(request));
    let call = Call::on(Op::LbUpdate, &name);
    with_body(request, call, move |body, cloud, now| {
        let balancer = found(cloud, &name, now)?;
        let before = one(&balancer, &pool, cloud);
        guard.check(before.as_ref(), &part_id(&name, POOLS, &pool))?;
        let failure = cloud.take_action_failure();
        if failure.is_none() {
            let properties = &body["properties"];
            let addresses: Vec<Value> =
                properties["loadBalancerBackendAddresses"].as_array().cloned().unwrap_or_default();
            // Interfaces leave a pool by themselves.
            let present = Pool::all_of(&balancer, cloud).into_iter().find(|known| same(&known.name, &pool));
            let members = match present.filter(|known| !known.by_address && addresses.is_empty()) {
                Some(known) => known.members,
                None => members::members_in(cloud, &addresses),
            };
            let network = properties["virtualNetwork"].clone();
            members::replace(cloud, &balancer, &pool, members, now, |spec| {
                spec.addresses = addresses;
                spec.network = network;
            })?;
        }
        let balancer = found(cloud, &name, now)?;
        let status = if before.is_some() { 200 } else { 201 };
        let answer = Answer::json(status, &one(&balancer, &pool, cloud));
        Ok(operations::began(cloud, &base, "backendAddressPools", answer, failure, (now, now)))
    })
}

pub(super) fn delete(request: &Request, balancer: &str, pool: &str) -> Plan {
    let (name, pool, base) = (balancer.to_owned(), pool.to_owned(), query::base(request));
    planned(&Arm, Call::on(Op::LbUpdate, &name), query(request), move |_, _, cloud, now| {
        let balancer = found(cloud, &name, now)?;
        let Some((_, mut shared)) = balancer.shared.clone() else { return Ok(Answer::empty(204)) };
        if balancer.fronts_of(&pool).next().is_some() {
            let text = format!("Cannot delete the backend pool {pool:.80}: a load balancing rule uses it.");
            return Err(invalid("InUseBackendAddressPoolCannotBeDeleted", text));
        }
        let failure = cloud.take_action_failure();
        let before = shared.pools.len();
        shared.pools.retain(|spec| !same(&spec.name, &pool));
        if before == shared.pools.len() {
            return Ok(Answer::empty(204));
        }
        if failure.is_none() {
            balancer::store(cloud, &balancer, &shared, now)?;
        }
        Ok(operations::began(cloud, &base, "backendAddressPools", Answer::empty(200), failure, (now, now)))
    })
}

fn found(cloud: &mut Cloud, name: &str, now: Duration) -> Result<Balancer, Error> {
    balancer::find(cloud, name, now).ok_or_else(|| not_found("Microsoft.Network", "loadBalancers", name))
}

fn one(balancer: &Balancer, pool: &str, cloud: &Cloud) -> Option<Value> {
    balancer_view::pools(balancer, cloud)
        .into_iter()
        .find(|shown| shown["name"].as_str().is_some_and(|name| same(name, pool)))
}
