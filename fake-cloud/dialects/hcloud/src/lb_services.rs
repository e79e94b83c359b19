//! Services of load balancers: the requests, their defaults, and rejections.

use super::certificates;
use super::details::{Draft, Http, Probe, ProbeHttp, Service};
use super::errors;
use fake_cloud_kit::Error;
use fake_cloud_model::Cloud;
use serde::Deserialize;

/// The body of a request that adds a service.
#[derive(Deserialize)]
pub(super) struct NewService {
    protocol: String,
    listen_port: Option<u16>,
    destination_port: Option<u16>,
    #[serde(default)]
    proxyprotocol: bool,
    http: Option<HttpKeys>,
    health_check: Option<ProbeKeys>,
}

/// The body of a request that changes the service on a port; missing fields do not change.
#[derive(Deserialize)]
pub(super) struct ServiceUpdate {
    listen_port: u16,
    protocol: Option<String>,
    destination_port: Option<u16>,
    proxyprotocol: Option<bool>,
    http: Option<HttpKeys>,
    health_check: Option<ProbeKeys>,
}

/// The body of a request that removes a service.
#[derive(Deserialize)]
pub(super) struct OldService {
    listen_port: u16,
}

#[derive(Deserialize)]
struct HttpKeys {
    cookie_name: Option<String>,
    cookie_lifetime: Option<u64>,
    certificates: Option<Vec<u64>>,
    redirect_http: Option<bool>,
    sticky_sessions: Option<bool>,
    timeout_idle: Option<u64>,
}

impl HttpKeys {
    fn over(self, old: Http) -> Http {
        Http {
            cookie_name: self.cookie_name.unwrap_or(old.cookie_name),
            cookie_lifetime: self.cookie_lifetime.unwrap_or(old.cookie_lifetime),
            certificates: self.certificates.unwrap_or(old.certificates),
            redirect_http: self.redirect_http.unwrap_or(old.redirect_http),
            sticky_sessions: self.sticky_sessions.unwrap_or(old.sticky_sessions),
            timeout_idle: self.timeout_idle.unwrap_or(old.timeout_idle),
        }
    }
}

#[derive(Deserialize)]
struct ProbeKeys {
    protocol: Option<String>,
    port: Option<u16>,
    interval: Option<u64>,
    timeout: Option<u64>,
    retries: Option<u64>,
    http: Option<ProbeHttpKeys>,
}

#[derive(Deserialize)]
struct ProbeHttpKeys {
    domain: Option<String>,
    path: Option<String>,
    response: Option<String>,
    status_codes: Option<Vec<String>>,
    tls: Option<bool>,
}

impl ProbeKeys {
    fn over(self, old: Probe) -> Probe {
        let protocol = self.protocol.unwrap_or(old.protocol);
        let http = match (protocol.as_str(), self.http) {
            ("tcp", _) => None,
            (_, None) => Some(old.http.unwrap_or_default()),
            (_, Some(keys)) => {
                let old = old.http.unwrap_or_default();
                Some(ProbeHttp {
                    domain: keys.domain.or(old.domain),
                    path: keys.path.unwrap_or(old.path),
                    response: keys.response.unwrap_or(old.response),
                    status_codes: keys.status_codes.unwrap_or(old.status_codes),
                    tls: keys.tls.unwrap_or(old.tls),
                })
            }
        };
        Probe {
            protocol,
            port: self.port.unwrap_or(old.port),
            interval: self.interval.unwrap_or(old.interval),
            timeout: self.timeout.unwrap_or(old.timeout),
            retries: self.retries.unwrap_or(old.retries),
            http,
        }
    }
}

impl NewService {
    /// Adds the service to a load balancer.
    pub(super) fn add_to(self, draft: &mut Draft, cloud: &Cloud) -> Result<(), Error> {
        let usual = match self.protocol.as_str() {
            "http" => Some(80),
            "https" => Some(443),
            _ => None,
        };
        let listen_port = self.listen_port.or(usual).ok_or_else(|| errors::missing("listen_port"))?;
        // The traffic behind a load balancer with TLS is usually not encrypted.
        let destination_port = self
            .destination_port
            .or(usual.and(Some(80)))
            .ok_or_else(|| errors::missing("destination_port"))?;
        if draft.frontend(listen_port).is_some() {
            let message = format!("source port {listen_port} is already used");
            return Err(Error::said(409, "source_port_already_used", message));
        }
        let kind = draft.details.balancer_type();
        if draft.spec.frontends.len() >= kind.max_services {
            return Err(errors::limit(format!("{} has at most {} services", kind.name, kind.max_services)));
        }
        let plain = Probe::plain(destination_port);
        let service = Service {
            http: http_for(&self.protocol, self.http, Http::default()),
            protocol: self.protocol,
            proxyprotocol: self.proxyprotocol,
            health_check: self.health_check.map_or(plain.clone(), |keys| keys.over(plain)),
        };
        check(&service, (listen_port, destination_port), cloud)?;
        draft.put_service((listen_port, destination_port), service);
        Ok(())
    }
}

impl ServiceUpdate {
    /// Changes a load balancer's service.
    pub(super) fn apply_to(self, draft: &mut Draft, cloud: &Cloud) -> Result<(), Error> {
        let Some(frontend) = draft.frontend(self.listen_port) else {
            return Err(no_service(self.listen_port));
        };
        let node_port = frontend.node_port;
        let old = draft.details.services.get(&self.listen_port).cloned();
        let old = old.unwrap_or_else(|| Service::plain(node_port));
        let protocol = self.protocol.unwrap_or(old.protocol);
        let destination_port = self.destination_port.unwrap_or(node_port);
        let service = Service {
            http: http_for(&protocol, self.http, old.http.unwrap_or_default()),
            protocol,
            proxyprotocol: self.proxyprotocol.unwrap_or(old.proxyprotocol),
            health_check: match self.health_check {
                Some(keys) => keys.over(old.health_check),
                None => old.health_check,
            },
        };
        check(&service, (self.listen_port, destination_port), cloud)?;
        draft.put_service((self.listen_port, destination_port), service);
        Ok(())
    }
}

impl OldService {
    /// Removes the service from a load balancer.
    pub(super) fn take_from(self, draft: &mut Draft) -> Result<(), Error> {
        if draft.take_service(self.listen_port) { Ok(()) } else { Err(no_service(self.listen_port)) }
    }
}

fn no_service(port: u16) -> Error {
    Error::said(404, "not_found", format!("the load_balancer has no service on port {port}"))
}

fn http_for(protocol: &str, keys: Option<HttpKeys>, old: Http) -> Option<Http> {
    match (protocol, keys) {
        ("tcp", _) => None,
        (_, None) => Some(old),
        (_, Some(keys)) => Some(keys.over(old)),
    }
}

fn check(service: &Service, ports: (u16, u16), cloud: &Cloud) -> Result<(), Error> {
    let one_of = "must be one of tcp, http, https";
    if !matches!(service.protocol.as_str(), "tcp" | "http" | "https") {
        return Err(errors::field("protocol", one_of));
    }
    for (name, port) in [
        ("listen_port", ports.0),
        ("destination_port", ports.1),
        ("health_check.port", service.health_check.port),
    ] {
        if port == 0 {
            return Err(errors::field(name, "must be from 1 to 65535"));
        }
    }
    let probe = &service.health_check;
    if !matches!(probe.protocol.as_str(), "tcp" | "http" | "https") {
        return Err(errors::field("health_check.protocol", one_of));
    }
    let ranges = [
        ("health_check.interval", probe.interval, 3..=60),
        ("health_check.timeout", probe.timeout, 1..=60),
        ("health_check.retries", probe.retries, 1..=5),
    ];
    for (name, value, range) in ranges {
        if !range.contains(&value) {
            let words = format!("must be from {} to {}", range.start(), range.end());
            return Err(errors::field(name, &words));
        }
    }
    if probe.http.as_ref().is_some_and(|http| !http.path.starts_with('/')) {
        return Err(errors::field("health_check.http.path", "must begin with /"));
    }
    let Some(http) = &service.http else { return Ok(()) };
    if service.protocol == "https" && http.certificates.is_empty() {
        return Err(errors::field("http.certificates", "a service of protocol https needs one at least"));
    }
    match http.certificates.iter().find(|id| !certificates::exists(cloud, **id)) {
        None => Ok(()),
        Some(id) => Err(errors::not_found("certificate", id)),
    }
}
