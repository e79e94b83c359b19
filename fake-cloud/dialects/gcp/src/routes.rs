//! The calls of the `gcp` dialect: from method and path to their meaning and effect.

use super::addresses::Addresses;
use super::errors::{Google, not_found};
use super::firewalls::Firewalls;
use super::health_checks::HttpHealthChecks;
use super::names::{PROJECT, PROJECT_NUMBER, Scope};
use super::resources::{delete, get, insert, list, update};
use super::target_pools::TargetPools;
use super::{forwarding_rules, identity, instances, operations, places, target_pools, vpc_routes};
use fake_cloud_kit::{Error, Plan, Request, Voice};
use hyper::Method;

/// The plan of a call.
pub(super) fn plan(request: &Request) -> Plan {
    if identity::is_login(request) {
        return identity::plan(request);
    }
    let segments = request.segments();
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    let ["compute", "v1" | "beta" | "alpha", "projects", project, rest @ ..] = parts.as_slice() else {
        return Plan::unknown(request);
    };
    let plan = match rest {
        ["global", rest @ ..] => global(request, rest),
        ["regions", region, rest @ ..] if !rest.is_empty() => regional(request, region, rest),
        ["zones", zone, rest @ ..] if !rest.is_empty() => zonal(request, zone, rest),
        _ => places(request, rest),
    };
    let plan = plan.unwrap_or_else(|| Plan::unknown(request));
    match problem(project, rest) {
        Some(problem) => Plan::new(plan.call, move |_, _| Google.answer(Err(problem))),
        None => plan,
    }
}

/// The error of a call with a wrong project, region or zone.
fn problem(project: &str, rest: &[&str]) -> Option<Error> {
    if project != PROJECT && project != PROJECT_NUMBER {
        return Some(not_found(&format!("projects/{project:.80}")));
    }
    match rest {
        ["regions", region, _, ..] => places::check_region(region).err(),
        ["zones", zone, _, ..] => places::check_zone(zone).err(),
        _ => None,
    }
}

fn places(request: &Request, rest: &[&str]) -> Option<Plan> {
    Some(match (&request.method, rest) {
        (&Method::GET, []) => places::project(request),
        (&Method::GET, ["zones"]) => places::zones(request),
        (&Method::GET, ["zones", name]) => places::zone(request, name),
        (&Method::GET, ["regions"]) => places::regions(request),
        (&Method::GET, ["regions", name]) => places::region(request, name),
        _ => return None,
    })
}

fn operation(request: &Request, scope: Scope, rest: &[&str]) -> Option<Plan> {
    match (&request.method, rest) {
        (&Method::GET, [name]) | (&Method::POST, [name, "wait"]) => {
            Some(operations::get(request, scope, name))
        }
        _ => None,
    }
}

fn zonal(request: &Request, zone: &str, rest: &[&str]) -> Option<Plan> {
    Some(match (&request.method, rest) {
        (&Method::GET, ["instances"]) => instances::list(request, zone),
        (&Method::GET, ["instances", name]) => instances::get(request, zone, name),
        (_, ["instances", name, ..]) => instances::refused(request, zone, name),
        (&Method::GET, ["machineTypes", name]) => places::machine_type(request, zone, name),
        (_, ["operations", rest @ ..]) => return operation(request, Scope::Zone(zone.to_owned()), rest),
        _ => return None,
    })
}

fn global(request: &Request, rest: &[&str]) -> Option<Plan> {
    let scope = Scope::Global;
    Some(match (&request.method, rest) {
        (&Method::GET, ["networks"]) => places::networks(request),
        (&Method::GET, ["networks", name]) => places::network(request, name),
        (&Method::GET, ["firewalls"]) => list::<Firewalls>(request, scope),
        (&Method::POST, ["firewalls"]) => insert::<Firewalls>(request, scope),
        (&Method::GET, ["firewalls", name]) => get::<Firewalls>(request, scope, name),
        (&Method::PATCH, ["firewalls", name]) => update::<Firewalls>(request, scope, name, true),
        (&Method::PUT, ["firewalls", name]) => update::<Firewalls>(request, scope, name, false),
        (&Method::DELETE, ["firewalls", name]) => delete::<Firewalls>(request, scope, name),
        (&Method::GET, ["httpHealthChecks"]) => list::<HttpHealthChecks>(request, scope),
        (&Method::POST, ["httpHealthChecks"]) => insert::<HttpHealthChecks>(request, scope),
        (&Method::GET, ["httpHealthChecks", name]) => get::<HttpHealthChecks>(request, scope, name),
        (&Method::PATCH, ["httpHealthChecks", name]) => {
            update::<HttpHealthChecks>(request, scope, name, true)
        }
        (&Method::PUT, ["httpHealthChecks", name]) => update::<HttpHealthChecks>(request, scope, name, false),
        (&Method::DELETE, ["httpHealthChecks", name]) => delete::<HttpHealthChecks>(request, scope, name),
        (&Method::GET, ["routes"]) => vpc_routes::list(request),
        (&Method::POST, ["routes"]) => vpc_routes::insert(request),
        (&Method::GET, ["routes", name]) => vpc_routes::get(request, name),
        (&Method::DELETE, ["routes", name]) => vpc_routes::delete(request, name),
        (_, ["operations", rest @ ..]) => return operation(request, scope, rest),
        _ => return None,
    })
}

fn regional(request: &Request, region: &str, rest: &[&str]) -> Option<Plan> {
    let scope = Scope::Region(region.to_owned());
    Some(match (&request.method, rest) {
        (&Method::GET, ["subnetworks"]) => places::subnetworks(request, region),
        (&Method::GET, ["subnetworks", name]) => places::subnetwork(request, region, name),
        (&Method::GET, ["addresses"]) => list::<Addresses>(request, scope),
        (&Method::POST, ["addresses"]) => insert::<Addresses>(request, scope),
        (&Method::GET, ["addresses", name]) => get::<Addresses>(request, scope, name),
        (&Method::DELETE, ["addresses", name]) => delete::<Addresses>(request, scope, name),
        (&Method::GET, ["targetPools"]) => list::<TargetPools>(request, scope),
        (&Method::POST, ["targetPools"]) => insert::<TargetPools>(request, scope),
        (&Method::GET, ["targetPools", name]) => get::<TargetPools>(request, scope, name),
        (&Method::DELETE, ["targetPools", name]) => delete::<TargetPools>(request, scope, name),
        (&Method::POST, ["targetPools", name, "addInstance"]) => {
            target_pools::change(request, scope, name, true)
        }
        (&Method::POST, ["targetPools", name, "removeInstance"]) => {
            target_pools::change(request, scope, name, false)
        }
        (&Method::GET, ["forwardingRules"]) => forwarding_rules::list(request, region),
        (&Method::POST, ["forwardingRules"]) => forwarding_rules::insert(request, region),
        (&Method::GET, ["forwardingRules", name]) => forwarding_rules::get(request, region, name),
        (&Method::DELETE, ["forwardingRules", name]) => forwarding_rules::delete(request, region, name),
        (_, ["operations", rest @ ..]) => return operation(request, scope, rest),
        _ => return None,
    })
}
