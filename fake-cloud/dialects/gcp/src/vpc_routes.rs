//! Routes of the network. The name of a route is its id; one that the driver API has made is shown with a name and a
//! description as the CCM gives them.

use super::errors::{exists, invalid, not_found};
use super::instances::{INSTANCES, link_of, linked};
use super::names::{CREATED, REGION, Scope, link, network_link, number, short};
use super::operations::{self, Change};
use super::query::{self, reading, writing};
use super::resources::{check_name, name_of, unknown_field};
use fake_cloud_driver::{Op, Route};
use fake_cloud_kit::{Call, Error, Plan, Request};
use fake_cloud_model::{Cloud, parse_cidr};
use serde_json::{Value, json};

/// The collection of routes.
const ROUTES: &str = "routes";
const FIELDS: &[&str] = &["description", "network", "destRange", "nextHopInstance", "priority", "tags"];
/// What the name of a route begins with that the driver API has made.
const PREFIX: &str = "kubernetes-";
/// The description of the CCM's routes.
const TAG: &str = "k8s-node-route";

pub(super) fn list(request: &Request) -> Plan {
    let place = ("compute#route", Scope::Global, ROUTES);
    query::listing(request, Call::new(Op::RouteList), place, |cloud, now| {
        let routes = cloud.list_routes(now);
        routes.iter().map(|route| shown(route, cloud)).collect()
    })
}

pub(super) fn get(request: &Request, name: &str) -> Plan {
    let name = name.to_owned();
    reading(request, Call::new(Op::RouteList), move |cloud, _| {
        let route = find(cloud, &name).ok_or_else(|| not_found(&short(&Scope::Global, ROUTES, &name)))?;
        Ok(shown(&route, cloud))
    })
}

pub(super) fn insert(request: &Request) -> Plan {
    let name = name_of(request);
    let body = request.body::<Value>().unwrap_or(Value::Null);
    let text = |field: &str| body[field].as_str().unwrap_or_default().to_owned();
    let (destination, hop) = (text("destRange"), text("nextHopInstance"));
    let call = Call::new(Op::RouteCreate)
        .keyed("destination", &destination)
        .naming(&name)
        .naming(super::names::name_in(&hop));
    let plan = writing(request, call, move |_, cloud, _now| {
        check_name(&name)?;
        if find(cloud, &name).is_some() {
            return Err(exists(&short(&Scope::Global, ROUTES, &name)));
        }
        let route = wanted(cloud, &name, &destination, &hop)?;
        let failure = cloud.take_action_failure();
        if failure.is_none() {
            cloud.put_route(route)?;
        }
        Ok(operations::began(
            cloud,
            &Change::of("insert", &Scope::Global, ROUTES, &name),
            failure,
            (_now, _now),
        ))
    });
    plan.with_unknown(unknown_field(request, FIELDS))
}

fn wanted(cloud: &Cloud, name: &str, destination: &str, hop: &str) -> Result<Route, Error> {
    if parse_cidr(destination).is_none_or(|range| range != range.trunc()) {
        return Err(invalid("resource.destRange", destination, "Must be a valid CIDR address range."));
    }
    let instance = linked(cloud, hop)
        .ok_or_else(|| invalid("resource.nextHopInstance", hop, "The referenced resource does not exist."))?;
    let internal = instance.addresses.iter().filter(|address| address.kind == "InternalIP");
    Ok(Route {
        id: name.to_owned(),
        destination: destination.to_owned(),
        target_instance: Some(instance.id.clone()),
        target_addresses: internal.map(|address| address.address.clone()).collect(),
        blackhole: false,
    })
}

pub(super) fn delete(request: &Request, name: &str) -> Plan {
    let name = name.to_owned();
    let call = Call::on(Op::RouteDelete, name.strip_prefix(PREFIX).unwrap_or(&name)).naming(&name);
    writing(request, call, move |_, cloud, now| {
        let route = find(cloud, &name).ok_or_else(|| not_found(&short(&Scope::Global, ROUTES, &name)))?;
        let failure = cloud.take_action_failure();
        if failure.is_none() {
            cloud.delete_route(&route.id)?;
        }
        Ok(operations::began(
            cloud,
            &Change::of("delete", &Scope::Global, ROUTES, &name),
            failure,
            (now, now),
        ))
    })
}

fn name_of_route(route: &Route) -> String {
    // The driver API numbers its routes.
    let is_number = route.id.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { format!("{PREFIX}{}", route.id) } else { route.id.clone() }
}

fn find(cloud: &Cloud, name: &str) -> Option<Route> {
    cloud.routes().find(|route| name_of_route(route) == name).cloned()
}

fn shown(route: &Route, cloud: &Cloud) -> Value {
    let name = name_of_route(route);
    let target = route.target_instance.as_deref();
    let hop = match target.and_then(|id| cloud.instance(id).ok()) {
        Some(instance) => link_of(instance),
        // A route stays when its instance is deleted.
        None => link(&Scope::Zone(format!("{REGION}-a")), INSTANCES, target.unwrap_or("deleted")),
    };
    json!({
        "kind": "compute#route",
        "id": number(&name).to_string(),
        "name": name,
        "creationTimestamp": CREATED,
        "description": TAG,
        "network": network_link(),
        "destRange": route.destination,
        "priority": 1000,
        "nextHopInstance": hop,
        "selfLink": link(&Scope::Global, ROUTES, &name),
    })
}
