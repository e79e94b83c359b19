//! Optional behaviour with load balancers: recorded, never failed (contract SVC-ELIG-03, SVC-UPD-10,
//! SVC-NODES-14, SVC-DEL-11, SVC-ERR-02).

use super::needs::{LB, NODES_BEHIND_LB};
use super::nodes::{eligible, has_backend};
use harness_testkit::prelude::*;
use serde_json::json;
use std::time::Duration;
use suites_common::observing::whether;

pub(super) const CHECKS: &[Check] = &[
    Check::of("SVC-ELIG-03", |cx| Box::pin(notes_cleanup_of_other_classes(cx)))
        .without_machines()
        .needs(LB)
        .served_since(21, "Service spec.loadBalancerClass"),
    Check::of("SVC-UPD-10", |cx| Box::pin(notes_repair(cx)))
        .on_objects()
        .by_calls()
        .without_machines()
        .needs(LB)
        .takes(46),
    Check::of("SVC-NODES-14", |cx| Box::pin(notes_updates(cx)))
        .by_calls()
        .without_machines()
        .needs(NODES_BEHIND_LB)
        .takes(8),
    Check::of("SVC-DEL-11", |cx| Box::pin(notes_a_leak(cx)))
        .on_objects()
        .by_calls()
        .without_machines()
        .needs(LB)
        .takes(10),
    Check::of("SVC-ERR-02", |cx| Box::pin(notes_polls(cx)))
        .by_calls()
        .without_machines()
        .needs(LB)
        .with(&[Facility::Faults, Facility::Settings])
        .takes(12),
];

async fn notes_cleanup_of_other_classes(cx: &CheckCx) -> Verdict {
    let classed = load_balancer("classed").port(80).finalizer(F_LB);
    let classed = classed.with(|spec| spec.load_balancer_class = Some("example.com/other".to_owned()));
    let classed = cx.service(classed).await?;
    classed.delete().await?;
    let cleaned = whether(classed.becomes(gone()).within(cx.limits().load_balancer()).await)?;
    cx.record("cleaned_up", cleaned);
    if !cleaned {
        classed.vanishes().await?;
    }
    Ok(())
}

async fn notes_repair(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    web.rests().await?;
    web.balancer().vanishes().await?;
    let balancer = web.balancer();
    let again = balancer.becomes(one_active()).within(cx.limits().quiet_services());
    let unprompted = whether(again.when("without an edit of its Service").await)?;
    cx.record("made_again_unprompted", unprompted);
    if unprompted {
        return Ok(());
    }
    web.patch(&json!({"metadata": {"annotations": {"example.com/touched": "1"}}})).await?;
    let limit = cx.limits().load_balancer();
    let again = balancer.becomes(one_active()).within(limit).when("after an edit of its Service").await;
    let published = match again {
        Ok(lb) => whether(web.becomes(publishes(&lb)).within(limit).await)?,
        Err(stop) => whether::<()>(Err(stop))?,
    };
    cx.record("made_again_and_published_at_an_edit", published);
    Ok(())
}

/// How many Nodes join.
const NODES: usize = 10;

async fn notes_updates(cx: &CheckCx) -> Verdict {
    let mut services = Vec::new();
    for name in ["one", "two", "three"] {
        let web = cx.service(load_balancer(name).port(80)).await?.provisioned().await?;
        web.rests().await?;
        services.push(web);
    }
    let mark = cx.cloud().mark_now().await?;
    let mut machines = Vec::new();
    for n in 0..NODES {
        machines.push(eligible(cx, &format!("n-{n}")).await?.0);
    }
    let mut behind = true;
    for web in &services {
        let balancer = web.balancer();
        for machine in &machines {
            behind &= whether(balancer.becomes(has_backend(machine)).await)?;
        }
    }
    let mut updates = 0;
    for web in &services {
        updates += web.calls().of(&[Op::LbUpdate]).since(mark).list().await?.len();
    }
    cx.record("updates", updates);
    cx.record("all_behind_all", behind);
    Ok(())
}

async fn notes_a_leak(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    web.rests().await?;
    web.patch(&json!({"metadata": {"finalizers": null}})).await?;
    web.delete().await?;
    let balancer = web.balancer();
    let cleaned = balancer.becomes(nothing_left()).within(cx.limits().load_balancer());
    let cleaned = whether(cleaned.when("though its Service vanished").await)?;
    cx.record("cleaned_up", cleaned);
    if !cleaned {
        balancer.vanishes().await?;
    }
    Ok(())
}

/// How long the load balancer stays without an address.
const PROVISIONING: Duration = Duration::from_secs(12);

async fn notes_polls(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80).not_yet()).await?;
    web.cloud().provisions_for(PROVISIONING).to(&[Op::LbCreate]).await?;
    web.wants_a_balancer().await?;
    let limit = PROVISIONING + cx.limits().service_after(3) + cx.limits().load_balancer_work();
    web.balancer().becomes(one_active()).within(limit).await?;
    let calls = web.calls().list().await?;
    let made = calls.iter().find(|call| call.op == Op::LbCreate).map_or(0, |call| call.at_ms);
    let times: Vec<u64> = calls.iter().map(|call| call.at_ms).filter(|at| *at >= made).collect();
    // Several calls may belong to one look-up of the state.
    let pauses = times.windows(2).map(|pair| pair[1] - pair[0]).filter(|pause| *pause >= LOOK_MS);
    let pauses: Vec<String> = pauses.map(|pause| pause.to_string()).collect();
    cx.record("pauses_ms", pauses.join(" "));
    Ok(())
}

/// Calls that follow each other more closely than this count as one look-up.
const LOOK_MS: u64 = 200;
