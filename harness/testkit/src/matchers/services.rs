//! Matchers for Services.

use harness_clouds::LoadBalancer;
use harness_core::probe::{Matcher, holds};
use harness_session::k8s::{F_LB, has_finalizer, ingress, is_being_deleted};
use k8s_openapi::api::core::v1::Service;
use std::sync::Arc;

type MaybeService = Option<Arc<Service>>;

fn is(claim: &str, wanted: impl Fn(&Service) -> bool + 'static) -> Matcher<MaybeService> {
    holds(claim, move |service: &MaybeService| service.as_ref().is_some_and(|s| wanted(s)))
}

/// The Service exists and has the load balancer finalizer.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(web: &Service<'_>) -> Verdict {
/// let refusals = web.cloud().answers(503).to(&[Op::LbDelete]).times(2).await?;
/// web.delete().await?;
/// refusals.hits(1).await?;
/// web.keeps(keeps_finalizer()).when("after a failed deletion").await
/// # }
/// ```
pub fn keeps_finalizer() -> Matcher<MaybeService> {
    is("carries the finalizer", |s| has_finalizer(s, F_LB))
        .expecting(format!("the Service with finalizer {F_LB}"))
}

/// It exists without the load balancer finalizer.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, web: &Service<'_>) -> Verdict {
/// web.patch(&serde_json::json!({"spec": {"type": "ClusterIP"}})).await?;
/// web.becomes(lacks_finalizer()).within(cx.limits().load_balancer()).await
/// # }
/// ```
pub fn lacks_finalizer() -> Matcher<MaybeService> {
    is("carries no finalizer", |s| !has_finalizer(s, F_LB))
        .expecting(format!("the Service without finalizer {F_LB}"))
}

/// It is being deleted, and the load balancer finalizer holds it.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(web: &Service<'_>) -> Verdict {
/// web.delete().await?;
/// web.keeps(waits_to_be_deleted()).when("while the cloud has its load balancer").await
/// # }
/// ```
pub fn waits_to_be_deleted() -> Matcher<MaybeService> {
    is("stays, held by the finalizer", |s| has_finalizer(s, F_LB) && is_being_deleted(s))
        .expecting(format!("the Service with deletionTimestamp and finalizer {F_LB}"))
}

/// Its ingress has an entry, and each entry names an address of the load balancer by IP, by host name or by both
/// (contract SVC-CREATE-02), none of them twice. It need not contain all addresses, in any order: a Service of one family
/// may have a load balancer with two.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(web: &Service<'_>) -> Verdict {
/// let lb = web.balancer().becomes(one_active()).await?;
/// web.becomes(publishes(&lb)).await
/// # }
/// ```
pub fn publishes(lb: &LoadBalancer) -> Matcher<MaybeService> {
    let had: Vec<_> =
        lb.addresses.iter().map(|a| (a.ip.map(|ip| ip.to_string()), a.hostname.clone())).collect();
    let shown = had.iter().map(|(ip, hostname)| {
        let parts: Vec<&str> = [ip, hostname].into_iter().flatten().map(String::as_str).collect();
        parts.join(" or ")
    });
    let expected = format!("ingress of one or more of {}", shown.collect::<Vec<_>>().join(", "));
    is("publishes the load balancer's addresses", move |s| {
        let published = ingress(s);
        let fits = |one: &(Option<String>, Option<String>)| {
            let (ip, hostname) = one;
            let names = |known: &Option<String>, said: &Option<String>| said.is_none() || said == known;
            had.iter().any(|(i, h)| names(i, ip) && names(h, hostname))
                && (ip.is_some() || hostname.is_some())
        };
        let twice = |at: usize| published[..at].contains(&published[at]);
        !published.is_empty() && published.iter().all(fits) && !(0..published.len()).any(twice)
    })
    .expecting(expected)
}

/// It exists and its ingress is empty.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(web: &Service<'_>) -> Verdict {
/// let held = web.cloud().holds(&[Op::LbCreate]).await?;
/// web.keeps(publishes_nothing()).when("before it has a load balancer").await?;
/// held.release().await
/// # }
/// ```
pub fn publishes_nothing() -> Matcher<MaybeService> {
    is("publishes no address", |s| ingress(s).is_empty())
}
