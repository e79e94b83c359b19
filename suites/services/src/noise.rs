//! Nodes report their status all day: the CCM neither writes to a load balancer because of that, nor looks it
//! up each time (contract SVC-NODES-10).

use super::idle::{LATE, nothing_is_written, reasons, with_a_backend};
use super::needs::NODES_BEHIND_LB;
use futures::future::try_join_all;
use harness_testkit::prelude::*;
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

pub(super) const CHECKS: &[Check] =
    &[Check::of("SVC-NODES-10", |cx| Box::pin(ignores_the_noise_of_nodes(cx)))
        .by_calls()
        .in_quiet()
        .without_machines()
        .needs(NODES_BEHIND_LB)
        .takes(62)];

/// How often a Node changes, and how soon the calls that a change causes have come.
const ROUNDS: u32 = 3;
const ROUND: Duration = Duration::from_secs(3);
/// How often all rounds are repeated while Nodes that come and go explain the calls: two repetitions fit into
/// the window.
const TRIES: u32 = 2;

/// How many calls about a Service came in a time of the same length in which nothing happened, and after each
/// round.
#[derive(Debug, Default)]
struct Looks {
    before: usize,
    after: Vec<usize>,
}

impl Looks {
    /// Whether every round caused calls. If calls come all the time, they may have any reason.
    fn answer(&self) -> bool {
        self.before == 0 && self.after.len() == ROUNDS as usize && self.after.iter().all(|calls| *calls > 0)
    }
}

/// Counts the calls about these Services in this window, which begins before the action.
async fn calls_within(
    all: &[Service<'_>],
    window: Duration,
    doing: impl Future<Output = Verdict>,
) -> Result<usize, CheckError> {
    let calls = all.iter().map(|web| Ok(web.calls().since(web.cx().cloud().mark()?)));
    let calls = calls.collect::<Result<Vec<_>, CheckError>>()?;
    doing.await?;
    let counts = try_join_all(calls.iter().map(async |calls| calls.keeps(counted()).within(window).await));
    Ok(counts.await?.iter().sum())
}

/// Matches any calls and counts them.
fn counted() -> Matcher<Vec<Entry>, usize> {
    matcher("are counted", |calls: &Vec<Entry>| Observation::Matched(calls.len()))
}

/// Makes the changes that a kubelet reports, and those that users and other controllers write to a Node.
async fn changes(node: &Node<'_>, round: u32) -> Verdict {
    let value = round.to_string();
    node.reports("Ready", "True").await?;
    node.reports("example.com/Noisy", if round % 2 == 1 { "True" } else { "False" }).await?;
    node.label("example.com/edited", Some(&value)).await?;
    node.patch(&json!({"metadata": {"annotations": {"example.com/edited": value}}})).await?;
    node.adds_taint(taint(&format!("example.com/round-{value}"), "", "PreferNoSchedule")).await?;
    node.patch(&json!({"spec": {"unschedulable": round % 2 == 1}})).await
}

async fn ignores_the_noise_of_nodes(cx: &CheckCx) -> Verdict {
    let (all, node) = with_a_backend(cx, "noisy").await?;
    let (mut looks, mut explained) = (Looks::default(), false);
    let noise = async {
        for attempt in 0..TRIES {
            let began = Instant::now();
            let before = calls_within(&all, ROUND * ROUNDS, async { Ok(()) }).await?;
            looks = Looks { before, after: Vec::new() };
            for round in 1..=ROUNDS {
                let number = attempt * ROUNDS + round;
                looks.after.push(calls_within(&all, ROUND, changes(&node, number)).await?);
            }
            explained = cx.node_changes_since(began.checked_sub(LATE).unwrap_or(began), reasons)? > 0;
            if !explained {
                break;
            }
        }
        Ok(())
    };
    let when = "that changes its load balancer after changes of a Node that say nothing about it";
    nothing_is_written(cx, &all, noise, when).await?;
    cx.record("calls", format!("{} before, {} after", json!(looks.before), json!(looks.after)));
    // A Node that came or went during the rounds is a reason for a look-up.
    if !looks.answer() || explained {
        return Ok(());
    }
    let promise = "no change of a Node that says nothing about load balancers has it looked at";
    let expected =
        format!("no call about it, as in the {} s before the changes", (ROUND * ROUNDS).as_secs_f64());
    Err(all[0].breaks(
        promise,
        &expected,
        &format!("{} calls, each in {} s after a change", json!(looks.after), ROUND.as_secs_f64()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_after_each_change_and_none_before_is_an_answer() {
        let answer = |before, after: &[usize]| Looks { before, after: after.to_vec() }.answer();
        assert!(answer(0, &[1, 2, 1]));
        assert!(!answer(0, &[1, 0, 1]), "one change was not answered");
        assert!(!answer(1, &[1, 2, 1]), "it looks by itself");
        assert!(!answer(0, &[]), "nothing has happened");
    }
}
