//! What the contract only tells of, or leaves open, is looked at and recorded: whether something comes to be is a fact, not
//! a failure.

use harness_testkit::prelude::*;

/// Whether it came to be as was waited for. Whatever kept from finding out stays an error.
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
