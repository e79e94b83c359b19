//! Targets of load balancers: servers of this cloud, and addresses outside of it.

use super::details::Draft;
use super::errors;
use fake_cloud_kit::Error;
use fake_cloud_model::Cloud;
use serde::Deserialize;
use std::net::IpAddr;

/// The body of a request that adds a target.
#[derive(Deserialize)]
pub(super) struct NewTarget {
    #[serde(rename = "type")]
    kind: String,
    server: Option<ServerKeys>,
    ip: Option<IpKeys>,
    #[serde(default)]
    use_private_ip: bool,
}

/// The body of a request that removes a target.
#[derive(Deserialize)]
pub(super) struct OldTarget {
    #[serde(rename = "type")]
    kind: String,
    server: Option<ServerKeys>,
    ip: Option<IpKeys>,
}

#[derive(Deserialize)]
struct ServerKeys {
    id: u64,
}

#[derive(Deserialize)]
struct IpKeys {
    ip: String,
}

/// A parsed target.
enum Meant {
    Server(String),
    Ip(String),
}

fn meant(kind: &str, server: Option<ServerKeys>, ip: Option<IpKeys>) -> Result<Meant, Error> {
    match kind {
        "server" => Ok(Meant::Server(server.ok_or_else(|| errors::missing("server"))?.id.to_string())),
        "ip" => {
            let given = ip.ok_or_else(|| errors::missing("ip"))?;
            let ip: IpAddr = given.ip.parse().map_err(|_| errors::field("ip.ip", "is not an IP address"))?;
            Ok(Meant::Ip(ip.to_string()))
        }
        _ => Err(errors::field("type", "must be one of server, ip")),
    }
}

impl NewTarget {
    /// Adds the target to a load balancer.
    pub(super) fn add_to(self, draft: &mut Draft, cloud: &Cloud) -> Result<(), Error> {
        let kind = draft.details.balancer_type();
        let full = draft.target_count() >= kind.max_targets;
        let limit = || errors::limit(format!("{} has at most {} targets", kind.name, kind.max_targets));
        let twice = || Error::said(409, "target_already_defined", "the target is already defined");
        match meant(&self.kind, self.server, self.ip)? {
            Meant::Server(id) => {
                let server = cloud.instance(&id).map_err(|_| errors::not_found("server", &id))?;
                if draft.spec.backends.contains(&id) {
                    return Err(twice());
                }
                if full {
                    return Err(limit());
                }
                if self.use_private_ip {
                    if draft.details.private_ip.is_none() {
                        let message = "the load_balancer is not attached to a network";
                        return Err(Error::said(422, "load_balancer_not_attached_to_network", message));
                    }
                    if !server.addresses.iter().any(|address| address.kind == "InternalIP") {
                        let message = "the server is not attached to the network of the load_balancer";
                        return Err(Error::said(422, "server_not_attached_to_network", message));
                    }
                    draft.details.private_targets.insert(id.clone());
                } else if !draft.details.public_interface {
                    let message = "without its public interface the load_balancer needs use_private_ip";
                    return Err(Error::said(422, "invalid_input", message));
                }
                draft.spec.backends.push(id);
            }
            Meant::Ip(ip) => {
                if draft.details.ip_targets.contains(&ip) {
                    return Err(twice());
                }
                if full {
                    return Err(limit());
                }
                draft.details.ip_targets.insert(ip);
            }
        }
        Ok(())
    }
}

impl OldTarget {
    /// Removes the target from a load balancer.
    pub(super) fn take_from(self, draft: &mut Draft) -> Result<(), Error> {
        let was_there = match meant(&self.kind, self.server, self.ip)? {
            Meant::Server(id) => {
                let before = draft.spec.backends.len();
                draft.spec.backends.retain(|backend| *backend != id);
                draft.spec.backends.len() < before
            }
            Meant::Ip(ip) => draft.details.ip_targets.remove(&ip),
        };
        if was_there {
            return Ok(());
        }
        Err(Error::said(404, "not_found", "the load_balancer has no such target"))
    }
}
