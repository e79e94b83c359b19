//! How many routes are created or deleted at the same time (contract ROUTE-14).

use super::needs::ROUTES;
use futures::{StreamExt, TryStreamExt, stream};
use harness_testkit::prelude::*;
use std::time::Duration;
use suites_common::routed_node::{ccm_routes_others, prompt, with_networks};

pub(super) const CHECKS: &[Check] = &[
    Check::of("ROUTE-14", |cx| Box::pin(makes_few_at_once(cx)))
        .needs(ROUTES)
        .with(&[Facility::Faults, Facility::Barriers])
        .alone()
        .takes(14)
        .takes_on_machines(22),
    Check::of("ROUTE-14.deletions", |cx| Box::pin(deletes_few_at_once(cx)))
        .on_routes()
        .needs(ROUTES)
        .with(&[Facility::Faults, Facility::Barriers])
        .alone()
        .takes(10),
];

/// The number of routes that are needed: more than may be created at the same time.
const ROUTES_AT_ALL: u32 = 220;
/// How many of them are prepared at a time.
const AT_A_TIME: usize = 10;
/// How many routes may be created at the same time.
const MOST_AT_ONCE: u64 = 200;
/// The first of the check's pod networks for routes that have to be deleted. The networks below it belong to
/// the checks before and after this one.
const FIRST_STRAY: u32 = 100;
/// How many times the check looks for more calls before it concludes that there are no more. A client that
/// limits its rate sends them one by one.
const LOOKS: u32 = 10;
/// The pause between two looks for routes that have to be gone.
const AGAIN: Duration = Duration::from_millis(200);

/// Makes lists of routes fail until the fault is cleared. The CCM then sees everything that was prepared in
/// the meantime at once.
async fn lists_nothing(cx: &CheckCx) -> Result<Fault<'_>, CheckError> {
    // A CCM that has only just started may give up on routes for good if its first list fails.
    ccm_routes_others(cx).await?;
    let lists = cx.cloud().anything().answers(503).to(&[Op::RouteList]).await?;
    prompt(cx).await?;
    lists.becomes(met_by(1)).within(cx.limits().route()).await?;
    Ok(lists)
}

/// Waits until no more calls arrive at the barrier, and checks that there are never too many.
async fn holds_few(cx: &CheckCx, held: &Barrier<'_>) -> Verdict {
    let some = holds("holds a call", |waiting: &u64| *waiting > 0);
    held.becomes(some).within(cx.limits().route()).await?;
    let mut most = 0;
    for _ in 0..LOOKS {
        let few = holds("holds few calls", |waiting: &u64| *waiting <= MOST_AT_ONCE);
        held.keeps(few.expecting(format!("at most {MOST_AT_ONCE} of {ROUTES_AT_ALL} at once"))).await?;
        match held.read(ReadSource::Origin).await? {
            no_more if no_more <= most => break,
            more => most = more,
        }
    }
    cx.record("at_once", most);
    Ok(())
}

/// The number of routes in the cloud.
async fn routes(cx: &CheckCx) -> Result<usize, ReadError> {
    Ok(cx.cloud().read(ReadSource::Origin).await?.routes.len())
}

/// Waits until there are no more routes than before, for as long as a CCM may take for that. Otherwise the
/// next check would have them in every list. A CCM that removes none is judged by other checks.
async fn leaves_none(cx: &CheckCx, before: usize) {
    let gone = async |seen: &mut String| {
        let now = routes(cx).await?;
        *seen = format!("{now} routes, {before} before");
        Ok((now <= before).then_some(()))
    };
    let _ = poll("the CCM has removed its routes", 2 * cx.limits().route(), AGAIN, gone).await;
}

async fn makes_few_at_once(cx: &CheckCx) -> Verdict {
    let lists = lists_nothing(cx).await?;
    let before = routes(cx).await?;
    let creations = cx.cloud().anything().holds(&[Op::RouteCreate]).await?;
    let joined = (0..ROUTES_AT_ALL).map(async |number| {
        let machine = cx.machine(machine(&format!("m{number}"))).await?;
        let plan = with_networks(&machine, &[&cx.pod_network(number)?]);
        cx.node(plan.ready(Ready::Absent)).await
    });
    let nodes: Vec<Node<'_>> = stream::iter(joined).buffer_unordered(AT_A_TIME).try_collect().await?;
    lists.clear().await?;
    holds_few(cx, &creations).await?;
    creations.release().await?;
    let deleted = nodes.iter().map(async |node| node.delete().await);
    stream::iter(deleted).buffer_unordered(AT_A_TIME).try_for_each(async |()| Ok(())).await?;
    leaves_none(cx, before).await;
    Ok(())
}

async fn deletes_few_at_once(cx: &CheckCx) -> Verdict {
    let lists = lists_nothing(cx).await?;
    let before = routes(cx).await?;
    let deletions = cx.cloud().anything().holds(&[Op::RouteDelete]).await?;
    let machine = cx.machine(machine("no-node")).await?;
    let strays = (0..ROUTES_AT_ALL)
        .map(async |number| cx.pod_network(FIRST_STRAY + number)?.is_routed(Some(&machine)).await);
    stream::iter(strays).buffer_unordered(AT_A_TIME).try_for_each(async |_| Ok(())).await?;
    lists.clear().await?;
    prompt(cx).await?;
    holds_few(cx, &deletions).await?;
    deletions.release().await?;
    leaves_none(cx, before).await;
    Ok(())
}
