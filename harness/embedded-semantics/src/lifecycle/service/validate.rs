//! Validation of a Service and of its changes.
//!
//! Source: `validateService` and its helpers in `pkg/apis/core/validation/validation.go`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::meta;
use super::needs::{externally_accessible, is_headless, needs_health_check};
use crate::alloc::Family;
use embedded_objects::cause::Cause;
use embedded_objects::rules::{names, net};
use embedded_objects::value::PathAccess as _;

const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const ONLY_BALANCED: &str = "may only be used when `type` is 'LoadBalancer'";

/// The causes for a Service; `old` is the stored one, if it is an update.
pub(super) fn service(service: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = topology(service);
    let kind = service.text("spec.type");
    let headless = is_headless(service);
    let ports = service.list("spec.ports");
    if ports.is_empty() && !headless && kind != "ExternalName" {
        causes.push(Cause::required("spec.ports", ""));
    }
    if headless && matches!(kind, "LoadBalancer" | "NodePort") {
        let why = format!("may not be set to 'None' for {kind} services");
        causes.push(Cause::invalid("spec.clusterIPs[0]", "None", why));
    }
    if kind == "ExternalName" {
        causes.extend(external_name(service));
    }
    let mut port_names = BTreeSet::new();
    for (at, port) in ports.iter().enumerate() {
        causes.extend(one_port(port, ports.len() > 1, &mut port_names, &format!("spec.ports[{at}]")));
    }
    causes.extend(meta::labels(service.at("spec.selector"), "spec.selector"));
    causes.extend(affinity(service));
    causes.extend(cluster_ips(service, old));
    let known_ips = old.map(|old| old.list("spec.externalIPs")).unwrap_or_default();
    for (at, ip) in service.list("spec.externalIPs").iter().enumerate() {
        let (path, text) = (format!("spec.externalIPs[{at}]"), ip.as_str().unwrap_or_default());
        let wrong = if known_ips.contains(ip) { Vec::new() } else { net::ip_causes(&path, text) };
        if wrong.is_empty() {
            causes.extend(net::endpoint_ip_causes(&path, text));
        }
        causes.extend(wrong);
    }
    let types = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    if kind.is_empty() {
        causes.push(Cause::required("spec.type", ""));
    } else if !types.contains(&kind) {
        causes.push(Cause::not_supported("spec.type", kind, &types));
    }
    causes.extend(port_collisions(service));
    causes.extend(source_ranges(service, old));
    let allocate = service.has("spec.allocateLoadBalancerNodePorts");
    if allocate && kind != "LoadBalancer" {
        causes.push(Cause::forbidden("spec.allocateLoadBalancerNodePorts", ONLY_BALANCED));
    }
    if !allocate && kind == "LoadBalancer" {
        causes.push(Cause::required("allocateLoadBalancerNodePorts", ""));
    }
    causes.extend(balancer_class(service));
    causes.extend(traffic(service));
    causes
}

fn topology(service: &Value) -> Vec<Cause> {
    let note = |key: &str| service.at("metadata.annotations").get(key).and_then(Value::as_str);
    match (note(TOPOLOGY_MODE), note(TOPOLOGY_HINTS)) {
        (Some(mode), Some(hints)) if mode != hints => {
            let why = format!("must match annotations[{TOPOLOGY_HINTS}] when both are specified");
            vec![Cause::invalid(format!("metadata.annotations[{TOPOLOGY_MODE}]"), mode, why)]
        }
        _ => Vec::new(),
    }
}

fn external_name(service: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        let path = format!("spec.{field}");
        let set = match service.at(&path) {
            Value::Array(items) => !items.is_empty(),
            other => !other.is_null(),
        };
        if set {
            causes.push(Cause::forbidden(path, "may not be set for ExternalName services"));
        }
    }
    let name = service.text("spec.externalName");
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.is_empty() {
        causes.push(Cause::required("spec.externalName", ""));
    } else {
        let faults = names::subdomain(name);
        causes.extend(faults.iter().map(|fault| Cause::invalid("spec.externalName", name, fault)));
    }
    causes
}

fn one_port(port: &Value, named: bool, names_seen: &mut BTreeSet<String>, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = port.text("name");
    if name.is_empty() {
        if named {
            causes.push(Cause::required(format!("{path}.name"), ""));
        }
    } else {
        let faults = names::label(name);
        causes.extend(faults.iter().map(|fault| Cause::invalid(format!("{path}.name"), name, fault)));
        if !names_seen.insert(name.to_owned()) {
            causes.push(Cause::duplicate(format!("{path}.name"), name));
        }
    }
    let number = port.int("port");
    causes.extend(net::port_fault(number).map(|why| Cause::invalid(format!("{path}.port"), number, why)));
    let protocol = port.text("protocol");
    let protocols = ["SCTP", "TCP", "UDP"];
    if protocol.is_empty() {
        causes.push(Cause::required(format!("{path}.protocol"), ""));
    } else if !protocols.contains(&protocol) {
        causes.push(Cause::not_supported(format!("{path}.protocol"), protocol, &protocols));
    }
    match port.at("targetPort") {
        Value::String(name) => {
            let faults = names::port_name(name);
            let path = format!("{path}.targetPort");
            causes.extend(faults.iter().map(|fault| Cause::invalid(path.clone(), name.as_str(), fault)));
        }
        other => {
            let number = other.as_i64().unwrap_or_default();
            let fault = net::port_fault(number);
            causes.extend(fault.map(|why| Cause::invalid(format!("{path}.targetPort"), number, why)));
        }
    }
    if let Some(app) = port.at("appProtocol").as_str() {
        let path = format!("{path}.appProtocol");
        causes.extend(names::qualified(app).iter().map(|fault| Cause::invalid(path.clone(), app, fault)));
    }
    causes
}

fn affinity(service: &Value) -> Vec<Cause> {
    let config = "spec.sessionAffinityConfig";
    let kinds = ["ClientIP", "None"];
    match service.text("spec.sessionAffinity") {
        "" => vec![Cause::required("spec.sessionAffinity", "")],
        "ClientIP" => {
            let path = format!("{config}.clientIP.timeoutSeconds");
            let seconds = service.int(&path);
            if (1..=86400).contains(&seconds) {
                Vec::new()
            } else {
                vec![Cause::invalid(path, seconds, "must be greater than 0 and less than 86400")]
            }
        }
        "None" if service.has(config) => {
            vec![Cause::forbidden(config, "must not be set when session affinity is None")]
        }
        "None" => Vec::new(),
        other => vec![Cause::not_supported("spec.sessionAffinity", other, &kinds)],
    }
}

/// The causes for addresses, families and their policy.
pub(super) fn cluster_ips(service: &Value, old: Option<&Value>) -> Vec<Cause> {
    if service.text("spec.type") == "ExternalName" {
        return Vec::new();
    }
    let mut causes = Vec::new();
    let path = "spec.clusterIPs";
    let ips = service.list(path);
    let all = || Value::Array(ips.to_vec());
    let first = service.text("spec.clusterIP");
    match ips.first() {
        None if !first.is_empty() => causes.push(Cause::required(path, "")),
        Some(ip) if !first.is_empty() && ip != first => {
            causes.push(Cause::invalid(path, all(), "first value must match `clusterIP`"));
        }
        Some(_) if first.is_empty() => {
            causes.push(Cause::invalid(path, all(), "must be empty when `clusterIP` is not specified"));
        }
        _ => {}
    }
    let families = service.list("spec.ipFamilies");
    let known = ["IPv4", "IPv6"];
    for (at, family) in families.iter().enumerate() {
        let field = format!("spec.ipFamilies[{at}]");
        if !known.iter().any(|name| family == name) {
            causes.push(Cause::not_supported(field.clone(), family.clone(), &known));
        }
        if families[..at].contains(family) {
            causes.push(Cause::duplicate(field, family.clone()));
        }
    }
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    let policy = service.text("spec.ipFamilyPolicy");
    if service.has("spec.ipFamilyPolicy") && !policies.contains(&policy) {
        causes.push(Cause::not_supported("spec.ipFamilyPolicy", policy, &policies));
    }
    let stored = old.map(|old| old.list(path)).unwrap_or_default();
    let mut wrong = false;
    for (at, ip) in ips.iter().enumerate() {
        if at == 0 && ip == "None" {
            if ips.len() > 1 {
                wrong = true;
                causes.push(Cause::invalid(path, all(), "'None' must be the first and only value"));
            }
            continue;
        }
        let text = ip.as_str().unwrap_or_default();
        if !stored.contains(ip) {
            let faults = net::ip_causes(&format!("{path}[{at}]"), text);
            wrong |= !faults.is_empty();
            causes.extend(faults);
        }
    }
    if ips.len() > 2 {
        causes.push(Cause::invalid(path, all(), "may only hold up to 2 values"));
    }
    if wrong {
        return causes;
    }
    let family_of = |ip: &Value| ip.as_str().and_then(net::parse_ip).map(Family::of);
    if ips.len() > 1 && family_of(&ips[0]) == family_of(&ips[1]) {
        causes.push(Cause::invalid(path, all(), "may specify no more than one IP for each IP family"));
    }
    if !is_headless(service) {
        for (at, (ip, family)) in ips.iter().zip(families).enumerate() {
            let is = family_of(ip).map(Family::name).unwrap_or("IPv4");
            if known.iter().any(|name| family == name) && family != is {
                let family = family.as_str().unwrap_or_default();
                let why = format!("expected an {family} value as indicated by `ipFamilies[{at}]`");
                causes.push(Cause::invalid(format!("{path}[{at}]"), ip.clone(), why));
            }
        }
    }
    causes
}

fn port_collisions(service: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let ports = service.list("spec.ports");
    let has_node_port = |port: &Value| port.int("nodePort") != 0;
    if service.text("spec.type") == "ClusterIP" {
        for (at, _) in ports.iter().enumerate().filter(|(_, port)| has_node_port(port)) {
            let why = "may not be used when `type` is 'ClusterIP'";
            causes.push(Cause::forbidden(format!("spec.ports[{at}].nodePort"), why));
        }
    }
    let key = |port: &Value, number: &str| (port.text("protocol").to_owned(), port.int(number));
    for (at, port) in ports.iter().enumerate().filter(|(_, port)| has_node_port(port)) {
        if ports[..at].iter().any(|other| key(other, "nodePort") == key(port, "nodePort")) {
            causes.push(Cause::duplicate(format!("spec.ports[{at}].nodePort"), port.int("nodePort")));
        }
    }
    for (at, port) in ports.iter().enumerate() {
        if ports[..at].iter().any(|other| key(other, "port") == key(port, "port")) {
            // The server shows its internal type here, in that type's order of fields.
            let shown = format!(
                "Duplicate value: {{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{},\"TargetPort\":0,\"NodePort\":0}}",
                json!(port.text("protocol")),
                port.int("port")
            );
            let mut cause = Cause::duplicate(format!("spec.ports[{at}]"), Value::Null);
            cause.message = shown;
            causes.push(cause);
        }
    }
    causes
}

fn source_ranges(service: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let balanced = service.text("spec.type") == "LoadBalancer";
    let ranges = service.list("spec.loadBalancerSourceRanges");
    let note = |service: &Value| {
        service.at("metadata.annotations").get(SOURCE_RANGES).and_then(Value::as_str).map(str::to_owned)
    };
    if !ranges.is_empty() {
        let path = "spec.LoadBalancerSourceRanges";
        if !balanced {
            causes.push(Cause::forbidden(path, ONLY_BALANCED));
        }
        let stored: Vec<&str> = old
            .map(|old| old.list("spec.loadBalancerSourceRanges"))
            .unwrap_or_default()
            .iter()
            .filter_map(Value::as_str)
            .map(str::trim)
            .collect();
        for (at, range) in ranges.iter().enumerate() {
            let range = range.as_str().unwrap_or_default().trim();
            if !stored.contains(&range) {
                causes.extend(net::cidr_causes(&format!("{path}[{at}]"), range));
            }
        }
    } else if let Some(listed) = note(service) {
        let path = format!("metadata.annotations[{SOURCE_RANGES}]");
        if !balanced {
            causes.push(Cause::forbidden(path.clone(), ONLY_BALANCED));
        }
        if old.and_then(note).as_ref() != Some(&listed) && !listed.trim().is_empty() {
            causes.extend(listed.split(',').flat_map(|range| net::cidr_causes(&path, range.trim())));
        }
    }
    causes
}

/// The causes for the load balancer class.
pub(super) fn balancer_class(service: &Value) -> Vec<Cause> {
    let path = "spec.loadBalancerClass";
    match service.at(path).as_str() {
        None => Vec::new(),
        Some(class) if service.text("spec.type") == "LoadBalancer" => {
            names::qualified(class).iter().map(|fault| Cause::invalid(path, class, fault)).collect()
        }
        Some(_) => vec![Cause::forbidden(path, ONLY_BALANCED)],
    }
}

fn traffic(service: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let both = ["Cluster", "Local"];
    let path = "spec.externalTrafficPolicy";
    match (externally_accessible(service), service.text(path)) {
        (false, "") => {}
        (false, policy) => {
            causes.push(Cause::invalid(path, policy, "may only be set for externally-accessible services"));
        }
        (true, "") => causes.push(Cause::required(path, "")),
        (true, policy) if !both.contains(&policy) => causes.push(Cause::not_supported(path, policy, &both)),
        _ => {}
    }
    let path = "spec.healthCheckNodePort";
    let port = service.int(path);
    match (needs_health_check(service), port) {
        (false, 0) => {}
        (false, _) => {
            let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            causes.push(Cause::invalid(path, port, why));
        }
        (true, 0) => causes.push(Cause::required(path, "")),
        (true, _) => causes.extend(net::port_fault(port).map(|why| Cause::invalid(path, port, why))),
    }
    let path = "spec.internalTrafficPolicy";
    if let Some(policy) = service.at(path).as_str().filter(|policy| !both.contains(policy)) {
        causes.push(Cause::not_supported(path, policy, &both));
    }
    let path = "spec.trafficDistribution";
    let spread = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    if let Some(wanted) = service.at(path).as_str().filter(|wanted| !spread.contains(wanted)) {
        causes.push(Cause::not_supported(path, wanted, &spread));
    }
    causes
}
