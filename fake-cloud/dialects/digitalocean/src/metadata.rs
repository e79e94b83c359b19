//! The metadata service: requests of a droplet about itself, at `169.254.169.254` in the real cloud.

use fake_cloud_driver::Instance;
use fake_cloud_kit::{Asker, Plan, Request, about_the_asker};
use hyper::Method;

/// The plan of a call.
pub(super) fn plan(request: &Request, asker: Asker) -> Plan {
    let segments = request.segments();
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    let (&Method::GET, ["metadata", "v1", key]) = (&request.method, parts.as_slice()) else {
        return Plan::unknown(request);
    };
    let shown: fn(&Instance) -> &str = match *key {
        "id" => |droplet| &droplet.id,
        "hostname" => |droplet| &droplet.name,
        "region" => |droplet| &droplet.region,
        _ => return Plan::unknown(request),
    };
    about_the_asker(asker, "text/plain", move |droplet| Some(shown(droplet).to_owned()))
}
