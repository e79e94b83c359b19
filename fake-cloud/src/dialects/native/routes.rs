//! Calls of the native dialect: what they mean, and what they do.

use super::errors::Failure;
use super::wire::{WireBackends, WireFirewall, WireInstance, WireLoadBalancer, WireRoute, firewall};
use crate::admin::{Op, Route};
use crate::dialects::{Answer, Meaning, Request};
use crate::model::{Millis, Model};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Kind of the dialect's auxiliary objects.
pub(super) const FIREWALL: &str = "firewall";

/// Path segments after `/v1/`, empty when it is another path.
fn segments(path: &str) -> Vec<&str> {
    path.strip_prefix("/v1/").map(|rest| rest.split('/').collect()).unwrap_or_default()
}

pub(super) fn meaning(request: &Request) -> Meaning {
    let method = request.method.as_str();
    let path = segments(&request.path);
    let mut meaning = Meaning { op: Op::Other, resource: None, keys: Vec::new(), owner: None };
    let body = if matches!(method, "POST" | "PUT") { request.json() } else { Value::Null };
    meaning.op = match (method, path.as_slice()) {
        ("GET", ["instances"]) if named(request, &["name", "provider_id"]).is_some() => Op::InstanceGet,
        ("GET", ["instances"]) => Op::InstanceList,
        ("GET", ["instances", _]) => Op::InstanceGet,
        (_, ["instances", ..]) => Op::InstanceWrite,
        ("GET", ["load-balancers"]) => Op::LbList,
        ("GET", ["load-balancers", _]) => Op::LbGet,
        ("POST", ["load-balancers"]) => Op::LbCreate,
        ("PUT", ["load-balancers", _] | ["load-balancers", _, "backends"]) => Op::LbUpdate,
        ("DELETE", ["load-balancers", _]) => Op::LbDelete,
        ("GET", ["firewalls"]) => Op::AuxRead,
        ("POST", ["firewalls"]) => Op::AuxCreate,
        ("PUT", ["firewalls", _]) => Op::AuxUpdate,
        ("DELETE", ["firewalls", _]) => Op::AuxDelete,
        ("GET", ["routes"]) => Op::RouteList,
        ("POST", ["routes"]) => Op::RouteCreate,
        ("DELETE", ["routes", _]) => Op::RouteDelete,
        _ => Op::Other,
    };
    if let [_, id, ..] = path.as_slice() {
        meaning.resource = Some((*id).to_owned());
        meaning.keys.push((*id).to_owned());
    } else if let Some((name, value)) = named(request, &["name", "provider_id", "owner", "load_balancer"]) {
        meaning.resource = Some(format!("{name}={value}"));
        meaning.keys.push(value.to_owned());
    }
    for field in ["name", "owner", "destination", "target_instance", "load_balancer"] {
        if let Some(text) = body[field].as_str() {
            meaning.keys.push(text.to_owned());
        }
    }
    if meaning.resource.is_none() {
        let named = ["name", "destination"].into_iter().find_map(|f| body[f].as_str().map(|v| format!("{f}={v}")));
        meaning.resource = named;
    }
    let owner = body["owner"].as_str().or_else(|| request.parameter("owner"));
    meaning.owner = owner.filter(|owner| !owner.is_empty()).map(str::to_owned);
    meaning
}

fn named<'a>(request: &'a Request, names: &[&'static str]) -> Option<(&'static str, &'a str)> {
    names.iter().find_map(|name| request.parameter(name).map(|value| (*name, value)))
}

pub(super) fn answer(request: &Request, _: &Meaning, model: &mut Model, now: Millis) -> Result<Answer, Failure> {
    let path = segments(&request.path);
    match (request.method.as_str(), path.as_slice()) {
        ("GET", ["instances"]) => {
            let (name, provider_id) = (request.parameter("name"), request.parameter("provider_id"));
            let found: Vec<WireInstance<'_>> = model
                .instances()
                .filter(|i| name.is_none_or(|name| i.name == name))
                .filter(|i| provider_id.is_none_or(|id| i.provider_id.as_deref() == Some(id)))
                .map(WireInstance::from)
                .collect();
            Ok(page(request, model, "instances", &found))
        }
        ("GET", ["instances", id]) => Ok(ok(&WireInstance::from(model.instance(id)?))),
        ("GET", ["load-balancers"]) => {
            let (owner, name) = (request.parameter("owner"), request.parameter("name"));
            let mut found = model.list_load_balancers(now);
            found.retain(|lb| owner.is_none_or(|o| lb.owner == o) && name.is_none_or(|n| lb.name == n));
            Ok(page(request, model, "load_balancers", &found))
        }
        ("GET", ["load-balancers", id]) => Ok(ok(&model.load_balancer(id, now)?)),
        ("POST", ["load-balancers"]) => {
            let wanted: WireLoadBalancer = body(request)?;
            Ok(created(&model.create_load_balancer(wanted.request(""), now)?))
        }
        ("PUT", ["load-balancers", id]) => {
            let wanted: WireLoadBalancer = body(request)?;
            let name = model.load_balancer(id, now)?.name;
            Ok(ok(&model.update_load_balancer(id, wanted.request(&name), now)?))
        }
        ("PUT", ["load-balancers", id, "backends"]) => {
            let wanted: WireBackends = body(request)?;
            Ok(ok(&model.set_backends(id, wanted.backends, now)?))
        }
        ("DELETE", ["load-balancers", id]) => Ok(match model.delete_load_balancer(id, now)? {
            None => empty(),
            Some(lb) => json_answer(202, &lb),
        }),
        ("GET", ["firewalls"]) => {
            let (owner, lb) = (request.parameter("owner"), request.parameter("load_balancer"));
            let found: Vec<Value> = model
                .auxiliaries()
                .filter(|aux| owner.is_none_or(|o| aux.owner == o))
                .filter(|aux| lb.is_none_or(|lb| aux.load_balancer.as_deref() == Some(lb)))
                .map(firewall)
                .collect();
            Ok(page(request, model, "firewalls", &found))
        }
        ("POST", ["firewalls"]) => {
            let wanted: WireFirewall = body(request)?;
            Ok(created(&firewall(&model.create_auxiliary(wanted.auxiliary(), "fw", now)?)))
        }
        ("PUT", ["firewalls", id]) => {
            let wanted: WireFirewall = body(request)?;
            Ok(ok(&firewall(&model.update_auxiliary(id, wanted.spec())?)))
        }
        ("DELETE", ["firewalls", id]) => model.delete_auxiliary(id).map(|()| empty()).map_err(Failure::from),
        ("GET", ["routes"]) => {
            let found: Vec<Route> = model.routes().cloned().collect();
            Ok(page(request, model, "routes", &found))
        }
        ("POST", ["routes"]) => {
            let wanted: WireRoute = body(request)?;
            let route = Route {
                id: String::new(),
                destination: wanted.destination,
                target_instance: wanted.target_instance,
                target_addresses: wanted.target_addresses,
                blackhole: wanted.blackhole,
            };
            Ok(created(&model.create_route(route)?))
        }
        ("DELETE", ["routes", id]) => model.delete_route(id).map(|()| empty()).map_err(Failure::from),
        (method, _) => Err(Failure::Unknown(format!("{method} {}", request.path))),
    }
}

fn body<T: DeserializeOwned>(request: &Request) -> Result<T, Failure> {
    serde_json::from_slice(&request.body).map_err(Failure::Body)
}

/// One page of a list. The cloud's page size bounds what a client may ask for.
fn page<T: Serialize>(request: &Request, model: &Model, field: &str, items: &[T]) -> Answer {
    let most = model.timing().page_size as usize;
    let asked = request.parameter("per_page").and_then(|n| n.parse::<usize>().ok()).unwrap_or(most);
    let size = asked.clamp(1, most);
    let number = request.parameter("page").and_then(|n| n.parse::<usize>().ok()).unwrap_or(1).max(1);
    let from = (number - 1).saturating_mul(size).min(items.len());
    let to = from.saturating_add(size).min(items.len());
    let next = (to < items.len()).then_some(number + 1);
    ok(&json!({field: &items[from..to], "next_page": next}))
}

fn ok<T: Serialize>(value: &T) -> Answer {
    json_answer(200, value)
}

fn created<T: Serialize>(value: &T) -> Answer {
    json_answer(201, value)
}

fn json_answer<T: Serialize>(status: u16, value: &T) -> Answer {
    Answer { status, headers: Vec::new(), body: Some(serde_json::to_vec(value).unwrap_or_default()) }
}

fn empty() -> Answer {
    Answer { status: 204, headers: Vec::new(), body: None }
}
