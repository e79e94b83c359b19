//! Errors of the `digitalocean` dialect: `{"id", "message", "request_id"}`, where `id` follows from the status.

use super::headers::Headers;
use fake_cloud_kit::{Answer, Denial, Error};
use fake_cloud_model::Refusal;
use serde::Serialize;
use std::borrow::Cow;

/// The error for an invalid request.
pub(super) fn invalid(message: impl Into<Cow<'static, str>>) -> Error {
    Error::new(422, message)
}

/// The error for a missing object.
pub(super) fn not_found() -> Error {
    Error::Refused(Refusal::NotFound(String::new()))
}

#[derive(Serialize)]
struct Body<'a> {
    id: &'a str,
    message: &'a str,
    request_id: &'a str,
}

/// The answer for an error.
pub(super) fn shown(error: &Error, headers: &Headers) -> Answer {
    let status = match error {
        // This API has no other status for a conflict.
        Error::Refused(Refusal::Conflict(_)) => 422,
        _ => error.status(),
    };
    let message = match error {
        Error::Refused(Refusal::NotFound(_)) => Cow::from(message(404)),
        Error::Denied(Denial::Unauthenticated) => message(401).into(),
        Error::Denied(Denial::Fault { status, .. }) => message(*status).into(),
        Error::Body(error) if error.is_data() => format!("request payload validation failed: {error}").into(),
        Error::Body(error) => format!("error parsing request body: {error}").into(),
        _ => error.text(),
    };
    let body = Body { id: id(status), message: &message, request_id: &headers.request_id };
    Answer::json(status, &body).retry_after(error.retry_after_s())
}

/// The message of the real API for this status.
fn message(status: u16) -> &'static str {
    match status {
        401 => "Unable to authenticate you",
        403 => "You do not have access for the attempted action.",
        404 => "The resource you were accessing could not be found.",
        429 => "API rate limit exceeded.",
        500 => "Unexpected server-side error",
        _ => "as the test has ordered",
    }
}

fn id(status: u16) -> &'static str {
    match status {
        400 => "bad_request",
        401 => "unauthorized",
        403 => "forbidden",
        404 => "not_found",
        409 => "conflict",
        413 => "request_entity_too_large",
        422 => "unprocessable_entity",
        429 => "too_many_requests",
        501 => "not_implemented",
        503 => "service_unavailable",
        504 => "gateway_timeout",
        500.. => "server_error",
        _ => "client_error",
    }
}
