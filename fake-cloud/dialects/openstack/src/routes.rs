//! The calls of the `openstack` dialect: from service, method and path to their meaning and effect.

use super::parts::Kind;
use super::services::{self, Service};
use super::{balancers, changes, floating_ips, identity, networks, router, servers};
use fake_cloud_driver::Op;
use fake_cloud_kit::{Call, Plan, Request};
use hyper::Method;

/// The plan of a call.
pub(super) fn plan(request: &Request) -> Plan {
    let segments = request.segments();
    let mut parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    if parts.last() == Some(&"") {
        parts.pop();
    }
    let found = match parts.as_slice() {
        [first, rest @ ..] => services::of(first).and_then(|service| match (service, rest) {
            _ if services::is_public(request) => Some(services::versions(service, request)),
            (Service::Identity, ["v3", "auth", "tokens"]) if request.method == Method::POST => {
                Some(identity::token(request))
            }
            (Service::Compute, ["v2.1", rest @ ..]) => compute(request, rest),
            (Service::Network, ["v2.0", rest @ ..]) => network(request, rest),
            (Service::LoadBalancer, ["v2.0" | "v2", "lbaas", rest @ ..]) => octavia(request, rest),
            _ => None,
        }),
        [] => None,
    };
    found.unwrap_or_else(|| Plan::unknown(request))
}

fn compute(request: &Request, parts: &[&str]) -> Option<Plan> {
    Some(match (&request.method, parts) {
        (&Method::GET, ["servers", "detail"]) => servers::list(request, true),
        (&Method::GET, ["servers"]) => servers::list(request, false),
        (&Method::GET, ["servers", id]) => servers::get(request, id),
        (&Method::POST, ["servers"]) => servers::forbidden(request, Call::new(Op::InstanceWrite)),
        (&(Method::PUT | Method::DELETE), ["servers", id]) | (&Method::POST, ["servers", id, "action"]) => {
            servers::forbidden(request, Call::on(Op::InstanceWrite, id))
        }
        _ => return None,
    })
}

fn network(request: &Request, parts: &[&str]) -> Option<Plan> {
    Some(match (&request.method, parts) {
        (&Method::GET, ["ports"]) => networks::ports(request),
        (&Method::GET, ["extensions"]) => networks::fixed(request, "extensions", &["alias"]),
        (&Method::GET, ["networks"]) => networks::fixed(request, "networks", &["name", "router:external"]),
        (&Method::GET, ["networks", id]) => networks::one(request, "networks", id),
        (&Method::GET, ["subnets"]) => networks::fixed(request, "subnets", &["network_id", "name"]),
        (&Method::GET, ["subnets", id]) => networks::one(request, "subnets", id),
        (&Method::GET, ["security-groups"]) => networks::security_groups(request),
        (&Method::GET, ["floatingips"]) => floating_ips::list(request),
        (&Method::POST, ["floatingips"]) => floating_ips::create(request),
        (&Method::GET, ["floatingips", id]) => floating_ips::get(request, id),
        (&Method::PUT, ["floatingips", id]) => floating_ips::update(request, id),
        (&Method::DELETE, ["floatingips", id]) => floating_ips::delete(request, id),
        (&Method::GET, ["routers"]) => router::list(request),
        (&Method::GET, ["routers", id]) => router::get(request, id),
        (&Method::PUT, ["routers", id, "add_extraroutes"]) => router::add(request, id),
        (&Method::PUT, ["routers", id, "remove_extraroutes"]) => router::remove(request, id),
        _ => return None,
    })
}

fn octavia(request: &Request, parts: &[&str]) -> Option<Plan> {
    let part = |name: &str| match name {
        "listeners" => Some(Kind::Listener),
        "pools" => Some(Kind::Pool),
        "healthmonitors" => Some(Kind::Monitor),
        _ => None,
    };
    Some(match (&request.method, parts) {
        (&Method::GET, ["loadbalancers"]) => balancers::list(request),
        (&Method::POST, ["loadbalancers"]) => balancers::create(request),
        (&Method::GET, ["loadbalancers", id]) => balancers::get(request, id),
        (&Method::PUT, ["loadbalancers", id]) => balancers::update(request, id),
        (&Method::DELETE, ["loadbalancers", id]) => balancers::delete(request, id),
        (&Method::GET, ["pools", id, "members"]) => changes::members(request, id),
        (&Method::PUT, ["pools", id, "members"]) => changes::set_members(request, id),
        (&Method::GET, [name]) => changes::list(request, part(name)?),
        (&Method::POST, [name]) => changes::create(request, part(name)?),
        (&Method::GET, [name, id]) => changes::get(request, part(name)?, id),
        (&Method::PUT, [name, id]) => changes::update(request, part(name)?, id),
        (&Method::DELETE, [name, id]) => changes::delete(request, part(name)?, id),
        _ => return None,
    })
}
