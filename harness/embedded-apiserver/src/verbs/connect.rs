//! Subresources that lead to a kubelet or a Pod: `exec`, `attach`, `portforward`, `proxy`. No machine here
//! listens for the API server, so they fail as if the kubelet were unreachable.

use embedded_objects::kinds::Kind;
use embedded_objects::status::{self, Status};
use serde_json::Value;

use super::log::container_of;
use crate::http::call::Call;
use crate::http::reply::Outcome;

/// The port of a kubelet that does not announce another one.
const KUBELET_PORT: i64 = 10250;

/// Answers a request to one of these subresources.
pub(super) fn connect(call: &Call, kind: &'static Kind, sub: &str) -> Outcome {
    // The name of a proxy target may have a scheme before it and a port after it.
    let name = match call.name().split(':').collect::<Vec<_>>().as_slice() {
        [_, name, _] | [name, _] if sub == "proxy" => *name,
        _ => call.name(),
    };
    let object = call.api.find(kind, call.namespace_of(kind), name)?.value();
    Err(match (kind.kind, sub) {
        ("Pod", "exec" | "attach") => {
            container_of(&object, call.query.text("container"), call.name())?;
            kubelet_of(call, &object)?
        }
        ("Pod", "portforward") => kubelet_of(call, &object)?,
        ("Pod", _) => {
            let ip = object["status"]["podIP"].as_str().unwrap_or_default();
            if ip.is_empty() {
                return Err(status::bad_request("address not allowed"));
            }
            let port = object["spec"]["containers"][0]["ports"][0]["containerPort"].as_i64().unwrap_or(80);
            unreachable(&format!("{ip}:{port}"))
        }
        ("Node", _) => unreachable(&address(&object, name)),
        _ => status::unavailable(&format!("no endpoints available for service {name:?}")),
    })
}

/// The answer for a Pod if its kubelet would have to be called.
fn kubelet_of(call: &Call, pod: &Value) -> Result<Status, Status> {
    let name = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    if name.is_empty() {
        let why = format!("pod {} does not have a host assigned", call.name());
        return Err(status::bad_request(why));
    }
    let nodes = embedded_objects::kinds::find("", "v1", "nodes").ok_or_else(status::no_such_resource)?;
    let node = call.api.find(nodes, "", name)?.value();
    let at = address(&node, name);
    Ok(status::unexplained(format!("error dialing backend: dial tcp {at}: connect: connection refused")))
}

/// The address that a Node announces for its kubelet.
fn address(node: &Value, name: &str) -> String {
    let addresses = node["status"]["addresses"].as_array();
    let of_type = |kind: &str| {
        let found = addresses.into_iter().flatten().find(|address| address["type"] == kind);
        found.and_then(|address| address["address"].as_str()).map(str::to_owned)
    };
    let host = ["InternalIP", "ExternalIP", "Hostname"].iter().find_map(|kind| of_type(kind));
    let port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].as_i64().filter(|port| *port > 0);
    format!("{}:{}", host.unwrap_or_else(|| name.to_owned()), port.unwrap_or(KUBELET_PORT))
}

fn unreachable(at: &str) -> Status {
    status::unavailable(&format!("error trying to reach service: dial tcp {at}: connect: connection refused"))
}
