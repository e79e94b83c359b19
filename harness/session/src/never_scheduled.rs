//! A CCM whose Pods stay without a Node, as the boot model predicts from its manifests: waiting longer is useless, and the
//! manifests are to blame, not the environment.

use super::Session;
use super::boot::{Circumstances, expectation};
use crate::ccm::{Form, all_unplaced};
use bootstrap::{Cni, Expectation, Outcome};
use harness_core::probe::{Observed, poll};
use std::time::Duration;
use tokio::time::Instant;

/// Interval between two looks at the Pods.
const EVERY: Duration = Duration::from_millis(200);
/// The maximum that the time between two looks counts for: while this machine had no time to look, it had no time for the
/// scheduler either.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// How long the scheduler has found no Node for any Pod.
#[derive(Debug, Default)]
struct Unplaced {
    /// The message of the scheduler, and when the last look was.
    last: Option<(String, Instant)>,
    lasts: Duration,
}

impl Unplaced {
    /// Takes what the scheduler says of all Pods, `None` if it has placed one or has not looked at all of them; returns for
    /// how long it has said the same.
    fn after(&mut self, placing: Option<String>, now: Instant) -> Duration {
        self.lasts = match (&self.last, &placing) {
            (Some((before, looked)), Some(now_says)) if before == now_says => {
                self.lasts + now.saturating_duration_since(*looked).min(BETWEEN_LOOKS)
            }
            _ => Duration::ZERO,
        };
        self.last = placing.map(|says| (says, now));
        self.lasts
    }
}

impl Session {
    /// A message once the scheduler has found no Node for the CCM's Pods for a while, if that is what the boot model expects
    /// in every order. Never returns otherwise.
    pub(super) async fn never_scheduled(&self, form: Form) -> String {
        let (Some(deadlock), Some(limit)) = (self.deadlock(), self.limits().unplaced()) else {
            return std::future::pending().await;
        };
        let mut unplaced = Unplaced::default();
        let mut look = async |seen: &mut String| {
            let pods = self.ccm.pods(form);
            *seen = pods.observed();
            let says = all_unplaced(&pods);
            let lasts = unplaced.after(says.clone(), Instant::now());
            Ok(says.filter(|_| lasts >= limit))
        };
        match poll("the scheduler finds no Node", self.limits().start(), EVERY, &mut look).await {
            Ok(says) => message(limit, &says, &deadlock),
            Err(_) => std::future::pending().await,
        }
    }

    /// Why the cluster cannot boot with the CCM's manifests, if the boot model says so.
    fn deadlock(&self) -> Option<Deadlock> {
        let usual = Circumstances::usual(Cni::Independent);
        let plan = self.plan();
        let expected = expectation(&plan.profile, plan.cluster.desired(), &[usual])?.ok()?;
        stuck(&expected)
    }
}

/// A deadlock that the boot model expects.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Deadlock {
    /// What causes it, with the place in the manifests, and what to change; in one line.
    cause: String,
    /// The whole explanation, in lines.
    explanation: String,
}

/// The deadlock, if there is one in every order.
fn stuck(expected: &Expectation) -> Option<Deadlock> {
    let all = expected.cells.iter().all(|cell| cell.outcome == Outcome::Deadlock);
    let explanation = expected.cells.iter().find_map(|cell| cell.explanation.as_ref()).filter(|_| all)?;
    let mut cause = explanation.cause().map_or_else(String::new, |step| step.text.clone());
    if !explanation.changes.is_empty() {
        cause.push_str(&format!("; smallest change: {}", explanation.changes.join(", and ")));
    }
    Some(Deadlock { cause, explanation: explanation.to_text() })
}

fn message(limit: Duration, says: &str, deadlock: &Deadlock) -> String {
    let Deadlock { cause, explanation } = deadlock;
    format!(
        "no Node for its Pods, as expected from the manifests: {cause}\n  the scheduler for {} s: {says}\n  {}",
        limit.as_secs(),
        explanation.trim_end().replace('\n', "\n  ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_config::{DesiredCluster, Profile, RunFile, Source, plan};
    use std::path::Path;

    fn expected(variant: &str) -> Option<Deadlock> {
        let plan = plan(&Source::Defaults, RunFile::default()).expect("a plan");
        let mut profile: Profile = plan.profile.clone();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/bootstrap").join(variant);
        profile.manifests = vec![folder.join("ccm.yaml")];
        let DesiredCluster::Own(own) = plan.cluster.desired().clone() else { panic!("a cluster of its own") };
        let usual = Circumstances::usual(Cni::Independent);
        let expected = expectation(&profile, &DesiredCluster::Own(own), &[usual]).expect("a deployment");
        stuck(&expected.expect("manifests that can be read"))
    }

    #[test]
    fn a_missing_toleration_is_the_reason_and_manifests_that_boot_are_none() {
        let explained = expected("mbt-01-no-uninitialized-toleration").expect("a deadlock");
        let text = message(Duration::from_secs(15), "0/1 nodes are available", &explained);
        let first = text.lines().next().expect("a line");
        for part in
            ["no Node for its Pods, as expected from", "kubernetes.io/uninitialized", "smallest change: "]
        {
            assert!(first.contains(part), "{part}:\n{text}");
        }
        assert!(text.contains("\n  the scheduler for 15 s: 0/1 nodes are available\n  1. "), "{text}");
        assert_eq!(expected("good-deployment"), None);
    }

    #[test]
    fn only_what_the_scheduler_says_again_and_again_counts() {
        let start = Instant::now();
        let mut unplaced = Unplaced::default();
        let mut at = |second: u64, says: Option<&str>| {
            unplaced.after(says.map(str::to_owned), start + Duration::from_secs(second)).as_secs()
        };
        assert_eq!([at(0, Some("no")), at(1, Some("no")), at(2, Some("no"))], [0, 1, 2]);
        assert_eq!(at(60, Some("no")), 3, "there was no look for a minute");
        assert_eq!([at(61, Some("another taint")), at(62, Some("another taint"))], [0, 1]);
        assert_eq!([at(63, None), at(64, Some("no")), at(65, Some("no"))], [0, 0, 1]);
    }
}
