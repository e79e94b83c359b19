//! Calls to the cloud for Nodes: the slope over the number of Nodes for their initialisation and for a
//! refresh, and a lifecycle loop with slow answers (SCALE-01, -02, -05, -08).

use harness_testkit::prelude::*;
use std::time::Duration;
use tokio::time::Instant;

const INSTANCES: &[Capability] = &[Capability::Instances];
const FLAGGED: &[Capability] = &[Capability::Instances, Capability::FrameworkFlags];
const ALONE: &[Facility] = &[Facility::CcmControl];

pub(super) const CHECKS: &[Check] = &[
    Check::of("SCALE-01", |cx| Box::pin(initialises_at_a_fair_price(cx)))
        .by_calls()
        .needs(INSTANCES)
        .with(ALONE)
        .on_a_fresh_cluster()
        .takes(6)
        .takes_on_machines(9),
    Check::of("SCALE-02", |cx| Box::pin(refreshes_at_a_fair_price(cx)))
        .by_calls()
        .needs(FLAGGED)
        .with(&[Facility::CcmControl, Facility::Settings])
        .on_a_fresh_cluster()
        .takes(10),
    Check::of("SCALE-05", |cx| Box::pin(waits_for_slow_ones_once(cx)))
        .needs(INSTANCES)
        .with(&[ALONE[0], Facility::Faults])
        .on_a_fresh_cluster()
        .takes(10),
    Check::of("SCALE-08", |cx| Box::pin(shares_its_work(cx))).by_calls().needs(INSTANCES),
];

/// The numbers of Nodes at the two points of the slope.
const FEW: usize = 10;
const MANY: usize = 40;
/// How many calls one more Node may cost.
const FOR_ONE: usize = 4;

/// Creates this many machines and Ready Nodes at once, and waits until the Nodes are initialised.
pub(super) async fn join<'a>(
    cx: &'a CheckCx,
    group: &str,
    count: usize,
) -> Result<Vec<Node<'a>>, CheckError> {
    let mut machines = Vec::new();
    for number in 0..count {
        machines.push(cx.machine(machine(&format!("{group}-{number}"))).await?);
    }
    let registered = machines.iter().map(|machine| cx.node(machine.node().ready(Ready::True)));
    let nodes = futures::future::try_join_all(registered).await?;
    for node in &nodes {
        node.becomes(initialised())
            .within(3 * cx.limits().watch())
            .when(format!("as one of {count}"))
            .await?;
    }
    Ok(nodes)
}

/// Starts a separate CCM and waits until it works.
pub(super) async fn begin<'a>(cx: &'a CheckCx, arguments: &[&str]) -> Result<Trial<'a>, CheckError> {
    let alone = match arguments {
        [] => cx.ccm_as_shipped().await?,
        _ => cx.ccm_alone(&cx.without_routes(arguments)).await?,
    };
    let first = cx.machine(machine("first")).await?;
    let node = cx.node(first.node().ready(Ready::True)).await?;
    let begun = node.becomes(initialised()).within(cx.limits().start()).when("by a CCM by itself");
    alone.while_it_runs(begun).await?;
    Ok(alone)
}

/// Whether a call looks up machines.
fn is_look_up(call: &Entry) -> bool {
    matches!(call.op, Op::InstanceGet | Op::InstanceList | Op::Other)
}

/// Counts the calls that look up machines while this many Nodes join.
async fn cost_of(cx: &CheckCx, group: &str, count: usize) -> Result<usize, CheckError> {
    let mark = cx.cloud().mark_now().await?;
    join(cx, group, count).await?;
    Ok(cx.cloud().calls().since(mark).that(is_look_up).list().await?.len())
}

async fn initialises_at_a_fair_price(cx: &CheckCx) -> Verdict {
    // Otherwise a refresh of existing Nodes may happen while calls are counted.
    let seldom: &[&str] = match cx.declares(Capability::FrameworkFlags) {
        true => &["--node-status-update-frequency=5m"],
        false => &[],
    };
    begin(cx, seldom).await?;
    let (few, many) = (cost_of(cx, "few", FEW).await?, cost_of(cx, "many", MANY).await?);
    cx.record("calls", format!("{few} for {FEW} Nodes, {many} for {MANY}"));
    if many.saturating_sub(few) <= FOR_ONE * (MANY - FEW) {
        return Ok(());
    }
    let expected = format!("at most {FOR_ONE} more calls for a Node more");
    let seen = format!("{few} calls for {FEW} Nodes, {many} for {MANY}");
    Err(cx.cloud().breaks("initialising Nodes costs little for each", &expected, &seen))
}

/// The period of the refresh, as flag and as time.
const REFRESH: &str = "--node-status-update-frequency=3s";
const PERIOD: Duration = Duration::from_secs(3);
/// How many of its periods are watched.
const PASSES: u32 = 3;
/// Calls of a pass that belong to no particular Node.
const OTHER_CALLS: usize = 5;

async fn refreshes_at_a_fair_price(cx: &CheckCx) -> Verdict {
    begin(cx, &[REFRESH]).await?;
    join(cx, "refreshed", MANY).await?;
    let mark = cx.cloud().mark_now().await?;
    pause(PASSES * PERIOD).await;
    let calls = cx.cloud().calls().since(mark).that(is_look_up).list().await?;
    let nodes = cx.all_nodes()?.len();
    // The CCM's periods and the check's window do not begin at the same time.
    let passes = usize::try_from(PASSES + 1).unwrap_or(usize::MAX);
    let pages = cx.cloud().pages_of(nodes).await?;
    let lists = calls.iter().filter(|call| call.op == Op::InstanceList && call.resource.is_none()).count();
    cx.record(
        "calls",
        format!("{} in {PASSES} refreshes of {nodes} Nodes, {lists} lists of all among them", calls.len()),
    );
    let fair = calls.len() <= passes * (nodes + OTHER_CALLS) && lists <= passes * (pages + OTHER_CALLS);
    if fair {
        return Ok(());
    }
    let expected =
        format!("in {PASSES} passes over {nodes} Nodes at most a call for each, and no list of all for each");
    let seen = format!("{} calls, {lists} of them lists of all", calls.len());
    Err(cx.cloud().breaks("a refresh costs at most a call for each Node", &expected, &seen))
}

/// The number of Nodes whose machines are slow to look up, and how slow.
const SLOW: u32 = 10;
const LATENCY: Duration = Duration::from_millis(500);

async fn waits_for_slow_ones_once(cx: &CheckCx) -> Verdict {
    begin(cx, &[]).await?;
    let late = Effect::Latency { ms: 500 };
    for number in 0..SLOW {
        let machine = cx.machine(machine(&format!("slow-{number}"))).await?;
        let what = format!("answers that take {} s", LATENCY.as_secs_f64());
        machine.cloud().meets(what, std::slice::from_ref(&late)).await?;
        cx.node(machine.initialised_node().ready(Ready::False)).await?;
    }
    let lost = cx.machine(machine("z-lost")).await?;
    let node = cx.node(lost.initialised_node().ready(Ready::False)).await?;
    lost.delete().await?;
    let since = Instant::now();
    // Each machine may be looked up twice: whether it exists, and whether it is shut down.
    let limit = cx.limits().life_of_machine() + 2 * SLOW * LATENCY;
    node.becomes(gone()).within(limit).when("next to ten that are slow to look up").await?;
    cx.record("gone_after_ms", since.elapsed().as_millis());
    Ok(())
}

async fn shares_its_work(cx: &CheckCx) -> Verdict {
    let since = Instant::now();
    let nodes = join(cx, "shared", FEW).await?;
    cx.record("ms", since.elapsed().as_millis());
    let calls =
        cx.cloud().calls().that(move |call| nodes.iter().any(|node| node.concerns(call))).list().await?;
    cx.record("replicas", callers(&calls).len());
    Ok(())
}
