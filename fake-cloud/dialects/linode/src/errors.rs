//! Errors of the `linode` dialect: a list of reasons, each with its field if there is one.

use fake_cloud_kit::{Answer, Denial, Error};
use fake_cloud_model::Refusal;
use serde::Serialize;
use serde_json::json;
use std::borrow::Cow;

/// The error for an invalid field.
pub(super) fn field(name: &'static str, reason: impl Into<Cow<'static, str>>) -> Error {
    Error::new(400, reason).detailed(json!(name))
}

/// The error for a missing object.
pub(super) fn not_found() -> Error {
    Error::Refused(Refusal::NotFound(String::new()))
}

#[derive(Serialize)]
struct Reason<'a> {
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
}

/// The answer for an error.
pub(super) fn shown(error: &Error) -> Answer {
    let status = match error.status() {
        // This API has one status for every fault in a request.
        409 | 422 if !matches!(error, Error::Denied(_)) => 400,
        other => other,
    };
    let (field, reason) = match error {
        Error::Refused(Refusal::NotFound(_)) => (None, Cow::from("Not found")),
        Error::Denied(Denial::Unauthenticated) => (None, Cow::from("Invalid Token")),
        Error::Number { parameter, .. } => (Some(parameter.as_str()), error.text()),
        Error::Said { details, .. } => (details.as_ref().and_then(serde_json::Value::as_str), error.text()),
        _ => (None, error.text()),
    };
    let reasons = [Reason { reason: &reason, field }];
    Answer::one(status, "errors", &reasons).retry_after(error.retry_after_s())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn seen(error: &Error) -> (u16, Value) {
        let answer = shown(error);
        (answer.status.as_u16(), serde_json::from_slice(&answer.body).expect("JSON"))
    }

    #[test]
    fn a_reason_names_its_field_where_there_is_one() {
        let body = |reason: Value| json!({"errors": [reason]});
        assert_eq!(
            seen(&field("label", "Must be 3-32 characters")),
            (400, body(json!({"reason": "Must be 3-32 characters", "field": "label"})))
        );
        assert_eq!(seen(&not_found()), (404, body(json!({"reason": "Not found"}))));
        let conflict = Error::from(Refusal::Conflict("taken".to_owned()));
        assert_eq!(seen(&conflict), (400, body(json!({"reason": "taken"}))));
    }

    #[test]
    fn a_fault_keeps_its_status() {
        for status in [409, 422, 429, 503] {
            assert_eq!(seen(&Error::Denied(Denial::Fault { status, retry_after_s: None })).0, status);
        }
    }
}
