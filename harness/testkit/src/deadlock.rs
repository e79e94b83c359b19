//! Ends a boot early: nothing changes any more, and according to the manifests nothing can.

use bootstrap::{Expectation, ObservedNode, ObservedPod, Outcome};
use std::time::Duration;
use tokio::time::Instant;

/// The maximum that the time between two looks counts for: while this machine had no time to look, it had no time for the
/// cluster either.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// Watches a boot that the model predicts to fail. Model and observation must agree, and no Pod of the CCM may run: a
/// model can be wrong, and a slow cluster can look as if it were stuck.
#[derive(Debug)]
pub(super) struct Deadlock {
    /// The model's result, if that is a deadlock in every order.
    expected: Option<String>,
    /// How long nothing may have changed; `None`: forever.
    limit: Option<Duration>,
    seen: Option<(Vec<ObservedPod>, Vec<ObservedNode>)>,
    looked: Instant,
    still: Duration,
}

impl Deadlock {
    /// Starts with the expectation for a cluster, at the time `now`.
    pub(super) fn of(expectation: Option<&Expectation>, limit: Option<Duration>, now: Instant) -> Deadlock {
        let stuck = |e: &&Expectation| {
            !e.cells.is_empty() && e.cells.iter().all(|cell| cell.outcome == Outcome::Deadlock)
        };
        let expected = expectation.filter(stuck).map(|e| e.summary().trim_end().to_owned());
        Deadlock { expected, limit, seen: None, looked: now, still: Duration::ZERO }
    }

    /// Takes the current observation; returns why it is useless to continue, if it is.
    pub(super) fn after(
        &mut self,
        pods: Vec<ObservedPod>,
        nodes: Vec<ObservedNode>,
        now: Instant,
    ) -> Option<String> {
        let (expected, limit) = (self.expected.as_ref()?, self.limit?);
        let passed = now.saturating_duration_since(self.looked).min(BETWEEN_LOOKS);
        self.looked = now;
        let runs = pods.iter().any(|pod| pod.phase == "Running");
        let seen = Some((pods, nodes));
        if self.seen == seen && !runs {
            self.still += passed;
        } else {
            self.seen = seen;
            self.still = Duration::ZERO;
        }
        (self.still >= limit).then(|| {
            format!(
                "no Pod of the CCM and no Node has changed for {} s, and according to the manifests none can \
                     ({expected})",
                limit.as_secs_f64()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bootstrap::{Cell, Cluster, Cni, Topology};

    fn expecting(outcome: Outcome) -> (Deadlock, Instant) {
        let cluster = Cluster::new(Topology::SingleNode, Cni::None);
        let cell =
            Cell { cluster, outcome, states: 1, conditions: Vec::new(), eviction: None, explanation: None };
        let expectation = Expectation { cells: vec![cell], findings: Vec::new(), ccms: Vec::new() };
        let now = Instant::now();
        (Deadlock::of(Some(&expectation), Some(Duration::from_secs(40)), now), now)
    }

    fn pod(phase: &str) -> Vec<ObservedPod> {
        vec![ObservedPod { phase: phase.to_owned(), ..ObservedPod::default() }]
    }

    /// The second in which it gives up, if `phase` is observed every second.
    fn gives_up(
        (mut deadlock, start): (Deadlock, Instant),
        phase: impl Fn(u64) -> &'static str,
    ) -> Option<u64> {
        (0..200).find(|second| {
            let now = start + Duration::from_secs(*second);
            deadlock.after(pod(phase(*second)), Vec::new(), now).is_some()
        })
    }

    #[test]
    fn it_gives_up_when_nothing_moves() {
        assert_eq!(gives_up(expecting(Outcome::Deadlock), |_| "Pending"), Some(40));
    }

    #[test]
    fn any_change_restarts_the_wait() {
        let phase = |second| if second < 30 { "none" } else { "Pending" };
        assert_eq!(gives_up(expecting(Outcome::Deadlock), phase), Some(70));
    }

    #[test]
    fn it_never_gives_up_on_what_may_boot() {
        for outcome in [Outcome::Boots, Outcome::BootsIf, Outcome::SomeOrders, Outcome::Undecided] {
            assert_eq!(gives_up(expecting(outcome), |_| "Pending"), None, "{outcome}");
        }
        let now = Instant::now();
        let unknown = Deadlock::of(None, Some(Duration::from_secs(40)), now);
        assert_eq!(gives_up((unknown, now), |_| "Pending"), None);
    }

    #[test]
    fn it_never_gives_up_on_a_ccm_that_runs_or_where_a_person_set_the_time() {
        assert_eq!(gives_up(expecting(Outcome::Deadlock), |_| "Running"), None);
        let (mut deadlock, start) = expecting(Outcome::Deadlock);
        deadlock.limit = None;
        assert_eq!(gives_up((deadlock, start), |_| "Pending"), None);
    }

    #[test]
    fn unobserved_time_counts_little() {
        let (mut deadlock, start) = expecting(Outcome::Deadlock);
        assert_eq!(deadlock.after(pod("Pending"), Vec::new(), start), None);
        assert_eq!(deadlock.after(pod("Pending"), Vec::new(), start + Duration::from_secs(100)), None);
    }
}
