//! Errors of the native dialect: one form, with the status code that fits.

use crate::dialects::Answer;
use crate::model::Refusal;
use serde_json::json;

/// A call that fails.
#[derive(Debug)]
pub(super) enum Failure {
    /// The model refused.
    Refused(Refusal),
    /// The body is not what the call takes.
    Body(serde_json::Error),
    /// There is no such call.
    Unknown(String),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure::Refused(refusal)
    }
}

impl Failure {
    pub(super) fn answer(&self) -> Answer {
        match self {
            Failure::Refused(refusal @ Refusal::NotFound(_)) => answer(404, &refusal.to_string()),
            Failure::Refused(refusal @ Refusal::Conflict(_)) => answer(409, &refusal.to_string()),
            Failure::Refused(refusal @ Refusal::Invalid(_)) => answer(422, &refusal.to_string()),
            Failure::Body(error) if error.is_data() => answer(422, &error.to_string()),
            Failure::Body(error) => answer(400, &format!("the body is not JSON: {error}")),
            Failure::Unknown(call) => answer(501, &format!("the native dialect has no call {call}")),
        }
    }
}

/// An error of this status.
pub(super) fn answer(status: u16, message: &str) -> Answer {
    let code = match status {
        400 => "malformed",
        401 => "unauthorized",
        403 => "forbidden",
        404 => "not_found",
        409 => "conflict",
        413 => "too_large",
        422 => "invalid",
        429 => "rate_limited",
        501 => "unknown_endpoint",
        _ => "unavailable",
    };
    let body = json!({"error": {"code": code, "message": message}});
    Answer { status, headers: Vec::new(), body: Some(body.to_string().into_bytes()) }
}
