//! The calls for whole load balancers.

use super::balancer::{self, Balancer, Shared};
use super::balancer_body::{self, Front, Wanted};
use super::errors::{Arm, dangling, invalid, not_found};
use super::members::Pool;
use super::names::{PUBLIC_ADDRESSES, network_id, part_id, same};
use super::query::{self, Precondition, query, with_body};
use super::{balancer_view, members, operations, public_ips, security, subnets};
use fake_cloud_driver::{LoadBalancer, Op};
use fake_cloud_kit::{Answer, Call, Error, Plan, Request, planned};
use fake_cloud_model::{Cloud, Dependents, Families, LbSpec};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

const PROVIDER: &str = "Microsoft.Network";
/// The kind of load balancers.
pub(super) const KIND: &str = "loadBalancers";

pub(super) fn list(request: &Request) -> Plan {
    planned(&Arm, Call::new(Op::LbList), query(request), |_, query, cloud, now| {
        let limit = cloud.page_size();
        let all = balancer::listed(cloud, now);
        Ok(query::page(query, limit, all.iter().map(|balancer| balancer_view::show(balancer, cloud))))
    })
}

pub(super) fn get(request: &Request, name: &str) -> Plan {
    let name = name.to_owned();
    planned(&Arm, Call::on(Op::LbGet, &name), query(request), move |_, _, cloud, now| {
        let balancer = balancer::find(cloud, &name, now).ok_or_else(|| not_found(PROVIDER, KIND, &name))?;
        Ok(Answer::json(200, &balancer_view::show(&balancer, cloud)))
    })
}

/// Replaces a load balancer: frontends that the body lacks are deleted.
pub(super) fn put(request: &Request, name: &str) -> Plan {
    let (name, guard, base) = (name.to_owned(), Precondition::of(&request.headers), query::base(request));
    let body = request.body::<Value>();
    let unknown = body.as_ref().ok().and_then(balancer_body::unknown);
    let call = Call::new(Op::LbUpdate).keyed("name", &name);
    let plan = with_body(request, call, move |body, cloud, now| {
        let before = balancer::find(cloud, &name, now);
        let shown = before.as_ref().map(|balancer| balancer_view::show(balancer, cloud));
        guard.check(shown.as_ref(), &network_id(KIND, &name))?;
        let wanted = balancer_body::read(&name, &body)?;
        let addresses = addresses(cloud, &name, &wanted, now)?;
        let failure = cloud.take_action_failure();
        let mut until = now;
        if failure.is_none() {
            until = replace(cloud, &name, before.as_ref(), wanted, &addresses, now)?;
        }
        let shown = balancer::find(cloud, &name, now).map(|balancer| balancer_view::show(&balancer, cloud));
        let answer = Answer::json(if before.is_some() { 200 } else { 201 }, &shown);
        Ok(operations::began(cloud, &base, KIND, answer, failure, (now, until)))
    });
    plan.with_unknown(unknown)
}

pub(super) fn delete(request: &Request, name: &str) -> Plan {
    let (name, base) = (name.to_owned(), query::base(request));
    planned(&Arm, Call::on(Op::LbDelete, &name), query(request), move |_, _, cloud, now| {
        let Some(balancer) = balancer::find(cloud, &name, now) else { return Ok(Answer::empty(204)) };
        let failure = cloud.take_action_failure();
        let mut until = now;
        if failure.is_none() {
            for front in &balancer.fronts {
                cloud.delete_load_balancer(&front.id, Dependents::Keep, now)?;
                until = cloud.deleted_at(now);
            }
            if let Some((id, _)) = &balancer.shared {
                cloud.delete_auxiliary(balancer::SHARED, id)?;
            }
        }
        Ok(operations::began(cloud, &base, KIND, Answer::empty(200), failure, (now, until)))
    })
}

/// The address of each frontend in the body.
fn addresses(cloud: &mut Cloud, name: &str, wanted: &Wanted, now: Duration) -> Result<Vec<IpAddr>, Error> {
    let mut addresses = Vec::new();
    for front in &wanted.fronts {
        let by = part_id(name, "frontendIPConfigurations", &front.spec.name);
        let address = match &front.public {
            Some(public) => {
                let id = network_id(PUBLIC_ADDRESSES, public);
                let address = public_ips::find(cloud, public).ok_or_else(|| dangling(&id, &by))?;
                let user = public_ips::user_of(&address, cloud, now);
                if let Some(user) = user.filter(|user| !same(user, &by)) {
                    let text = format!("Resource {id:.300} is already allocated to resource {user:.300}.");
                    return Err(invalid("PublicIPAddressInUse", text));
                }
                public_ips::address_of(&address)
            }
            None => subnets::private_address(cloud, front.private.as_deref(), &front.spec.name, now)?,
        };
        addresses.push(address);
    }
    Ok(addresses)
}

/// Makes the load balancer as it is wanted; returns when that is complete.
fn replace(
    cloud: &mut Cloud,
    name: &str,
    before: Option<&Balancer>,
    wanted: Wanted,
    addresses: &[IpAddr],
    now: Duration,
) -> Result<Duration, Error> {
    let Wanted { mut shared, fronts } = wanted;
    keep_members(cloud, &mut shared, before);
    let present = balancer_or_new(name, before);
    balancer::store(cloud, &present, &shared, now)?;
    let (mut until, mut new) = (now, BTreeSet::new());
    for front in &present.fronts {
        if !fronts.iter().any(|wanted| same(&wanted.spec.name, &front.name)) {
            cloud.delete_load_balancer(&front.id, Dependents::Keep, now)?;
            until = until.max(cloud.deleted_at(now));
        }
    }
    for (wanted, address) in fronts.into_iter().zip(addresses) {
        let existing = present.fronts.iter().find(|front| same(&front.name, &wanted.spec.name));
        let pool = wanted.spec.details["pool"].as_str().unwrap_or_default();
        let members =
            shared.pools.iter().find(|spec| same(&spec.name, pool)).map(|spec| spec.members.clone());
        let backends: Vec<String> = members.into_iter().flatten().collect();
        let Front { spec, public, .. } = wanted;
        let id = match existing {
            Some(front) => {
                let source_ranges = front.source_ranges.clone();
                let spec = LbSpec { backends, source_ranges, ..spec };
                cloud.update_load_balancer(&front.id, now, move |_| spec)?.id.clone()
            }
            None => {
                let spec = LbSpec { backends, ..spec };
                let made = cloud.create_load_balancer(spec, Families::At(*address), now)?.id.clone();
                until = until.max(cloud.provisioned_at(now));
                new.insert(made.clone());
                made
            }
        };
        if let Some(public) = public {
            public_ips::attach(cloud, &public, &id, now)?;
        }
    }
    security::apply(cloud, &new, now)?;
    Ok(until)
}

/// Members stay in their pools: interfaces join and leave by themselves.
fn keep_members(cloud: &Cloud, shared: &mut Shared, before: Option<&Balancer>) {
    let present = before.map(|balancer| Pool::all_of(balancer, cloud)).unwrap_or_default();
    for spec in &mut shared.pools {
        spec.members = if spec.addresses.is_empty() {
            let pool = present.iter().find(|pool| same(&pool.name, &spec.name) && !pool.by_address);
            pool.map(|pool| pool.members.clone()).unwrap_or_default()
        } else {
            members::members_in(cloud, &spec.addresses)
        };
    }
}

fn balancer_or_new(name: &str, before: Option<&Balancer>) -> Balancer {
    before.cloned().unwrap_or_else(|| Balancer { name: name.to_owned(), shared: None, fronts: Vec::new() })
}

/// How a body changes the frontends of a load balancer.
#[derive(Default)]
pub(super) struct Difference {
    pub(super) created: Vec<LbSpec>,
    pub(super) changed: Vec<LbSpec>,
    pub(super) removed: Vec<LoadBalancer>,
}

impl Difference {
    /// `None` if the body cannot be read.
    pub(super) fn of(cloud: &mut Cloud, name: &str, body: &Value, now: Duration) -> Option<Difference> {
        let wanted = balancer_body::read(name, body).ok()?.fronts;
        let present = balancer::find(cloud, name, now).map(|balancer| balancer.fronts).unwrap_or_default();
        let mentioned = |front: &LoadBalancer| wanted.iter().any(|one| same(&one.spec.name, &front.name));
        let removed = present.iter().filter(|front| !mentioned(front)).cloned().collect();
        let mut difference = Difference { removed, ..Difference::default() };
        for Front { spec, .. } in wanted {
            let Some(front) = present.iter().find(|front| same(&front.name, &spec.name)) else {
                difference.created.push(spec);
                continue;
            };
            let present = LbSpec::of(front);
            let (backends, source_ranges) = (present.backends.clone(), present.source_ranges.clone());
            let spec = LbSpec { backends, source_ranges, ..spec };
            if spec != present {
                difference.changed.push(spec);
            }
        }
        Some(difference)
    }
}
