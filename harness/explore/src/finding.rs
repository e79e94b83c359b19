//! A finding: a scenario and one fault after which cluster and cloud do not become what they must, as a file.

use crate::divergence::Divergence;
use crate::pattern::{Pattern, Plan};
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
    /// The fault; none if the scenario alone leads to the difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<PutFault>,
    /// The differences in the end.
    pub differences: Vec<Divergence>,
    /// How many of how many trials ended like this.
    pub seen: Seen,
}

/// A fault at a point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PutFault {
    /// Where.
    pub at: Point,
    /// What.
    pub pattern: Pattern,
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
    pub(crate) fn new(plan: &Planned, step: usize, differences: Vec<Divergence>, seen: Seen) -> Finding {
        let (scenario, fault) = match plan {
            Planned::Plain(scenario) => (scenario.clone(), None),
            Planned::With(plan) => {
                (plan.scenario.clone(), Some(PutFault { at: plan.point.clone(), pattern: plan.pattern }))
            }
        };
        // What comes after it does not matter.
        let steps: Vec<Step> = scenario.steps.iter().take(step + 1).cloned().collect();
        Finding {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            summary: plan.to_string(),
            scenario: Scenario { steps, ..scenario },
            fault,
            differences,
            seen,
        }
    }

    /// Reads a finding from a file.
    ///
    /// # Errors
    /// The file with what is wrong with it.
    pub fn read(path: &Path) -> Result<Finding, String> {
        let wrong = |why: String| format!("{}: {why}", path.display());
        let text = harness_core::files::read(path).map_err(|error| wrong(error.to_string()))?;
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

    pub(crate) fn planned(&self) -> Planned {
        match &self.fault {
            None => Planned::Plain(self.scenario.clone()),
            Some(PutFault { at, pattern }) => {
                Planned::With(Plan { scenario: self.scenario.clone(), point: at.clone(), pattern: *pattern })
            }
        }
    }
}

/// What a trial carries out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Planned {
    /// A scenario without a fault.
    Plain(Scenario),
    /// A scenario with a fault.
    With(Plan),
}

impl Planned {
    pub(crate) fn scenario(&self) -> &Scenario {
        match self {
            Planned::Plain(scenario) => scenario,
            Planned::With(plan) => &plan.scenario,
        }
    }

    pub(crate) fn pattern(&self) -> Option<Pattern> {
        match self {
            Planned::Plain(_) => None,
            Planned::With(plan) => Some(plan.pattern),
        }
    }
}

impl std::fmt::Display for Planned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Planned::Plain(scenario) => write!(f, "{}: without any fault", scenario.name),
            Planned::With(plan) => plan.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_comes_back_from_its_file() {
        let scenario = Scenario::built_in(&["service-life".to_owned()]).expect("a scenario").remove(0);
        let point = Point::Api {
            verb: "patch".to_owned(),
            resource: "services".to_owned(),
            object: "web".to_owned(),
            nth: 1,
        };
        let plan = Planned::With(Plan { scenario, point, pattern: Pattern::AnswerLost });
        let text = |text: &str| text.to_owned();
        let difference =
            Divergence { subject: text("Service web"), expected: text("one"), actual: text("none") };
        let finding = Finding::new(&plan, 3, vec![difference], Seen { times: 3, of: 3 });
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
