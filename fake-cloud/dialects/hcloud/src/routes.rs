//! The calls of the `hcloud` dialect: from method and path to their meaning.

use super::clock::Clock;
use super::offers::Whose;
use super::shown::Shown;
use super::{certificates, lb_changes, load_balancers, networks, offers, servers};
use fake_cloud_driver::Op;
use fake_cloud_kit::{Call, Plan, Request};
use hyper::Method;
use std::sync::Arc;

/// The plan of a call.
pub(super) fn plan(clock: Clock, texts: &Arc<Shown>, request: &Request) -> Plan {
    let segments = request.segments();
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    let found = match parts.as_slice() {
        ["v1", rest @ ..] => of_the_api(clock, texts, request, rest),
        _ => None,
    };
    found.unwrap_or_else(|| Plan::unknown(request))
}

fn of_the_api(clock: Clock, texts: &Arc<Shown>, request: &Request, parts: &[&str]) -> Option<Plan> {
    const LB: &str = "load_balancer";
    Some(match (&request.method, parts) {
        (&Method::GET, ["locations"]) => offers::locations(clock, request),
        (&Method::GET, ["locations", id]) => offers::location(clock, request, id),
        (&Method::GET, ["load_balancer_types"]) => offers::balancer_types(clock, request),
        (&Method::GET, ["load_balancer_types", id]) => offers::balancer_type(clock, request, id),
        (&Method::GET, ["actions"]) => offers::actions(clock, request, Whose::All),
        (&Method::GET, ["actions", id]) => offers::action(clock, request, Whose::All, id),
        (&Method::GET, ["servers"]) => servers::list(clock, texts, request),
        (&Method::GET, ["servers", id]) => servers::read(clock, texts, request, id),
        (&Method::POST, ["servers"]) => servers::forbidden(Call::new(Op::InstanceWrite)),
        (&(Method::PUT | Method::DELETE), ["servers", id])
        | (&Method::POST, ["servers", id, "actions", _]) => {
            servers::forbidden(Call::on(Op::InstanceWrite, id))
        }
        (&Method::GET, ["load_balancers"]) => load_balancers::list(clock, texts, request),
        (&Method::POST, ["load_balancers"]) => load_balancers::create(clock, request),
        (&Method::GET, ["load_balancers", "actions"]) => offers::actions(clock, request, Whose::Kind(LB)),
        (&Method::GET, ["load_balancers", "actions", id]) => {
            offers::action(clock, request, Whose::Kind(LB), id)
        }
        (&Method::GET, ["load_balancers", id]) => load_balancers::read(clock, texts, request, id),
        (&Method::PUT, ["load_balancers", id]) => load_balancers::rename(clock, request, id),
        (&Method::DELETE, ["load_balancers", id]) => load_balancers::delete(clock, request, id),
        (&Method::GET, ["load_balancers", id, "actions"]) => {
            offers::actions(clock, request, Whose::One(LB, (*id).to_owned()))
        }
        (&Method::GET, ["load_balancers", id, "actions", action]) => {
            offers::action(clock, request, Whose::One(LB, (*id).to_owned()), action)
        }
        (&Method::POST, ["load_balancers", id, "actions", action]) => {
            return lb_changes::plan(clock, request, id, action);
        }
        (&Method::GET, ["networks"]) => networks::list(clock, request),
        (&Method::GET, ["networks", id]) => networks::read(clock, request, id),
        (&Method::POST, ["networks", id, "actions", "add_route"]) => networks::add_route(clock, request, id),
        (&Method::POST, ["networks", id, "actions", "delete_route"]) => {
            networks::delete_route(clock, request, id)
        }
        (&Method::GET, ["certificates"]) => certificates::list(clock, request),
        (&Method::POST, ["certificates"]) => certificates::create(clock, request),
        (&Method::GET, ["certificates", id]) => certificates::read(clock, request, id),
        (&Method::PUT, ["certificates", id]) => certificates::rename(clock, request, id),
        (&Method::DELETE, ["certificates", id]) => certificates::delete(clock, request, id),
        _ => return None,
    })
}
