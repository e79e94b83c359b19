//! The needs of a Service according to its type: addresses, ports, health checks.

use serde_json::Value;

use embedded_objects::value::PathAccess as _;

/// Whether clients outside the cluster reach it.
pub(super) fn externally_accessible(service: &Value) -> bool {
    match service.text("spec.type") {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => !service.list("spec.externalIPs").is_empty(),
        _ => false,
    }
}

/// Whether load balancers need a separate port to find out which nodes have endpoints.
pub(super) fn needs_health_check(service: &Value) -> bool {
    service.text("spec.type") == "LoadBalancer" && service.text("spec.externalTrafficPolicy") == "Local"
}

/// Whether it has addresses of the service network.
pub(super) fn needs_cluster_ip(service: &Value) -> bool {
    service.text("spec.type") != "ExternalName"
}

/// Whether it is headless.
pub(super) fn is_headless(service: &Value) -> bool {
    matches!(service.list("spec.clusterIPs"), [only] if only == "None")
}
