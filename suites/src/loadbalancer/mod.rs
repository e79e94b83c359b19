//! LoadBalancer provisioning: Services of type LoadBalancer get a balancer in the cloud, it follows them, and nothing
//! of it is left when they go (contract SVC).

mod crash;
mod create;
mod delete;
mod nodes;
mod update;

pub(crate) use crash::RESTART;

use crate::judges::{keeps_finalizer, one_active, publishes};
use harness::check::{Capability, Stop};
use harness::cloud::LoadBalancer;
use harness::cx::{CheckCx, ServicePlan, ServiceRef, Suite};
use harness::probe::holds;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "loadbalancer-provisioning",
    proves: "Services of type LoadBalancer get exactly one balancer, it follows them, and it goes with them",
    tables: &[&create::CHECKS, &[crash::ONLY_ONE], &update::CHECKS, &nodes::CHECKS, &delete::CHECKS],
};

pub(crate) const LB: &[Capability] = &[Capability::LoadBalancer];

/// Creates a Service and waits until its balancer is active and published.
pub(crate) async fn provisioned(cx: &CheckCx, plan: ServicePlan) -> Result<(ServiceRef, LoadBalancer), Stop> {
    let service = cx.create_service(plan).await?;
    let lb = published(cx, &service).await?;
    Ok((service, lb))
}

/// Waits until a Service's balancer is active and published.
pub(crate) async fn published(cx: &CheckCx, service: &ServiceRef) -> Result<LoadBalancer, Stop> {
    let limit = cx.limits().watch();
    let promise = "the cloud has one active load balancer for the Service";
    let lb = cx.eventually(promise, limit, async || cx.load_balancers(service).await, one_active()).await?;
    let read = async || Ok(cx.find_service(service));
    cx.eventually("the Service publishes the load balancer's addresses", limit, read, publishes(&lb)).await?;
    let read = async || Ok(cx.find_service(service));
    cx.eventually("the Service carries the finalizer", limit, read, keeps_finalizer()).await?;
    Ok(lb)
}

/// Waits until the Service's only load balancer is as `wanted` says.
pub(crate) async fn balancer_becomes(
    cx: &CheckCx,
    service: &ServiceRef,
    promise: &str,
    expected: impl Into<String>,
    wanted: impl Fn(&LoadBalancer) -> bool + 'static,
) -> Result<(), Stop> {
    let read = async || cx.load_balancers(service).await;
    let judge =
        holds(expected, move |list: &Vec<LoadBalancer>| matches!(list.as_slice(), [lb] if wanted(lb)));
    cx.eventually(promise, cx.limits().watch(), read, judge).await
}
