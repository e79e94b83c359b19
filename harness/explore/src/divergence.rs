//! Differences between what is and what must be.

use harness_core::check::CheckError;
use harness_core::probe::{Matcher, Observation, Observed, ReadSource};
use harness_testkit::Subject;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One difference in the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Divergence {
    /// What it is about, by the names of the scenario: `Service web`.
    pub subject: String,
    /// What it must be.
    pub expected: String,
    /// What it is.
    pub actual: String,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, got {}", self.subject, self.expected, self.actual)
    }
}

/// What was wrong in the end, or on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    /// At which step of the scenario, from 0.
    pub(crate) step: usize,
    /// What differs.
    pub(crate) divergences: Vec<Divergence>,
    /// The last requests of the CCM.
    pub(crate) requests: Requests,
}

/// The last requests of a CCM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Requests {
    /// Writes to the API server, in order, each with the status of its answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub api: Vec<String>,
    /// Calls to the cloud, in order, each with its result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cloud: Vec<String>,
}

impl Requests {
    pub(crate) fn is_empty(&self) -> bool {
        self.api.is_empty() && self.cloud.is_empty()
    }
}

/// Reads a subject and adds a difference if it is not as `matcher` says; otherwise returns the matcher's value.
pub(crate) async fn compare<S: Subject, T: 'static>(
    all: &mut Vec<Divergence>,
    name: &str,
    subject: &S,
    matcher: Matcher<S::Snapshot, T>,
) -> Result<Option<T>, CheckError> {
    let seen = subject.read(ReadSource::Cache).await?;
    let why = match matcher.matches(&seen) {
        Observation::Matched(value) => return Ok(Some(value)),
        Observation::Pending(why) | Observation::Impossible(why) => why,
    };
    let actual = if why.is_empty() { seen.observed() } else { format!("{} ({why})", seen.observed()) };
    all.push(Divergence { subject: name.to_owned(), expected: matcher.expected().to_owned(), actual });
    Ok(None)
}
