//! What an exploration has tried and found.

use crate::finding::Finding;
use crate::pattern::{PATTERNS, Pattern};
use crate::plan::Plan;
use crate::trial::Outcome;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The column of trials without a fault.
const NO_FAULT: &str = "no fault";
/// The column of trials with two faults.
const PAIR: &str = "two faults";

/// One trial, for the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Trialed {
    /// The scenario.
    pub scenario: String,
    /// The patterns: one for each fault.
    pub patterns: Vec<Pattern>,
    /// What was done, in one sentence.
    pub plan: String,
    /// How it ended.
    pub outcome: Ended,
    /// Why, if it ended with an error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// How long it took, with its repetitions, in milliseconds.
    pub took_ms: u64,
}

/// How a trial ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// Cluster and cloud became what they must.
    Agrees,
    /// They did not.
    Diverges,
    /// The CCM did not make the request at which the fault was to be.
    NotReached,
    /// Cluster, cloud or harness failed twice.
    Error,
}

impl Trialed {
    pub(crate) fn of(plan: &Plan, outcome: &Outcome, took: Duration) -> Trialed {
        let (outcome, error) = match outcome {
            Outcome::Agrees => (Ended::Agrees, String::new()),
            Outcome::Diverges(_) => (Ended::Diverges, String::new()),
            Outcome::NotReached => (Ended::NotReached, String::new()),
            Outcome::NotStarted(why) | Outcome::Error(why) => (Ended::Error, why.clone()),
        };
        Trialed {
            scenario: plan.scenario.name.clone(),
            patterns: plan.faults.iter().map(|fault| fault.pattern).collect(),
            plan: plan.to_string(),
            outcome,
            error,
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

impl Trialed {
    /// The column of the matrix that it belongs to.
    pub(crate) fn column(&self) -> &'static str {
        match self.patterns.as_slice() {
            [] => NO_FAULT,
            [pattern] => pattern.name(),
            _ => PAIR,
        }
    }
}

/// The columns of the matrix: no fault, each pattern, and pairs.
pub(crate) fn columns() -> Vec<&'static str> {
    let patterns = PATTERNS.iter().map(|pattern| pattern.name());
    std::iter::once(NO_FAULT).chain(patterns).chain([PAIR]).collect()
}

/// What was explored, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Subject {
    /// The CCM: the name of its profile, with that of the mutant or variant.
    pub ccm: String,
    /// When it began (RFC 3339, UTC).
    pub started: String,
    /// The command that repeats it.
    pub reproduce: String,
}

/// The results of an exploration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Results {
    /// What was explored; empty in files of earlier versions.
    #[serde(default)]
    pub subject: Subject,
    /// How many points the scenarios have.
    pub points: usize,
    /// How many plans with one fault there are.
    pub plans: usize,
    /// How many of them were left when the time was over.
    pub left: usize,
    /// How many pairs of faults there are; 0 if none was tried.
    pub pairs: usize,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// The trials, in the order in which they ended.
    pub trials: Vec<Trialed>,
    /// What was found.
    pub findings: Vec<Finding>,
}

/// The results of an exploration that is in progress. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct SharedResults(Arc<Mutex<Results>>);

impl SharedResults {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Results> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Results without trials, of this exploration.
    pub fn of(subject: Subject) -> SharedResults {
        SharedResults(Arc::new(Mutex::new(Results { subject, ..Results::default() })))
    }

    /// What has been tried and found so far.
    pub fn so_far(&self) -> Results {
        self.lock().clone()
    }
}

impl Results {
    /// Adds a trial; returns whether what it found was not known. A replay finds the same three times.
    pub(crate) fn add(&mut self, trial: Trialed, finding: Option<Finding>) -> bool {
        self.trials.push(trial);
        let Some(finding) = finding else { return false };
        match self.findings.iter_mut().find(|known| known.summary == finding.summary) {
            Some(known) => {
                known.seen.times += finding.seen.times;
                known.seen.of += finding.seen.of;
                false
            }
            None => {
                self.findings.push(finding);
                true
            }
        }
    }

    pub(crate) fn note(&mut self, left: usize, pairs: usize, took: Duration) {
        (self.left, self.pairs) = (left, pairs);
        self.took(took);
    }

    /// Records how long it has taken so far.
    pub(crate) fn took(&mut self, took: Duration) {
        self.took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    }

    /// How many trials ended like this.
    pub fn count(&self, ended: Ended) -> usize {
        self.trials.iter().filter(|trial| trial.outcome == ended).count()
    }

    /// Trials without a fault that did not end: what they are about was not explored, for example because the CCM does not
    /// start.
    pub fn unexplored(&self) -> impl Iterator<Item = &Trialed> {
        self.trials.iter().filter(|trial| trial.patterns.is_empty() && trial.outcome == Ended::Error)
    }

    /// Whether every scenario that was begun ended, well or not, without any fault.
    pub fn is_explored(&self) -> bool {
        !self.trials.is_empty() && self.unexplored().next().is_none()
    }

    /// How many trials had two faults.
    pub fn tried_pairs(&self) -> usize {
        self.trials.iter().filter(|trial| trial.patterns.len() > 1).count()
    }

    /// One exploration from the parts that several machines have carried out.
    ///
    /// # Errors
    /// There are no parts.
    pub fn merge(parts: Vec<Results>) -> Result<Results, String> {
        let mut parts = parts.into_iter();
        let mut all = parts.next().ok_or("there is nothing to merge")?;
        for part in parts {
            all.points = all.points.max(part.points);
            all.plans += part.plans;
            all.left += part.left;
            all.pairs = all.pairs.max(part.pairs);
            all.took_ms = all.took_ms.max(part.took_ms);
            // Each part has carried out every scenario without faults.
            let known: BTreeSet<String> = all.trials.iter().map(|trial| trial.plan.clone()).collect();
            all.trials.extend(part.trials.into_iter().filter(|trial| !known.contains(&trial.plan)));
            let known: BTreeSet<String> =
                all.findings.iter().map(|finding| finding.summary.clone()).collect();
            all.findings
                .extend(part.findings.into_iter().filter(|finding| !known.contains(&finding.summary)));
        }
        Ok(all)
    }
}

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trials, pairs) = (self.trials.len(), self.tried_pairs());
        let singles = self.trials.iter().filter(|trial| trial.patterns.len() == 1).count();
        let plain = trials - singles - pairs;
        write!(
            f,
            "tried {trials} histories in {} s: {plain} without a fault, {singles} of {} with one fault",
            self.took_ms / 1000,
            singles + self.left,
        )?;
        // A replay knows no others than its own.
        if self.points > 0 {
            write!(f, " (there are {} points for faults)", self.points)?;
        }
        if self.pairs > 0 {
            write!(f, ", {pairs} of {} with two faults", self.pairs)?;
        }
        let unreached = self.count(Ended::NotReached);
        if unreached > 0 {
            write!(f, ", {unreached} not reached")?;
        }
        let errors = self.count(Ended::Error);
        if errors > 0 {
            write!(f, ", {errors} with an error of the environment")?;
        }
        let stable = self.findings.iter().filter(|finding| finding.seen.is_stable()).count();
        write!(f, "; {stable} {}", if stable == 1 { "finding" } else { "findings" })?;
        let unstable = self.findings.len() - stable;
        if unstable > 0 {
            write!(f, ", {unstable} more that were not seen every time")?;
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::divergence::{Broken, Requests};
    use crate::finding::Seen;
    use crate::scenario::Scenario;

    pub(crate) fn results() -> Results {
        let scenario = Scenario::built_in(&["node-life".to_owned()]).expect("a scenario").remove(0);
        let planned = Plan::plain(scenario);
        let mut results = Results { points: 3, plans: 7, ..Results::default() };
        results.add(Trialed::of(&planned, &Outcome::Agrees, Duration::from_millis(7)), None);
        let broken = Broken { step: 2, divergences: Vec::new(), requests: Requests::default() };
        let finding = Finding::new(&planned, broken.clone(), Seen { times: 2, of: 3 });
        results.add(Trialed::of(&planned, &Outcome::Diverges(broken), Duration::ZERO), Some(finding));
        results.note(5, 0, Duration::from_secs(3));
        results
    }

    #[test]
    fn the_summary_has_the_numbers() {
        let shown = results().to_string();
        let counts = "tried 2 histories in 3 s: 2 without a fault, 0 of 5 with one fault (there are 3 points for faults)";
        assert_eq!(shown, format!("{counts}; 0 findings, 1 more that were not seen every time"));
    }

    #[test]
    fn parts_are_joined_without_what_all_of_them_have() {
        let (one, mut other) = (results(), results());
        other.trials[0].plan = "node-life: another plan".to_owned();
        let all = Results::merge(vec![one, other]).expect("parts");
        assert_eq!((all.trials.len(), all.plans, all.left, all.findings.len()), (3, 14, 10, 1));
        assert!(Results::merge(Vec::new()).is_err());
    }
}
