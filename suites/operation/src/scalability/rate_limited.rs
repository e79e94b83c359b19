//! A cloud that answers that there are too many requests (SCALE-04).

use super::nodes::begin;
use harness_testkit::prelude::*;
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[Check::of("SCALE-04", |cx| Box::pin(asks_less(cx)))
    .by_calls()
    .needs(&[Capability::Instances])
    .with(&[Facility::CcmControl, Facility::Faults])
    .on_a_fresh_cluster()
    .takes(22)];

/// The number of Nodes that wait for their initialisation.
const NODES: usize = 20;
/// The announced pause, in seconds.
const COME_BACK_S: u64 = 10;
/// A third of the observed time: in the last third, doubling pauses have reached some seconds.
const THIRD: Duration = Duration::from_secs(7);
/// How many calls about a Node are allowed in the last third: those with a pause of two seconds.
const MOST: usize = 4;

/// By then every doubling pause was longer, and so was every announced pause.
const LONGEST: Duration = Duration::from_millis(3_500);

/// Whether calls came at a steady pace to the end, without a long pause. A small number of calls shows nothing.
fn never_pauses(at: &[u64]) -> bool {
    let long = u64::try_from(LONGEST.as_millis()).unwrap_or(u64::MAX);
    at.len() > 5 && at.windows(2).all(|pair| pair[1].saturating_sub(pair[0]) < long)
}

async fn asks_less(cx: &CheckCx) -> Verdict {
    begin(cx, &[]).await?;
    let full = Effect::Status { status: 429, retry_after_s: Some(COME_BACK_S) };
    let limited = cx.cloud().anything().meets("answers 429", &[full]).await?;
    let mark = cx.cloud().mark_now().await?;
    let mut nodes = Vec::new();
    for number in 0..NODES {
        let machine = cx.machine(machine(&format!("late-{number}"))).await?;
        nodes.push(cx.node(machine.node().ready(Ready::True)).await?);
    }
    limited.hits_unless(1, async { nodes[0].is(initialised()).await.map(drop) }).await?;
    pause(2 * THIRD).await;
    let late = cx.cloud().mark_now().await?;
    pause(THIRD).await;
    let calls = cx.cloud().calls();
    let all: Vec<Entry> = calls.clone().since(mark).list().await?;
    let last = calls.since(late).list().await?.len();
    let third = THIRD.as_secs();
    cx.record("calls", format!("{} in {} s, {last} of them in the last third", all.len(), 3 * third));
    if last <= MOST * NODES {
        let mut steady = 0;
        for node in &nodes {
            let at: Vec<u64> = node.calls().since(mark).list().await?.iter().map(|call| call.at_ms).collect();
            steady += usize::from(never_pauses(&at));
        }
        cx.record("steady", steady);
        if steady <= NODES / 2 {
            return Ok(());
        }
        let expected = format!("pauses that grow to more than {} s", LONGEST.as_secs_f64());
        let seen = format!("{steady} of {NODES} Nodes are asked for all the while");
        return Err(cx.cloud().breaks("a cloud that answers 429 is asked less and less", &expected, &seen));
    }
    let expected = format!(
        "at most {MOST} calls about each of {NODES} Nodes in {third} s, after {} s of refusals",
        2 * third
    );
    let seen = format!("{last} calls, {} before", all.len() - last);
    Err(cx.cloud().breaks("a cloud that answers 429 is asked less and less", &expected, &seen))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_pace_is_distinguished_from_growing_and_from_announced_pauses() {
        let every = |ms: u64| (0..21_000 / ms).map(|n| n * ms).collect::<Vec<u64>>();
        assert!(never_pauses(&every(50)) && never_pauses(&every(2_000)) && never_pauses(&every(3_000)));
        assert!(!never_pauses(&every(5_000)));
        let doubling: Vec<u64> = (0..13).map(|n| 5 * ((1 << n) - 1)).collect();
        assert!(!never_pauses(&doubling));
        let repeated: Vec<u64> =
            [0, 10_000, 20_000].iter().flat_map(|at| [*at, at + 300, at + 900]).collect();
        assert!(!never_pauses(&repeated));
        assert!(!never_pauses(&[]));
    }
}
