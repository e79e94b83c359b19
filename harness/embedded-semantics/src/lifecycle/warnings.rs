//! The server's warnings about accepted objects.
//!
//! Source: `pkg/api/service/warnings.go`, `pkg/registry/core/node/strategy.go`,
//! `pkg/registry/core/endpoint/strategy.go` and `k8s.io/apimachinery/pkg/util/validation/ip.go`.

pub(super) mod apparmor;
mod parts;
mod pods;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::Value;

use parts::ip;

use embedded_objects::kinds::Kind;
use embedded_objects::rules::net;
use embedded_objects::structural::Patterns;
use embedded_objects::value::PathAccess as _;

/// The texts for Warning headers about an object that was created or, if there is an old one, updated; in order.
pub fn warnings(kind: &Kind, sub: Option<&str>, old: Option<&Value>, object: &Value) -> Vec<String> {
    if kind.custom.is_some() && sub.is_none() {
        return finalizers(old, object);
    }
    match (kind.group, kind.kind, sub) {
        ("", "Service", None) => service(object),
        ("", "Service", Some(_)) => {
            let ingress = object.list("status.loadBalancer.ingress").iter().enumerate();
            ingress
                .flat_map(|(at, one)| ip(&format!("status.loadBalancer.ingress[{at}]"), one.text("ip")))
                .collect()
        }
        ("", "Node", None) => node(object),
        ("", "Endpoints", None) => endpoints(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition", None) => definition(object),
        ("", "Pod", Some("status")) => addresses(object),
        (_, _, None) => pods::warnings(kind, old, object),
        _ => Vec::new(),
    }
}

/// Whether the warnings about objects of a kind depend on the earlier version.
pub fn compares(kind: &Kind) -> bool {
    kind.custom.is_some() || pods::template_of(kind).is_some()
}

/// The warnings about parts of a submitted object that it does not have any more after its creation.
pub fn warnings_of_sent(kind: &Kind, sent: &Value) -> Vec<String> {
    if kind.is("", "Pod") { apparmor::of_sent(sent) } else { Vec::new() }
}

/// The warnings about new finalizers of custom resources without a domain, whose owner is unknown. Source:
/// `k8s.io/apiextensions-apiserver/pkg/registry/customresource/validator.go`.
fn finalizers(old: Option<&Value>, object: &Value) -> Vec<String> {
    let known = old.map(|old| old.list("metadata.finalizers")).unwrap_or_default();
    let mut added: Vec<&str> = object
        .list("metadata.finalizers")
        .iter()
        .filter(|one| !known.contains(one))
        .filter_map(Value::as_str)
        .collect();
    added.sort_unstable();
    added.dedup();
    let standard = ["kubernetes", "orphan", "foregroundDeletion"];
    let odd = added.into_iter().filter(|name| !name.contains('/') && !standard.contains(name));
    odd.map(|name| {
        let path = if name.contains('.') { " including a path (/)" } else { "" };
        format!(
            "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with \
             other finalizer writers"
        )
    })
    .collect()
}

fn addresses(pod: &Value) -> Vec<String> {
    let mut out = Vec::new();
    for list in ["podIPs", "hostIPs"] {
        for (at, address) in pod.list(&format!("status.{list}")).iter().enumerate() {
            out.extend(ip(&format!("status.{list}[{at}].ip"), address.text("ip")));
        }
    }
    out
}

/// The warning for every request about a deprecated kind.
pub fn deprecation(kind: &'static Kind) -> Option<&'static str> {
    if let Some(custom) = &kind.custom {
        return custom.deprecation.as_deref();
    }
    if kind.is("", "ComponentStatus") {
        return Some("v1 ComponentStatus is deprecated in v1.19+");
    }
    let endpoints = kind.is("", "Endpoints");
    endpoints.then_some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
}

/// The warnings about patterns that this server, unlike a real one, does not enforce.
fn definition(object: &Value) -> Vec<String> {
    let mut out = Vec::new();
    for (at, version) in object.list("spec.versions").iter().enumerate() {
        let patterns = Patterns::of(version.at("schema.openAPIV3Schema"));
        out.extend(patterns.unread().take(8).map(|(pattern, why)| {
            let pattern: String = pattern.chars().take(80).flat_map(char::escape_default).collect();
            // The last line has the fault; those before it point at it.
            let why = why.lines().last().unwrap_or_default();
            format!("spec.versions[{at}]: pattern '{pattern}' is not looked at by this server: {why}")
        }));
    }
    out
}

fn texts<'a>(object: &'a Value, path: &str) -> impl Iterator<Item = (usize, &'a str)> {
    object.list(path).iter().filter_map(Value::as_str).enumerate()
}

fn service(object: &Value) -> Vec<String> {
    let mut out = Vec::new();
    let hints = "service.kubernetes.io/topology-aware-hints";
    if object.at("metadata.annotations").get(hints).is_some() {
        out.push(format!(
            "annotation {hints} is deprecated, please use service.kubernetes.io/topology-mode instead"
        ));
    }
    let external = object.text("spec.type") == "ExternalName";
    let own = object.text("spec.clusterIP");
    if !external && !own.is_empty() && own != "None" {
        for (at, text) in texts(object, "spec.clusterIPs") {
            out.extend(ip(&format!("spec.clusterIPs[{at}]"), text));
        }
    }
    let headless = matches!(object.list("spec.clusterIPs"), [only] if only == "None");
    let balanced = object.text("spec.loadBalancerIP");
    let outside = !object.list("spec.externalIPs").is_empty();
    if headless {
        if !balanced.is_empty() {
            out.push("spec.loadBalancerIP is ignored for headless services".to_owned());
        }
        if outside {
            out.push("spec.externalIPs is ignored for headless services".to_owned());
        }
        if object.text("spec.sessionAffinity") != "None" {
            out.push("spec.SessionAffinity is ignored for headless services".to_owned());
        }
    }
    for (at, text) in texts(object, "spec.externalIPs") {
        out.extend(ip(&format!("spec.externalIPs[{at}]"), text));
    }
    if outside && !headless && !external {
        out.push(
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters".to_owned(),
        );
    }
    if !balanced.is_empty() {
        out.extend(ip("spec.loadBalancerIP", balanced));
    }
    for (at, text) in texts(object, "spec.loadBalancerSourceRanges") {
        out.extend(cidr(&format!("spec.loadBalancerSourceRanges[{at}]"), text));
    }
    if external && outside {
        out.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if !external && !object.text("spec.externalName").is_empty() {
        out.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    if object.text("spec.trafficDistribution") == "PreferClose" {
        out.push(
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".to_owned(),
        );
    }
    out
}

fn node(object: &Value) -> Vec<String> {
    let mut out = Vec::new();
    if object.has("spec.configSource") {
        out.push("spec.configSource: the feature is removed".to_owned());
    }
    if !object.text("spec.externalID").is_empty() {
        out.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned());
    }
    for (at, text) in texts(object, "spec.podCIDRs") {
        out.extend(cidr(&format!("spec.podCIDRs[{at}]"), text));
    }
    out
}

fn endpoints(object: &Value) -> Vec<String> {
    let mut out = Vec::new();
    for (at, subset) in object.list("subsets").iter().enumerate() {
        for list in ["addresses", "notReadyAddresses"] {
            for (index, address) in subset.list(list).iter().enumerate() {
                out.extend(ip(&format!("subsets[{at}].{list}[{index}].ip"), address.text("ip")));
            }
        }
    }
    out
}

/// The network's own address.
fn masked(ip: IpAddr, bits: u8) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from(u32::from(ip) & mask))
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from(u128::from(ip) & mask))
        }
    }
}

fn cidr(path: &str, text: &str) -> Vec<String> {
    let Some((ip, bits)) = net::parse_cidr(text) else { return Vec::new() };
    let network = format!("{}/{bits}", masked(ip, bits));
    let mut out = Vec::new();
    if masked(ip, bits) != ip {
        let width = if ip.is_ipv4() { 32 } else { 128 };
        out.push(format!(
            "{path}: CIDR value {text:?} is ambiguous in this context (should be {network:?} or \"{ip}/{width}\"?)"
        ));
    }
    let written = text.split_once('/').and_then(|(ip, _)| ip.parse::<IpAddr>().ok());
    match written {
        None => out.push(format!("{path}: non-standard CIDR value {text:?} is invalid: use {network:?}")),
        Some(IpAddr::V6(six)) if six.to_ipv4_mapped().is_some() => {
            out.push(format!("{path}: non-standard CIDR value {text:?} is invalid: use {network:?}"));
        }
        Some(IpAddr::V6(six)) if out.is_empty() && format!("{six}/{bits}") != text => {
            out.push(format!(
                "{path}: IPv6 CIDR value {text:?} should be in RFC 5952 canonical format (\"{six}/{bits}\")"
            ));
        }
        Some(_) => {}
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use embedded_objects::kinds;

    #[test]
    fn accepted_oddities_cause_warnings() {
        let services = kinds::find("", "v1", "services").expect("services are served");
        let warnings_of = |spec: Value| warnings(services, None, None, &json!({"spec": spec}));
        assert_eq!(
            warnings_of(json!({"type": "ClusterIP", "clusterIP": "fd00:0::1", "clusterIPs": ["fd00:0::1"]})),
            [
                "spec.clusterIPs[0]: IPv6 address \"fd00:0::1\" should be in RFC 5952 canonical format (\"fd00::1\")"
            ]
        );
        assert_eq!(
            warnings_of(
                json!({"type": "LoadBalancer", "loadBalancerSourceRanges": ["10.0.0.1/8"], "externalName": "x"})
            ),
            [
                "spec.loadBalancerSourceRanges[0]: CIDR value \"10.0.0.1/8\" is ambiguous in this context (should be \"10.0.0.0/8\" or \"10.0.0.1/32\"?)",
                "spec.externalName is ignored when spec.type is not \"ExternalName\""
            ]
        );
        assert_eq!(
            warnings_of(json!({"type": "ClusterIP", "clusterIPs": ["10.0.0.1"]})),
            Vec::<String>::new()
        );
        let endpoints = kinds::find("", "v1", "endpoints").expect("endpoints are served");
        assert!(deprecation(endpoints).is_some_and(|text| text.contains("EndpointSlice")));
        assert_eq!(deprecation(services), None);
    }
}
