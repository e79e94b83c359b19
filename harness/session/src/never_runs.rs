//! A CCM of which nothing runs, as the boot model predicts from its manifests: it has no Pods, no Node for them, or lacks a
//! Secret or a ConfigMap. Waiting longer is useless, and the manifests are to blame, not the environment.

use super::Session;
use super::boot::{Circumstances, expectation};
use crate::ccm::{Form, none_can_run};
use bootstrap::{Cni, Expectation, Outcome};
use harness_core::probe::{Observed, poll};
use std::time::Duration;
use tokio::time::Instant;

/// Interval between two looks at the Pods.
const EVERY: Duration = Duration::from_millis(200);
/// The maximum that the time between two looks counts for: while this machine had no time to look, it had no time for the
/// cluster either.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// How long nothing of the CCM has run for the same reason.
#[derive(Debug, Default)]
struct Hindered {
    /// The reason, and when the last look was.
    last: Option<(String, Instant)>,
    lasts: Duration,
}

impl Hindered {
    /// Takes the reason, `None` if something may start; returns for how long it has been the same.
    fn after(&mut self, reason: Option<String>, now: Instant) -> Duration {
        self.lasts = match (&self.last, &reason) {
            (Some((before, looked)), Some(same)) if before == same => {
                self.lasts + now.saturating_duration_since(*looked).min(BETWEEN_LOOKS)
            }
            _ => Duration::ZERO,
        };
        self.last = reason.map(|why| (why, now));
        self.lasts
    }
}

impl Session {
    /// A message once nothing of the CCM has run for a while, if that is what the boot model expects in every order. Never
    /// returns otherwise.
    pub(super) async fn never_runs(&self, form: Form) -> String {
        let (Some(deadlock), Some(limit)) = (self.deadlock(), self.limits().hindered()) else {
            return std::future::pending().await;
        };
        let mut hindered = Hindered::default();
        let mut look = async |seen: &mut String| {
            let pods = self.ccm.pods(form);
            *seen = pods.observed();
            let why = none_can_run(&pods);
            let lasts = hindered.after(why.clone(), Instant::now());
            Ok(why.filter(|_| lasts >= limit))
        };
        match poll("nothing of the CCM can run", self.limits().start(), EVERY, &mut look).await {
            Ok(why) => message(limit, &why, &deadlock),
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

fn message(limit: Duration, why: &str, deadlock: &Deadlock) -> String {
    let Deadlock { cause, explanation } = deadlock;
    format!(
        "nothing of it runs, as expected from the manifests: {cause}\n  for {} s: {why}\n  {}",
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
        let text = message(Duration::from_secs(15), "the scheduler finds no Node", &explained);
        let first = text.lines().next().expect("a line");
        for part in
            ["nothing of it runs, as expected from", "kubernetes.io/uninitialized", "smallest change: "]
        {
            assert!(first.contains(part), "{part}:\n{text}");
        }
        assert!(text.contains("\n  for 15 s: the scheduler finds no Node\n  1. "), "{text}");
        assert_eq!(expected("good-deployment"), None);
    }

    #[test]
    fn only_a_reason_that_stays_counts() {
        let start = Instant::now();
        let mut hindered = Hindered::default();
        let mut at = |second: u64, says: Option<&str>| {
            hindered.after(says.map(str::to_owned), start + Duration::from_secs(second)).as_secs()
        };
        assert_eq!([at(0, Some("no")), at(1, Some("no")), at(2, Some("no"))], [0, 1, 2]);
        assert_eq!(at(60, Some("no")), 3, "there was no look for a minute");
        assert_eq!([at(61, Some("another taint")), at(62, Some("another taint"))], [0, 1]);
        assert_eq!([at(63, None), at(64, Some("no")), at(65, Some("no"))], [0, 0, 1]);
    }
}
