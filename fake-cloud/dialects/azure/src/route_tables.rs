//! The route table of the subnet, whose routes are those of the model. The name of a route is its id; one that the
//! driver API has made is shown with the name that the CCM would give it.

use super::errors::{Arm, invalid, not_found};
use super::members::machine_at;
use super::names::{LOCATION, NETWORK, ROUTE_TABLE, SUBNET, network_id, same};
use super::operations;
use super::query::{self, Precondition, query, tagged, with_body};
use fake_cloud_driver::{Op, Route};
use fake_cloud_kit::{Answer, Call, Error, Plan, Request, planned};
use fake_cloud_model::{Cloud, parse_cidr};
use serde_json::{Value, json};
use std::time::Duration;

const PROVIDER: &str = "Microsoft.Network";
/// The kind of route tables.
pub(super) const KIND: &str = "routeTables";
/// What is between the name of a Node and a range in the name of a route.
const SEPARATOR: &str = "____";
/// The next hop of a route that leads to no machine: an unused address of the subnet.
const UNUSED: &str = "10.255.255.254";

pub(super) fn list(request: &Request) -> Plan {
    planned(&Arm, Call::new(Op::RouteList), query(request), |_, query, cloud, now| {
        let shown = table(cloud, now);
        Ok(query::page(query, cloud.page_size(), std::iter::once(shown)))
    })
}

pub(super) fn get(request: &Request, name: &str) -> Plan {
    let name = name.to_owned();
    planned(&Arm, Call::new(Op::RouteList), query(request), move |_, _, cloud, now| {
        known(&name)?;
        Ok(Answer::json(200, &table(cloud, now)))
    })
}

/// Replaces the routes: those that the body lacks are deleted.
pub(super) fn put(request: &Request, name: &str) -> Plan {
    let (name, guard, base) = (name.to_owned(), Precondition::of(&request.headers), query::base(request));
    let body = request.body::<Value>();
    let tags =
        body.as_ref().ok().and_then(|body| body["tags"].as_object()).is_some_and(|tags| !tags.is_empty());
    let plan = with_body(request, Call::new(Op::RouteCreate), move |body, cloud, now| {
        known(&name)?;
        guard.check(Some(&table(cloud, now)), &network_id(KIND, ROUTE_TABLE))?;
        let wanted = Wanted::all(&body)?;
        let failure = cloud.take_action_failure();
        if failure.is_none() {
            let difference = Difference::of(cloud, &wanted);
            for id in &difference.removed {
                cloud.delete_route(&id.id)?;
            }
            for route in difference.created {
                cloud.put_route(route.into_route(cloud))?;
            }
        }
        let answer = Answer::json(200, &table(cloud, now));
        Ok(operations::began(cloud, &base, KIND, answer, failure, (now, now)))
    });
    plan.with_unknown(tags.then(|| "of the body: tags of a route table".to_owned()))
}

fn known(name: &str) -> Result<(), Error> {
    if same(name, ROUTE_TABLE) { Ok(()) } else { Err(not_found(PROVIDER, KIND, name)) }
}

fn table(cloud: &mut Cloud, now: Duration) -> Value {
    let routes = cloud.list_routes(now);
    let id = network_id(KIND, ROUTE_TABLE);
    let routes: Vec<Value> = routes
        .iter()
        .map(|route| {
            let name = name_of(route, cloud);
            json!({
                "name": name, "id": format!("{id}/routes/{name}"), "type": "Microsoft.Network/routeTables/routes",
                "properties": {"provisioningState": "Succeeded", "addressPrefix": route.destination,
                    "nextHopType": "VirtualAppliance", "nextHopIpAddress": hop(route, cloud)},
            })
        })
        .collect();
    tagged(json!({
        "id": id, "name": ROUTE_TABLE, "location": LOCATION, "type": "Microsoft.Network/routeTables",
        "properties": {"provisioningState": "Succeeded", "disableBgpRoutePropagation": false, "routes": routes,
            "subnets": [{"id": format!("{}/subnets/{SUBNET}", network_id("virtualNetworks", NETWORK))}]},
    }))
}

/// The name of a route: its id if the CCM gave it, otherwise as the CCM would name it.
fn name_of(route: &Route, cloud: &Cloud) -> String {
    let machine = route.target_instance.as_deref().and_then(|id| cloud.instance(id).ok());
    match machine {
        Some(machine) if !route.id.contains(SEPARATOR) => {
            let range: String = route.destination.chars().filter(|c| !matches!(c, ':' | '.' | '/')).collect();
            format!("{}{SEPARATOR}{range}", machine.name)
        }
        _ => route.id.clone(),
    }
}

/// The next hop of a route.
fn hop(route: &Route, cloud: &Cloud) -> String {
    let of_machine = || {
        let machine = cloud.instance(route.target_instance.as_deref()?).ok()?;
        machine.addresses.iter().find(|a| a.kind == "InternalIP").map(|a| a.address.clone())
    };
    route.target_addresses.first().cloned().or_else(of_machine).unwrap_or_else(|| UNUSED.to_owned())
}

/// A route as a request describes it.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) name: String,
    pub(super) destination: String,
    pub(super) hop: String,
}

impl Wanted {
    /// The routes in a body.
    pub(super) fn all(body: &Value) -> Result<Vec<Wanted>, Error> {
        let mut wanted: Vec<Wanted> = Vec::new();
        for route in body["properties"]["routes"].as_array().into_iter().flatten() {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let properties = &route["properties"];
            let one = Wanted {
                name: text(&route["name"]),
                destination: text(&properties["addressPrefix"]),
                hop: text(&properties["nextHopIpAddress"]),
            };
            if one.name.is_empty() || wanted.iter().any(|known| same(&known.name, &one.name)) {
                let why = format!("The route name '{:.80}' is missing or used twice.", one.name);
                return Err(invalid("InvalidResourceName", why));
            }
            if parse_cidr(&one.destination).is_none_or(|range| range != range.trunc()) {
                let why =
                    format!("Address prefix {:.60} of the route {} is not valid.", one.destination, one.name);
                return Err(invalid("InvalidAddressPrefixFormat", why));
            }
            if wanted.iter().any(|known| known.destination == one.destination) {
                let why = format!("Two routes have the address prefix {}.", one.destination);
                return Err(invalid("RouteConflict", why));
            }
            wanted.push(one);
        }
        Ok(wanted)
    }

    fn is(&self, route: &Route, cloud: &Cloud) -> bool {
        same(&self.name, &name_of(route, cloud))
            && self.destination == route.destination
            && self.hop == hop(route, cloud)
    }

    fn into_route(self, cloud: &Cloud) -> Route {
        let target = machine_at(cloud, &self.hop);
        let target_instance = cloud.instance(&target).is_ok().then_some(target);
        Route {
            id: self.name,
            destination: self.destination,
            blackhole: target_instance.is_none(),
            target_instance,
            target_addresses: vec![self.hop],
        }
    }
}

/// How a body changes the routes.
pub(super) struct Difference {
    pub(super) created: Vec<Wanted>,
    pub(super) removed: Vec<Route>,
}

impl Difference {
    pub(super) fn of(cloud: &Cloud, wanted: &[Wanted]) -> Difference {
        let present: Vec<Route> = cloud.routes().cloned().collect();
        let gone = |route: &&Route| !wanted.iter().any(|one| one.is(route, cloud));
        let new = |one: &&Wanted| !present.iter().any(|route| one.is(route, cloud));
        Difference {
            created: wanted.iter().filter(new).cloned().collect(),
            removed: present.iter().filter(gone).cloned().collect(),
        }
    }
}
