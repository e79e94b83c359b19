//! What an exploration has tried and found, and the files about it.

use crate::finding::{Finding, Planned};
use crate::trial::Outcome;
use harness_config::yaml;
use harness_core::files;
use harness_core::output;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The name of the file with all trials.
const TRIALS_FILE: &str = "explore.json";
/// The name of the JUnit report.
const JUNIT_FILE: &str = "explore-junit.xml";
/// The folder with a file for each finding.
const FINDINGS_FOLDER: &str = "findings";
/// The column of trials without a fault.
const NO_FAULT: &str = "no fault";

/// One trial, for the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trialed {
    /// The scenario.
    pub scenario: String,
    /// The pattern; absent without a fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<&'static str>,
    /// What was done, in one sentence.
    pub plan: String,
    /// How it ended.
    pub outcome: Ended,
    /// Why, if it ended with an error.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// How long it took, with its repetitions, in milliseconds.
    pub took_ms: u64,
}

/// How a trial ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
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
    pub(crate) fn of(planned: &Planned, outcome: &Outcome, took: Duration) -> Trialed {
        let (outcome, error) = match outcome {
            Outcome::Agrees => (Ended::Agrees, String::new()),
            Outcome::Diverges(_) => (Ended::Diverges, String::new()),
            Outcome::NotReached => (Ended::NotReached, String::new()),
            Outcome::Error(why) => (Ended::Error, why.clone()),
        };
        Trialed {
            scenario: planned.scenario().name.clone(),
            pattern: planned.pattern().map(crate::pattern::Pattern::name),
            plan: planned.to_string(),
            outcome,
            error,
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// The results of an exploration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Results {
    /// How many points the scenarios have.
    pub points: usize,
    /// How many plans were left when the time was over.
    pub left: usize,
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

    /// What has been tried and found so far.
    pub fn so_far(&self) -> Results {
        self.lock().clone()
    }
}

impl Results {
    pub(crate) fn add(&mut self, trial: Trialed, finding: Option<Finding>) {
        self.trials.push(trial);
        self.findings.extend(finding);
    }

    pub(crate) fn note(&mut self, left: usize, took: Duration) {
        self.left = left;
        self.took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    }

    /// How many trials ended like this.
    pub fn count(&self, ended: Ended) -> usize {
        self.trials.iter().filter(|trial| trial.outcome == ended).count()
    }

    /// Writes the files into a folder.
    ///
    /// # Errors
    /// The file that could not be written, and why.
    pub fn write(&self, folder: &Path) -> Result<(), String> {
        let put = |path: &Path, text: String| {
            output::file(path, text).map_err(|error| format!("{}: {}", path.display(), files::why(&error)))
        };
        let findings = folder.join(FINDINGS_FOLDER);
        std::fs::create_dir_all(&findings)
            .map_err(|error| format!("{}: {}", findings.display(), files::why(&error)))?;
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        put(&folder.join(TRIALS_FILE), text + "\n")?;
        let junit = self.junit().to_string().map_err(|error| error.to_string())?;
        put(&folder.join(JUNIT_FILE), junit)?;
        for (number, finding) in self.findings.iter().enumerate() {
            let pattern = finding.fault.as_ref().map_or("no-fault", |fault| fault.pattern.name());
            let name = format!("{:02}-{}-{pattern}.yaml", number + 1, finding.scenario.name);
            let text = yaml::to_string(finding).map_err(|error| error.to_string())?;
            put(&findings.join(name), text)?;
        }
        Ok(())
    }

    /// One test case for each scenario and pattern.
    fn junit(&self) -> Report {
        let mut report = Report::new("explore");
        let mut suites: BTreeMap<&str, BTreeMap<&str, Vec<&Trialed>>> = BTreeMap::new();
        for trial in &self.trials {
            let pattern = trial.pattern.unwrap_or(NO_FAULT);
            suites.entry(&trial.scenario).or_default().entry(pattern).or_default().push(trial);
        }
        for (scenario, patterns) in suites {
            let mut suite = TestSuite::new(scenario);
            for (pattern, trials) in patterns {
                let of = |ended| trials.iter().filter(move |trial| trial.outcome == ended);
                let failed: Vec<&str> = of(Ended::Diverges).map(|trial| trial.plan.as_str()).collect();
                let errors: Vec<&str> = of(Ended::Error).map(|trial| trial.error.as_str()).collect();
                let status = match (failed.is_empty(), errors.is_empty()) {
                    (false, _) => TestCaseStatus::non_success(NonSuccessKind::Failure),
                    (true, false) => TestCaseStatus::non_success(NonSuccessKind::Error),
                    (true, true) => TestCaseStatus::success(),
                };
                let mut case = TestCase::new(pattern, status);
                if let Some(message) = failed.first().or(errors.first()) {
                    case.status.set_message(*message);
                }
                case.set_time(Duration::from_millis(trials.iter().map(|trial| trial.took_ms).sum()));
                suite.add_test_case(case);
            }
            report.add_test_suite(suite);
        }
        report
    }
}

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trials = self.trials.len();
        let all = trials + self.left;
        write!(f, "{trials} of {all} trials in {} s, {} points", self.took_ms / 1000, self.points)?;
        let unreached = self.count(Ended::NotReached);
        if unreached > 0 {
            write!(f, ", {unreached} not reached")?;
        }
        let errors = self.count(Ended::Error);
        if errors > 0 {
            write!(f, ", {errors} with an error of the environment")?;
        }
        let stable = self.findings.iter().filter(|finding| finding.seen.is_stable()).count();
        write!(f, ": {stable} findings")?;
        let unstable = self.findings.len() - stable;
        if unstable > 0 {
            write!(f, ", {unstable} more that were not seen every time")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    fn results() -> Results {
        let scenario = Scenario::built_in(&["node-life".to_owned()]).expect("a scenario").remove(0);
        let planned = Planned::Plain(scenario);
        let mut results = Results::default();
        results.add(Trialed::of(&planned, &Outcome::Agrees, Duration::from_millis(7)), None);
        let broken = crate::trial::Broken { step: 1, divergences: Vec::new() };
        let finding = Finding::new(&planned, 1, Vec::new(), crate::finding::Seen { times: 2, of: 3 });
        results.add(Trialed::of(&planned, &Outcome::Diverges(broken), Duration::ZERO), Some(finding));
        results.note(5, Duration::from_secs(3));
        results
    }

    #[test]
    fn the_summary_has_the_numbers() {
        let shown = results().to_string();
        assert_eq!(shown, "2 of 7 trials in 3 s, 0 points: 0 findings, 1 more that were not seen every time");
    }

    #[test]
    fn all_files_are_written() {
        let folder = tempfile::tempdir().expect("a folder");
        results().write(folder.path()).expect("written");
        let junit = std::fs::read_to_string(folder.path().join(JUNIT_FILE)).expect("a report");
        assert!(junit.contains("failures=\"1\"") && junit.contains("no fault"), "{junit}");
        let finding = folder.path().join(FINDINGS_FOLDER).join("01-node-life-no-fault.yaml");
        assert!(std::fs::read_to_string(finding).expect("a finding").contains("kind: Finding"));
        assert!(folder.path().join(TRIALS_FILE).exists());
    }
}
