//! The data of a load balancer that this dialect keeps and the model has no field for.

use super::catalog::{BalancerType, type_named};
use fake_cloud_driver::{Frontend, HealthCheck, LoadBalancer};
use fake_cloud_kit::Error;
use fake_cloud_model::LbSpec;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// The label that identifies a load balancer for the CCM: the model's owner.
pub(super) const OWNER_LABEL: &str = "hcloud-ccm/service-uid";

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Details {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) location: String,
    pub(super) created: String,
    pub(super) algorithm: String,
    /// The labels except [`OWNER_LABEL`].
    pub(super) labels: BTreeMap<String, String>,
    pub(super) public_interface: bool,
    pub(super) protected: bool,
    /// Names by address.
    pub(super) dns_ptr: BTreeMap<String, String>,
    /// Its address in the network, if it is attached.
    pub(super) private_ip: Option<Ipv4Addr>,
    /// The services by the port that they listen on.
    pub(super) services: BTreeMap<u16, Service>,
    /// Backends that are reached by their private address.
    pub(super) private_targets: BTreeSet<String>,
    /// Targets outside of this cloud.
    pub(super) ip_targets: BTreeSet<String>,
}

impl Default for Details {
    fn default() -> Details {
        Details {
            kind: "lb11".to_owned(),
            location: "fsn1".to_owned(),
            created: "2026-01-01T00:00:00+00:00".to_owned(),
            algorithm: "round_robin".to_owned(),
            labels: BTreeMap::new(),
            public_interface: true,
            protected: false,
            dns_ptr: BTreeMap::new(),
            private_ip: None,
            services: BTreeMap::new(),
            private_targets: BTreeSet::new(),
            ip_targets: BTreeSet::new(),
        }
    }
}

/// The settings of a service other than its two ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Service {
    pub(super) protocol: String,
    pub(super) proxyprotocol: bool,
    pub(super) http: Option<Http>,
    pub(super) health_check: Probe,
}

impl Service {
    /// A service with default settings.
    pub(super) fn plain(destination_port: u16) -> Service {
        Service {
            protocol: "tcp".to_owned(),
            proxyprotocol: false,
            http: None,
            health_check: Probe::plain(destination_port),
        }
    }
}

/// The HTTP settings of a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Http {
    pub(super) cookie_name: String,
    pub(super) cookie_lifetime: u64,
    pub(super) certificates: Vec<u64>,
    pub(super) redirect_http: bool,
    pub(super) sticky_sessions: bool,
    pub(super) timeout_idle: u64,
}

impl Default for Http {
    fn default() -> Http {
        Http {
            cookie_name: "HCLBSTICKY".to_owned(),
            cookie_lifetime: 300,
            certificates: Vec::new(),
            redirect_http: false,
            sticky_sessions: false,
            timeout_idle: 60,
        }
    }
}

/// How a service probes its targets; times are in seconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Probe {
    pub(super) protocol: String,
    pub(super) port: u16,
    pub(super) interval: u64,
    pub(super) timeout: u64,
    pub(super) retries: u64,
    pub(super) http: Option<ProbeHttp>,
}

impl Probe {
    /// A probe with default settings.
    pub(super) fn plain(port: u16) -> Probe {
        Probe { protocol: "tcp".to_owned(), port, interval: 15, timeout: 10, retries: 3, http: None }
    }
}

/// The request and the expected answer of an HTTP probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProbeHttp {
    pub(super) domain: Option<String>,
    pub(super) path: String,
    pub(super) response: String,
    pub(super) status_codes: Vec<String>,
    pub(super) tls: bool,
}

impl Default for ProbeHttp {
    fn default() -> ProbeHttp {
        ProbeHttp {
            domain: None,
            path: "/".to_owned(),
            response: String::new(),
            status_codes: vec!["2??".to_owned(), "3??".to_owned()],
            tls: false,
        }
    }
}

impl Details {
    /// The details of a load balancer. Invalid details that a test has set are ignored.
    pub(super) fn of(lb: &LoadBalancer) -> Details {
        Details::deserialize(&lb.details).unwrap_or_default()
    }

    pub(super) fn balancer_type(&self) -> &'static BalancerType {
        type_named(&self.kind)
    }
}

/// A load balancer that is being changed.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) spec: LbSpec,
    pub(super) details: Details,
}

impl Draft {
    pub(super) fn of(lb: &LoadBalancer) -> Draft {
        Draft { spec: LbSpec::of(lb), details: Details::of(lb) }
    }

    /// The number of its targets, including those outside of the cloud.
    pub(super) fn target_count(&self) -> usize {
        self.spec.backends.len() + self.details.ip_targets.len()
    }

    pub(super) fn frontend(&self, port: u16) -> Option<&Frontend> {
        self.spec.frontends.iter().find(|frontend| frontend.port == port)
    }

    /// Adds or replaces the service that listens on this port.
    pub(super) fn put_service(&mut self, (port, node_port): (u16, u16), service: Service) {
        self.take_service(port);
        self.spec.frontends.push(Frontend::new(port, "TCP", node_port));
        self.spec.frontends.sort_unstable();
        self.details.services.insert(port, service);
    }

    /// Removes the service on this port; returns whether there was one.
    pub(super) fn take_service(&mut self, port: u16) -> bool {
        let before = self.spec.frontends.len();
        self.spec.frontends.retain(|frontend| frontend.port != port);
        self.details.services.remove(&port);
        self.spec.frontends.len() < before
    }

    /// Replaces its labels, including the owner's.
    pub(super) fn set_labels(&mut self, mut labels: BTreeMap<String, String>) {
        self.spec.owner = labels.remove(OWNER_LABEL).unwrap_or_default();
        self.details.labels = labels;
    }

    /// The data for the model, which has one health check: that of the first service.
    ///
    /// # Errors
    /// When the details cannot be written, which never happens.
    pub(super) fn finish(mut self) -> Result<LbSpec, Error> {
        let gone = |id: &String| !self.spec.backends.contains(id);
        self.details.private_targets.retain(|id| !gone(id));
        self.spec.health_check = self.spec.frontends.first().map(|frontend| {
            let probe = self.details.services.get(&frontend.port).map(|service| service.health_check.clone());
            health_check(&probe.unwrap_or_else(|| Probe::plain(frontend.node_port)))
        });
        self.spec.details = serde_json::to_value(&self.details)
            .map_err(|error| Error::said(500, "server_error", error.to_string()))?;
        Ok(self.spec)
    }
}

fn health_check(probe: &Probe) -> HealthCheck {
    match &probe.http {
        Some(http) if probe.protocol != "tcp" => {
            HealthCheck { protocol: "HTTP".to_owned(), path: http.path.clone(), port: probe.port }
        }
        _ => HealthCheck { protocol: "TCP".to_owned(), path: String::new(), port: probe.port },
    }
}
