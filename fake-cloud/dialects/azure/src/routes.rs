//! The calls of the `azure` dialect: from method and path to their meaning and effect.

use super::errors::{Arm, bad_version, no_group, no_subscription, no_version};
use super::names::{GROUP, SUBSCRIPTION, same};
use super::{
    balancers, fixed, identity, interfaces, machines, operations, pools, public_ips, route_tables, security,
    subnets,
};
use fake_cloud_driver::Op;
use fake_cloud_kit::{Error, Plan, Request, Voice};
use hyper::Method;

/// The plan of a call.
pub(super) fn plan(request: &Request) -> Plan {
    if let Some(login) = identity::login(request) {
        return identity::plan(request, login);
    }
    let segments = request.segments();
    let lower: Vec<String> = segments.iter().map(|part| part.to_ascii_lowercase()).collect();
    let kinds: Vec<&str> = lower.iter().map(String::as_str).collect();
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    let planned = match (&request.method, kinds.as_slice()) {
        (&Method::GET, ["metadata", "endpoints"]) => return fixed::endpoints(request),
        (&Method::GET, ["subscriptions", _]) => Some(fixed::subscription(request)),
        (&Method::GET, ["subscriptions", _, "providers", _]) => Some(fixed::provider(request, parts[3])),
        (&Method::GET, ["subscriptions", _, "providers", _, "locations", _, "operations", id]) => {
            Some(operations::status(request, id))
        }
        (&Method::GET, ["subscriptions", _, "providers", _, "locations", _, "operationresults", id]) => {
            Some(operations::result(request, id))
        }
        (&Method::GET, ["subscriptions", _, "resourcegroups", _]) => Some(fixed::group(request)),
        (_, ["subscriptions", _, "resourcegroups", _, "providers", "microsoft.compute", rest @ ..]) => {
            compute(request, rest, &parts[6..])
        }
        (_, ["subscriptions", _, "resourcegroups", _, "providers", "microsoft.network", rest @ ..]) => {
            network(request, rest, &parts[6..])
        }
        _ => None,
    };
    let plan = planned.unwrap_or_else(|| Plan::unknown(request));
    match problem(request, &parts) {
        Some(problem) => Plan::new(plan.call, move |_, _| Arm.answer(Err(problem))),
        None => plan,
    }
}

/// The error of a call with a wrong subscription, resource group or version.
fn problem(request: &Request, parts: &[&str]) -> Option<Error> {
    let version = request.query().find(|(key, _)| key == "api-version").map(|(_, value)| value);
    match (version, parts) {
        (_, ["subscriptions", subscription, ..]) if !same(subscription, SUBSCRIPTION) => {
            Some(no_subscription(subscription))
        }
        (None, _) => Some(no_version()),
        (Some(version), _) if !is_version(&version) => Some(bad_version(&version)),
        (_, ["subscriptions", _, kind, group, ..]) if same(kind, "resourceGroups") && !same(group, GROUP) => {
            Some(no_group(group))
        }
        _ => None,
    }
}

/// Whether a text is a version of an API: a date, possibly of a preview.
fn is_version(text: &str) -> bool {
    let date = text.strip_suffix("-preview").unwrap_or(text);
    let digits =
        |part: &str, length: usize| part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = date.split('-').collect();
    matches!(parts.as_slice(), [year, month, day] if digits(year, 4) && digits(month, 2) && digits(day, 2))
}

/// `kinds` are the parts of the path in lower case.
fn compute(request: &Request, kinds: &[&str], parts: &[&str]) -> Option<Plan> {
    Some(match (&request.method, kinds, parts) {
        (&Method::GET, ["virtualmachines"], _) => machines::list(request),
        (&Method::GET, ["virtualmachines", _], [_, name]) => machines::get(request, name),
        (&Method::GET, ["virtualmachines", _, "instanceview"], [_, name, _]) => {
            machines::instance_view(request, name)
        }
        (&(Method::PUT | Method::PATCH | Method::DELETE), ["virtualmachines", _], [_, name])
        | (&Method::POST, ["virtualmachines", _, _], [_, name, _]) => machines::refused(request, name),
        (&Method::GET, ["availabilitysets" | "virtualmachinescalesets"], _) => machines::no_sets(request),
        (&Method::GET, ["availabilitysets", _], [_, name]) => {
            machines::no_set(request, "availabilitySets", name)
        }
        (&Method::GET, ["virtualmachinescalesets", _], [_, name]) => {
            machines::no_set(request, "virtualMachineScaleSets", name)
        }
        _ => return None,
    })
}

fn network(request: &Request, kinds: &[&str], parts: &[&str]) -> Option<Plan> {
    Some(match (&request.method, kinds, parts) {
        (&Method::GET, ["networkinterfaces"], _) => interfaces::list(request),
        (&Method::GET, ["networkinterfaces", _], [_, name]) => interfaces::get(request, name),
        (&Method::PUT, ["networkinterfaces", _], [_, name]) => interfaces::put(request, name),
        (&Method::GET, ["publicipaddresses"], _) => public_ips::list(request),
        (&Method::GET, ["publicipaddresses", _], [_, name]) => public_ips::get(request, name),
        (&Method::PUT, ["publicipaddresses", _], [_, name]) => public_ips::put(request, name),
        (&Method::DELETE, ["publicipaddresses", _], [_, name]) => public_ips::delete(request, name),
        (&Method::GET, ["loadbalancers"], _) => balancers::list(request),
        (&Method::GET, ["loadbalancers", _], [_, name]) => balancers::get(request, name),
        (&Method::PUT, ["loadbalancers", _], [_, name]) => balancers::put(request, name),
        (&Method::DELETE, ["loadbalancers", _], [_, name]) => balancers::delete(request, name),
        (&Method::GET, ["loadbalancers", _, "backendaddresspools"], [_, name, _]) => {
            pools::list(request, name)
        }
        (&Method::GET, ["loadbalancers", _, "backendaddresspools", _], [_, name, _, pool]) => {
            pools::get(request, name, pool)
        }
        (&Method::PUT, ["loadbalancers", _, "backendaddresspools", _], [_, name, _, pool]) => {
            pools::put(request, name, pool)
        }
        (&Method::DELETE, ["loadbalancers", _, "backendaddresspools", _], [_, name, _, pool]) => {
            pools::delete(request, name, pool)
        }
        (&Method::GET, ["networksecuritygroups"], _) => security::list(request),
        (&Method::GET, ["networksecuritygroups", _], [_, name]) => security::get(request, name),
        (&Method::PUT, ["networksecuritygroups", _], [_, name]) => security::put(request, name),
        (&Method::GET, ["routetables"], _) => route_tables::list(request),
        (&Method::GET, ["routetables", _], [_, name]) => route_tables::get(request, name),
        (&Method::PUT, ["routetables", _], [_, name]) => route_tables::put(request, name),
        (&Method::GET, ["virtualnetworks"], _) => subnets::networks(request),
        (&Method::GET, ["virtualnetworks", _], [_, name]) => subnets::network_named(request, name),
        (&Method::GET, ["virtualnetworks", _, "subnets"], [_, network, _]) => subnets::list(request, network),
        (&Method::GET, ["virtualnetworks", _, "subnets", _], [_, network, _, name]) => {
            subnets::get(request, network, name)
        }
        (&Method::GET, ["privatelinkservices"], _) => fixed::none(request, Op::AuxRead),
        _ => return None,
    })
}
