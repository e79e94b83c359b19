//! Validation of changes of a Service, and of its status.
//!
//! Source: `ValidateServiceUpdate` and `ValidateLoadBalancerStatus` in `pkg/apis/core/validation/validation.go`.

use serde_json::Value;

use super::needs::{is_headless, needs_health_check};
use super::validate::balancer_class;
use embedded_objects::cause::Cause;
use embedded_objects::rules::{names, net};
use embedded_objects::value::PathAccess as _;

/// The causes for a change of a Service.
pub(super) fn changed(old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let external = |service: &Value| service.text("spec.type") == "ExternalName";
    if !external(old) && !external(new) {
        if !(is_headless(old) && is_headless(new)) {
            causes.extend(list_changed(old, new, "clusterIPs", "clusterIP"));
        }
        if !is_headless(old) && !is_headless(new) {
            causes.extend(list_changed(old, new, "ipFamilies", "ipFamily"));
        }
    }
    let balanced = |service: &Value| service.text("spec.type") == "LoadBalancer";
    let class = "spec.loadBalancerClass";
    if balanced(old) && balanced(new) && old.at(class) != new.at(class) {
        causes.push(Cause::invalid(class, new.at(class).clone(), "may not change once set"));
    }
    causes.extend(balancer_class(new));
    let port = "spec.healthCheckNodePort";
    if needs_health_check(old) && needs_health_check(new) && old.int(port) != new.int(port) {
        causes.push(Cause::forbidden(port, "field is immutable"));
    }
    causes
}

fn list_changed(old: &Value, new: &Value, list: &str, one: &str) -> Vec<Cause> {
    let path = format!("spec.{list}");
    let (before, after) = (old.list(&path), new.list(&path));
    let shown = || Value::Array(after.to_vec());
    let mut causes = Vec::new();
    if before.len() == after.len() {
        for (at, _) in before.iter().zip(after).enumerate().filter(|(_, (before, after))| before != after) {
            let at = if list == "clusterIPs" { at } else { 0 };
            causes.push(Cause::invalid(format!("{path}[{at}]"), shown(), "may not change once set"));
        }
        return causes;
    }
    let first = format!("{path}[0]");
    let narrower = before.len() > after.len();
    if narrower && new.list("spec.clusterIPs").is_empty() {
        causes.push(Cause::invalid(first.clone(), shown(), format!("primary {one} can not be unset")));
    }
    if let (Some(before), Some(after)) = (before.first(), after.first())
        && before != after
    {
        // The server shows the addresses here for the families too.
        let ips = Value::Array(new.list("spec.clusterIPs").to_vec());
        causes.push(Cause::invalid(first, ips, "may not change once set"));
    }
    if narrower && after.len() == 1 && new.text("spec.ipFamilyPolicy") != "SingleStack" {
        let why = format!("must be set to 'SingleStack' when releasing the secondary {one}");
        let path = "spec.ipFamilyPolicy";
        causes.push(Cause::invalid(path, new.at(path).clone(), why));
    }
    causes
}

/// The causes for the addresses of a load balancer.
pub(super) fn load_balancer_status(old: &Value, new: &Value) -> Vec<Cause> {
    let path = "status.loadBalancer.ingress";
    let ingresses = new.list(path);
    if new.text("spec.type") != "LoadBalancer" && !ingresses.is_empty() {
        return vec![Cause::forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")];
    }
    let stored: Vec<&str> = old.list(path).iter().map(|ingress| ingress.text("ip")).collect();
    let modes = ["Proxy", "VIP"];
    let mut causes = Vec::new();
    for (at, ingress) in ingresses.iter().enumerate() {
        let path = format!("{path}[{at}]");
        let (ip, mode) = (ingress.text("ip"), ingress.at("ipMode").as_str());
        if !ip.is_empty() && !stored.contains(&ip) {
            causes.extend(net::ip_causes(&format!("{path}.ip"), ip));
        }
        let field = format!("{path}.ipMode");
        match mode {
            None if !ip.is_empty() => {
                causes.push(Cause::required(field, "must be specified when `ip` is set"));
            }
            Some(_) if ip.is_empty() => {
                causes.push(Cause::forbidden(field, "may not be specified when `ip` is not set"));
            }
            Some(mode) if !modes.contains(&mode) => causes.push(Cause::not_supported(field, mode, &modes)),
            _ => {}
        }
        let host = ingress.text("hostname");
        if !host.is_empty() {
            let field = format!("{path}.hostname");
            let faults = names::subdomain(host);
            causes.extend(faults.iter().map(|fault| Cause::invalid(field.clone(), host, fault)));
            if net::parse_ip(host).is_some() {
                causes.push(Cause::invalid(field, host, "must be a DNS name, not an IP address"));
            }
        }
    }
    causes
}
