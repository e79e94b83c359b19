//! The metadata server: requests of an instance about itself, at `169.254.169.254` in the real cloud. It gives no tokens,
//! since it does not know which credential its caller should have.

use super::instances::{address, zone_of};
use super::names::{NETWORK, PROJECT, PROJECT_NUMBER, number};
use fake_cloud_driver::{Instance, Op};
use fake_cloud_kit::{Answer, Asker, Call, Plan, Request, about_the_asker};
use fake_cloud_model::Cloud;
use hyper::Method;
use hyper::header::{HeaderName, HeaderValue};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

const FLAVOR: HeaderName = HeaderName::from_static("metadata-flavor");
const GOOGLE: HeaderValue = HeaderValue::from_static("Google");

/// The plan of a call.
pub(super) fn plan(request: &Request, asker: Asker) -> Plan {
    let segments = request.segments();
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    let rest = match (&request.method, parts.as_slice()) {
        // Clients find out whether there is a metadata server.
        (&Method::GET, [""]) => return flavored(Plan::new(Call::new(Op::Other), |_, _| Answer::empty(200))),
        (&Method::GET, ["computeMetadata", "v1", rest @ ..]) => rest,
        _ => return Plan::unknown(request),
    };
    if request.headers.get(FLAVOR) != Some(&GOOGLE) {
        let text = "Missing required header: Metadata-Flavor\n";
        return Plan::new(Call::new(Op::Other), move |_, _| Answer::text(403, "text/plain", text.to_owned()));
    }
    let shown: fn(&Instance) -> Option<String> = match rest {
        ["project", "project-id"] => |_| Some(PROJECT.to_owned()),
        ["project", "numeric-project-id"] => |_| Some(PROJECT_NUMBER.to_owned()),
        ["universe", "universe-domain"] => |_| Some("googleapis.com".to_owned()),
        ["instance", "id"] => |instance| Some(number(&instance.name).to_string()),
        ["instance", "name"] => |instance| Some(instance.name.clone()),
        ["instance", "hostname"] => |instance| Some(format!("{}.c.{PROJECT}.internal", instance.name)),
        ["instance", "zone"] => {
            |instance| Some(format!("projects/{PROJECT_NUMBER}/zones/{}", zone_of(instance)))
        }
        ["instance", "machine-type"] => {
            |instance| Some(format!("projects/{PROJECT_NUMBER}/machineTypes/{}", instance.instance_type))
        }
        ["instance", "network-interfaces", ""] => |_| Some("0/\n".to_owned()),
        ["instance", "network-interfaces", "0", "network"] => {
            |_| Some(format!("projects/{PROJECT_NUMBER}/networks/{NETWORK}"))
        }
        ["instance", "network-interfaces", "0", "ip"] => {
            |instance| address::<Ipv4Addr>(instance, "InternalIP")
        }
        ["instance", "network-interfaces", "0", "ipv6s"] => {
            |instance| address::<Ipv6Addr>(instance, "InternalIP").map(|ip| format!("{ip}\n"))
        }
        ["instance", "network-interfaces", "0", "access-configs" | "access-configs/", ..]
            if rest.len() <= 4 =>
        {
            |instance| {
                Some(address::<Ipv4Addr>(instance, "ExternalIP").map_or(String::new(), |_| "0/\n".to_owned()))
            }
        }
        ["instance", "network-interfaces", "0", "access-configs", "0", "external-ip"] => {
            |instance| address::<Ipv4Addr>(instance, "ExternalIP")
        }
        _ => return Plan::unknown(request),
    };
    flavored(about_the_asker(asker, "application/text", shown))
}

/// The same plan, with the header by which clients know this server.
fn flavored(plan: Plan) -> Plan {
    let Plan { call, run, unknown } = plan;
    let run = move |cloud: &mut Cloud, now: Duration| run(cloud, now).with(FLAVOR, GOOGLE);
    Plan { call, run: Box::new(run), unknown }
}
