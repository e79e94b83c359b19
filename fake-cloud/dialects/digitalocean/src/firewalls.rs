//! Firewalls: auxiliary objects that the CCM manages for the node ports of public Services.

use super::errors;
use fake_cloud_driver::Auxiliary;
use fake_cloud_kit::Error;
use fake_cloud_model::{AuxSpec, Cloud, Refusal};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::net::IpAddr;

/// The kind of firewalls in the model, which is also the prefix of their ids.
pub(super) const KIND: &str = "firewall";

/// The body of a request that creates or replaces a firewall.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Wanted {
    pub(super) name: String,
    #[serde(default)]
    inbound_rules: Option<Vec<Inbound>>,
    #[serde(default)]
    outbound_rules: Option<Vec<Outbound>>,
    #[serde(default)]
    droplet_ids: Option<Vec<u64>>,
    #[serde(default)]
    tags: Option<Vec<String>>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Inbound {
    protocol: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ports: Option<String>,
    sources: Ends,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Outbound {
    protocol: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ports: Option<String>,
    destinations: Ends,
}

/// The sources or destinations of traffic.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct Ends {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    addresses: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    droplet_ids: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    load_balancer_uids: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    kubernetes_ids: Vec<String>,
}

impl Wanted {
    /// The content that the model keeps.
    ///
    /// # Errors
    /// The first invalid field.
    pub(super) fn into_spec(self, cloud: &Cloud, created_at: &str) -> Result<AuxSpec, Error> {
        check_name(&self.name)?;
        let inbound = self.inbound_rules.unwrap_or_default();
        let outbound = self.outbound_rules.unwrap_or_default();
        if inbound.is_empty() && outbound.is_empty() {
            return Err(errors::invalid("must have at least one rule"));
        }
        for rule in &inbound {
            check_rule(&rule.protocol, rule.ports.as_deref(), &rule.sources)?;
        }
        for rule in &outbound {
            check_rule(&rule.protocol, rule.ports.as_deref(), &rule.destinations)?;
        }
        let droplet_ids = self.droplet_ids.unwrap_or_default();
        check_droplets(cloud, &droplet_ids)?;
        let tags = self.tags.unwrap_or_default();
        tags.iter().try_for_each(|tag| super::tags::check_name(tag))?;
        let spec = json!({
            "inbound_rules": inbound,
            "outbound_rules": outbound,
            "droplet_ids": droplet_ids,
            "tags": tags,
            "created_at": created_at,
        });
        Ok(AuxSpec { name: self.name, owner: String::new(), load_balancer: None, spec })
    }
}

/// The time when a firewall was created, in the API's form.
pub(super) fn created_at(firewall: &Auxiliary) -> &str {
    firewall.spec.get("created_at").and_then(Value::as_str).unwrap_or_default()
}

/// A firewall as the API shows it. Changes take effect at once.
pub(super) fn shown(firewall: &Auxiliary) -> Value {
    const NONE: &Value = &Value::Array(Vec::new());
    let field = |name: &str| firewall.spec.get(name).unwrap_or(NONE);
    json!({
        "id": firewall.id,
        "name": firewall.name,
        "status": "succeeded",
        "inbound_rules": field("inbound_rules"),
        "outbound_rules": field("outbound_rules"),
        "created_at": created_at(firewall),
        "droplet_ids": field("droplet_ids"),
        "tags": field("tags"),
        "pending_changes": [],
    })
}

/// Converts the model's rejection of a firewall: the only possible conflict is another one with the same name.
pub(super) fn refused(refusal: Refusal) -> Error {
    match refusal {
        Refusal::Conflict(_) => Error::new(409, "duplicate name"),
        other => other.into(),
    }
}

/// Checks that these droplets exist.
pub(super) fn check_droplets(cloud: &Cloud, ids: &[u64]) -> Result<(), Error> {
    let missing = ids.iter().find(|id| cloud.instance(&id.to_string()).is_err());
    match missing {
        None => Ok(()),
        Some(id) => Err(errors::invalid(format!("droplet {id} was not found"))),
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    let mut characters = name.chars();
    let begins_well = characters.next().is_some_and(|c| c.is_ascii_alphanumeric());
    if !begins_well
        || name.len() > 255
        || !characters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))
    {
        return Err(errors::invalid(
            "name must begin with a letter or number, may otherwise hold periods and dashes, and has at most 255 \
             characters",
        ));
    }
    Ok(())
}

fn check_rule(protocol: &str, ports: Option<&str>, ends: &Ends) -> Result<(), Error> {
    match (protocol, ports) {
        ("tcp" | "udp", Some(ports)) => check_ports(ports)?,
        ("tcp" | "udp", None) => return Err(errors::invalid("ports are required for tcp and udp rules")),
        ("icmp", _) => {}
        _ => return Err(errors::invalid("protocol must be tcp, udp or icmp")),
    }
    let address = |text: &String| {
        let (ip, length) = text.split_once('/').unwrap_or((text, "0"));
        let ip: Option<IpAddr> = ip.parse().ok();
        let longest = ip.map_or(0, |ip| if ip.is_ipv4() { 32 } else { 128 });
        ip.is_some() && length.parse::<u8>().is_ok_and(|length| length <= longest)
    };
    match ends.addresses.iter().find(|text| !address(text)) {
        None => Ok(()),
        Some(text) => Err(errors::invalid(format!("{text:.80} is not an address or CIDR"))),
    }
}

/// Checks a port, a range of ports (`8000-9000`), or `all` and `0` for every port.
fn check_ports(ports: &str) -> Result<(), Error> {
    let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
    let range = first.parse::<u16>().ok().zip(last.parse::<u16>().ok());
    if ports == "all" || range.is_some_and(|(first, last)| first <= last) {
        return Ok(());
    }
    Err(errors::invalid(format!("ports {ports:.80} are none")))
}
