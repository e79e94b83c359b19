//! Neutron: the routes of the only router, which are the model's.

use super::identity::PROJECT;
use super::networks::{EXTERNAL_NETWORK, ROUTER};
use super::query;
use super::services::{Service, invalid, not_found};
use fake_cloud_driver::{Op, Route};
use fake_cloud_kit::{Answer, Body, Call, Error, Plan, Request, planned, planned_with};
use fake_cloud_model::{Cloud, Refusal, RouteTarget};
use serde::Deserialize;
use serde_json::{Value, json};
use std::net::IpAddr;
use std::time::Duration;

/// The body of a request that adds or removes routes.
#[derive(Deserialize)]
struct Changed {
    router: Routes,
}

#[derive(Deserialize)]
struct Routes {
    routes: Vec<NextHop>,
}

#[derive(Clone, Deserialize)]
struct NextHop {
    destination: String,
    nexthop: String,
}

/// The next hop of a black hole: an unused address of the router's subnet, as it remains when a server is
/// deleted before its routes.
const UNUSED: &str = "10.0.0.254";

impl NextHop {
    fn is(&self, route: &Route) -> bool {
        route.destination == self.destination && hops(route).any(|hop| hop == self.nexthop)
    }
}

fn hops(route: &Route) -> impl Iterator<Item = &str> {
    let unused = route.target_addresses.is_empty().then_some(UNUSED);
    route.target_addresses.iter().map(String::as_str).chain(unused)
}

fn shown(cloud: &mut Cloud, now: Duration) -> Value {
    let routes = cloud.list_routes(now);
    let routes = routes.iter().flat_map(|route| {
        hops(route).map(|hop| json!({"destination": route.destination, "nexthop": hop})).take(1)
    });
    let routes: Vec<Value> = routes.collect();
    json!({"id": ROUTER, "name": "router", "status": "ACTIVE", "admin_state_up": true, "routes": routes,
        "external_gateway_info": {"network_id": EXTERNAL_NETWORK}, "project_id": PROJECT, "tags": []})
}

pub(super) fn get(request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(&Service::Network, Call::new(Op::RouteList), query::none(request), move |_, _, cloud, now| {
        known(&id)?;
        Ok(Answer::one(200, "router", &shown(cloud, now)))
    })
}

pub(super) fn list(request: &Request) -> Plan {
    let query = query::list(request, &["name"]);
    planned(&Service::Network, Call::new(Op::RouteList), query, |_, query, cloud, now| {
        let router = shown(cloud, now);
        let found = query.filter("name").is_none_or(|name| router["name"] == name).then_some(router);
        Ok(query::page(query, "routers", cloud.page_size(), found.into_iter()))
    })
}

/// Adds routes. Existing ones do not change.
pub(super) fn add(request: &Request, id: &str) -> Plan {
    change(request, id, Op::RouteCreate, |cloud, hop| {
        if cloud.routes().any(|route| hop.is(route)) {
            return Ok(());
        }
        let ip: IpAddr =
            hop.nexthop.parse().map_err(|_| invalid(format!("Invalid next hop {:.80}", hop.nexthop)))?;
        cloud.create_route(&hop.destination, RouteTarget::Address(ip)).map(drop).map_err(|refusal| {
            match refusal {
                Refusal::Conflict(text) | Refusal::Invalid(text) => invalid(text),
                other => other.into(),
            }
        })
    })
}

/// Removes routes. A missing one is not an error.
pub(super) fn remove(request: &Request, id: &str) -> Plan {
    change(request, id, Op::RouteDelete, |cloud, hop| {
        let gone: Vec<String> =
            cloud.routes().filter(|route| hop.is(route)).map(|route| route.id.clone()).collect();
        gone.iter().try_for_each(|id| cloud.delete_route(id)).map_err(Error::from)
    })
}

fn change(
    request: &Request,
    id: &str,
    op: Op,
    one: impl Fn(&mut Cloud, &NextHop) -> Result<(), Error> + Send + 'static,
) -> Plan {
    let (id, body) = (id.to_owned(), Body::<Changed>::of(request));
    let mut call = Call::new(op);
    for hop in body.value.iter().flat_map(|body| &body.router.routes) {
        call = call.keyed("destination", &hop.destination).naming(&hop.nexthop);
    }
    planned_with(&Service::Network, call, request, body, move |_, Changed { router }, cloud, now| {
        known(&id)?;
        router.routes.iter().try_for_each(|hop| one(cloud, hop))?;
        Ok(Answer::one(200, "router", &shown(cloud, now)))
    })
}

fn known(id: &str) -> Result<(), Error> {
    if id == ROUTER { Ok(()) } else { Err(not_found("Router", id)) }
}
