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
