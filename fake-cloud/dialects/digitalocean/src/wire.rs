//! Load balancers as the API shows them, and the parts of them that the model keeps as details.

use super::places::{DEFAULT_PROJECT, DEFAULT_VPC, Region};
use fake_cloud_driver::{self as driver, LbState};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// A forwarding rule, in requests and answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct Rule {
    pub(super) entry_protocol: String,
    pub(super) entry_port: u16,
    pub(super) target_protocol: String,
    pub(super) target_port: u16,
    #[serde(default)]
    pub(super) certificate_id: String,
    #[serde(default)]
    pub(super) tls_passthrough: bool,
}

/// A health check, in requests and answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(default)]
pub(super) struct Health {
    pub(super) protocol: String,
    pub(super) port: u16,
    pub(super) path: String,
    pub(super) check_interval_seconds: u32,
    pub(super) response_timeout_seconds: u32,
    pub(super) healthy_threshold: u32,
    pub(super) unhealthy_threshold: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) proxy_protocol: Option<bool>,
}

impl Default for Health {
    fn default() -> Health {
        Health {
            protocol: "http".to_owned(),
            port: 80,
            path: "/".to_owned(),
            check_interval_seconds: 10,
            response_timeout_seconds: 5,
            healthy_threshold: 5,
            unhealthy_threshold: 3,
            proxy_protocol: None,
        }
    }
}

/// Session affinity, in requests and answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(default)]
pub(super) struct Sticky {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cookie_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cookie_ttl_seconds: Option<u32>,
}

impl Default for Sticky {
    fn default() -> Sticky {
        Sticky { kind: "none".to_owned(), cookie_name: None, cookie_ttl_seconds: None }
    }
}

/// The allowed and denied clients, in requests and answers.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(default)]
pub(super) struct Firewall {
    pub(super) deny: Vec<String>,
    pub(super) allow: Vec<String>,
}

/// The fields that the model does not have: kept as a load balancer's details, and shown unchanged.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(default)]
pub(super) struct Settings {
    pub(super) region: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) network: String,
    pub(super) network_stack: String,
    pub(super) vpc_uuid: String,
    pub(super) project_id: String,
    pub(super) algorithm: String,
    pub(super) tls_cipher_policy: String,
    pub(super) size_unit: u32,
    pub(super) forwarding_rules: Vec<Rule>,
    pub(super) health_check: Health,
    pub(super) sticky_sessions: Sticky,
    pub(super) redirect_http_to_https: bool,
    pub(super) enable_proxy_protocol: bool,
    pub(super) enable_backend_keepalive: bool,
    pub(super) disable_lets_encrypt_dns_records: bool,
    pub(super) http_idle_timeout_seconds: u32,
    pub(super) firewall: Firewall,
    pub(super) created_at: String,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            region: String::new(),
            kind: "REGIONAL".to_owned(),
            network: "EXTERNAL".to_owned(),
            network_stack: "IPV4".to_owned(),
            vpc_uuid: DEFAULT_VPC.to_owned(),
            project_id: DEFAULT_PROJECT.to_owned(),
            algorithm: "round_robin".to_owned(),
            tls_cipher_policy: "DEFAULT".to_owned(),
            size_unit: 1,
            forwarding_rules: Vec::new(),
            health_check: Health::default(),
            sticky_sessions: Sticky::default(),
            redirect_http_to_https: false,
            enable_proxy_protocol: false,
            enable_backend_keepalive: false,
            disable_lets_encrypt_dns_records: false,
            http_idle_timeout_seconds: 60,
            firewall: Firewall::default(),
            created_at: "2026-01-02T03:04:05Z".to_owned(),
        }
    }
}

impl Settings {
    /// The details of a load balancer, adapted to the model's fields: a test may have changed these, or
    /// created the load balancer without details.
    pub(super) fn of(lb: &driver::LoadBalancer) -> Settings {
        let mut settings = Settings::deserialize(&lb.details).unwrap_or_default();
        let known = std::mem::take(&mut settings.forwarding_rules);
        settings.forwarding_rules = lb.frontends.iter().map(|frontend| rule(&known, frontend)).collect();
        match &lb.health_check {
            Some(check) if settings.health_check.model() != *check => {
                settings.health_check.protocol = check.protocol.to_lowercase();
                settings.health_check.port = check.port;
                settings.health_check.path.clone_from(&check.path);
            }
            Some(_) | None => {}
        }
        settings
    }
}

/// The stored rule for a frontend; the simplest one that fits if there is none.
fn rule(known: &[Rule], frontend: &driver::Frontend) -> Rule {
    let kept = known.iter().find(|rule| rule.frontend() == *frontend);
    kept.cloned().unwrap_or_else(|| {
        let protocol = frontend.protocol.to_lowercase();
        Rule {
            entry_protocol: protocol.clone(),
            entry_port: frontend.port,
            target_protocol: protocol,
            target_port: frontend.node_port,
            certificate_id: String::new(),
            tls_passthrough: false,
        }
    })
}

/// A load balancer.
#[derive(Serialize)]
pub(super) struct LoadBalancer<'a> {
    id: &'a str,
    name: &'a str,
    project_id: String,
    ip: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ipv6: Option<String>,
    size: &'static str,
    size_unit: u32,
    #[serde(rename = "type")]
    kind: String,
    algorithm: String,
    status: &'static str,
    created_at: String,
    forwarding_rules: Vec<Rule>,
    health_check: Health,
    sticky_sessions: Sticky,
    region: RegionOf,
    tag: &'static str,
    tags: &'a [&'a str],
    droplet_ids: Vec<u64>,
    redirect_http_to_https: bool,
    enable_proxy_protocol: bool,
    enable_backend_keepalive: bool,
    vpc_uuid: String,
    disable_lets_encrypt_dns_records: bool,
    http_idle_timeout_seconds: u32,
    firewall: Firewall,
    network: String,
    network_stack: String,
    tls_cipher_policy: String,
}

/// The region of a slug that it owns.
struct RegionOf(String);

impl Serialize for RegionOf {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Region::of(&self.0).serialize(serializer)
    }
}

/// Whether callers still see a load balancer: the real cloud shows none that is being deleted.
pub(super) fn is_visible(lb: &driver::LoadBalancer) -> bool {
    lb.state != LbState::Deleting
}

impl<'a> LoadBalancer<'a> {
    /// The load balancer as callers see it.
    pub(super) fn of(lb: &'a driver::LoadBalancer, tags: &'a [&'a str]) -> LoadBalancer<'a> {
        let settings = Settings::of(lb);
        let address = |wanted: fn(&IpAddr) -> bool| lb.addresses.iter().filter_map(|a| a.ip).find(wanted);
        LoadBalancer {
            id: &lb.id,
            name: &lb.name,
            project_id: settings.project_id,
            ip: address(IpAddr::is_ipv4).map_or_else(String::new, |ip| ip.to_string()),
            ipv6: address(IpAddr::is_ipv6).map(|ip| ip.to_string()),
            size: match settings.size_unit {
                1 => "lb-small",
                3 => "lb-medium",
                6 => "lb-large",
                _ => "",
            },
            size_unit: settings.size_unit,
            kind: settings.kind,
            algorithm: settings.algorithm,
            status: match lb.state {
                LbState::Provisioning => "new",
                LbState::Active => "active",
                LbState::Deleting => "errored",
            },
            created_at: settings.created_at,
            forwarding_rules: settings.forwarding_rules,
            health_check: settings.health_check,
            sticky_sessions: settings.sticky_sessions,
            region: RegionOf(settings.region),
            tag: "",
            tags,
            droplet_ids: lb.backends.iter().filter_map(|id| super::droplets::id(id)).collect(),
            redirect_http_to_https: settings.redirect_http_to_https,
            enable_proxy_protocol: settings.enable_proxy_protocol,
            enable_backend_keepalive: settings.enable_backend_keepalive,
            vpc_uuid: settings.vpc_uuid,
            disable_lets_encrypt_dns_records: settings.disable_lets_encrypt_dns_records,
            http_idle_timeout_seconds: settings.http_idle_timeout_seconds,
            firewall: settings.firewall,
            network: settings.network,
            network_stack: settings.network_stack,
            tls_cipher_policy: settings.tls_cipher_policy,
        }
    }
}
