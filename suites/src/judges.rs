//! What several suites expect of a Node or a Service, in words and as a judge.

use harness::cloud::{Instance, Inventory, LbState, LoadBalancer};
use harness::cx::ServiceRef;
use harness::k8s::{
    B_REGION, B_TYPE, B_ZONE, F_LB, L_REGION, L_TYPE, L_ZONE, T_UNINIT, addresses, has_finalizer, has_taint,
    ingress, label, provider_id, show_addresses,
};
use harness::probe::{Judge, Seen, holds, judge};
use k8s_openapi::api::core::v1::{Node, Service};
use std::sync::Arc;

/// A Node that may be absent.
pub(crate) type MaybeNode = Option<Arc<Node>>;
/// A Service that may be absent.
pub(crate) type MaybeService = Option<Arc<Service>>;

/// The Node is there and no longer uninitialised.
pub(crate) fn initialised() -> Judge<MaybeNode, Arc<Node>> {
    judge(format!("a Node without the taint {T_UNINIT}"), |node: &MaybeNode| match node {
        Some(node) if !has_taint(node, T_UNINIT) => Seen::Yes(node.clone()),
        Some(_) => Seen::NotYet(String::new()),
        None => Seen::NotYet("no such Node".to_owned()),
    })
}

/// The Node still carries the uninitialized taint and nothing the cloud would have given it.
pub(crate) fn untouched() -> Judge<MaybeNode, ()> {
    holds(format!("a Node with the taint {T_UNINIT}, no providerID and no zone label"), |node: &MaybeNode| {
        node.as_ref().is_some_and(|n| {
            has_taint(n, T_UNINIT)
                && provider_id(n).is_none()
                && label(n, L_ZONE).is_none()
                && label(n, B_ZONE).is_none()
        })
    })
}

/// The Node is there.
pub(crate) fn present() -> Judge<MaybeNode, ()> {
    holds("the Node is there", |node: &MaybeNode| node.is_some())
}

/// The Node's addresses are exactly these, in this order.
pub(crate) fn has_addresses(wanted: Vec<(String, String)>) -> Judge<MaybeNode, ()> {
    holds(format!("addresses {}", show_addresses(&wanted)), move |node: &MaybeNode| {
        node.as_ref().is_some_and(|n| addresses(n) == wanted)
    })
}

/// Zone, region and type labels of both generations, as the instance says.
pub(crate) fn expected_labels(instance: &Instance) -> Vec<(&'static str, String)> {
    [
        (L_ZONE, &instance.zone),
        (B_ZONE, &instance.zone),
        (L_REGION, &instance.region),
        (B_REGION, &instance.region),
        (L_TYPE, &instance.instance_type),
        (B_TYPE, &instance.instance_type),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(key, value)| (key, value.clone()))
    .collect()
}

/// What is missing of an initialised Node, in words; empty when nothing is.
pub(crate) fn missing_metadata(node: &Node, instance: &Instance) -> Vec<String> {
    let mut missing: Vec<String> = expected_labels(instance)
        .into_iter()
        .filter(|(key, value)| label(node, key).as_deref() != Some(value))
        .map(|(key, value)| format!("label {key}={value}"))
        .collect();
    if instance.provider_id.is_some() && provider_id(node).is_none() {
        missing.push("spec.providerID".to_owned());
    }
    missing
}

/// The Node carries these labels with these values.
pub(crate) fn has_labels(wanted: Vec<(&'static str, String)>) -> Judge<MaybeNode, ()> {
    let words: Vec<String> = wanted.iter().map(|(key, value)| format!("{key}={value}")).collect();
    holds(format!("labels {}", words.join(", ")), move |node: &MaybeNode| {
        node.as_ref()
            .is_some_and(|n| wanted.iter().all(|(key, value)| label(n, key).as_deref() == Some(value)))
    })
}

/// The Service is there and carries the load balancer finalizer.
pub(crate) fn keeps_finalizer() -> Judge<MaybeService, ()> {
    holds(format!("the Service with finalizer {F_LB}"), |service: &MaybeService| {
        service.as_ref().is_some_and(|s| has_finalizer(s, F_LB))
    })
}

/// Exactly one load balancer, in service and with an address.
pub(crate) fn one_active() -> Judge<Vec<LoadBalancer>, LoadBalancer> {
    judge("exactly one active load balancer with an address", |list: &Vec<LoadBalancer>| {
        match list.as_slice() {
            [lb] if lb.state == LbState::Active && !lb.addresses.is_empty() => Seen::Yes(lb.clone()),
            [_, _, ..] => Seen::Never("more than one".to_owned()),
            _ => Seen::NotYet(String::new()),
        }
    })
}

/// The Service's ingress lists exactly the load balancer's addresses.
pub(crate) fn publishes(lb: &LoadBalancer) -> Judge<MaybeService, ()> {
    let wanted: Vec<(Option<String>, Option<String>)> =
        lb.addresses.iter().map(|a| (a.ip.map(|ip| ip.to_string()), a.hostname.clone())).collect();
    holds(format!("ingress {wanted:?}"), move |service: &MaybeService| {
        service.as_ref().is_some_and(|s| !wanted.is_empty() && ingress(s) == wanted)
    })
}

/// Nothing of a Service is left in the cloud.
pub(crate) fn nothing_left(service: &ServiceRef) -> Judge<Inventory, ()> {
    holds(format!("nothing in the cloud for {}", service.owner), |left: &Inventory| {
        left.load_balancers.is_empty() && left.auxiliaries.is_empty()
    })
}
