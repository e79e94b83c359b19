//! The shown form of a load balancer: what its creator has written, with the values of the model, which the
//! driver API may have changed, and the fields that the cloud adds.

use super::balancer::Balancer;
use super::members::{self, Pool};
use super::names::{POOLS, name_in, network_id, part_id, same};
use super::query::tagged;
use fake_cloud_driver::{Frontend, HealthCheck, LbState, LoadBalancer};
use fake_cloud_model::Cloud;
use serde_json::{Value, json};

const TYPE: &str = "Microsoft.Network/loadBalancers";
const FRONTENDS: &str = "frontendIPConfigurations";
const RULES: &str = "loadBalancingRules";
const PROBES: &str = "probes";
const OUTBOUND: &str = "outboundRules";

/// The shown form of a load balancer.
pub(super) fn show(balancer: &Balancer, cloud: &Cloud) -> Value {
    let shared = balancer.shared.as_ref().map(|(_, shared)| shared.clone()).unwrap_or_default();
    let mut frontends = Vec::new();
    let mut all_rules = Vec::new();
    let mut probes: Vec<Value> = Vec::new();
    for front in &balancer.fronts {
        let rules = rules(balancer, front);
        frontends.push(frontend(balancer, front, &rules));
        for probe in rules.iter().filter_map(|rule| rule.probe.clone()).chain(shared.probes.iter().cloned()) {
            if !probes.iter().any(|known| known["name"] == probe["name"]) {
                probes.push(probe);
            }
        }
        all_rules.extend(rules.into_iter().map(|rule| rule.shown));
    }
    let probes: Vec<Value> = probes
        .into_iter()
        .map(|probe| {
            let users = all_rules.iter().filter(|rule| refers(rule, "probe", &probe["name"]));
            let users: Vec<Value> = users.map(|rule| json!({"id": rule["id"]})).collect();
            part(balancer, PROBES, probe, Some((RULES, users)))
        })
        .collect();
    let outbound = shared.outbound_rules.iter().map(|rule| part(balancer, OUTBOUND, rule.clone(), None));
    let ready = balancer.fronts.iter().all(|front| front.state == LbState::Active);
    let mut shown = json!({
        "name": balancer.name,
        "id": network_id("loadBalancers", &balancer.name),
        "type": TYPE,
        "location": shared.location,
        "sku": shared.sku,
        "properties": {
            "provisioningState": if ready { "Succeeded" } else { "Updating" },
            "frontendIPConfigurations": frontends,
            "backendAddressPools": pools_with(balancer, &all_rules, cloud),
            "loadBalancingRules": all_rules,
            "probes": probes,
            "inboundNatRules": [],
            "outboundRules": outbound.collect::<Vec<_>>(),
        },
    });
    if !shared.tags.is_null() {
        shown["tags"] = shared.tags.clone();
    }
    tagged(shown)
}

/// The shown form of its backend pools.
pub(super) fn pools(balancer: &Balancer, cloud: &Cloud) -> Vec<Value> {
    let all = balancer.fronts.iter().flat_map(|front| rules(balancer, front));
    let rules: Vec<Value> = all.map(|rule| rule.shown).collect();
    pools_with(balancer, &rules, cloud)
}

fn pools_with(balancer: &Balancer, rules: &[Value], cloud: &Cloud) -> Vec<Value> {
    let Some((_, shared)) = &balancer.shared else { return Vec::new() };
    let one = |spec| {
        let pool = Pool::of(balancer, spec, cloud);
        let users = rules.iter().filter(|rule| refers(rule, "backendAddressPool", &json!(pool.name)));
        let users = users.map(|rule| json!({"id": rule["id"]})).collect();
        members::shown(&pool, spec, users, cloud)
    };
    shared.pools.iter().map(one).collect()
}

/// Whether a rule refers to the part with this name in that field.
fn refers(rule: &Value, field: &str, name: &Value) -> bool {
    let id = rule["properties"][field]["id"].as_str().unwrap_or_default();
    same(name_in(id), name.as_str().unwrap_or_default())
}

/// A rule and its probe.
struct Rule {
    shown: Value,
    probe: Option<Value>,
}

/// The rules of a frontend, one for each port that it listens on.
fn rules(balancer: &Balancer, front: &LoadBalancer) -> Vec<Rule> {
    front.frontends.iter().map(|port| rule(balancer, front, port)).collect()
}

fn rule(balancer: &Balancer, front: &LoadBalancer, port: &Frontend) -> Rule {
    let written = list(&front.details["rules"]).find(|rule| is_for(rule, port)).cloned();
    let mut rule = written.unwrap_or_else(|| unwritten(balancer, front, port));
    let properties = &mut rule["properties"];
    properties["backendPort"] = json!(port.node_port);
    let by_source = properties["loadDistribution"].as_str().is_some_and(|text| text.starts_with("SourceIP"));
    if by_source != (front.session_affinity == "ClientIP") {
        properties["loadDistribution"] = json!(if by_source { "Default" } else { "SourceIP" });
    }
    let written = name_in(properties["probe"]["id"].as_str().unwrap_or_default()).to_owned();
    let probe = list(&front.details["probes"]).find(|probe| probe["name"] == written.as_str()).cloned();
    let probe = port.health_check.as_ref().map(|check| {
        let name = if written.is_empty() { rule["name"].as_str().unwrap_or_default() } else { &written };
        checked(probe.unwrap_or_else(|| json!({"name": name, "properties": {"intervalInSeconds": 5}})), check)
    });
    rule["properties"]["probe"] = match &probe {
        Some(probe) => {
            json!({"id": part_id(&balancer.name, PROBES, probe["name"].as_str().unwrap_or_default())})
        }
        None => Value::Null,
    };
    Rule { shown: part(balancer, RULES, rule, None), probe }
}

/// The rule of a port that only the driver API knows.
fn unwritten(balancer: &Balancer, front: &LoadBalancer, port: &Frontend) -> Value {
    let pool = super::balancer::pool_of(front);
    json!({"name": format!("{}-{}-{}", front.name, port.protocol, port.port), "properties": {
        "protocol": protocol(&port.protocol),
        "frontendPort": port.port,
        "enableFloatingIP": true,
        "idleTimeoutInMinutes": 4,
        "loadDistribution": "Default",
        "frontendIPConfiguration": {"id": part_id(&balancer.name, FRONTENDS, &front.name)},
        "backendAddressPool": {"id": part_id(&balancer.name, POOLS, pool)},
    }})
}

fn checked(mut probe: Value, check: &HealthCheck) -> Value {
    let properties = &mut probe["properties"];
    properties["port"] = json!(check.port);
    let written = properties["protocol"].as_str().unwrap_or_default();
    match check.protocol.as_str() {
        "HTTP" => {
            // HTTPS is HTTP in the model.
            if !written.eq_ignore_ascii_case("https") {
                properties["protocol"] = json!("Http");
            }
            properties["requestPath"] = json!(check.path);
        }
        _ => {
            properties["protocol"] = json!("Tcp");
            if let Some(properties) = properties.as_object_mut() {
                properties.remove("requestPath");
            }
        }
    }
    probe
}

fn frontend(balancer: &Balancer, front: &LoadBalancer, rules: &[Rule]) -> Value {
    let mut frontend = front.details["frontend"].clone();
    if frontend.is_null() {
        frontend = json!({"name": front.name, "properties": {}});
    }
    if frontend["properties"]["publicIPAddress"].is_null()
        && let Some(address) = front.addresses.iter().find_map(|address| address.ip)
    {
        frontend["properties"]["privateIPAddress"] = json!(address);
    }
    let users = rules.iter().map(|rule| json!({"id": rule.shown["id"]})).collect();
    part(balancer, FRONTENDS, frontend, Some((RULES, users)))
}

/// A part of a load balancer with id, type and state; `users` are the parts that refer to it.
fn part(balancer: &Balancer, kind: &str, mut part: Value, users: Option<(&str, Vec<Value>)>) -> Value {
    let name = part["name"].as_str().unwrap_or_default().to_owned();
    part["id"] = json!(part_id(&balancer.name, kind, &name));
    part["type"] = json!(format!("{TYPE}/{kind}"));
    part["properties"]["provisioningState"] = json!("Succeeded");
    if let Some((field, users)) = users {
        part["properties"][field] = json!(users);
    }
    part
}

/// Whether a written rule is the one of this port.
fn is_for(rule: &Value, port: &Frontend) -> bool {
    let properties = &rule["properties"];
    properties["frontendPort"] == port.port
        && properties["protocol"].as_str().is_some_and(|text| same(text, protocol(&port.protocol)))
}

/// The word for a protocol of the model.
fn protocol(protocol: &str) -> &'static str {
    match protocol {
        "UDP" => "Udp",
        "SCTP" => "All",
        _ => "Tcp",
    }
}

/// The elements of a list.
fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
