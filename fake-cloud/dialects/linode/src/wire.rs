//! NodeBalancers, configs and nodes as the API shows them, and the bodies of requests.

use super::details::{Config, Details, Node, Settings};
use super::errors;
use fake_cloud_driver::{LbAddress, LoadBalancer};
use fake_cloud_kit::Error;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

/// A NodeBalancer.
#[derive(Serialize)]
pub(super) struct NodeBalancer<'a> {
    id: u64,
    label: &'a str,
    region: String,
    hostname: String,
    ipv4: String,
    ipv6: Option<String>,
    client_conn_throttle: u32,
    client_udp_sess_throttle: u32,
    tags: Vec<String>,
    #[serde(rename = "type")]
    kind: String,
    transfer: Transfer,
    lke_cluster: Option<()>,
    locks: [&'static str; 0],
    created: String,
    updated: String,
}

#[derive(Serialize)]
struct Transfer {
    total: f32,
    out: f32,
    #[serde(rename = "in")]
    into: f32,
}

impl NodeBalancer<'_> {
    /// The shown form of a NodeBalancer.
    pub(super) fn of(lb: &LoadBalancer) -> NodeBalancer<'_> {
        let details = Details::of(lb);
        let ip = |wanted: fn(&IpAddr) -> bool| lb.addresses.iter().filter_map(|a| a.ip).find(wanted);
        let ipv4 = ip(IpAddr::is_ipv4).map(|ip| ip.to_string()).unwrap_or_default();
        let named = lb.addresses.iter().find_map(|LbAddress { hostname, .. }| hostname.clone());
        NodeBalancer {
            id: number(&lb.id),
            label: &lb.name,
            region: details.region,
            // Every NodeBalancer has a host name, also one that a test created without a name.
            hostname: named.unwrap_or_else(|| format!("{}.ip.example", ipv4.replace('.', "-"))),
            ipv4,
            ipv6: ip(IpAddr::is_ipv6).map(|ip| ip.to_string()),
            client_conn_throttle: details.client_conn_throttle,
            client_udp_sess_throttle: details.client_udp_sess_throttle,
            tags: details.tags,
            kind: details.kind,
            transfer: Transfer { total: 0.0, out: 0.0, into: 0.0 },
            lke_cluster: None,
            locks: [],
            created: details.created,
            updated: details.updated,
        }
    }
}

/// A config.
#[derive(Serialize)]
pub(super) struct ShownConfig {
    id: u64,
    nodebalancer_id: u64,
    #[serde(flatten)]
    settings: Settings,
    ssl_commonname: &'static str,
    ssl_fingerprint: &'static str,
    ssl_cert: Option<()>,
    ssl_key: Option<()>,
    nodes_status: NodesStatus,
}

#[derive(Serialize)]
struct NodesStatus {
    up: usize,
    down: usize,
}

impl ShownConfig {
    pub(super) fn of(balancer: &str, config: &Config) -> ShownConfig {
        ShownConfig {
            id: config.id,
            nodebalancer_id: number(balancer),
            settings: config.settings.clone(),
            ssl_commonname: "",
            ssl_fingerprint: "",
            ssl_cert: None,
            ssl_key: None,
            nodes_status: NodesStatus { up: config.nodes.len(), down: 0 },
        }
    }
}

/// A node.
#[derive(Serialize)]
pub(super) struct ShownNode {
    #[serde(flatten)]
    node: Node,
    status: &'static str,
    config_id: u64,
    nodebalancer_id: u64,
    vpc_config_id: Option<()>,
}

impl ShownNode {
    pub(super) fn of(balancer: &str, config: u64, node: &Node) -> ShownNode {
        ShownNode {
            node: node.clone(),
            status: "UP",
            config_id: config,
            nodebalancer_id: number(balancer),
            vpc_config_id: None,
        }
    }
}

/// An id of the model as a number; 0 for an id that a test has invented.
fn number(id: &str) -> u64 {
    id.parse().unwrap_or_default()
}

/// The body of a request that creates a NodeBalancer.
#[derive(Deserialize)]
pub(super) struct NewBalancer {
    #[serde(default)]
    pub(super) label: Option<String>,
    region: String,
    #[serde(default)]
    client_conn_throttle: u32,
    #[serde(default)]
    client_udp_sess_throttle: u32,
    #[serde(default)]
    pub(super) tags: Vec<String>,
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    configs: Vec<NewConfig>,
}

/// The body of a request that changes a NodeBalancer.
#[derive(Deserialize)]
pub(super) struct ChangedBalancer {
    #[serde(default)]
    pub(super) label: Option<String>,
    #[serde(default)]
    client_conn_throttle: Option<u32>,
    #[serde(default)]
    client_udp_sess_throttle: Option<u32>,
    #[serde(default)]
    tags: Option<Vec<String>>,
}

/// The body of a request that creates or rebuilds a config. A certificate is accepted and not shown again.
#[derive(Deserialize)]
#[serde(default)]
pub(super) struct NewConfig {
    port: u16,
    protocol: String,
    proxy_protocol: String,
    algorithm: String,
    stickiness: String,
    check: String,
    check_interval: u32,
    check_timeout: u32,
    check_attempts: u32,
    check_path: Option<String>,
    check_body: Option<String>,
    check_passive: bool,
    udp_check_port: u16,
    cipher_suite: String,
    ssl_cert: Option<String>,
    ssl_key: Option<String>,
    nodes: Vec<NewNode>,
}

/// A node in a body.
#[derive(Deserialize)]
struct NewNode {
    #[serde(default)]
    id: Option<u64>,
    address: String,
    label: String,
    #[serde(default)]
    weight: Option<u32>,
    #[serde(default)]
    mode: Option<String>,
}

impl NewBalancer {
    /// The requested NodeBalancer; `id` creates ids.
    ///
    /// # Errors
    /// When the request is invalid.
    pub(super) fn into_details(self, now: &str, id: &mut dyn FnMut() -> u64) -> Result<Details, Error> {
        if self.region.is_empty() {
            return Err(errors::field("region", "region is not valid"));
        }
        check_throttle(self.client_conn_throttle)?;
        let kind = self.kind.unwrap_or_else(|| "common".to_owned());
        one_of("type", &kind, &["common", "premium", "premium_40gb"])?;
        let mut details = Details {
            region: self.region,
            kind,
            client_conn_throttle: self.client_conn_throttle,
            client_udp_sess_throttle: self.client_udp_sess_throttle,
            tags: checked_tags(self.tags)?,
            configs: Vec::new(),
            created: now.to_owned(),
            updated: now.to_owned(),
        };
        for config in self.configs {
            config.add_to(&mut details, id)?;
        }
        Ok(details)
    }
}

impl ChangedBalancer {
    /// Changes a NodeBalancer.
    ///
    /// # Errors
    /// When the request is invalid.
    pub(super) fn apply(self, details: &mut Details) -> Result<(), Error> {
        if let Some(throttle) = self.client_conn_throttle {
            check_throttle(throttle)?;
            details.client_conn_throttle = throttle;
        }
        details.client_udp_sess_throttle =
            self.client_udp_sess_throttle.unwrap_or(details.client_udp_sess_throttle);
        if let Some(tags) = self.tags {
            details.tags = checked_tags(tags)?;
        }
        Ok(())
    }
}

impl Default for NewConfig {
    fn default() -> NewConfig {
        let usual = Settings::default();
        NewConfig {
            port: usual.port,
            protocol: usual.protocol,
            proxy_protocol: usual.proxy_protocol,
            algorithm: usual.algorithm,
            stickiness: usual.stickiness,
            check: usual.check,
            check_interval: usual.check_interval,
            check_timeout: usual.check_timeout,
            check_attempts: usual.check_attempts,
            check_path: None,
            check_body: None,
            check_passive: usual.check_passive,
            udp_check_port: usual.udp_check_port,
            cipher_suite: usual.cipher_suite,
            ssl_cert: None,
            ssl_key: None,
            nodes: Vec::new(),
        }
    }
}

impl NewConfig {
    /// Adds the config, and returns its id.
    ///
    /// # Errors
    /// When the request is invalid.
    pub(super) fn add_to(self, details: &mut Details, id: &mut dyn FnMut() -> u64) -> Result<u64, Error> {
        let config = Config { id: id(), ..self.into_config(&[], id)? };
        check_free(details, &config)?;
        let id = config.id;
        details.configs.push(config);
        Ok(id)
    }

    /// Replaces the config with this id, whose nodes it keeps if it names them.
    ///
    /// # Errors
    /// When the request is invalid, or there is no such config.
    pub(super) fn rebuild(
        self,
        details: &mut Details,
        wanted: &str,
        id: &mut dyn FnMut() -> u64,
    ) -> Result<(), Error> {
        let present = details.config(wanted).ok_or_else(errors::not_found)?;
        let config = Config { id: present.id, ..self.into_config(&present.nodes, id)? };
        check_free(details, &config)?;
        let place = details.configs.iter_mut().find(|present| present.id == config.id);
        place.map(|place| *place = config).ok_or_else(errors::not_found)
    }

    fn into_config(self, present: &[Node], id: &mut dyn FnMut() -> u64) -> Result<Config, Error> {
        let settings = Settings {
            port: self.port,
            protocol: self.protocol,
            proxy_protocol: self.proxy_protocol,
            algorithm: self.algorithm,
            stickiness: self.stickiness,
            check: self.check,
            check_interval: self.check_interval,
            check_timeout: self.check_timeout,
            check_attempts: self.check_attempts,
            check_path: self.check_path.unwrap_or_default(),
            check_body: self.check_body.unwrap_or_default(),
            check_passive: self.check_passive,
            udp_check_port: self.udp_check_port,
            cipher_suite: self.cipher_suite,
        };
        check_settings(&settings)?;
        let given = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        let certified = given(&self.ssl_cert) && given(&self.ssl_key);
        if settings.protocol == "https" && !certified {
            return Err(errors::field("ssl_cert", "ssl_cert and ssl_key are required for https"));
        }
        let node = |new: NewNode| new.into_node(present, &settings.protocol, id);
        let nodes: Vec<Node> = self.nodes.into_iter().map(node).collect::<Result<_, _>>()?;
        let mut taken = BTreeSet::new();
        if let Some(twice) = nodes.iter().find(|node| !taken.insert(&node.address)) {
            return Err(errors::field("address", format!("{:.60} is there twice", twice.address)));
        }
        Ok(Config { id: 0, settings, nodes })
    }
}

impl NewNode {
    fn into_node(self, present: &[Node], protocol: &str, id: &mut dyn FnMut() -> u64) -> Result<Node, Error> {
        let usable = |socket: SocketAddr| socket.port() != 0;
        if !self.address.parse().is_ok_and(usable) {
            return Err(errors::field("address", "Must be in IP:PORT format"));
        }
        check_length("label", &self.label, 3..=32)?;
        let weight = self.weight.unwrap_or(100);
        if !(1..=255).contains(&weight) {
            return Err(errors::field("weight", "Must be between 1 and 255"));
        }
        // The nodes of a UDP config have no mode.
        let mode = match (protocol, self.mode) {
            ("udp", None) => "none".to_owned(),
            ("udp", Some(_)) => return Err(errors::field("mode", "Not supported for the udp protocol")),
            (_, mode) => mode.unwrap_or_else(|| "accept".to_owned()),
        };
        one_of("mode", &mode, &["accept", "reject", "drain", "backup", "none"])?;
        let id = match self.id {
            Some(known) if present.iter().any(|node| node.id == known) => known,
            Some(_) => return Err(errors::field("id", "Must be a node of this config")),
            None => id(),
        };
        Ok(Node { id, address: self.address, label: self.label, weight, mode })
    }
}

fn check_settings(settings: &Settings) -> Result<(), Error> {
    if settings.port == 0 {
        return Err(errors::field("port", "Must be between 1 and 65535"));
    }
    one_of("protocol", &settings.protocol, &["tcp", "udp", "http", "https"])?;
    one_of("proxy_protocol", &settings.proxy_protocol, &["none", "v1", "v2"])?;
    one_of("algorithm", &settings.algorithm, &["roundrobin", "leastconn", "source", "ring_hash"])?;
    let stickiness = ["none", "table", "http_cookie", "session", "source_ip"];
    one_of("stickiness", &settings.stickiness, &stickiness)?;
    one_of("check", &settings.check, &["none", "connection", "http", "http_body"])?;
    match settings.check.as_str() {
        "http" | "http_body" if !settings.check_path.starts_with('/') => {
            Err(errors::field("check_path", "Must begin with /"))
        }
        "http_body" if settings.check_body.is_empty() => {
            Err(errors::field("check_body", "check_body is required for this check"))
        }
        _ if settings.protocol == "udp" && settings.check_passive => {
            Err(errors::field("check_passive", "Must be false for the udp protocol"))
        }
        _ => Ok(()),
    }
}

/// Checks that the port is free. Two configs may have the same port if exactly one of them is for UDP.
fn check_free(details: &Details, wanted: &Config) -> Result<(), Error> {
    let udp = |config: &Config| config.settings.protocol == "udp";
    let clashes = |present: &Config| {
        present.id != wanted.id
            && present.settings.port == wanted.settings.port
            && udp(present) == udp(wanted)
    };
    if details.configs.iter().any(clashes) {
        return Err(errors::field("port", "Must be unique"));
    }
    Ok(())
}

fn check_throttle(throttle: u32) -> Result<(), Error> {
    if throttle > 20 {
        Err(errors::field("client_conn_throttle", "Must be between 0 and 20"))
    } else {
        Ok(())
    }
}

/// Checks the label of a NodeBalancer.
pub(super) fn check_label(label: &str) -> Result<(), Error> {
    check_length("label", label, 3..=32)?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if label.chars().all(allowed) {
        return Ok(());
    }
    Err(errors::field("label", "Must only use ASCII letters, numbers, underscores, periods and dashes"))
}

fn checked_tags(tags: Vec<String>) -> Result<Vec<String>, Error> {
    tags.iter().try_for_each(|tag| check_length("tags", tag, 3..=50))?;
    Ok(tags)
}

fn check_length(name: &'static str, text: &str, range: std::ops::RangeInclusive<usize>) -> Result<(), Error> {
    if range.contains(&text.chars().count()) {
        return Ok(());
    }
    Err(errors::field(name, format!("Must be {}-{} characters", range.start(), range.end())))
}

fn one_of(name: &'static str, word: &str, words: &[&str]) -> Result<(), Error> {
    if words.contains(&word) {
        return Ok(());
    }
    Err(errors::field(name, format!("Must be one of {}", words.join(", "))))
}
