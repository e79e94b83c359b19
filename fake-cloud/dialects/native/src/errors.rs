//! Errors of the `native` dialect: the same form for all, with a code that follows from the status.

use fake_cloud_kit::{Answer, Error, Voice};
use serde::Serialize;

#[derive(Serialize)]
struct Words<'a> {
    code: &'a str,
    message: &'a str,
}

/// The voice of this dialect, which does not change from call to call.
#[derive(Clone, Copy)]
pub(crate) struct Native;

impl Voice for Native {
    fn answer(&self, result: Result<Answer, Error>) -> Answer {
        result.unwrap_or_else(|error| {
            // A body with another structure gets the same status as an invalid value.
            let status = if matches!(error, Error::Body(_)) { 422 } else { error.status() };
            let words = Words { code: code(status), message: &error.text() };
            Answer::one(status, "error", &words).retry_after(error.retry_after_s())
        })
    }
}

fn code(status: u16) -> &'static str {
    match status {
        401 => "unauthorized",
        403 => "forbidden",
        404 => "not_found",
        409 => "conflict",
        413 => "too_large",
        422 => "invalid",
        429 => "rate_limited",
        501 => "unknown_endpoint",
        500..=599 => "unavailable",
        _ => "refused",
    }
}
