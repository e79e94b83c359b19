//! A finding: a scenario and faults after which cluster and cloud do not become what they must, as a file.

use crate::divergence::{Broken, Divergence, Requests};
use crate::plan::{Plan, PutFault};
use crate::point::Point;
use crate::scenario::{Scenario, Step};
use harness_config::yaml;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The format of the file.
const API_VERSION: &str = harness_config::API_VERSION;
/// Its kind.
const KIND: &str = "Finding";

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Finding {
    /// The version of the format.
    pub api_version: String,
    /// `Finding`.
    pub kind: String,
    /// What happened, in one sentence.
    pub summary: String,
    /// The scenario, up to the step at which the difference was seen.
    pub scenario: Scenario,
    /// The faults; none if the scenario alone leads to the difference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<PutFault>,
    /// The differences in the end.
    pub differences: Vec<Divergence>,
    /// How many of how many trials ended like this.
    pub seen: Seen,
    /// The last requests of the CCM in one of these trials, for reading; a replay does not use them.
    #[serde(default, skip_serializing_if = "Requests::is_empty")]
    pub requests: Requests,
}

/// How often a finding was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Seen {
    /// In how many trials.
    pub times: u32,
    /// Of how many.
    pub of: u32,
}

impl Seen {
    /// Whether it was seen every time.
    pub fn is_stable(self) -> bool {
        self.times == self.of
    }
}

impl Finding {
    pub(crate) fn new(plan: &Plan, broken: Broken, seen: Seen) -> Finding {
        let Broken { step, divergences: differences, requests } = broken;
        let Plan { scenario, faults } = plan.clone();
        // What comes after it does not matter.
        let steps: Vec<Step> = scenario.steps.iter().take(step + 1).cloned().collect();
        let happens = |fault: &PutFault| !matches!(fault.at, Point::Step { step: at } if at > step);
        let faults = faults.into_iter().filter(happens).collect();
        Finding {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            summary: plan.to_string(),
            scenario: Scenario { steps, ..scenario },
            faults,
            differences,
            seen,
            requests,
        }
    }

    /// Whether another finding probably has the same cause: the same objects of the same scenario differ.
    pub(crate) fn resembles(&self, other: &Finding) -> bool {
        let subjects = |finding: &Finding| -> Vec<String> {
            let mut all: Vec<String> = finding.differences.iter().map(|d| d.subject.clone()).collect();
            all.sort();
            all.dedup();
            all
        };
        self.scenario.name == other.scenario.name && subjects(self) == subjects(other)
    }

    /// Reads a finding from a file.
    ///
    /// # Errors
    /// The file with what is wrong with it.
    pub fn read(path: &Path) -> Result<Finding, String> {
        let wrong = |why: String| format!("{}: {why}", path.display());
        let text = harness_core::files::read(path).map_err(|error| wrong(error.to_string()))?;
        // A file of another kind has other keys, which would be called unknown.
        let any: serde_json::Value = yaml::from_str(&text, path).map_err(|error| error.to_string())?;
        if let Some(kind) = any["kind"].as_str().filter(|kind| *kind != KIND) {
            return Err(wrong(format!("it is not a finding of 'explore' (kind '{kind}')")));
        }
        let finding: Finding = yaml::from_str(&text, path).map_err(|error| error.to_string())?;
        if finding.kind != KIND || finding.api_version != API_VERSION {
            return Err(wrong(format!(
                "expected apiVersion {API_VERSION} and kind {KIND}, got {} and {}",
                finding.api_version, finding.kind
            )));
        }
        finding.scenario.check().map_err(|why| wrong(format!("scenario.{why}")))?;
        Ok(finding)
    }

    /// What it says to carry out.
    pub(crate) fn plan(&self) -> Plan {
        Plan { scenario: self.scenario.clone(), faults: self.faults.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Pattern;

    #[test]
    fn a_finding_comes_back_from_its_file() {
        let scenario = Scenario::built_in(&["service-life".to_owned()]).expect("a scenario").remove(0);
        let point = Point::Api {
            verb: "patch".to_owned(),
            resource: "services".to_owned(),
            object: "web".to_owned(),
            nth: 1,
        };
        let fault = PutFault { at: point, pattern: Pattern::AnswerLost };
        let plan = Plan { scenario, faults: vec![fault] };
        let text = |text: &str| text.to_owned();
        let difference =
            Divergence { subject: text("Service web"), expected: text("one"), actual: text("none") };
        let requests = Requests { api: Vec::new(), cloud: vec![text("POST /load-balancers: 201")] };
        let broken = Broken { step: 3, divergences: vec![difference], requests };
        let finding = Finding::new(&plan, broken, Seen { times: 3, of: 3 });
        assert_eq!(finding.scenario.steps.len(), 4, "later steps are left out");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("finding.yaml");
        std::fs::write(&file, yaml::to_string(&finding).expect("YAML")).expect("written");
        assert_eq!(Finding::read(&file), Ok(finding.clone()));
        std::fs::write(&file, "kind: Finding\n").expect("written");
        let error = Finding::read(&file).expect_err("not complete");
        assert!(error.contains("finding.yaml"), "{error}");
    }
}
