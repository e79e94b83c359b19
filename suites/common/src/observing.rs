//! Helpers for behaviour that the contract only describes or leaves open. It is recorded as a fact; it is
//! never a failure.

use harness_testkit::prelude::*;

/// Whether the expected state was reached. An error that kept the check from finding out stays an error.
pub fn whether<T>(outcome: Result<T, CheckError>) -> Result<bool, CheckError> {
    match outcome {
        Ok(_) => Ok(true),
        Err(CheckError::Violation(_)) => Ok(false),
        Err(other) => Err(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_promise_is_a_fact_and_an_error_stays_one() {
        let violation = CheckError::Violation(Box::new(Violation::new("it comes", "it", "nothing")));
        assert_eq!((whether(Ok(7)).ok(), whether::<()>(Err(violation)).ok()), (Some(true), Some(false)));
        assert!(whether::<()>(Err(CheckError::Error("no answer".to_owned()))).is_err());
    }
}
