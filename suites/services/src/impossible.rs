//! Services that the cloud can never serve, and Services with names of the maximum length (contract
//! SVC-DEL-13, SVC-CREATE-20).

use super::needs::LB;
use futures::future::try_join_all;
use harness_testkit::prelude::*;
use std::collections::BTreeSet;

pub(super) const CHECKS: &[Check] = &[
    Check::of("SVC-DEL-13", |cx| Box::pin(goes_unserved(cx)))
        .by_calls()
        .without_machines()
        .needs(LB)
        .with(&[Facility::Faults]),
    Check::of("SVC-CREATE-20", |cx| Box::pin(serves_long_names(cx))).without_machines().needs(LB),
];

/// The status for a request that the cloud cannot fulfil: a retry does not help.
const REFUSED: u16 = 422;

async fn goes_unserved(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80).not_yet()).await?;
    let refusals = web.cloud().answers(REFUSED).to(&[Op::LbCreate, Op::AuxCreate]).await?;
    web.wants_a_balancer().await?;
    refusals.hits_unless(1, web.is_served()).await?;
    web.delete().await?;
    let limit = cx.limits().service_after(2) + cx.limits().load_balancer_work();
    web.becomes(gone()).within(limit).when("though its load balancer was never made").await?;
    web.balancer().is(nothing_left()).await
}

/// The longest name that a Service can have.
const LONGEST: usize = 63;

async fn serves_long_names(cx: &CheckCx) -> Verdict {
    let names = ["a", "b"].map(|end| format!("{}{end}", "long-name-".repeat(7).split_at(LONGEST - 1).0));
    let all = try_join_all(names.iter().map(|name| cx.service(load_balancer(name).port(80)))).await?;
    let mut ids = BTreeSet::new();
    for web in &all {
        ids.insert(web.gets_published().await?.id);
    }
    if ids.len() < all.len() {
        let seen = format!("one for both: {}", ids.into_iter().collect::<Vec<_>>().join(", "));
        return Err(all[0].breaks("two Services have a load balancer each", "two load balancers", &seen));
    }
    Ok(())
}
