//! A cloud that says that it is asked too much (SCALE-04).

use super::nodes::begin;
use harness::check::{Capability, Facility, Verdict};
use harness::cloud::{Effect, Entry};
use harness::cx::{Check, CheckCx, Ready, Subject, machine};
use harness::probe::pause;
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[Check::must(
    "SCALE-04",
    "where the cloud answers 429 and when to come back, it is asked less and less",
    "contract section 15; k8s.io/client-go util/workqueue: the pauses of a failing Node double",
    |cx| Box::pin(asks_less(cx)),
)
.by_calls()
.needs(&[Capability::Instances])
.with(&[Facility::CcmControl, Facility::Faults])
.cold()
.takes(22)];

/// Nodes that wait for their initialisation meanwhile.
const NODES: usize = 20;
/// When the cloud says to come back, seconds.
const COME_BACK_S: u64 = 10;
/// A third of the time that is watched: by the last one pauses have doubled to some seconds.
const THIRD: Duration = Duration::from_secs(7);
/// Calls about a Node in the last third: what a pause of two seconds comes to.
const MOST: usize = 4;

async fn asks_less(cx: &CheckCx) -> Verdict {
    begin(cx, &[]).await?;
    let full = Effect::Status { status: 429, retry_after_s: Some(COME_BACK_S) };
    let limited = cx.cloud().anything().meets("answers 429", &[full]).await?;
    for number in 0..NODES {
        let machine = cx.machine(machine(&format!("late-{number}"))).await?;
        cx.node(machine.node().ready(Ready::True)).await?;
    }
    let mark = cx.cloud().mark_now().await?;
    limited.hits(1).await?;
    pause(2 * THIRD).await;
    let late = cx.cloud().mark_now().await?;
    pause(THIRD).await;
    let calls = cx.cloud().calls();
    let all: Vec<Entry> = calls.clone().since(mark).list().await?;
    let last = calls.since(late).list().await?.len();
    cx.record("calls", format!("{} in {:?}, {last} of them in the last third", all.len(), 3 * THIRD));
    if last <= MOST * NODES {
        return Ok(());
    }
    let expected = format!(
        "at most {MOST} calls about each of {NODES} Nodes in {THIRD:?}, after {:?} of refusals",
        2 * THIRD
    );
    let seen = format!("{last} calls, {} before", all.len() - last);
    Err(cx.cloud().breaks("a cloud that answers 429 is asked less and less", &expected, &seen))
}
