//! The files about an exploration.

use crate::finding::Finding;
use crate::page::to_page;
use crate::results::{Ended, Results, Trialed};
use harness_config::yaml;
use harness_core::{files, output};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The name of the file with all trials.
pub const TRIALS_FILE: &str = "explore.json";
/// The name of the JUnit report.
const JUNIT_FILE: &str = "explore-junit.xml";
/// The page with the results.
pub const PAGE_FILE: &str = "explore.html";
/// The folder with a file for each finding.
const FINDINGS_FOLDER: &str = "findings";

/// What happens to the files of findings in the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Findings {
    /// Those of these results replace those of an earlier exploration.
    Replaced,
    /// They stay as they are: a replay has read one of them.
    Kept,
}

/// The name of the file of a finding, which is this one of those of an exploration, counted from 0.
fn file_of(number: usize, finding: &Finding) -> String {
    let patterns: Vec<&str> = finding.faults.iter().map(|fault| fault.pattern.name()).collect();
    let patterns = if patterns.is_empty() { "no-fault".to_owned() } else { patterns.join("-") };
    format!("{:02}-{}-{patterns}.yaml", number + 1, finding.scenario.name)
}

impl Results {
    /// Reads the results that an exploration has written into a folder.
    ///
    /// # Errors
    /// The file with what is wrong with it.
    pub fn read(folder: &Path) -> Result<Results, String> {
        let file = folder.join(TRIALS_FILE);
        let wrong = |why: String| format!("{}: {why}", file.display());
        let text = files::read(&file).map_err(|error| wrong(error.to_string()))?;
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))
    }

    /// Writes the files into a folder.
    ///
    /// # Errors
    /// The file that could not be written, and why.
    pub fn write(&self, folder: &Path, findings: Findings) -> Result<(), String> {
        let put = |path: &Path, text: String| {
            output::file(path, text).map_err(|error| format!("{}: {}", path.display(), files::why(&error)))
        };
        // Files of other origin in the folder stay, such as the known findings of a profile.
        let earlier = Results::read(folder).map(|earlier| earlier.findings).unwrap_or_default();
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        put(&folder.join(TRIALS_FILE), text + "\n")?;
        put(&folder.join(PAGE_FILE), to_page(self))?;
        let junit = self.junit().to_string().map_err(|error| error.to_string())?;
        put(&folder.join(JUNIT_FILE), junit)?;
        if findings == Findings::Kept {
            return Ok(());
        }
        let findings = folder.join(FINDINGS_FOLDER);
        std::fs::create_dir_all(&findings)
            .map_err(|error| format!("{}: {}", findings.display(), files::why(&error)))?;
        for (number, finding) in earlier.iter().enumerate() {
            // It may have been moved away.
            let _ = std::fs::remove_file(findings.join(file_of(number, finding)));
        }
        for (number, finding) in self.findings.iter().enumerate() {
            let text = yaml::to_string(finding).map_err(|error| error.to_string())?;
            put(&findings.join(file_of(number, finding)), text)?;
        }
        Ok(())
    }

    /// One test case for each scenario and pattern.
    fn junit(&self) -> Report {
        let mut report = Report::new("explore");
        let mut suites: BTreeMap<&str, BTreeMap<&str, Vec<&Trialed>>> = BTreeMap::new();
        for trial in &self.trials {
            suites.entry(&trial.scenario).or_default().entry(trial.column()).or_default().push(trial);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::results;

    #[test]
    fn findings_replace_those_of_an_earlier_exploration_and_no_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let findings = folder.path().join(FINDINGS_FOLDER);
        let names = || -> Vec<String> {
            let entries = std::fs::read_dir(&findings).expect("a folder");
            let mut names: Vec<String> = entries
                .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
                .collect();
            names.sort();
            names
        };
        results().write(folder.path(), Findings::Replaced).expect("written");
        let mine = "07-mine.yaml";
        std::fs::write(findings.join(mine), "").expect("written");
        let found = names();
        assert_eq!(found.len(), 2, "{found:?}");
        Results::default().write(folder.path(), Findings::Kept).expect("written");
        assert_eq!(names(), found);
        results().write(folder.path(), Findings::Replaced).expect("written");
        Results::default().write(folder.path(), Findings::Replaced).expect("written");
        assert_eq!(names(), [mine]);
    }

    #[test]
    fn all_files_are_written() {
        let folder = tempfile::tempdir().expect("a folder");
        results().write(folder.path(), Findings::Replaced).expect("written");
        let junit = std::fs::read_to_string(folder.path().join(JUNIT_FILE)).expect("a report");
        assert!(junit.contains("failures=\"1\"") && junit.contains("no fault"), "{junit}");
        let finding = folder.path().join(FINDINGS_FOLDER).join("01-node-life-no-fault.yaml");
        assert!(std::fs::read_to_string(finding).expect("a finding").contains("kind: Finding"));
        assert_eq!(Results::read(folder.path()), Ok(results()));
        assert!(folder.path().join(PAGE_FILE).exists());
    }
}
