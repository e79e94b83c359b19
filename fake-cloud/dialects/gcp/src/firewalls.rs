//! Firewalls of the network. Those with the address of a forwarding rule as their destination decide which of the rule's
//! ports are open, and for whom.

use super::balancing;
use super::errors::{invalid, required};
use super::names::{Scope, network_link};
use super::parts::{FIREWALL, ports, texts};
use super::resources::Kind;
use fake_cloud_kit::Error;
use fake_cloud_model::{Cloud, parse_cidr};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// Firewalls.
pub(super) struct Firewalls;

impl Kind for Firewalls {
    const COLLECTION: &'static str = "firewalls";
    const KIND: &'static str = "compute#firewall";
    const AUX: &'static str = FIREWALL;
    const FIELDS: &'static [&'static str] = &[
        "description",
        "network",
        "priority",
        "direction",
        "disabled",
        "sourceRanges",
        "destinationRanges",
        "sourceTags",
        "targetTags",
        "allowed",
        "denied",
        "logConfig",
    ];

    fn prepare(
        _cloud: &mut Cloud,
        _scope: &Scope,
        mut fields: Value,
        _before: Option<&Value>,
        _now: Duration,
    ) -> Result<Value, Error> {
        if fields["allowed"].is_null() && fields["denied"].is_null() {
            return Err(required("resource.allowed"));
        }
        for field in ["sourceRanges", "destinationRanges"] {
            if let Some(range) = texts(&fields[field]).find(|range| !is_range(range)) {
                let why = "Must be a valid CIDR address range.";
                return Err(invalid(&format!("resource.{field}"), range, why));
            }
        }
        for port in fields["allowed"].as_array().into_iter().flatten().flat_map(|one| texts(&one["ports"])) {
            if ports(port).is_none() {
                return Err(invalid(
                    "resource.allowed[0].ports[0]",
                    port,
                    "Must be a port or a range of ports.",
                ));
            }
        }
        let defaults =
            [("network", json!(network_link())), ("priority", json!(1000)), ("disabled", json!(false))];
        for (field, value) in defaults.into_iter().chain([("direction", json!("INGRESS"))]) {
            if fields[field].is_null() {
                fields[field] = value;
            }
        }
        Ok(fields)
    }

    fn complete(cloud: &mut Cloud, _scope: &Scope, mut shown: Value, now: Duration) -> Value {
        // The driver API can change for whom the ports of a load balancer are open.
        if let Some(ranges) = balancing::changed_sources(cloud, &shown, now) {
            shown["sourceRanges"] = json!(ranges);
        }
        shown
    }

    fn changed(
        cloud: &mut Cloud,
        before: Option<&Value>,
        after: Option<&Value>,
        now: Duration,
    ) -> Result<(), Error> {
        let destinations = before.into_iter().chain(after).flat_map(|one| texts(&one["destinationRanges"]));
        let destinations: BTreeSet<&str> = destinations.collect();
        destinations.into_iter().try_for_each(|address| balancing::admission_changed(cloud, address, now))
    }
}

fn is_range(text: &str) -> bool {
    parse_cidr(text).is_some() || text.parse::<std::net::IpAddr>().is_ok()
}
