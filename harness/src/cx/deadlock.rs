//! When a boot is over before its time: nothing moves any more, and by the manifests nothing can.

use bootstrap::{Expectation, ObservedNode, ObservedPod, Outcome};
use std::time::Duration;
use tokio::time::Instant;

/// How long nothing has to change. A kubelet reports within ten seconds what has become of its node, and the scheduler
/// tries again within ten what may fit by then. `bootstrap prove` takes 35 s for the end, and no boot went on after it.
const STILL: Duration = Duration::from_secs(40);
/// The most that the time between two looks counts for: while this machine did not get to look it had no time for the
/// cluster either.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// Watches a boot that the model says cannot end well. Either alone would not do: a model can be wrong, and a slow cluster
/// can look as if it stood still.
#[derive(Debug)]
pub(super) struct Deadlock {
    /// What the model says, when that is a deadlock in every order.
    expected: Option<String>,
    seen: Option<(Vec<ObservedPod>, Vec<ObservedNode>)>,
    looked: Instant,
    still: Duration,
}

impl Deadlock {
    /// For the one cluster of an expectation.
    pub(super) fn of(expectation: Option<&Expectation>, now: Instant) -> Deadlock {
        let stuck = |e: &&Expectation| e.cells.iter().all(|cell| cell.outcome == Outcome::Deadlock);
        let expected = expectation.filter(stuck).map(|e| e.summary().trim_end().to_owned());
        Deadlock { expected, seen: None, looked: now, still: Duration::ZERO }
    }

    /// Takes in what is seen now; says why it is of no use to go on, if that is so.
    pub(super) fn after(
        &mut self,
        pods: Vec<ObservedPod>,
        nodes: Vec<ObservedNode>,
        now: Instant,
    ) -> Option<String> {
        let expected = self.expected.as_ref()?;
        let passed = now.saturating_duration_since(self.looked).min(BETWEEN_LOOKS);
        self.looked = now;
        let seen = Some((pods, nodes));
        if self.seen == seen {
            self.still += passed;
        } else {
            self.seen = seen;
            self.still = Duration::ZERO;
        }
        (self.still >= STILL).then(|| {
            format!("no Pod of the CCM and no Node has changed for {STILL:?}, and by the manifests none can ({expected})")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watching() -> (Deadlock, Instant) {
        let now = Instant::now();
        let expected = Some("single-node with CNI none: deadlock".to_owned());
        (Deadlock { expected, seen: None, looked: now, still: Duration::ZERO }, now)
    }

    fn pod(phase: &str) -> Vec<ObservedPod> {
        vec![ObservedPod { phase: phase.to_owned(), ..ObservedPod::default() }]
    }

    /// The second in which it gives up, when `phase` is what is seen in each.
    fn gives_up(mut deadlock: Deadlock, start: Instant, phase: impl Fn(u64) -> &'static str) -> Option<u64> {
        (0..200).find(|second| {
            let now = start + Duration::from_secs(*second);
            deadlock.after(pod(phase(*second)), Vec::new(), now).is_some()
        })
    }

    #[test]
    fn it_gives_up_when_nothing_moves() {
        let (deadlock, start) = watching();
        assert_eq!(gives_up(deadlock, start, |_| "Pending"), Some(40));
    }

    #[test]
    fn whatever_changes_begins_it_anew() {
        let (deadlock, start) = watching();
        assert_eq!(
            gives_up(deadlock, start, |second| if second < 30 { "none" } else { "Pending" }),
            Some(70)
        );
    }

    #[test]
    fn it_never_gives_up_on_what_should_boot() {
        let (mut deadlock, start) = watching();
        deadlock.expected = None;
        assert_eq!(gives_up(deadlock, start, |_| "Pending"), None);
    }

    #[test]
    fn time_in_which_nobody_looked_counts_for_little() {
        let (mut deadlock, start) = watching();
        assert_eq!(deadlock.after(pod("Pending"), Vec::new(), start), None);
        assert_eq!(deadlock.after(pod("Pending"), Vec::new(), start + Duration::from_secs(100)), None);
    }
}
