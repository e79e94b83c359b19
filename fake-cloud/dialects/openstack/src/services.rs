//! The services with one address: their paths, their versions, and the form of their errors.

use super::query;
use fake_cloud_driver::Op;
use fake_cloud_kit::{Answer, Call, Denial, Error, Plan, Request, Voice, planned};
use fake_cloud_model::Refusal;
use hyper::Method;
use serde_json::{Value, json};

/// A service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    /// Keystone.
    Identity,
    /// Nova.
    Compute,
    /// Neutron.
    Network,
    /// Octavia.
    LoadBalancer,
}

/// The newest version of Octavia's API, which tells the CCM which features exist.
const OCTAVIA: &str = "v2.26";

impl Service {
    pub(super) const ALL: [Service; 4] =
        [Service::Identity, Service::Compute, Service::Network, Service::LoadBalancer];

    /// Its type and name in the catalog.
    pub(super) fn words(self) -> (&'static str, &'static str) {
        match self {
            Service::Identity => ("identity", "keystone"),
            Service::Compute => ("compute", "nova"),
            Service::Network => ("network", "neutron"),
            Service::LoadBalancer => ("load-balancer", "octavia"),
        }
    }

    /// Its path in the catalog. Clients expect a version in it, and look for other versions in the path without it.
    pub(super) fn path(self) -> &'static str {
        match self {
            Service::Identity => "/identity/v3",
            Service::Compute => "/compute/v2.1",
            Service::Network => "/network",
            Service::LoadBalancer => "/load-balancer",
        }
    }

    /// The description of its versions.
    fn versions(self, host: &str) -> Value {
        let version = |id: &str, status: &str, path: &str| {
            json!({"id": id, "status": status, "updated": "2026-01-02T03:04:05Z",
                "links": [{"rel": "self", "href": format!("{host}{path}/")}]})
        };
        match self {
            Service::Identity => json!({"version": version("v3.14", "stable", self.path())}),
            Service::Compute => {
                let mut version = version("v2.1", "CURRENT", self.path());
                version["version"] = json!("2.1");
                version["min_version"] = json!("2.1");
                json!({ "version": version })
            }
            Service::Network => json!({"versions": [version("v2.0", "CURRENT", "/network/v2.0")]}),
            Service::LoadBalancer => {
                let path = "/load-balancer/v2.0";
                json!({"versions": [version("v2.0", "SUPPORTED", path), version(OCTAVIA, "CURRENT", path)]})
            }
        }
    }
}

/// The service of this path.
pub(super) fn of(first: &str) -> Option<Service> {
    Service::ALL.into_iter().find(|service| service.path().split('/').nth(1) == Some(first))
}

/// Whether a call needs no token: it asks which versions there are.
pub(super) fn is_public(request: &Request) -> bool {
    let path = request.uri.path().trim_end_matches('/');
    request.method == Method::GET && Service::ALL.iter().any(|service| service.path() == path)
}

/// Lists the versions of a service.
pub(super) fn versions(service: Service, request: &Request) -> Plan {
    let shown = service.versions(&query::host(request));
    planned(&service, Call::new(Op::Other), query::none(request), move |_, _, _, _| {
        Ok(Answer::json(200, &shown))
    })
}

/// The error for a missing object.
pub(super) fn not_found(what: &str, id: &str) -> Error {
    Error::Refused(Refusal::NotFound(format!("{what} {id:.80}")))
}

/// The error for an invalid request.
pub(super) fn invalid(message: String) -> Error {
    Error::new(400, message)
}

/// The error for a conflict.
pub(super) fn conflict(message: String) -> Error {
    Error::new(409, message)
}

impl Voice for Service {
    fn answer(&self, result: Result<Answer, Error>) -> Answer {
        result.unwrap_or_else(|error| {
            let status = match error.status() {
                422 if !matches!(error, Error::Denied(_)) => 400,
                other => other,
            };
            let message = match &error {
                Error::Denied(Denial::Unauthenticated) => {
                    "The request you have made requires authentication.".into()
                }
                _ => error.text(),
            };
            let body = match self {
                Service::Identity => {
                    json!({"error": {"code": status, "title": title(status), "message": message}})
                }
                Service::Compute => json!({nova_word(status): {"code": status, "message": message}}),
                Service::Network => {
                    json!({"NeutronError": {"type": title(status), "message": message, "detail": ""}})
                }
                Service::LoadBalancer => {
                    let whose = if status < 500 { "Client" } else { "Server" };
                    json!({"faultcode": whose, "faultstring": message, "debuginfo": null})
                }
            };
            Answer::json(status, &body).retry_after(error.retry_after_s())
        })
    }
}

fn title(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        409 => "Conflict",
        501 => "Not Implemented",
        _ => "Error",
    }
}

fn nova_word(status: u16) -> &'static str {
    match status {
        400 => "badRequest",
        403 => "forbidden",
        404 => "itemNotFound",
        409 => "conflictingRequest",
        _ => "computeFault",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_service_has_words_of_its_own() {
        let said = |service: Service| {
            let answer = service.answer(Err(not_found("thing", "x")));
            (answer.status.as_u16(), serde_json::from_slice::<Value>(&answer.body).expect("JSON"))
        };
        let text = json!("thing x does not exist");
        for (service, pointer) in [
            (Service::Identity, "/error/message"),
            (Service::Compute, "/itemNotFound/message"),
            (Service::Network, "/NeutronError/message"),
            (Service::LoadBalancer, "/faultstring"),
        ] {
            let (status, body) = said(service);
            assert_eq!((status, body.pointer(pointer)), (404, Some(&text)), "{body}");
        }
    }

    #[test]
    fn paths_hold_no_version_where_clients_look_for_one() {
        for service in [Service::Network, Service::LoadBalancer] {
            assert!(!service.path().contains("/v"), "{service:?}");
        }
        assert_eq!(of("compute"), Some(Service::Compute));
        assert_eq!(of("volume"), None);
    }
}
