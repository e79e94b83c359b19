//! The calls of the `linode` dialect: from method and path to their meaning and effect.

use super::state::State;
use super::{configs, instances, nodebalancers};
use fake_cloud_driver::Op;
use fake_cloud_kit::{Call, Plan, Request};
use hyper::Method;
use std::sync::Arc;

/// The plan of a call.
pub(super) fn plan(state: &Arc<State>, request: &Request) -> Plan {
    let segments = request.segments();
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    let ["v4", parts @ ..] = parts.as_slice() else { return Plan::unknown(request) };
    match (&request.method, parts) {
        (&Method::GET, ["profile"]) => instances::profile(state, request),
        (&Method::GET, ["linode", "instances"]) => instances::list(state, request),
        (&Method::GET, ["linode", "instances", id]) => instances::get(state, request, id),
        (&Method::GET, ["linode", "instances", ..]) => Plan::unknown(request),
        (_, ["linode", "instances"]) => instances::forbidden(state, request, Call::new(Op::InstanceWrite)),
        (_, ["linode", "instances", id, ..]) => {
            instances::forbidden(state, request, Call::on(Op::InstanceWrite, id))
        }
        (&Method::GET, ["nodebalancers"]) => nodebalancers::list(state, request),
        (&Method::POST, ["nodebalancers"]) => nodebalancers::create(state, request),
        (&Method::GET, ["nodebalancers", id]) => nodebalancers::get(state, request, id),
        (&Method::PUT, ["nodebalancers", id]) => nodebalancers::update(state, request, id),
        (&Method::DELETE, ["nodebalancers", id]) => nodebalancers::delete(state, request, id),
        (&Method::GET, ["nodebalancers", id, "firewalls"]) => nodebalancers::firewalls(state, request, id),
        (&Method::GET, ["nodebalancers", id, "configs"]) => configs::list(state, request, id),
        (&Method::POST, ["nodebalancers", id, "configs"]) => configs::create(state, request, id),
        (&Method::GET, ["nodebalancers", id, "configs", config]) => configs::get(state, request, id, config),
        (&Method::DELETE, ["nodebalancers", id, "configs", config]) => {
            configs::delete(state, request, id, config)
        }
        (&Method::POST, ["nodebalancers", id, "configs", config, "rebuild"]) => {
            configs::rebuild(state, request, id, config)
        }
        (&Method::GET, ["nodebalancers", id, "configs", config, "nodes"]) => {
            configs::nodes(state, request, id, config)
        }
        (&Method::GET, ["nodebalancers", id, "configs", config, "nodes", node]) => {
            configs::node(state, request, id, config, node)
        }
        _ => Plan::unknown(request),
    }
}
