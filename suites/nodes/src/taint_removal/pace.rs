//! How often and how fast the CCM tries Nodes (contract NODE-INIT-11, -23).

use futures::future::try_join_all;
use harness_testkit::prelude::*;
use std::time::Duration;
use suites_common::failures::unless_it_lists;
use suites_common::joining::{joined, registered};
use tokio::time::Instant;

pub(super) const CHECKS: &[Check] = &[
    Check::of("NODE-INIT-11", |cx| Box::pin(backs_off(cx)))
        .by_calls()
        .needs(&[Capability::Instances])
        .with(&[Facility::Faults])
        .takes(46),
    Check::of("NODE-INIT-23", |cx| Box::pin(keeps_up_with_many(cx)))
        .by_calls()
        .needs(&[Capability::Instances])
        .with(&[Facility::Settings])
        .alone()
        .takes(2),
];

/// For how long every look-up of the machine fails.
const OUTAGE: Duration = Duration::from_secs(45);
/// The first pause of the framework's back-off, which doubles.
const FIRST_PAUSE_MS: u64 = 5;

/// Calls and changes of the Node in an outage, in milliseconds since it began.
struct Tries {
    calls: Vec<u64>,
    changes: Vec<u64>,
    /// How many of the changes may be made by others than the CCM.
    others: usize,
    outage: u64,
}

/// How many changes of a Node the controllers of a cluster that the harness created make in an outage, at
/// most. Without this limit, a CCM that writes to the Node at each try would excuse each next try by the
/// change.
const OF_THE_CLUSTER: usize = 12;

impl Tries {
    /// How many calls were made and how many are allowed, if there were too many; otherwise `None`.
    ///
    /// The number of calls in one try is up to the CCM, and so are the retries of its client. More calls than
    /// tries are allowed if the pauses grow. A CCM that doubles its pauses has one that lasts a good part of
    /// the outage. A change of the Node may interrupt that pause; with several changes, the pause lasts a
    /// good part of the time between two of them.
    fn too_many(&self) -> Option<(usize, usize)> {
        let doublings = (self.outage / FIRST_PAUSE_MS + 1).ilog2() as usize;
        let allowed = doublings + 1 + self.changes.len().min(self.others);
        let late: Vec<u64> = self.changes.iter().copied().filter(|at| *at > self.outage / 4).collect();
        let disturbed = late.len() > 2 && self.changes.len() <= self.others;
        let changes = [self.outage / 4].into_iter().chain(late).chain([self.outage]);
        let (begin, end) = longest(changes).filter(|_| disturbed).unwrap_or((0, self.outage));
        let calls = self.calls.iter().copied().filter(|at| (begin..end).contains(at));
        let from = Some(begin).filter(|_| disturbed);
        let pause = longest(from.into_iter().chain(calls).chain([end])).map_or(0, |(from, to)| to - from);
        let pauses_grow = pause >= (end - begin) / GOOD_PART;
        (self.calls.len() > allowed && !pauses_grow).then_some((self.calls.len(), allowed))
    }
}

/// The longest time between two consecutive moments.
fn longest(moments: impl Iterator<Item = u64> + Clone) -> Option<(u64, u64)> {
    moments.clone().zip(moments.skip(1)).max_by_key(|(from, to)| to.saturating_sub(*from))
}

/// The longest of the doubling pauses lasts at least this share of an outage: a third, and half of that where
/// a change of the Node divides it.
const GOOD_PART: u64 = 6;

async fn backs_off(cx: &CheckCx) -> Verdict {
    let machine = cx.machine(machine("a")).await?;
    let plan = match cx.declares(Capability::Routes) && cx.makes_routes() {
        // A route controller may look up the machine of a Node whose route is missing, and has pauses of its own.
        true => {
            let network = cx.pod_network(0)?;
            network.is_routed(Some(&machine)).await?;
            machine.node().pod_cidrs(&[&network.cidr()])
        }
        false => machine.node(),
    };
    let refusals = machine.cloud().answers(503).to(&[Op::InstanceGet]).await?;
    // The Node is Ready: only its initialisation has a reason to look its machine up.
    let node = cx.node(plan).await?;
    refusals.hits(1).await.map_err(|stop| unless_it_lists(cx, stop))?;
    let began = Instant::now();
    node.keeps(untouched()).within(OUTAGE).when("while its machine cannot be looked up").await?;
    let outage = u64::try_from(OUTAGE.as_millis()).unwrap_or(u64::MAX);
    let calls = node.calls().of(&[Op::InstanceGet]).list().await?;
    let first = calls.first().map_or(0, |call| call.at_ms);
    let calls = calls.iter().map(|call| call.at_ms - first).filter(|at| *at <= outage).collect();
    let since =
        |at: Instant| u64::try_from(at.saturating_duration_since(began).as_millis()).unwrap_or(u64::MAX);
    let changes = node.history()?.iter().skip(1).map(|version| since(version.at)).collect();
    let others = if cx.owns_the_cluster() { OF_THE_CLUSTER } else { usize::MAX };
    let tries = Tries { calls, changes, others, outage };
    cx.record("calls", tries.calls.len());
    match tries.too_many() {
        None => Ok(()),
        Some((seen, allowed)) => {
            let promise = format!(
                "a Node that cannot be initialised for {} s is tried less and less often",
                OUTAGE.as_secs_f64()
            );
            Err(node.breaks(&promise, &format!("at most {allowed} tries"), &format!("{seen} calls")))
        }
    }
}

/// How many Nodes join at once.
const MANY: u32 = 20;
/// Within how long the Nodes have to register: a CCM that works on one at a time takes longer.
const AT_ONCE: Duration = Duration::from_secs(4);
/// How long each call to the cloud takes during the check.
const LATENCY: Duration = Duration::from_millis(100);
/// Requests per second that the framework's client sends to the API server; an initialisation needs two.
const QPS: u32 = 20;

async fn keeps_up_with_many(cx: &CheckCx) -> Verdict {
    let (_, first) = joined(cx, machine("first")).await?;
    let calls = u32::try_from(first.calls().list().await?.len()).unwrap_or(u32::MAX).max(1);
    cx.cloud().answers_after(LATENCY).await?;
    let joining = Instant::now();
    let nodes = try_join_all((0..MANY).map(|n| registered(cx, machine(&format!("n-{n}"))))).await?;
    // If Nodes join one by one, the CCM only has to keep up with the last one.
    if joining.elapsed() > AT_ONCE {
        return Err(CheckError::Error(format!(
            "this machine took {:.1} s to register {MANY} Nodes, and {} s would still be at once; stop other programs and run again",
            joining.elapsed().as_secs_f64(),
            AT_ONCE.as_secs_f64()
        )));
    }
    let began = Instant::now();
    let limit = MANY * calls * LATENCY / cx.workers().max(1)
        + Duration::from_secs(u64::from(2 * MANY / QPS))
        + cx.limits().watch();
    for (_, node) in &nodes {
        let joins = node.becomes(initialised()).within(limit.saturating_sub(began.elapsed()));
        joins.when(format!("as one of {MANY} that join at once")).await?;
    }
    cx.record("initialised_ms", began.elapsed().as_millis());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tries(calls: impl IntoIterator<Item = u64>, changes: &[u64]) -> Option<(usize, usize)> {
        let (calls, changes) = (calls.into_iter().collect(), changes.to_vec());
        Tries { calls, changes, others: OF_THE_CLUSTER, outage: 45_000 }.too_many()
    }

    /// The times of the tries with a back-off that starts at 5 ms and doubles, with this many calls for each try.
    fn doubling(calls: u64) -> Vec<u64> {
        (0..14).flat_map(|n| (0..calls).map(move |more| 5 * ((1 << n) - 1) + more)).collect()
    }

    #[test]
    fn back_off_allows_several_calls_for_each_try_and_tries_after_changes() {
        for calls in [1, 2, 4, 7] {
            assert_eq!(tries(doubling(calls), &[]), None, "{calls}");
        }
        let mut touched: Vec<u64> = doubling(3).into_iter().chain([30_000, 30_001, 30_002]).collect();
        touched.sort_unstable();
        assert_eq!(tries(touched, &[30_000]), None);
        // Other clients change the Node now and then, and the CCM tries at once each time.
        let changes = [13_000, 20_000, 31_000, 40_000];
        let at_changes = changes.iter().flat_map(|at| [*at, at + 1, at + 2, at + 3]);
        let mut disturbed: Vec<u64> = doubling(3).into_iter().chain(at_changes).collect();
        disturbed.sort_unstable();
        assert_eq!(tries(disturbed, &changes), None);
        // The client repeats each call three times within 2 s, so that the calls themselves take time.
        let repeating = (0..13).scan(0, |at, n| {
            let begin = *at;
            *at += 1_800 + (5 << n);
            Some([begin, begin + 300, begin + 900, begin + 1_800])
        });
        let repeating: Vec<u64> = repeating.flatten().filter(|at| *at <= 45_000).collect();
        assert!(repeating.len() > 40);
        assert_eq!(tries(repeating, &[]), None);
        assert_eq!(tries((0..9).map(|n| n * 5_000), &[]), None);
    }

    #[test]
    fn a_steady_pace_is_distinguished_from_back_off() {
        assert_eq!(tries((0..45).map(|n| n * 1_000), &[]), Some((45, 14)));
        assert_eq!(tries((0..23).map(|n| n * 2_000), &[100, 200]), Some((23, 16)));
        assert_eq!(tries((0..4_500).map(|n| n * 10), &[]), Some((4_500, 14)));
        // The CCM writes to the Node at each try, and takes that for a change.
        let noted: Vec<u64> = (0..900).map(|n| n * 50).collect();
        assert_eq!(tries(noted.clone(), &noted), Some((900, 26)));
        // The CCM writes to the Node now and then.
        assert_eq!(tries((0..45).map(|n| n * 1_000), &[15_000, 30_000, 44_000]), Some((45, 17)));
        // The CCM backs off at first, but does not double any more from 5 s on.
        let capped = (0..10).map(|n| 5 * ((1 << n) - 1)).chain((1..9).map(|n| n * 5_000));
        assert_eq!(tries(capped, &[]), Some((18, 14)));
    }
}
