//! The load balancer in the body of POST and PUT: how it is checked, and what is kept of it.

use super::errors;
use super::places::{DEFAULT_PROJECT, DEFAULT_VPC};
use super::wire::{Firewall, Health, Rule, Settings, Sticky};
use fake_cloud_driver::{Frontend, HealthCheck};
use fake_cloud_kit::Error;
use fake_cloud_model::{Cloud, Families, LbSpec};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// All fields of [`Wanted`].
const FIELDS: &[&str] = &[
    "name",
    "region",
    "type",
    "network",
    "network_stack",
    "algorithm",
    "size",
    "size_unit",
    "forwarding_rules",
    "health_check",
    "sticky_sessions",
    "droplet_ids",
    "tags",
    "redirect_http_to_https",
    "enable_proxy_protocol",
    "enable_backend_keepalive",
    "disable_lets_encrypt_dns_records",
    "http_idle_timeout_seconds",
    "firewall",
    "vpc_uuid",
    "project_id",
    "tls_cipher_policy",
    "tag",
    "ip",
    "subnet_uuid",
    "validate_only",
    "domains",
    "glb_settings",
    "target_load_balancer_ids",
];

/// The body of a request that creates or replaces a load balancer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Wanted {
    pub(super) name: Option<String>,
    region: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    network: Option<String>,
    network_stack: Option<String>,
    algorithm: Option<String>,
    size: Option<String>,
    size_unit: Option<u32>,
    forwarding_rules: Option<Vec<Rule>>,
    health_check: Option<Health>,
    sticky_sessions: Option<Sticky>,
    droplet_ids: Option<Vec<u64>>,
    pub(super) tags: Option<Vec<String>>,
    redirect_http_to_https: Option<bool>,
    enable_proxy_protocol: Option<bool>,
    enable_backend_keepalive: Option<bool>,
    disable_lets_encrypt_dns_records: Option<bool>,
    http_idle_timeout_seconds: Option<u32>,
    firewall: Option<Firewall>,
    vpc_uuid: Option<String>,
    project_id: Option<String>,
    tls_cipher_policy: Option<String>,
    tag: Option<String>,
    ip: Option<String>,
    subnet_uuid: Option<String>,
    validate_only: Option<bool>,
    domains: Option<Vec<Value>>,
    glb_settings: Option<Value>,
    target_load_balancer_ids: Option<Vec<Value>>,
}

impl Wanted {
    /// The first field that the cloud does not support or the dialect does not know. None of them is small
    /// enough to be ignored.
    pub(super) fn unknown(&self, body: &[u8]) -> Option<String> {
        let text = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        let list = |list: &Option<Vec<Value>>| list.as_ref().is_some_and(|list| !list.is_empty());
        let asked = [
            ("targets by tag", text(&self.tag)),
            ("an address of the caller's choice", text(&self.ip)),
            ("subnet_uuid", text(&self.subnet_uuid)),
            ("validate_only", self.validate_only == Some(true)),
            ("domains", list(&self.domains)),
            ("glb_settings", self.glb_settings.as_ref().is_some_and(|settings| !settings.is_null())),
            ("target_load_balancer_ids", list(&self.target_load_balancer_ids)),
            ("load balancers of type GLOBAL", self.kind.as_deref() == Some("GLOBAL")),
        ];
        let asked =
            asked.iter().find(|(_, asked)| *asked).map(|(what, _)| format!("this cloud has no {what}"));
        asked.or_else(|| {
            let fields: BTreeMap<String, IgnoredAny> = serde_json::from_slice(body).ok()?;
            let unknown = fields.into_keys().find(|field| !FIELDS.contains(&field.as_str()))?;
            Some(format!("this dialect does not know the field {unknown:.40}"))
        })
    }

    /// The requested load balancer, and the addresses that it gets. `present` is the existing one, `None` for
    /// a new one.
    ///
    /// # Errors
    /// The first field that is invalid or cannot be changed any more.
    pub(super) fn into_spec(
        self,
        cloud: &Cloud,
        present: Option<&Settings>,
        created_at: &str,
    ) -> Result<(LbSpec, Families), Error> {
        let name = self.name.filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| errors::invalid("name is required"))?;
        check_name(&name)?;
        let kept = |given: Option<String>, present: Option<&String>, otherwise: &str| {
            let given = given.filter(|text| !text.is_empty());
            given.or_else(|| present.cloned()).unwrap_or_else(|| otherwise.to_owned())
        };
        let region = kept(self.region, present.map(|p| &p.region), "");
        if region.is_empty() {
            return Err(errors::invalid("region is required"));
        }
        let mut settings = Settings {
            region,
            kind: kept(self.kind, present.map(|p| &p.kind), "REGIONAL"),
            network: kept(self.network, present.map(|p| &p.network), "EXTERNAL"),
            network_stack: kept(self.network_stack, present.map(|p| &p.network_stack), "IPV4"),
            vpc_uuid: kept(self.vpc_uuid, present.map(|p| &p.vpc_uuid), DEFAULT_VPC),
            project_id: kept(self.project_id, present.map(|p| &p.project_id), DEFAULT_PROJECT),
            algorithm: kept(self.algorithm, None, "round_robin"),
            tls_cipher_policy: kept(self.tls_cipher_policy, None, "DEFAULT"),
            size_unit: 1,
            forwarding_rules: self.forwarding_rules.unwrap_or_default(),
            health_check: self.health_check.unwrap_or_default(),
            sticky_sessions: self.sticky_sessions.unwrap_or_default(),
            redirect_http_to_https: self.redirect_http_to_https.unwrap_or_default(),
            enable_proxy_protocol: self.enable_proxy_protocol.unwrap_or_default(),
            enable_backend_keepalive: self.enable_backend_keepalive.unwrap_or_default(),
            disable_lets_encrypt_dns_records: self.disable_lets_encrypt_dns_records.unwrap_or_default(),
            http_idle_timeout_seconds: self.http_idle_timeout_seconds.unwrap_or(60),
            firewall: self.firewall.unwrap_or_default(),
            created_at: present.map_or_else(|| created_at.to_owned(), |p| p.created_at.clone()),
        };
        settings.size_unit = size(self.size.filter(|s| !s.is_empty()), self.size_unit.filter(|n| *n > 0))?;
        check_words(&settings)?;
        if let Some(present) = present {
            check_kept(&settings, present)?;
        }
        check_rules(cloud, &settings)?;
        check_health(&settings.health_check)?;
        check_sticky(&settings.sticky_sessions)?;
        let droplet_ids = self.droplet_ids.unwrap_or_default();
        super::firewalls::check_droplets(cloud, &droplet_ids)?;
        let families = if settings.network_stack == "DUALSTACK" { Families::Both } else { Families::V4 };
        let spec = LbSpec {
            // Only the name of a load balancer identifies its owner.
            owner: name.clone(),
            name,
            frontends: settings.forwarding_rules.iter().map(Rule::frontend).collect(),
            backends: droplet_ids.iter().map(u64::to_string).collect(),
            health_check: Some(settings.health_check.model()),
            source_ranges: ranges(&settings.firewall)?,
            session_affinity: String::new(),
            details: serde_json::to_value(settings)?,
        };
        Ok((spec, families))
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    if name.len() > 255 {
        return Err(errors::invalid("name is longer than 255 characters"));
    }
    if !name.chars().all(allowed) {
        return Err(errors::invalid("name may only contain letters, numbers, dashes and periods"));
    }
    Ok(())
}

/// The number of a load balancer's nodes.
fn size(slug: Option<String>, unit: Option<u32>) -> Result<u32, Error> {
    match (slug.as_deref(), unit) {
        (Some(_), Some(_)) => Err(errors::invalid("only one of size and size_unit can be provided")),
        (Some("lb-small"), None) | (None, None) => Ok(1),
        (Some("lb-medium"), None) => Ok(3),
        (Some("lb-large"), None) => Ok(6),
        (Some(_), None) => Err(errors::invalid("size must be lb-small, lb-medium or lb-large")),
        (None, Some(unit @ 1..=200)) => Ok(unit),
        (None, Some(_)) => Err(errors::invalid("size_unit must be between 1 and 200")),
    }
}

fn check_words(settings: &Settings) -> Result<(), Error> {
    let known: [(&str, &str, &[&str]); 5] = [
        ("type", &settings.kind, &["REGIONAL", "REGIONAL_NETWORK"]),
        ("network", &settings.network, &["EXTERNAL", "INTERNAL"]),
        ("network_stack", &settings.network_stack, &["IPV4", "DUALSTACK"]),
        ("algorithm", &settings.algorithm, &["round_robin", "least_connections"]),
        ("tls_cipher_policy", &settings.tls_cipher_policy, &["DEFAULT", "STRONG"]),
    ];
    for (field, word, words) in known {
        if !words.contains(&word) {
            return Err(errors::invalid(format!("{field} must be one of {}", words.join(", "))));
        }
    }
    if !(30..=600).contains(&settings.http_idle_timeout_seconds) {
        return Err(errors::invalid("http_idle_timeout_seconds must be between 30 and 600"));
    }
    Ok(())
}

/// Checks the settings that cannot be changed after the creation.
fn check_kept(settings: &Settings, present: &Settings) -> Result<(), Error> {
    let fixed = [
        ("region", &settings.region, &present.region),
        ("type", &settings.kind, &present.kind),
        ("network", &settings.network, &present.network),
        ("network_stack", &settings.network_stack, &present.network_stack),
        ("vpc_uuid", &settings.vpc_uuid, &present.vpc_uuid),
    ];
    match fixed.iter().find(|(_, wanted, present)| wanted != present) {
        None => Ok(()),
        Some((field, ..)) => Err(errors::invalid(format!("{field} cannot be changed after creation"))),
    }
}

fn check_rules(cloud: &Cloud, settings: &Settings) -> Result<(), Error> {
    if settings.forwarding_rules.is_empty() {
        return Err(errors::invalid("forwarding_rules must have at least one rule"));
    }
    let network_only = settings.kind == "REGIONAL_NETWORK";
    let mut taken = BTreeSet::new();
    for rule in &settings.forwarding_rules {
        check_rule(cloud, rule, network_only)?;
        let Frontend { port, protocol, .. } = rule.frontend();
        if !taken.insert((port, protocol)) {
            let text = format!(
                "forwarding rules have the same entry port and protocol: {} {port}",
                rule.entry_protocol
            );
            return Err(errors::invalid(text));
        }
    }
    Ok(())
}

fn check_rule(cloud: &Cloud, rule: &Rule, network_only: bool) -> Result<(), Error> {
    let Rule { entry_protocol, entry_port, target_protocol, target_port, certificate_id, tls_passthrough } =
        rule;
    if *entry_port == 0 || *target_port == 0 {
        return Err(errors::invalid("forwarding rule ports must be between 1 and 65535"));
    }
    match (entry_protocol.as_str(), target_protocol.as_str()) {
        ("tcp", "tcp") | ("udp", "udp") => {}
        _ if network_only => {
            return Err(errors::invalid(
                "a REGIONAL_NETWORK load balancer forwards tcp to tcp and udp to udp only",
            ));
        }
        ("http" | "https" | "http2" | "http3", "http" | "https" | "http2") => {}
        (entry, target) => {
            return Err(errors::invalid(format!("cannot forward {entry:.20} to {target:.20}")));
        }
    }
    let encrypted = matches!(entry_protocol.as_str(), "https" | "http2" | "http3");
    match (certificate_id.as_str(), tls_passthrough) {
        ("", false) if encrypted => {
            Err(errors::invalid(format!("a certificate is required to accept {entry_protocol}")))
        }
        ("", _) => Ok(()),
        (_, true) => Err(errors::invalid("tls_passthrough cannot have a certificate")),
        _ if !encrypted => Err(errors::invalid(format!("{entry_protocol} cannot have a certificate"))),
        (id, false) => match cloud.auxiliary(super::certificates::KIND, id) {
            Ok(_) => Ok(()),
            Err(_) => Err(errors::invalid(format!("certificate {id:.80} was not found"))),
        },
    }
}

fn check_health(health: &Health) -> Result<(), Error> {
    if health.port == 0 {
        return Err(errors::invalid("health check port must be between 1 and 65535"));
    }
    match health.protocol.as_str() {
        "tcp" => {}
        "http" | "https" if health.path.starts_with('/') => {}
        "http" | "https" => return Err(errors::invalid("health check path must begin with /")),
        _ => return Err(errors::invalid("health check protocol must be http, https or tcp")),
    }
    let limits = [
        ("check_interval_seconds", health.check_interval_seconds, 3..=300),
        ("response_timeout_seconds", health.response_timeout_seconds, 3..=300),
        ("healthy_threshold", health.healthy_threshold, 2..=10),
        ("unhealthy_threshold", health.unhealthy_threshold, 2..=10),
    ];
    match limits.into_iter().find(|(_, value, limits)| !limits.contains(value)) {
        None => Ok(()),
        Some((field, _, limits)) => Err(errors::invalid(format!(
            "health check {field} must be between {} and {}",
            limits.start(),
            limits.end()
        ))),
    }
}

fn check_sticky(sticky: &Sticky) -> Result<(), Error> {
    let named = sticky.cookie_name.as_ref().is_some_and(|name| !name.is_empty());
    match sticky.kind.as_str() {
        "none" => Ok(()),
        "cookies" if named && sticky.cookie_ttl_seconds.is_some_and(|ttl| ttl > 0) => Ok(()),
        "cookies" => Err(errors::invalid("cookie_name and cookie_ttl_seconds are required")),
        _ => Err(errors::invalid("sticky session type must be none or cookies")),
    }
}

/// The client ranges that are admitted, as CIDRs.
fn ranges(firewall: &Firewall) -> Result<Vec<String>, Error> {
    firewall.deny.iter().try_for_each(|rule| range(rule).map(drop))?;
    firewall.allow.iter().map(|rule| range(rule)).collect()
}

fn range(rule: &str) -> Result<String, Error> {
    let range = match rule.split_once(':') {
        Some(("ip", ip)) => {
            ip.parse::<IpAddr>().ok().map(|ip| format!("{ip}/{}", if ip.is_ipv4() { 32 } else { 128 }))
        }
        // The model checks that it is valid.
        Some(("cidr", cidr)) => Some(cidr.to_owned()),
        _ => None,
    };
    range.ok_or_else(|| {
        errors::invalid(format!("firewall rule {rule:.80} is neither ip:ADDRESS nor cidr:CIDR"))
    })
}

impl Rule {
    /// The frontend in the model. HTTP/3 uses UDP.
    pub(super) fn frontend(&self) -> Frontend {
        let protocol = if matches!(self.entry_protocol.as_str(), "udp" | "http3") { "UDP" } else { "TCP" };
        Frontend::new(self.entry_port, protocol, self.target_port)
    }
}

impl Health {
    /// The health check in the model.
    pub(super) fn model(&self) -> HealthCheck {
        let (protocol, path) = match self.protocol.as_str() {
            "tcp" => ("TCP", ""),
            _ => ("HTTP", self.path.as_str()),
        };
        HealthCheck { protocol: protocol.to_owned(), path: path.to_owned(), port: self.port }
    }
}
