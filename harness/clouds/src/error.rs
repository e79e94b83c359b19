//! Why a cloud did not do what it was asked.

use harness_core::check::Facility;
use std::error::Error;
use std::fmt;

/// A call to a cloud that did not end well: always the environment's fault, never the CCM's.
#[derive(Debug, thiserror::Error)]
#[error("cloud driver '{driver}', {call}: {problem}")]
pub struct CloudError {
    /// The driver's name.
    pub driver: String,
    /// What was asked, e.g. `reading the inventory`.
    pub call: &'static str,
    /// What became of it.
    pub problem: Problem,
    /// The cause, in the driver's own words.
    #[source]
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

/// How a call ended badly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The driver does not have the facility.
    Lacks(Facility),
    /// What is to be read or removed is not there.
    NotFound,
    /// The driver will not, or cannot as things stand.
    Refused,
    /// Nobody answered, or not in time.
    NoAnswer,
    /// The answer makes no sense: another program, another version, or a broken one.
    Nonsense,
    /// It shows something else than what was written.
    NotKept,
    /// What is recorded of the cloud is of no use.
    Unusable,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Lacks(facility) => write!(f, "it has no {facility}"),
            Problem::NotFound => f.write_str("there is no such thing"),
            Problem::Refused => f.write_str("refused"),
            Problem::NoAnswer => f.write_str("no answer"),
            Problem::Nonsense => f.write_str("its answer makes no sense"),
            Problem::NotKept => f.write_str("it does not show what was written"),
            Problem::Unusable => f.write_str("what is recorded of it cannot be used"),
        }
    }
}

impl CloudError {
    /// A problem without a cause of its own.
    pub fn new(driver: &str, call: &'static str, problem: Problem) -> CloudError {
        CloudError { driver: driver.to_owned(), call, problem, source: None }
    }

    /// The same with the driver's own words.
    pub fn caused_by(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> CloudError {
        self.source = Some(cause.into());
        self
    }

    /// Whether what was to be read or removed is not there.
    pub fn is_not_found(&self) -> bool {
        self.problem == Problem::NotFound
    }

    /// Whether asking again is pointless.
    pub fn is_final(&self) -> bool {
        match self.problem {
            Problem::Lacks(_) | Problem::Nonsense | Problem::Unusable => true,
            Problem::NotFound | Problem::Refused | Problem::NoAnswer | Problem::NotKept => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_driver_call_and_cause() {
        let error = CloudError::new("fake", "reading the journal", Problem::Nonsense).caused_by("not JSON");
        assert_eq!(
            harness_core::check::chain(&error),
            "cloud driver 'fake', reading the journal: its answer makes no sense: not JSON"
        );
        let lacks = CloudError::new("real", "raising a barrier", Problem::Lacks(Facility::Barriers));
        assert_eq!(lacks.to_string(), "cloud driver 'real', raising a barrier: it has no barriers");
        assert!(lacks.is_final() && !lacks.is_not_found());
    }
}
