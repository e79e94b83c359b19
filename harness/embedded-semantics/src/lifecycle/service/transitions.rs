//! Fields that an update of a Service takes over from the old one, and fields that a change of type removes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::needs::{externally_accessible, needs_cluster_ip, needs_health_check};
use embedded_objects::value::{Edit as _, PathAccess as _};

/// Keeps `clusterIP` and `clusterIPs` consistent when a client knows only one of them.
pub(super) fn normalize_cluster_ips(old: Option<&Value>, new: &mut Value) {
    let own = new.text("spec.clusterIP").to_owned();
    let Some(old) = old else {
        if !own.is_empty() && new.list("spec.clusterIPs").is_empty() {
            new.put("spec.clusterIPs", json!([own]));
        }
        return;
    };
    let before = old.text("spec.clusterIP");
    if !old.list("spec.clusterIPs").is_empty() && new.list("spec.clusterIPs").is_empty() && before == own {
        new.put("spec.clusterIPs", old.at("spec.clusterIPs").clone());
    }
    if before != own && old.list("spec.clusterIPs") == new.list("spec.clusterIPs") {
        if !before.is_empty() && own.is_empty() {
            new.clear("spec.clusterIPs");
        } else {
            new.put("spec.clusterIPs", json!([own]));
        }
    }
}

/// Keeps allocated values if the new Service omits them.
pub(super) fn take_over_allocations(old: &Value, new: &mut Value) {
    if needs_cluster_ip(old) && needs_cluster_ip(new) {
        if new.text("spec.clusterIP").is_empty() && !old.text("spec.clusterIP").is_empty() {
            new.put("spec.clusterIP", old.text("spec.clusterIP"));
        }
        if new.list("spec.clusterIPs").is_empty() && !old.list("spec.clusterIPs").is_empty() {
            new.put("spec.clusterIPs", old.at("spec.clusterIPs").clone());
        }
    }
    if allocates_node_ports(old) && allocates_node_ports(new) {
        let (before, after) = (node_ports(old), node_ports(new));
        let used: BTreeSet<i64> = before.intersection(&after).copied().collect();
        let by_name: BTreeMap<String, i64> = old
            .list("spec.ports")
            .iter()
            .map(|port| (port.text("name").to_owned(), port.int("nodePort")))
            .collect();
        for port in new.items("spec.ports") {
            let known = by_name.get(port.text("name")).copied().unwrap_or_default();
            if port.int("nodePort") == 0 && known != 0 && !used.contains(&known) {
                port.put("nodePort", known);
            }
        }
    }
    if needs_health_check(old)
        && needs_health_check(new)
        && new.int("spec.healthCheckNodePort") == 0
        && old.int("spec.healthCheckNodePort") != 0
    {
        new.put("spec.healthCheckNodePort", old.int("spec.healthCheckNodePort"));
    }
}

fn allocates_node_ports(service: &Value) -> bool {
    match service.text("spec.type") {
        "NodePort" => true,
        "LoadBalancer" => service.at("spec.allocateLoadBalancerNodePorts") != &Value::Bool(false),
        _ => false,
    }
}

/// The node ports of a Service.
pub(super) fn node_ports(service: &Value) -> BTreeSet<i64> {
    service.list("spec.ports").iter().map(|port| port.int("nodePort")).filter(|port| *port != 0).collect()
}

/// Removes fields that the new type does not have, if the update left them unchanged.
pub(super) fn drop_what_the_type_has_not(old: &Value, new: &mut Value) {
    let same = |new: &Value, path: &str| old.at(path) == new.at(path);
    if needs_cluster_ip(old) && !needs_cluster_ip(new) {
        if same(new, "spec.clusterIP") && same(new, "spec.clusterIPs") {
            new.clear("spec.clusterIP");
            new.clear("spec.clusterIPs");
        }
        for path in ["spec.ipFamilies", "spec.ipFamilyPolicy"] {
            if same(new, path) {
                new.clear(path);
            }
        }
    }
    let has_node_ports = |service: &Value| matches!(service.text("spec.type"), "NodePort" | "LoadBalancer");
    if has_node_ports(old) && !has_node_ports(new) && node_ports(old).is_superset(&node_ports(new)) {
        for port in new.items("spec.ports") {
            port.clear("nodePort");
        }
    }
    if needs_health_check(old) && !needs_health_check(new) && same(new, "spec.healthCheckNodePort") {
        new.clear("spec.healthCheckNodePort");
    }
    let balanced = |service: &Value| service.text("spec.type") == "LoadBalancer";
    if balanced(old) && !balanced(new) {
        for path in ["spec.allocateLoadBalancerNodePorts", "spec.loadBalancerClass"] {
            if same(new, path) {
                new.clear(path);
            }
        }
    }
    if externally_accessible(old) && !externally_accessible(new) && same(new, "spec.externalTrafficPolicy") {
        new.clear("spec.externalTrafficPolicy");
    }
    if !balanced(new) {
        new.put("status.loadBalancer", json!({}));
    }
}
