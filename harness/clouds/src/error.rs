//! Errors of calls to a cloud.

use harness_core::check::Facility;
use std::error::Error;
use std::fmt;

/// A failed call to a cloud: always an error of the environment, never the CCM's.
#[derive(Debug, thiserror::Error)]
#[error("cloud driver '{driver}', {call}: {problem}")]
pub struct CloudError {
    /// The driver's name.
    pub driver: String,
    /// The call, e.g. `reading the inventory`.
    pub call: &'static str,
    /// The kind of problem.
    pub problem: Problem,
    /// The cause, in the driver's own words.
    #[source]
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

/// The kind of problem with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The driver does not have the facility.
    Lacks(Facility),
    /// The object to read or remove does not exist.
    NotFound,
    /// The driver rejects the call, possibly because of the current state.
    Refused,
    /// There was no answer, or not in time.
    NoAnswer,
    /// The answer is not valid: it comes from another program, another version, or a broken one.
    Nonsense,
    /// The cloud shows something else than what was written.
    NotKept,
    /// The record of the cloud cannot be used.
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
    /// A problem without a cause.
    pub fn new(driver: &str, call: &'static str, problem: Problem) -> CloudError {
        CloudError { driver: driver.to_owned(), call, problem, source: None }
    }

    /// The same with the driver's error as its cause.
    pub fn caused_by(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> CloudError {
        self.source = Some(cause.into());
        self
    }

    /// Whether the object to read or remove does not exist.
    pub fn is_not_found(&self) -> bool {
        self.problem == Problem::NotFound
    }

    /// Whether a retry is pointless.
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
