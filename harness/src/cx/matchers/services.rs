//! Services.

use crate::cloud::LoadBalancer;
use crate::k8s::{F_LB, has_finalizer, ingress, is_being_deleted};
use crate::probe::{Matcher, holds};
use k8s_openapi::api::core::v1::Service;
use std::sync::Arc;

type MaybeService = Option<Arc<Service>>;

fn is(claim: &str, wanted: impl Fn(&Service) -> bool + 'static) -> Matcher<MaybeService> {
    holds(claim, move |service: &MaybeService| service.as_ref().is_some_and(|s| wanted(s)))
}

/// It is there and carries the load balancer finalizer.
pub fn keeps_finalizer() -> Matcher<MaybeService> {
    is("carries the finalizer", |s| has_finalizer(s, F_LB))
        .expecting(format!("the Service with finalizer {F_LB}"))
}

/// It is there without the load balancer finalizer.
pub fn lacks_finalizer() -> Matcher<MaybeService> {
    is("carries no finalizer", |s| !has_finalizer(s, F_LB))
        .expecting(format!("the Service without finalizer {F_LB}"))
}

/// Its deletion has been asked for, and the load balancer finalizer holds it.
pub fn waits_to_be_deleted() -> Matcher<MaybeService> {
    is("stays, held by the finalizer", |s| has_finalizer(s, F_LB) && is_being_deleted(s))
        .expecting(format!("the Service with deletionTimestamp and finalizer {F_LB}"))
}

/// Its ingress lists exactly the load balancer's addresses.
pub fn publishes(lb: &LoadBalancer) -> Matcher<MaybeService> {
    let wanted: Vec<(Option<String>, Option<String>)> =
        lb.addresses.iter().map(|a| (a.ip.map(|ip| ip.to_string()), a.hostname.clone())).collect();
    let expected = format!("ingress {wanted:?}");
    is("publishes the load balancer's addresses", move |s| !wanted.is_empty() && ingress(s) == wanted)
        .expecting(expected)
}

/// It is there and its ingress is empty.
pub fn publishes_nothing() -> Matcher<MaybeService> {
    is("publishes no address", |s| ingress(s).is_empty())
}
