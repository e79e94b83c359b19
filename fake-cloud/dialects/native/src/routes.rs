//! The calls of the `native` dialect: from method and path to their meaning and effect.

use super::errors::Native;
use super::operations::{self, changing};
use super::queries::{none, query};
use super::wire::{self, Backends, LoadBalancerUpdate, NewFirewall, NewLoadBalancer, NewRoute};
use fake_cloud_driver::Op;
use fake_cloud_kit::{Answer, Call, Error, Plan, Query, Request, Voice, planned};
use fake_cloud_model::{AuxSpec, Deleted, Dependents, Families, RouteTarget};
use hyper::Method;
use serde::Serialize;

/// The kind of firewalls in the model, and the prefix of their ids.
const FIREWALL: (&str, &str) = ("firewall", "fw");

/// The plan of a call.
pub(super) fn plan(request: &Request) -> Plan {
    let segments = request.segments();
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    match (&request.method, parts.as_slice()) {
        (&Method::GET, ["v1", "instances"]) => list_instances(request),
        (&Method::GET, ["v1", "instances", id]) => get_instance(request, id),
        (_, ["v1", "instances"]) => forbidden(Call::new(Op::InstanceWrite)),
        (_, ["v1", "instances", id]) => forbidden(Call::on(Op::InstanceWrite, id)),
        (&Method::GET, ["v1", "load-balancers"]) => list_load_balancers(request),
        (&Method::POST, ["v1", "load-balancers"]) => create_load_balancer(request),
        (&Method::GET, ["v1", "load-balancers", id]) => get_load_balancer(request, id),
        (&Method::PUT, ["v1", "load-balancers", id]) => update_load_balancer(request, id),
        (&Method::PUT, ["v1", "load-balancers", id, "backends"]) => update_backends(request, id),
        (&Method::DELETE, ["v1", "load-balancers", id]) => delete_load_balancer(request, id),
        (&Method::GET, ["v1", "firewalls"]) => list_firewalls(request),
        (&Method::POST, ["v1", "firewalls"]) => create_firewall(request),
        (&Method::PUT, ["v1", "firewalls", id]) => update_firewall(request, id),
        (&Method::DELETE, ["v1", "firewalls", id]) => delete_firewall(request, id),
        (&Method::GET, ["v1", "routes"]) => list_routes(request),
        (&Method::POST, ["v1", "routes"]) => create_route(request),
        (&Method::DELETE, ["v1", "routes", id]) => delete_route(request, id),
        (&Method::GET, ["v1", "operations", id]) => operations::get(request, id),
        _ => Plan::unknown(request),
    }
}

fn list_instances(request: &Request) -> Plan {
    let query = query(request, &["name", "provider_id"]);
    let op = if query.filters().is_empty() { Op::InstanceList } else { Op::InstanceGet };
    planned(&Native, call(&query, op), query, move |_, query, cloud, now| {
        let (name, provider_id) = (query.filter("name"), query.filter("provider_id"));
        let fits = |instance: &&fake_cloud_driver::Instance| {
            name.is_none_or(|name| instance.name.eq_ignore_ascii_case(name))
                && provider_id.is_none_or(|id| instance.provider_id.as_deref() == Some(id))
        };
        // A look-up is always fresh; only lists may be stale.
        let limit = cloud.page_size();
        let found = match op {
            Op::InstanceList => cloud.list_instances(now),
            _ => match name {
                Some(name) => cloud.instances_named(name).filter(fits).collect(),
                None => cloud.instances().filter(fits).collect(),
            },
        };
        Ok(page(query, "instances", limit, found.into_iter().map(wire::Instance::from)))
    })
}

fn get_instance(request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(&Native, Call::on(Op::InstanceGet, &id), none(request), move |_, _, cloud, _| {
        Ok(Answer::json(200, &wire::Instance::from(cloud.instance(&id)?)))
    })
}

fn forbidden(call: Call) -> Plan {
    Plan::new(call, |_, _| Native.answer(Err(Error::new(403, "no token of this API may change instances"))))
}

fn list_load_balancers(request: &Request) -> Plan {
    let query = query(request, &["owner", "name"]);
    planned(&Native, call(&query, Op::LbList), query, |_, query, cloud, now| {
        let (owner, name) = (query.filter("owner"), query.filter("name"));
        let limit = cloud.page_size();
        let found = cloud.list_load_balancers(now).into_iter().filter(|lb| {
            owner.is_none_or(|owner| lb.owner == owner) && name.is_none_or(|name| lb.name == name)
        });
        Ok(page(query, "load_balancers", limit, found.map(wire::LoadBalancer::from)))
    })
}

fn get_load_balancer(request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(&Native, Call::on(Op::LbGet, &id), none(request), move |_, _, cloud, now| {
        Ok(Answer::json(200, &wire::LoadBalancer::from(cloud.load_balancer(&id, now)?)))
    })
}

fn create_load_balancer(request: &Request) -> Plan {
    let body = request.body::<NewLoadBalancer>();
    let call = match &body {
        Ok(new) => Call::new(Op::LbCreate).keyed("name", &new.name).owned_by(&new.owner),
        Err(_) => Call::new(Op::LbCreate),
    };
    changing(request, call, move |cloud, now| {
        let lb = cloud.create_load_balancer(body?.into(), Families::V4, now)?;
        Ok(Answer::json(201, &wire::LoadBalancer::from(lb)).creating(&lb.id))
    })
}

fn update_load_balancer(request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    let body = request.body::<LoadBalancerUpdate>();
    let mut call = Call::on(Op::LbUpdate, &id);
    if let Ok(update) = &body {
        call = call.naming(update.name.as_deref().unwrap_or_default());
        call = call.owned_by(update.owner.as_deref().unwrap_or_default());
    }
    changing(request, call, move |cloud, now| {
        let update = body?;
        let lb = cloud.update_load_balancer(&id, now, |old| update.over(old))?;
        Ok(Answer::json(200, &wire::LoadBalancer::from(lb)))
    })
}

fn update_backends(request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    let body = request.body::<Backends>();
    changing(request, Call::on(Op::LbUpdate, &id), move |cloud, now| {
        let Backends { backends } = body?;
        let lb = cloud.update_load_balancer(&id, now, |old| fake_cloud_model::LbSpec { backends, ..old })?;
        Ok(Answer::json(200, &wire::LoadBalancer::from(lb)))
    })
}

fn delete_load_balancer(request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    changing(request, Call::on(Op::LbDelete, &id), move |cloud, now| {
        Ok(match cloud.delete_load_balancer(&id, Dependents::Forbid, now)? {
            Deleted::Gone => Answer::empty(204),
            Deleted::Deleting(lb) => Answer::json(202, &wire::LoadBalancer::from(lb)),
        })
    })
}

fn list_firewalls(request: &Request) -> Plan {
    let query = query(request, &["owner", "load_balancer"]);
    planned(&Native, call(&query, Op::AuxRead), query, |_, query, cloud, now| {
        let (owner, load_balancer) = (query.filter("owner"), query.filter("load_balancer"));
        let limit = cloud.page_size();
        let found = cloud.list_auxiliaries(now).into_iter().filter(|aux| {
            aux.kind == FIREWALL.0
                && owner.is_none_or(|owner| aux.owner == owner)
                && load_balancer.is_none_or(|lb| aux.load_balancer.as_deref() == Some(lb))
        });
        Ok(page(query, "firewalls", limit, found.map(wire::Firewall::from)))
    })
}

fn create_firewall(request: &Request) -> Plan {
    let body = request.body::<NewFirewall>();
    let call = match &body {
        Ok(new) => {
            let call = Call::new(Op::AuxCreate).keyed("name", &new.name).owned_by(&new.owner);
            call.naming(new.load_balancer.as_deref().unwrap_or_default())
        }
        Err(_) => Call::new(Op::AuxCreate),
    };
    changing(request, call, move |cloud, now| {
        let aux = cloud.create_auxiliary(FIREWALL.0, FIREWALL.1, AuxSpec::try_from(body?)?, now)?;
        Ok(Answer::json(201, &wire::Firewall::from(aux)).creating(&aux.id))
    })
}

fn update_firewall(request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    let body = request.body::<NewFirewall>();
    let mut call = Call::on(Op::AuxUpdate, &id);
    if let Ok(new) = &body {
        call = call.naming(&new.name).naming(new.load_balancer.as_deref().unwrap_or_default());
        call = call.owned_by(&new.owner);
    }
    changing(request, call, move |cloud, now| {
        let aux = cloud.update_auxiliary(FIREWALL.0, &id, AuxSpec::try_from(body?)?, now)?;
        Ok(Answer::json(200, &wire::Firewall::from(aux)))
    })
}

fn delete_firewall(request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    changing(request, Call::on(Op::AuxDelete, &id), move |cloud, _| {
        cloud.delete_auxiliary(FIREWALL.0, &id)?;
        Ok(Answer::empty(204))
    })
}

fn list_routes(request: &Request) -> Plan {
    let query = query(request, &[]);
    planned(&Native, Call::new(Op::RouteList), query, |_, query, cloud, now| {
        let limit = cloud.page_size();
        let routes = cloud.list_routes(now);
        Ok(page(query, "routes", limit, routes.iter().map(wire::Route::from)))
    })
}

fn create_route(request: &Request) -> Plan {
    let body = request.body::<NewRoute>();
    let call = match &body {
        Ok(new) => {
            Call::new(Op::RouteCreate).keyed("destination", &new.destination).naming(&new.target_instance)
        }
        Err(_) => Call::new(Op::RouteCreate),
    };
    changing(request, call, move |cloud, _| {
        let new = body?;
        let route = cloud.create_route(&new.destination, RouteTarget::Instance(&new.target_instance))?;
        Ok(Answer::json(201, &wire::Route::from(&route)).creating(&route.id))
    })
}

fn delete_route(request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    changing(request, Call::on(Op::RouteDelete, &id), move |cloud, _| {
        cloud.delete_route(&id)?;
        Ok(Answer::empty(204))
    })
}

/// The object of a list with these filters.
fn call(query: &Query, op: Op) -> Call {
    let mut call = query.call(op);
    if let Some(owner) = query.filter("owner").filter(|owner| !owner.is_empty()) {
        call.owner = Some(owner.to_owned());
    }
    call
}

#[derive(Serialize)]
struct Besides {
    next_page: Option<u64>,
}

/// One page of the list `items` under the name `key`.
fn page<T: Serialize>(query: &Query, key: &str, limit: u32, items: impl Iterator<Item = T>) -> Answer {
    let size = query.per_page.unwrap_or(u64::MAX).min(u64::from(limit));
    let (items, more) = query.cut(size, items);
    Answer::page(key, &items, &Besides { next_page: more.then(|| query.page + 1) })
}
