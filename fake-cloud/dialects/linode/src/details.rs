//! The data of a NodeBalancer that the model has no field for: its configs, each a port with its nodes.

use fake_cloud_driver::{Frontend, HealthCheck, LoadBalancer};
use fake_cloud_kit::Error;
use fake_cloud_model::LbSpec;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// See the module.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(default)]
pub(super) struct Details {
    pub(super) region: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) client_conn_throttle: u32,
    pub(super) client_udp_sess_throttle: u32,
    pub(super) tags: Vec<String>,
    pub(super) configs: Vec<Config>,
    pub(super) created: String,
    pub(super) updated: String,
}

/// A port that a NodeBalancer listens on.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct Config {
    pub(super) id: u64,
    #[serde(flatten)]
    pub(super) settings: Settings,
    pub(super) nodes: Vec<Node>,
}

/// The settings of a config by its creator, in requests, details and answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(default)]
pub(super) struct Settings {
    pub(super) port: u16,
    pub(super) protocol: String,
    pub(super) proxy_protocol: String,
    pub(super) algorithm: String,
    pub(super) stickiness: String,
    pub(super) check: String,
    pub(super) check_interval: u32,
    pub(super) check_timeout: u32,
    pub(super) check_attempts: u32,
    pub(super) check_path: String,
    pub(super) check_body: String,
    pub(super) check_passive: bool,
    pub(super) udp_check_port: u16,
    pub(super) cipher_suite: String,
}

impl Default for Settings {
    fn default() -> Settings {
        let text = str::to_owned;
        Settings {
            port: 80,
            protocol: text("http"),
            proxy_protocol: text("none"),
            algorithm: text("roundrobin"),
            stickiness: text("none"),
            check: text("none"),
            check_interval: 5,
            check_timeout: 3,
            check_attempts: 2,
            check_path: String::new(),
            check_body: String::new(),
            check_passive: true,
            udp_check_port: 80,
            cipher_suite: text("recommended"),
        }
    }
}

/// A destination of a config's traffic.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct Node {
    pub(super) id: u64,
    /// `IP:PORT`.
    pub(super) address: String,
    pub(super) label: String,
    pub(super) weight: u32,
    pub(super) mode: String,
}

impl Node {
    /// Whether the node gets new connections. With the other modes it only ends them, rejects them, or is a backup.
    fn is_served(&self) -> bool {
        // UDP has no modes.
        matches!(self.mode.as_str(), "accept" | "none")
    }

    /// The address, which was checked when the node was created.
    fn socket(&self) -> Option<SocketAddr> {
        self.address.parse().ok()
    }
}

impl Config {
    /// The protocol in the model.
    fn protocol(&self) -> &'static str {
        if self.settings.protocol == "udp" { "UDP" } else { "TCP" }
    }

    /// The port on the nodes. A config without nodes forwards nothing.
    fn node_port(&self) -> Option<u16> {
        self.nodes.first().and_then(Node::socket).map(|socket| socket.port())
    }

    fn frontend(&self) -> Option<Frontend> {
        let node_port = self.node_port()?;
        let backends = Some(self.backends().into_iter().collect());
        let health_check = self.health_check();
        Some(Frontend {
            backends,
            health_check,
            ..Frontend::new(self.settings.port, self.protocol(), node_port)
        })
    }

    /// The addresses that new connections go to.
    fn backends(&self) -> BTreeSet<String> {
        let served = self.nodes.iter().filter(|node| node.is_served());
        served.filter_map(Node::socket).map(|socket| socket.ip().to_string()).collect()
    }

    fn health_check(&self) -> Option<HealthCheck> {
        let port = self.node_port()?;
        let (protocol, path) = match self.settings.check.as_str() {
            "connection" => ("TCP", String::new()),
            "http" | "http_body" => ("HTTP", self.settings.check_path.clone()),
            _ => return None,
        };
        Some(HealthCheck { protocol: protocol.to_owned(), path, port })
    }
}

impl Details {
    /// The details of a NodeBalancer. Invalid details that a test has set are ignored.
    pub(super) fn of(lb: &LoadBalancer) -> Details {
        Details::deserialize(&lb.details).unwrap_or_default()
    }

    /// The config with this id.
    pub(super) fn config(&self, id: &str) -> Option<&Config> {
        self.configs.iter().find(|config| config.id.to_string() == id)
    }

    /// The data for the model, which has one health check: that of the first config.
    ///
    /// # Errors
    /// When the details cannot be written, which never happens.
    pub(super) fn into_spec(self, name: String) -> Result<LbSpec, Error> {
        let backends: BTreeSet<String> = self.configs.iter().flat_map(Config::backends).collect();
        let by_client = self.configs.iter().any(|config| config.settings.algorithm == "source");
        Ok(LbSpec {
            name,
            // Nothing else of a NodeBalancer identifies its Service: its label is made from the time. The
            // tags of a Service come after the cluster's own.
            owner: self.tags.last().cloned().unwrap_or_default(),
            frontends: self.configs.iter().filter_map(Config::frontend).collect(),
            backends: backends.into_iter().collect(),
            health_check: self.configs.first().and_then(Config::health_check),
            source_ranges: Vec::new(),
            session_affinity: if by_client { "ClientIP" } else { "" }.to_owned(),
            details: serde_json::to_value(&self)?,
        })
    }
}
