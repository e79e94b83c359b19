//! The meaning of calls that replace a resource of several Services: what changes is the difference between the body
//! and the present state.

use super::members::{self, Pool};
use super::names::{INTERFACES, POOLS, PUBLIC_ADDRESSES, parent_in};
use super::{balancer, balancers, interfaces, public_ips, route_tables, security};
use fake_cloud_driver::Op;
use fake_cloud_kit::{Call, Request};
use fake_cloud_model::{Cloud, LbSpec};
use hyper::Method;
use serde_json::Value;
use std::time::Duration;

/// The meaning of a call in the present state of the cloud.
pub(super) fn meaning(request: &Request, call: Call, cloud: &mut Cloud, now: Duration) -> Call {
    let path = request.uri.path();
    let named = |kind: &str| parent_in(path, kind);
    match (&request.method, call.op) {
        (&Method::PUT, Op::LbUpdate) => {
            let Ok(body) = request.body::<Value>() else { return call };
            if let Some(pool) = named(POOLS) {
                return about_pool(call, named(balancers::KIND).unwrap_or_default(), pool, cloud, now);
            }
            if named(INTERFACES).is_some() {
                let Some(machine) = interfaces::machine_in(cloud, path).cloned() else { return call };
                let change = interfaces::Change::of(&machine, &body, cloud, now);
                let pools: Vec<Pool> = change.joined.into_iter().chain(change.left).collect();
                return pools
                    .iter()
                    .fold(call, |call, pool| about_pool(call, &pool.balancer, &pool.name, cloud, now));
            }
            match named(balancers::KIND) {
                Some(name) => about_balancer(name, &body, cloud, now).unwrap_or(call),
                None => call,
            }
        }
        (&Method::DELETE, Op::LbDelete) => {
            let Some(balancer) = named(balancers::KIND).and_then(|name| balancer::find(cloud, name, now))
            else {
                return call;
            };
            let fronts: Vec<LbSpec> = balancer.fronts.iter().map(LbSpec::of).collect();
            about_fronts(call, fronts.iter().map(|front| (front.name.as_str(), front.owner.as_str())))
        }
        (&Method::PUT, Op::AuxUpdate) => match named(PUBLIC_ADDRESSES) {
            Some(name) if public_ips::find(cloud, name).is_none() => Call { op: Op::AuxCreate, ..call },
            Some(_) => call,
            None => about_rules(request, call, cloud, now),
        },
        (&Method::PUT, Op::RouteCreate) => about_routes(request, call, cloud),
        _ => call,
    }
}

/// A call about these frontends, whose Services share it.
fn about_fronts<'a>(call: Call, fronts: impl Iterator<Item = (&'a str, &'a str)>) -> Call {
    let fronts: Vec<(&str, &str)> = fronts.collect();
    match fronts.as_slice() {
        [(name, owner)] => call.keyed("name", name).owned_by(owner),
        several => several.iter().fold(call, |call, (name, owner)| call.naming(name).naming(owner)),
    }
}

fn about_balancer(name: &str, body: &Value, cloud: &mut Cloud, now: Duration) -> Option<Call> {
    let difference = balancers::Difference::of(cloud, name, body, now)?;
    let removed: Vec<LbSpec> = difference.removed.iter().map(LbSpec::of).collect();
    let (op, fronts) = match (difference.created.as_slice(), difference.changed.as_slice()) {
        ([], []) if removed.is_empty() => return Some(Call::new(Op::LbUpdate).keyed("name", name)),
        ([], []) => (Op::LbDelete, removed),
        ([], changed) => (Op::LbUpdate, changed.iter().chain(&removed).cloned().collect()),
        (created, changed) => {
            (Op::LbCreate, created.iter().chain(changed).chain(&removed).cloned().collect())
        }
    };
    Some(about_fronts(Call::new(op), fronts.iter().map(|front| (front.name.as_str(), front.owner.as_str()))))
}

/// The frontends whose rules lead to a pool.
fn about_pool(call: Call, balancer: &str, pool: &str, cloud: &mut Cloud, now: Duration) -> Call {
    let Some(balancer) = balancer::find(cloud, balancer, now) else { return call };
    let fronts: Vec<_> = balancer.fronts_of(pool).collect();
    let owner = match fronts.as_slice() {
        [one] => Some(one.owner.clone()),
        _ => None,
    };
    let named = fronts
        .iter()
        .fold(call, |call, front| call.naming(&front.id).naming(&front.name).naming(&front.owner));
    Call { owner: named.owner.clone().or(owner), ..named }
}

fn about_rules(request: &Request, call: Call, cloud: &mut Cloud, now: Duration) -> Call {
    let Some(wanted) = request.body::<Value>().ok().and_then(|body| security::Part::all(&body).ok()) else {
        return call;
    };
    let difference = security::Difference::of(cloud, &wanted);
    let op =
        match (difference.created.is_empty(), difference.changed.is_empty(), difference.removed.is_empty()) {
            (false, _, _) => Op::AuxCreate,
            (true, true, false) => Op::AuxDelete,
            (true, _, _) => Op::AuxUpdate,
        };
    let removed = difference.removed.iter().map(|(_, part)| part);
    let parts: Vec<&security::Part> = difference
        .created
        .iter()
        .chain(difference.changed.iter().map(|(_, part)| part))
        .chain(removed)
        .collect();
    let mut call = Call { op, ..call };
    let mut owners = Vec::new();
    for part in parts {
        let owner = security::owner_of(&part.destination, cloud, now);
        call = call.naming(&part.name).naming(&owner);
        if !owner.is_empty() && !owners.contains(&owner) {
            owners.push(owner);
        }
    }
    match owners.as_slice() {
        [owner] => call.owned_by(owner),
        _ => call,
    }
}

fn about_routes(request: &Request, call: Call, cloud: &Cloud) -> Call {
    let wanted = request.body::<Value>().ok().and_then(|body| route_tables::Wanted::all(&body).ok());
    let Some(wanted) = wanted else { return call };
    let difference = route_tables::Difference::of(cloud, &wanted);
    let op = if difference.created.is_empty() && !difference.removed.is_empty() {
        Op::RouteDelete
    } else {
        Op::RouteCreate
    };
    let call = Call { op, ..call };
    let call = difference.created.iter().fold(call, |call, route| {
        let target = members::machine_at(cloud, &route.hop);
        call.keyed("destination", &route.destination).naming(&route.name).naming(&target)
    });
    difference.removed.iter().fold(call, |call, route| {
        let target = route.target_instance.as_deref().unwrap_or_default();
        let call = if op == Op::RouteDelete {
            call.keyed("destination", &route.destination)
        } else {
            call.naming(&route.destination)
        };
        call.naming(&route.id).naming(target)
    })
}
