//! Refusals in Google's words, and its voice.

use fake_cloud_kit::{Answer, Denial, Error, Voice};
use hyper::header::{HeaderName, HeaderValue, WWW_AUTHENTICATE};
use serde_json::{Value, json};

/// The voice of Google's APIs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Google;

/// What the header of a call without a known token says.
const CHALLENGE: HeaderValue =
    HeaderValue::from_static("Bearer realm=\"https://accounts.google.com/\", error=\"invalid_token\"");

impl Voice for Google {
    fn answer(&self, result: Result<Answer, Error>) -> Answer {
        result.unwrap_or_else(|error| {
            if let Error::Denied(Denial::Credential { status, body }) = &error {
                return Answer::json_text(*status, body.clone());
            }
            let status = match (error.status(), &error) {
                (422, _) => 400,
                (status, _) => status,
            };
            let reason = match &error {
                Error::Said { code, .. } if !code.is_empty() => code,
                _ => reason_of(status),
            };
            let message = match &error {
                Error::Denied(Denial::Unauthenticated) => UNAUTHENTICATED.into(),
                _ => error.text(),
            };
            let answer = Answer::json(status, &body(status, reason, &message));
            let answer = if status == 401 { answer.with(CHALLENGE_HEADER, CHALLENGE) } else { answer };
            answer.retry_after(error.retry_after_s())
        })
    }
}

const CHALLENGE_HEADER: HeaderName = WWW_AUTHENTICATE;
const UNAUTHENTICATED: &str = "Request had invalid authentication credentials. Expected OAuth 2 access token, login \
     cookie or other valid authentication credential. See \
     https://developers.google.com/identity/sign-in/web/devconsole-project.";

/// The body of an error.
fn body(status: u16, reason: &str, message: &str) -> Value {
    let domain = match reason {
        "rateLimitExceeded" | "quotaExceeded" => "usageLimits",
        _ => "global",
    };
    let mut one = json!({"message": message, "domain": domain, "reason": reason});
    let mut error = json!({"code": status, "message": message});
    if status == 401 {
        one["message"] = json!("Invalid Credentials");
        one["location"] = json!("Authorization");
        one["locationType"] = json!("header");
        error["status"] = json!("UNAUTHENTICATED");
    }
    error["errors"] = json!([one]);
    json!({ "error": error })
}

/// The usual reason of a status.
fn reason_of(status: u16) -> &'static str {
    match status {
        401 => "authError",
        403 => "forbidden",
        404 => "notFound",
        409 => "alreadyExists",
        412 => "conditionNotMet",
        413 => "uploadTooLarge",
        429 => "rateLimitExceeded",
        501 => "notImplemented",
        503 => "backendError",
        status if status < 500 => "invalid",
        _ => "internalError",
    }
}

/// The error for a missing resource, which `what` names without its host.
pub(super) fn not_found(what: &str) -> Error {
    Error::said(404, "notFound", format!("The resource '{what:.300}' was not found"))
}

/// The error for a resource that exists already.
pub(super) fn exists(what: &str) -> Error {
    Error::said(409, "alreadyExists", format!("The resource '{what:.300}' already exists"))
}

/// The error for an invalid value of a field.
pub(super) fn invalid(field: &str, value: &str, why: &str) -> Error {
    Error::said(400, "invalid", format!("Invalid value for field '{field:.80}': '{value:.200}'. {why}"))
}

/// The error for a field that is not there.
pub(super) fn required(field: &str) -> Error {
    Error::said(400, "required", format!("Required field '{field}' not specified"))
}

/// The error for deleting a resource that another one uses.
pub(super) fn in_use(kind: &str, what: &str, by: &str) -> Error {
    let text = format!("The {kind} resource '{what:.300}' is already being used by '{by:.300}'");
    Error::said(400, "resourceInUseByAnotherResource", text)
}

/// The error for an action that the caller may not do.
pub(super) fn forbidden(permission: &str, what: &str) -> Error {
    Error::said(403, "forbidden", format!("Required '{permission}' permission for '{what:.300}'"))
}
