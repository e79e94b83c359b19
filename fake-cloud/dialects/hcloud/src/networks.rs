//! The only private network of this cloud and its routes. Every machine with an internal address is attached to it.

use super::calls::{Now, act, changed, number, planned, planned_with};
use super::clock::Clock;
use super::details::Details;
use super::errors;
use super::query;
use fake_cloud_driver::{Op, Route};
use fake_cloud_kit::{Answer, Body, Call, Error, Plan, Request};
use fake_cloud_model::{Cloud, RouteTarget, parse_cidr};
use ipnet::{IpNet, Ipv4Net};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// The network's id.
pub(super) const NETWORK_ID: u64 = 1;
/// The network's name.
pub(super) const NETWORK_NAME: &str = "fake-network";
/// All of IPv4: the machines of a test may have addresses in any private range.
const IP_RANGE: &str = "0.0.0.0/0";
/// The largest number of routes in a network.
const MOST_ROUTES: usize = 100;
/// The range of the load balancers' addresses: 10.255.0.0/16.
const BALANCERS: u32 = 0x0aff_0000;
/// An address that is not in use: the gateway of a black hole that a test has created.
const UNUSED: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 1);

#[derive(Serialize)]
struct Network {
    id: u64,
    name: &'static str,
    created: String,
    ip_range: &'static str,
    subnets: [Subnet; 1],
    routes: Vec<ShownRoute>,
    servers: Vec<u64>,
    load_balancers: Vec<u64>,
    protection: Protection,
    labels: BTreeMap<String, String>,
    expose_routes_to_vswitch: bool,
}

#[derive(Serialize)]
struct Subnet {
    #[serde(rename = "type")]
    kind: &'static str,
    ip_range: &'static str,
    network_zone: &'static str,
    gateway: &'static str,
    vswitch_id: Option<u64>,
}

#[derive(Serialize)]
struct ShownRoute {
    destination: String,
    gateway: String,
}

#[derive(Serialize)]
struct Protection {
    delete: bool,
}

fn show(cloud: &mut Cloud, now: Now) -> Network {
    let routes = cloud.list_routes(now.time);
    let routes = routes.iter().map(|route| ShownRoute {
        destination: route.destination.clone(),
        gateway: gateway(cloud, route).unwrap_or(UNUSED).to_string(),
    });
    let routes = routes.collect();
    let attached = |lb: &&fake_cloud_driver::LoadBalancer| Details::of(lb).private_ip.is_some();
    let load_balancers = cloud.load_balancers(now.time).filter(attached).map(|lb| number(&lb.id)).collect();
    let has_internal = |instance: &&fake_cloud_driver::Instance| {
        instance.addresses.iter().any(|address| address.kind == "InternalIP")
    };
    let servers = cloud.instances().filter(has_internal).map(|instance| number(&instance.id)).collect();
    Network {
        id: NETWORK_ID,
        name: NETWORK_NAME,
        created: now.clock.text(std::time::Duration::ZERO),
        ip_range: IP_RANGE,
        subnets: [Subnet {
            kind: "cloud",
            ip_range: IP_RANGE,
            network_zone: "eu-central",
            gateway: "0.0.0.1",
            vswitch_id: None,
        }],
        routes,
        servers,
        load_balancers,
        protection: Protection { delete: false },
        labels: BTreeMap::new(),
        expose_routes_to_vswitch: false,
    }
}

/// The gateway of a route: its own address, or that of its machine if a test has created it without one.
fn gateway(cloud: &Cloud, route: &Route) -> Option<Ipv4Addr> {
    let own = route.target_addresses.iter().find_map(|address| address.parse().ok());
    own.or_else(|| {
        let instance = cloud.instance(route.target_instance.as_deref()?).ok()?;
        let internal = instance.addresses.iter().filter(|address| address.kind == "InternalIP");
        internal.into_iter().find_map(|address| address.address.parse().ok())
    })
}

pub(super) fn list(clock: Clock, request: &Request) -> Plan {
    let query = query::list(request, &["name", "label_selector"], &["id", "name", "created"]);
    let mut call = Call::new(Op::RouteList);
    for (key, value) in query.filters() {
        call = call.keyed(key, value);
    }
    planned(clock, call, query, |query, cloud, now| {
        let limit = cloud.page_size();
        let fits = query.fits("name", NETWORK_NAME) && query.besides.selects(|_| None);
        let found: Vec<Network> = fits.then(|| show(cloud, now)).into_iter().collect();
        Ok(query::page(query, "networks", limit, found, |_, _| String::new(), |network| network))
    })
}

/// Reading the network includes its routes, so this counts as listing them. The model does not get the
/// network's id, because a machine could have the same id.
pub(super) fn read(clock: Clock, request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(clock, Call::new(Op::RouteList), query::none(request), move |_, cloud, now| {
        check_id(&id)?;
        Ok(Answer::one(200, "network", &show(cloud, now)))
    })
}

fn check_id(id: &str) -> Result<(), Error> {
    if id == NETWORK_ID.to_string() { Ok(()) } else { Err(errors::not_found("network", id)) }
}

/// The body of a request that adds or deletes a route.
#[derive(Deserialize)]
struct RouteKeys {
    destination: String,
    gateway: String,
}

impl RouteKeys {
    fn read(&self) -> Result<(Ipv4Net, Ipv4Addr), Error> {
        let destination = match parse_cidr(&self.destination) {
            Some(IpNet::V4(range)) => range,
            _ => return Err(errors::field("destination", "is not an IPv4 range")),
        };
        let gateway = self.gateway.parse().map_err(|_| errors::field("gateway", "is not an IPv4 address"))?;
        Ok((destination, gateway))
    }
}

fn resources() -> Vec<(String, String)> {
    vec![("network".to_owned(), NETWORK_ID.to_string())]
}

pub(super) fn add_route(clock: Clock, request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    let body: Body<RouteKeys> = Body::of(request);
    let mut call = Call::new(Op::RouteCreate);
    if let Ok(new) = &body.value {
        call = call.keyed("destination", &new.destination).naming(&new.gateway);
    }
    planned_with(clock, call, request, body, move |new, cloud, now| {
        check_id(&id)?;
        let (destination, gateway) = new.read()?;
        let mut created = String::new();
        let action = act(cloud, now, "add_route", resources(), |cloud| {
            check_free(cloud, destination, now)?;
            let route = cloud.create_route(&new.destination, RouteTarget::Address(gateway.into()))?;
            created = route.id;
            Ok(())
        })?;
        let answer = changed(&action);
        Ok(if created.is_empty() { answer } else { answer.creating(&created) })
    })
}

/// Checks that the destination does not exist yet and does not overlap with another one.
fn check_free(cloud: &mut Cloud, wanted: Ipv4Net, now: Now) -> Result<(), Error> {
    let routes = cloud.list_routes(now.time);
    if routes.len() >= MOST_ROUTES {
        return Err(errors::limit(format!("a network has at most {MOST_ROUTES} routes")));
    }
    for route in routes {
        let Some(IpNet::V4(other)) = parse_cidr(&route.destination) else { continue };
        if !other.contains(&wanted) && !wanted.contains(&other) {
            continue;
        }
        return Err(if wanted.prefix_len() == other.prefix_len() {
            Error::said(409, "conflict", format!("there is a route to {}", route.destination))
        } else {
            errors::field("destination", &format!("overlaps with {}", route.destination))
        });
    }
    Ok(())
}

pub(super) fn delete_route(clock: Clock, request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    let body: Body<RouteKeys> = Body::of(request);
    let mut call = Call::new(Op::RouteDelete);
    if let Ok(old) = &body.value {
        call = call.keyed("destination", &old.destination).naming(&old.gateway);
    }
    planned_with(clock, call, request, body, move |old, cloud, now| {
        check_id(&id)?;
        let (destination, wanted) = old.read()?;
        let action = act(cloud, now, "delete_route", resources(), |cloud| {
            let same = |route: &&Route| {
                parse_cidr(&route.destination) == Some(destination.into())
                    && gateway(cloud, route).unwrap_or(UNUSED) == wanted
            };
            let found = cloud.routes().find(same).map(|route| route.id.clone());
            let found =
                found.ok_or_else(|| Error::said(404, "not_found", "the network has no such route"))?;
            Ok(cloud.delete_route(&found)?)
        })?;
        Ok(changed(&action))
    })
}

/// The requested address, or one that no load balancer has.
pub(super) fn free_address(cloud: &mut Cloud, wanted: Option<Ipv4Addr>, now: Now) -> Result<Ipv4Addr, Error> {
    let taken: Vec<Ipv4Addr> =
        cloud.load_balancers(now.time).filter_map(|lb| Details::of(lb).private_ip).collect();
    let free = match wanted {
        Some(ip) => Some(ip).filter(|ip| !taken.contains(ip)),
        None => {
            (2..u32::from(u16::MAX)).map(|n| Ipv4Addr::from(BALANCERS + n)).find(|ip| !taken.contains(ip))
        }
    };
    free.ok_or_else(|| Error::said(422, "ip_not_available", "the IP is not available in the network"))
}
