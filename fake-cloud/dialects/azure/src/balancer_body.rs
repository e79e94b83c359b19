//! The body of a request that replaces a load balancer: its frontends as load balancers of the model, and their
//! shared part. Fields that the cloud adds are left out, since clients send back what they have read.

use super::balancer::{PoolSpec, Shared};
use super::errors::{dangling, invalid};
use super::names::{LOCATION, name_in, owner_in, part_id, same};
use fake_cloud_driver::{Frontend, HealthCheck};
use fake_cloud_kit::Error;
use fake_cloud_model::LbSpec;
use serde_json::{Map, Value, json};

/// A load balancer as a request describes it.
pub(super) struct Wanted {
    pub(super) shared: Shared,
    pub(super) fronts: Vec<Front>,
}

/// A frontend as a request describes it.
pub(super) struct Front {
    /// Without backends and source ranges, which other requests set.
    pub(super) spec: LbSpec,
    /// The public address that it uses.
    pub(super) public: Option<String>,
    /// The private address that it asks for.
    pub(super) private: Option<String>,
}

/// The properties that are kept of a part; everything else is added by the cloud.
const FRONTEND: &[&str] = &[
    "publicIPAddress",
    "publicIPPrefix",
    "subnet",
    "privateIPAddress",
    "privateIPAllocationMethod",
    "privateIPAddressVersion",
];
const RULE: &[&str] = &[
    "protocol",
    "frontendPort",
    "backendPort",
    "idleTimeoutInMinutes",
    "enableFloatingIP",
    "enableTcpReset",
    "disableOutboundSnat",
    "loadDistribution",
    "frontendIPConfiguration",
    "backendAddressPool",
    "probe",
];
const PROBE: &[&str] = &[
    "protocol",
    "port",
    "requestPath",
    "intervalInSeconds",
    "numberOfProbes",
    "probeThreshold",
    "noHealthyBackendsBehavior",
];
const OUTBOUND: &[&str] = &[
    "protocol",
    "allocatedOutboundPorts",
    "idleTimeoutInMinutes",
    "enableTcpReset",
    "frontendIPConfigurations",
    "backendAddressPool",
];
/// The parts of a load balancer that this dialect does not have.
const UNKNOWN: &[&str] = &["inboundNatRules", "inboundNatPools"];

/// The first part of a body that this dialect does not know.
pub(super) fn unknown(body: &Value) -> Option<String> {
    let used = |name: &&&str| !list(&body["properties"][**name]).collect::<Vec<_>>().is_empty();
    UNKNOWN.iter().find(used).map(|name| format!("of the body: properties.{name}"))
}

/// Reads the body of the load balancer with this name.
pub(super) fn read(balancer: &str, body: &Value) -> Result<Wanted, Error> {
    let properties = &body["properties"];
    let sku = body["sku"]["name"].as_str().unwrap_or("Standard");
    if !same(sku, "Standard") {
        return Err(invalid(
            "InvalidLoadBalancerSku",
            format!("The sku {sku:.40} is not supported; use Standard."),
        ));
    }
    let frontends = named(properties, "frontendIPConfigurations", FRONTEND)?;
    let rules = named(properties, "loadBalancingRules", RULE)?;
    let probes = named(properties, "probes", PROBE)?;
    let pools = pools(properties)?;
    for rule in &rules {
        let exists = |field: &str, parts: &[Value]| {
            let id = rule["properties"][field]["id"].as_str().unwrap_or_default();
            let known = |part: &Value| part["name"].as_str().is_some_and(|name| same(name, name_in(id)));
            if id.is_empty() || parts.iter().any(known) {
                return Ok(());
            }
            Err(dangling(
                id,
                &part_id(balancer, "loadBalancingRules", rule["name"].as_str().unwrap_or_default()),
            ))
        };
        exists("frontendIPConfiguration", &frontends)?;
        exists("probe", &probes)?;
        let known: Vec<Value> = pools.iter().map(|pool| json!({"name": pool.name})).collect();
        exists("backendAddressPool", &known)?;
    }
    let used = |probe: &&Value| rules.iter().any(|rule| uses(rule, "probe", &probe["name"]));
    let shared = Shared {
        location: body["location"].as_str().unwrap_or(LOCATION).to_owned(),
        sku: json!({"name": "Standard", "tier": "Regional"}),
        tags: body["tags"].clone(),
        pools,
        outbound_rules: named(properties, "outboundRules", OUTBOUND)?,
        probes: probes.iter().filter(|probe| !used(probe)).cloned().collect(),
    };
    let fronts = frontends.into_iter().map(|frontend| front(balancer, frontend, &rules, &probes));
    Ok(Wanted { shared, fronts: fronts.collect::<Result<_, _>>()? })
}

fn front(balancer: &str, frontend: Value, rules: &[Value], probes: &[Value]) -> Result<Front, Error> {
    let name = frontend["name"].as_str().unwrap_or_default().to_owned();
    let own: Vec<Value> = rules
        .iter()
        .filter(|rule| uses(rule, "frontendIPConfiguration", &frontend["name"]))
        .cloned()
        .collect();
    let ports = own.iter().map(|rule| port(rule, probes)).collect::<Result<Vec<Frontend>, _>>()?;
    let twice = |(index, port): (usize, &Frontend)| {
        ports[..index].iter().any(|other| (other.port, &other.protocol) == (port.port, &port.protocol))
    };
    if ports.iter().enumerate().any(twice) {
        let text =
            format!("Two load balancing rules of the frontend {name:.80} have the same port and protocol.");
        return Err(invalid("RulesUseSameFrontendPortProtocolAndIPConfig", text));
    }
    let by_source = |rule: &Value| {
        rule["properties"]["loadDistribution"].as_str().is_some_and(|text| text.starts_with("SourceIP"))
    };
    let pool = own
        .first()
        .map(|rule| name_in(rule["properties"]["backendAddressPool"]["id"].as_str().unwrap_or_default()));
    let own_probes: Vec<&Value> =
        probes.iter().filter(|probe| own.iter().any(|rule| uses(rule, "probe", &probe["name"]))).collect();
    let properties = &frontend["properties"];
    let public = properties["publicIPAddress"]["id"].as_str().map(|id| name_in(id).to_owned());
    let private = properties["privateIPAddress"].as_str().filter(|ip| !ip.is_empty()).map(str::to_owned);
    if public.is_none() && properties["subnet"].is_null() {
        let text = format!("The frontend {name:.80} has neither a public IP address nor a subnet.");
        return Err(invalid("FrontendIPConfigurationMustHaveSubnetOrPublicIp", text));
    }
    let details =
        json!({"balancer": balancer, "pool": pool, "frontend": frontend, "rules": own, "probes": own_probes});
    let spec = LbSpec {
        owner: owner_in(&name).to_owned(),
        health_check: ports.first().and_then(|port| port.health_check.clone()),
        session_affinity: if !own.is_empty() && own.iter().all(by_source) { "ClientIP" } else { "None" }
            .to_owned(),
        frontends: ports,
        details,
        name,
        ..LbSpec::default()
    };
    Ok(Front { spec, public, private })
}

/// A rule as a port of the model, with the check of its probe.
fn port(rule: &Value, probes: &[Value]) -> Result<Frontend, Error> {
    let properties = &rule["properties"];
    let number = |field: &str| properties[field].as_u64().and_then(|port| u16::try_from(port).ok());
    let name = rule["name"].as_str().unwrap_or_default();
    let (Some(front), Some(back)) = (number("frontendPort"), number("backendPort")) else {
        return Err(invalid(
            "InvalidRequestFormat",
            format!("The rule {name:.80} lacks a port, or it is not one."),
        ));
    };
    let protocol = match properties["protocol"].as_str().unwrap_or_default().to_ascii_lowercase().as_str() {
        "tcp" => "TCP",
        "udp" => "UDP",
        // A rule for all protocols is how the CCM writes one for SCTP; ports of 0 mean all ports.
        "all" if front != 0 => "SCTP",
        "all" => return Err(Error::said(501, "NotImplemented", "the fake cloud has no rules for all ports")),
        other => {
            let text = format!("The protocol '{other:.40}' of the rule {name:.80} is not valid.");
            return Err(invalid("InvalidRequestFormat", text));
        }
    };
    let probe = probes.iter().find(|probe| uses(rule, "probe", &probe["name"]));
    let health_check = probe.map(check).transpose()?;
    Ok(Frontend { health_check, ..Frontend::new(front, protocol, back) })
}

fn check(probe: &Value) -> Result<HealthCheck, Error> {
    let properties = &probe["properties"];
    let http =
        properties["protocol"].as_str().is_some_and(|text| text.to_ascii_lowercase().starts_with("http"));
    let port = properties["port"].as_u64().and_then(|port| u16::try_from(port).ok());
    let path = properties["requestPath"].as_str().filter(|_| http).unwrap_or_default();
    let Some(port) = port else {
        let name = probe["name"].as_str().unwrap_or_default();
        return Err(invalid(
            "InvalidRequestFormat",
            format!("The probe {name:.80} lacks a port, or it is not one."),
        ));
    };
    Ok(HealthCheck { protocol: if http { "HTTP" } else { "TCP" }.to_owned(), path: path.to_owned(), port })
}

fn pools(properties: &Value) -> Result<Vec<PoolSpec>, Error> {
    let parts =
        named(properties, "backendAddressPools", &["loadBalancerBackendAddresses", "virtualNetwork"])?;
    let one = |part: Value| PoolSpec {
        name: part["name"].as_str().unwrap_or_default().to_owned(),
        addresses: list(&part["properties"]["loadBalancerBackendAddresses"])
            .filter(|address| address["properties"]["ipAddress"].as_str().is_some_and(|ip| !ip.is_empty()))
            .cloned()
            .collect(),
        network: part["properties"]["virtualNetwork"].clone(),
        ..PoolSpec::default()
    };
    Ok(parts.into_iter().map(one).collect())
}

/// The parts of one kind: name, zones, and the properties that are kept. Each needs a name, and its own.
fn named(properties: &Value, kind: &str, keep: &[&str]) -> Result<Vec<Value>, Error> {
    let mut parts: Vec<Value> = Vec::new();
    for part in list(&properties[kind]) {
        let name = part["name"].as_str().unwrap_or_default();
        if name.is_empty() || parts.iter().any(|known| known["name"] == name) {
            let text = format!("In {kind}, the name '{name:.80}' is missing or used twice.");
            return Err(invalid("InvalidResourceName", text));
        }
        let kept: Map<String, Value> = keep
            .iter()
            .filter_map(|key| Some(((*key).to_owned(), part["properties"].get(key)?.clone())))
            .filter(|(_, value)| !value.is_null())
            .collect();
        let mut one = json!({"name": name, "properties": kept});
        // The address that the cloud has chosen is not the caller's.
        if one["properties"]["privateIPAllocationMethod"] != "Static"
            && let Some(properties) = one["properties"].as_object_mut()
        {
            properties.remove("privateIPAddress");
        }
        if part["zones"].as_array().is_some_and(|zones| !zones.is_empty()) {
            one["zones"] = part["zones"].clone();
        }
        parts.push(one);
    }
    Ok(parts)
}

/// Whether a rule refers to the part with this name in that field.
fn uses(rule: &Value, field: &str, name: &Value) -> bool {
    let id = rule["properties"][field]["id"].as_str().unwrap_or_default();
    !id.is_empty() && name.as_str().is_some_and(|name| same(name, name_in(id)))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
