//! Calls of the `native` dialect: from method and path to what they mean and do.

use super::super::{Answer, Call, Plan, Request};
use super::errors::{error, refused};
use super::wire::{self, Backends, LoadBalancerUpdate, NewFirewall, NewLoadBalancer, NewRoute};
use crate::admin::Op;
use crate::model::{AuxSpec, Cloud, Deleted, Dependents, Families, Refusal, RouteTarget};
use hyper::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// What the model calls firewalls, and what their ids begin with.
const FIREWALL: (&str, &str) = ("firewall", "fw");

/// What a call means.
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
        _ => Plan::unknown(request),
    }
}

fn list_instances(request: &Request) -> Plan {
    let query = Query::read(request, &["name", "provider_id"]);
    let op = if query.filters.is_empty() { Op::InstanceList } else { Op::InstanceGet };
    planned(query.call(op), query, move |query, cloud, now| {
        let (name, provider_id) = (query.filter("name"), query.filter("provider_id"));
        let fits = |instance: &&crate::admin::Instance| {
            name.is_none_or(|name| instance.name == name)
                && provider_id.is_none_or(|id| instance.provider_id.as_deref() == Some(id))
        };
        // A look-up is always fresh, only lists may be stale.
        let limit = cloud.page_size();
        let found = match op {
            Op::InstanceList => cloud.list_instances(now),
            _ => match name {
                Some(name) => cloud.instances_named(name).filter(fits).collect(),
                None => cloud.instances().filter(fits).collect(),
            },
        };
        query.page("instances", limit, found.into_iter().map(wire::Instance::from))
    })
}

fn get_instance(request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(Call::on(Op::InstanceGet, &id), Query::none(request), move |_, cloud, _| {
        Ok(Answer::json(200, &wire::Instance::from(cloud.instance(&id)?)))
    })
}

fn forbidden(call: Call) -> Plan {
    Plan::new(call, |_, _| error(403, "no token of this API may change instances"))
}

fn list_load_balancers(request: &Request) -> Plan {
    let query = Query::read(request, &["owner", "name"]);
    planned(query.call(Op::LbList), query, |query, cloud, now| {
        let (owner, name) = (query.filter("owner"), query.filter("name"));
        let limit = cloud.page_size();
        let found = cloud.list_load_balancers(now).into_iter().filter(|lb| {
            owner.is_none_or(|owner| lb.owner == owner) && name.is_none_or(|name| lb.name == name)
        });
        query.page("load_balancers", limit, found.map(wire::LoadBalancer::from))
    })
}

fn get_load_balancer(request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(Call::on(Op::LbGet, &id), Query::none(request), move |_, cloud, now| {
        Ok(Answer::json(200, &wire::LoadBalancer::from(cloud.load_balancer(&id, now)?)))
    })
}

fn create_load_balancer(request: &Request) -> Plan {
    let body: Body<NewLoadBalancer> = body(request);
    let call = match &body {
        Ok(new) => Call::new(Op::LbCreate).keyed("name", &new.name).owned_by(&new.owner),
        Err(_) => Call::new(Op::LbCreate),
    };
    planned(call, Query::none(request), move |_, cloud, now| {
        let lb = cloud.create_load_balancer(body?.into(), Families::V4, now)?;
        Ok(Answer::json(201, &wire::LoadBalancer::from(lb)).creating(&lb.id))
    })
}

fn update_load_balancer(request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    let body: Body<LoadBalancerUpdate> = body(request);
    let mut call = Call::on(Op::LbUpdate, &id);
    if let Ok(update) = &body {
        call = call.naming(update.name.as_deref().unwrap_or_default());
        call = call.owned_by(update.owner.as_deref().unwrap_or_default());
    }
    planned(call, Query::none(request), move |_, cloud, now| {
        let update = body?;
        let lb = cloud.update_load_balancer(&id, now, |old| update.over(old))?;
        Ok(Answer::json(200, &wire::LoadBalancer::from(lb)))
    })
}

fn update_backends(request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    let body: Body<Backends> = body(request);
    planned(Call::on(Op::LbUpdate, &id), Query::none(request), move |_, cloud, now| {
        let Backends { backends } = body?;
        let lb = cloud.update_load_balancer(&id, now, |old| crate::model::LbSpec { backends, ..old })?;
        Ok(Answer::json(200, &wire::LoadBalancer::from(lb)))
    })
}

fn delete_load_balancer(request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(Call::on(Op::LbDelete, &id), Query::none(request), move |_, cloud, now| {
        Ok(match cloud.delete_load_balancer(&id, Dependents::Forbid, now)? {
            Deleted::Gone => Answer::empty(204),
            Deleted::Deleting(lb) => Answer::json(202, &wire::LoadBalancer::from(lb)),
        })
    })
}

fn list_firewalls(request: &Request) -> Plan {
    let query = Query::read(request, &["owner", "load_balancer"]);
    planned(query.call(Op::AuxRead), query, |query, cloud, now| {
        let (owner, load_balancer) = (query.filter("owner"), query.filter("load_balancer"));
        let limit = cloud.page_size();
        let found = cloud.list_auxiliaries(now).into_iter().filter(|aux| {
            aux.kind == FIREWALL.0
                && owner.is_none_or(|owner| aux.owner == owner)
                && load_balancer.is_none_or(|lb| aux.load_balancer.as_deref() == Some(lb))
        });
        query.page("firewalls", limit, found.map(wire::Firewall::from))
    })
}

fn create_firewall(request: &Request) -> Plan {
    let body: Body<NewFirewall> = body(request);
    let call = match &body {
        Ok(new) => {
            let call = Call::new(Op::AuxCreate).keyed("name", &new.name).owned_by(&new.owner);
            call.naming(new.load_balancer.as_deref().unwrap_or_default())
        }
        Err(_) => Call::new(Op::AuxCreate),
    };
    planned(call, Query::none(request), move |_, cloud, now| {
        let aux = cloud.create_auxiliary(FIREWALL.0, FIREWALL.1, AuxSpec::try_from(body?)?, now)?;
        Ok(Answer::json(201, &wire::Firewall::from(aux)).creating(&aux.id))
    })
}

fn update_firewall(request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    let body: Body<NewFirewall> = body(request);
    let mut call = Call::on(Op::AuxUpdate, &id);
    if let Ok(new) = &body {
        call = call.naming(&new.name).naming(new.load_balancer.as_deref().unwrap_or_default());
        call = call.owned_by(&new.owner);
    }
    planned(call, Query::none(request), move |_, cloud, now| {
        let aux = cloud.update_auxiliary(FIREWALL.0, &id, AuxSpec::try_from(body?)?, now)?;
        Ok(Answer::json(200, &wire::Firewall::from(aux)))
    })
}

fn delete_firewall(request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(Call::on(Op::AuxDelete, &id), Query::none(request), move |_, cloud, _| {
        cloud.delete_auxiliary(FIREWALL.0, &id)?;
        Ok(Answer::empty(204))
    })
}

fn list_routes(request: &Request) -> Plan {
    let query = Query::read(request, &[]);
    planned(Call::new(Op::RouteList), query, |query, cloud, now| {
        let limit = cloud.page_size();
        let routes = cloud.list_routes(now);
        query.page("routes", limit, routes.iter().map(wire::Route::from))
    })
}

fn create_route(request: &Request) -> Plan {
    let body: Body<NewRoute> = body(request);
    let call = match &body {
        Ok(new) => {
            Call::new(Op::RouteCreate).keyed("destination", &new.destination).naming(&new.target_instance)
        }
        Err(_) => Call::new(Op::RouteCreate),
    };
    planned(call, Query::none(request), move |_, cloud, _| {
        let new = body?;
        let route = cloud.create_route(&new.destination, RouteTarget::Instance(&new.target_instance))?;
        Ok(Answer::json(201, &wire::Route::from(&route)).creating(&route.id))
    })
}

fn delete_route(request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(Call::on(Op::RouteDelete, &id), Query::none(request), move |_, cloud, _| {
        cloud.delete_route(&id)?;
        Ok(Answer::empty(204))
    })
}

/// A plan that checks its query first and puts refusals into this dialect's form.
fn planned<F>(call: Call, query: Query, run: F) -> Plan
where
    F: FnOnce(&Query, &mut Cloud, Duration) -> Result<Answer, Refusal> + Send + 'static,
{
    Plan::new(call, move |cloud, now| {
        let answer = match &query.problem {
            None => run(&query, cloud, now),
            Some(problem) => Err(problem.clone()),
        };
        answer.unwrap_or_else(|refusal| refused(&refusal))
    })
}

type Body<T> = Result<T, Refusal>;

fn body<T: DeserializeOwned>(request: &Request) -> Body<T> {
    serde_json::from_slice(&request.body)
        .map_err(|error| Refusal::Invalid(format!("the body is not as expected: {error}")))
}

/// The query of a call.
struct Query {
    filters: Vec<(String, String)>,
    page: Option<u64>,
    per_page: Option<u64>,
    problem: Option<Refusal>,
}

impl Query {
    /// The query of a list that can be filtered by these keys.
    fn read(request: &Request, filters: &[&str]) -> Query {
        let mut query = Query { filters: Vec::new(), page: None, per_page: None, problem: None };
        for (key, value) in request.query() {
            let known = match key.as_str() {
                "page" => query.page.replace(number(&key, &value, &mut query.problem)).is_none(),
                "per_page" => query.per_page.replace(number(&key, &value, &mut query.problem)).is_none(),
                key if filters.contains(&key) && query.filter(key).is_none() => {
                    query.filters.push((key.to_owned(), value));
                    true
                }
                _ => false,
            };
            if !known {
                query
                    .problem
                    .get_or_insert(Refusal::Invalid(format!("the query has an unknown or second {key:.40}")));
            }
        }
        query
    }

    /// The query of a call that has none.
    fn none(request: &Request) -> Query {
        let problem = request
            .query()
            .next()
            .map(|(key, _)| Refusal::Invalid(format!("the query has an unknown {key:.40}")));
        Query { filters: Vec::new(), page: None, per_page: None, problem }
    }

    fn filter(&self, key: &str) -> Option<&str> {
        self.filters.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// What a list with these filters is about.
    fn call(&self, op: Op) -> Call {
        let mut call = Call::new(op);
        for (key, value) in &self.filters {
            call = call.keyed(key, value);
        }
        if let Some(owner) = self.filter("owner").filter(|owner| !owner.is_empty()) {
            call.owner = Some(owner.to_owned());
        }
        call
    }

    /// One page of the list `items` under the name `key`.
    fn page<T: Serialize>(
        &self,
        key: &str,
        limit: u32,
        items: impl Iterator<Item = T>,
    ) -> Result<Answer, Refusal> {
        let page = self.page.unwrap_or(1);
        let size = self.per_page.unwrap_or(u64::MAX).min(u64::from(limit));
        let skip = usize::try_from((page - 1).saturating_mul(size)).unwrap_or(usize::MAX);
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let mut rest = items.skip(skip);
        let shown: Vec<T> = rest.by_ref().take(size).collect();
        let next_page = rest.next().map(|_| page + 1);
        Ok(Answer::json(200, &wire::Page { key, items: shown, next_page }))
    }
}

/// A number of at least 1.
fn number(key: &str, value: &str, problem: &mut Option<Refusal>) -> u64 {
    let digits = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
    match value.parse::<u64>() {
        Ok(number) if digits && number > 0 => number,
        _ => {
            problem.get_or_insert(Refusal::Invalid(format!("{key} must be a number from 1")));
            1
        }
    }
}
