//! What users ask for, and what happens to machines, while a rollout is under way (contract UPG-11).

use super::rollout::{LB, has_taken_over};
use crate::failover::time_to_take_up;
use harness_testkit::prelude::*;
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use suites_common::joining::{joined, registered};

pub(super) const CHECKS: &[Check] = &[
    Check::of("UPG-11.services", |cx| Box::pin(serves_users_meanwhile(cx)))
        .needs(LB)
        .by_calls()
        .without_machines()
        .on_a_fresh_cluster()
        .upgrades()
        .takes(16),
    Check::of("UPG-11.nodes", |cx| Box::pin(follows_machines_meanwhile(cx)))
        .needs(&[Capability::Instances])
        .by_calls()
        .on_a_fresh_cluster()
        .upgrades()
        .takes(16),
];

/// The time between two changes. A leader is missing for longer, so some of them come while no release works.
const EVERY: Duration = Duration::from_millis(400);
/// The most Services and Nodes of a check.
const MOST: usize = 24;

/// What becomes of a Service, one change after it was made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Stays,
    IsEdited,
    IsDeleted,
}

const TURNS: [Then; 3] = [Then::Stays, Then::IsEdited, Then::IsDeleted];

/// Carries out the rollout, and a change each [`EVERY`] until the new release has taken over: `change` gets its number.
async fn under_load(cx: &CheckCx, mut change: impl AsyncFnMut(usize) -> Verdict) -> Verdict {
    let rollout = cx.roll_out(Release::New).await?;
    let over = AtomicBool::new(false);
    let takes_over = async {
        let outcome = has_taken_over(cx, &rollout).await;
        over.store(true, Ordering::Relaxed);
        outcome
    };
    let changes = async {
        let mut number = 0;
        while number < MOST && !over.load(Ordering::Relaxed) {
            change(number).await?;
            number += 1;
            pause(EVERY).await;
        }
        cx.record("changes", number);
        Ok(())
    };
    let (taken_over, changed) = futures::future::join(takes_over, changes).await;
    taken_over.and(changed)
}

async fn serves_users_meanwhile(cx: &CheckCx) -> Verdict {
    cx.old_release().await?;
    let mut all: Vec<(Service<'_>, Then)> = Vec::new();
    under_load(cx, async |number| {
        if let Some((web, then)) = all.last() {
            change_as_planned(web, *then).await?;
        }
        let web = cx.service(load_balancer(&format!("web-{number}")).port(80)).await?;
        all.push((web, TURNS[number % TURNS.len()]));
        Ok(())
    })
    .await?;
    // The last one is not changed any more.
    if let Some((_, then)) = all.last_mut() {
        *then = Then::Stays;
    }
    let work = cx.limits().load_balancer_work() * u32::try_from(all.len()).unwrap_or(u32::MAX);
    let limit = time_to_take_up(cx).max(cx.limits().load_balancer()) + work;
    for (web, then) in &all {
        ends_right(web, *then, limit).await?;
    }
    Ok(())
}

async fn change_as_planned(web: &Service<'_>, then: Then) -> Verdict {
    match then {
        Then::Stays => Ok(()),
        Then::IsEdited => web.patch(&json!({"spec": {"ports": [{"port": 8080, "protocol": "TCP"}]}})).await,
        Then::IsDeleted => web.delete().await,
    }
}

async fn ends_right(web: &Service<'_>, then: Then, limit: Duration) -> Verdict {
    let when = "after a rollout during which this was asked for";
    if then == Then::IsDeleted {
        web.balancer().becomes(nothing_left()).within(limit).when(when).await?;
        return web.becomes(gone()).within(limit).when(when).await;
    }
    let port = if then == Then::IsEdited { 8080 } else { 80 };
    let listens = one_balancer(
        "listens where its Service asks for",
        move |lb| matches!(lb.frontends.as_slice(), [one] if one.port == port),
    );
    web.balancer().becomes(listens).within(limit).when(when).await?;
    let lb = web.balancer().becomes(one_active()).within(limit).when(when).await?;
    web.becomes(publishes(&lb)).within(limit).when(when).await
}

async fn follows_machines_meanwhile(cx: &CheckCx) -> Verdict {
    cx.old_release().await?;
    let (lost, without_machine) = joined(cx, machine("lost")).await?;
    let (_, stays) = joined(cx, machine("stays")).await?;
    let mut all = Vec::new();
    under_load(cx, async |number| {
        if number == 1 {
            lost.delete().await?;
            without_machine.set_ready(Ready::Unknown).await?;
        }
        all.push(registered(cx, machine(&format!("n{number}"))).await?);
        Ok(())
    })
    .await?;
    let limit = time_to_take_up(cx).max(cx.limits().watch());
    for (_, node) in &all {
        node.becomes(initialised()).within(limit).when("after a rollout during which it joined").await?;
    }
    let limit = cx.limits().life_of_machine();
    without_machine
        .becomes(gone())
        .within(limit)
        .when("after a rollout during which its machine went")
        .await?;
    stays.is(present()).await
}
