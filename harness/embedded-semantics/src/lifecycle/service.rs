//! Services: defaults, fields that are removed when the type changes, and fields that an update takes over.
//!
//! Source: `pkg/apis/core/v1/defaults.go`, `pkg/registry/core/service/strategy.go` and `storage/storage.go`.

mod allocate;
mod changes;
mod families;
mod needs;
mod transitions;
mod validate;

use serde_json::{Value, json};

use needs::externally_accessible;

use super::Context;
use super::strategy::Strategy;
use crate::alloc::Allocator;
use embedded_objects::cause::Cause;
use embedded_objects::kinds::Kind;
use embedded_objects::status::Status;
use embedded_objects::value::{Edit as _, PathAccess as _, is_zero};

/// The default number of seconds that a client stays with one endpoint.
const AFFINITY_SECONDS: i64 = 10_800;

pub(super) struct Service;

impl Strategy for Service {
    fn default(&self, object: &mut Value) {
        object.put_default("spec.sessionAffinity", "None");
        match object.text("spec.sessionAffinity") {
            "None" => {
                object.clear("spec.sessionAffinityConfig");
            }
            "ClientIP" if !object.has("spec.sessionAffinityConfig.clientIP.timeoutSeconds") => {
                let config = json!({"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}});
                object.put("spec.sessionAffinityConfig", config);
            }
            _ => {}
        }
        object.put_default("spec.type", "ClusterIP");
        for port in object.items("spec.ports") {
            port.put_default("protocol", "TCP");
            if is_zero(port.at("targetPort")) {
                let number = port.at("port").clone();
                port.put("targetPort", number);
            }
        }
        if externally_accessible(object) {
            object.put_default("spec.externalTrafficPolicy", "Cluster");
        }
        let kind = object.text("spec.type").to_owned();
        let in_cluster = matches!(kind.as_str(), "NodePort" | "LoadBalancer" | "ClusterIP");
        if in_cluster && !object.has("spec.internalTrafficPolicy") {
            object.put("spec.internalTrafficPolicy", "Cluster");
        }
        if kind == "LoadBalancer" {
            if !object.has("spec.allocateLoadBalancerNodePorts") {
                object.put("spec.allocateLoadBalancerNodePorts", true);
            }
            for ingress in object.items("status.loadBalancer.ingress") {
                if !ingress.text("ip").is_empty() && !ingress.has("ipMode") {
                    ingress.put("ipMode", "VIP");
                }
            }
        }
    }

    fn allocate_create(&self, object: &mut Value, cx: &mut Context<'_>) -> Result<(), Status> {
        transitions::normalize_cluster_ips(None, object);
        families::init(None, object, cx)?;
        allocate::create(object, cx)
    }

    fn prepare_create(&self, object: &mut Value, _cx: &mut Context<'_>) {
        object.put("status", json!({"loadBalancer": {}}));
        forget_policy(object);
    }

    fn validate_create(&self, object: &Value, _cx: &Context<'_>) -> Vec<Cause> {
        validate::service(object, None)
    }

    fn allocate_update(&self, old: &Value, new: &mut Value, cx: &mut Context<'_>) -> Result<(), Status> {
        transitions::take_over_allocations(old, new);
        transitions::normalize_cluster_ips(Some(old), new);
        families::init(Some(old), new, cx)?;
        allocate::update(old, new, cx)
    }

    fn prepare_update(&self, sub: Option<&str>, old: &Value, new: &mut Value, _cx: &mut Context<'_>) {
        if sub.is_some() {
            new.put("spec", old.at("spec").clone());
        } else {
            new.put("status", old.at("status").clone());
            transitions::drop_what_the_type_has_not(old, new);
            forget_policy(new);
        }
    }

    fn validate_update(
        &self,
        _kind: &Kind,
        sub: Option<&str>,
        old: &Value,
        new: &Value,
        _cx: &Context<'_>,
    ) -> Vec<Cause> {
        let mut causes = super::meta::changed(old, new);
        if sub.is_some() {
            causes.extend(changes::load_balancer_status(old, new));
        } else {
            causes.extend(changes::changed(old, new));
            causes.extend(validate::service(new, Some(old)));
        }
        causes
    }

    fn released(&self, object: &Value, allocator: &mut Allocator) {
        allocate::release(object, allocator);
    }

    fn restored(&self, object: &Value, allocator: &mut Allocator) {
        allocate::restore(object, allocator);
    }
}

/// Removes the traffic policy of an external name, which routes no traffic. An invalid policy is left for
/// validation to reject.
fn forget_policy(object: &mut Value) {
    let external = object.text("spec.type") == "ExternalName";
    if external && matches!(object.text("spec.internalTrafficPolicy"), "Cluster" | "Local") {
        object.clear("spec.internalTrafficPolicy");
    }
}
