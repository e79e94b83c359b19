//! Refusals of Resource Manager, and its voice.

use super::names::GROUP;
use fake_cloud_kit::{Answer, Denial, Error, Voice};
use serde_json::json;

/// The voice of Resource Manager.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arm;

impl Voice for Arm {
    fn answer(&self, result: Result<Answer, Error>) -> Answer {
        result.unwrap_or_else(|error| {
            if let Error::Denied(Denial::Credential { status, body }) = &error {
                return Answer::json_text(*status, body.clone());
            }
            let status = match (error.status(), &error) {
                (422, _) => 400,
                (status, _) => status,
            };
            let code = match &error {
                Error::Said { code, .. } if !code.is_empty() => code,
                _ => code_of(status),
            };
            let message = match &error {
                Error::Denied(Denial::Unauthenticated) => "The access token is missing or invalid.".into(),
                _ => error.text(),
            };
            let body = json!({"error": {"code": code, "message": message}});
            Answer::json(status, &body).retry_after(error.retry_after_s())
        })
    }
}

/// The usual error code of a status.
fn code_of(status: u16) -> &'static str {
    match status {
        401 => "InvalidAuthenticationToken",
        403 => "AuthorizationFailed",
        404 => "ResourceNotFound",
        409 => "Conflict",
        412 => "PreconditionFailed",
        413 => "RequestEntityTooLarge",
        429 => "TooManyRequests",
        500 => "InternalServerError",
        501 => "NotImplemented",
        503 => "ServiceUnavailable",
        504 => "GatewayTimeout",
        status if status < 500 => "BadRequest",
        _ => "InternalServerError",
    }
}

/// The error for a missing resource.
pub(super) fn not_found(provider: &str, kind: &str, name: &str) -> Error {
    let message = format!(
        "The Resource '{provider}/{kind}/{name:.80}' under resource group '{GROUP}' was not found. For more details \
         please go to https://aka.ms/ARMResourceNotFoundFix"
    );
    Error::said(404, "ResourceNotFound", message)
}

/// The error for a missing part of a resource.
pub(super) fn no_part(id: &str) -> Error {
    Error::said(404, "NotFound", format!("Resource {id:.300} not found."))
}

/// The error for a wrong resource group.
pub(super) fn no_group(name: &str) -> Error {
    let message = format!("Resource group '{name:.90}' could not be found.");
    Error::said(404, "ResourceGroupNotFound", message)
}

/// The error for a wrong subscription.
pub(super) fn no_subscription(name: &str) -> Error {
    let message = format!("The subscription '{name:.80}' could not be found.");
    Error::said(404, "SubscriptionNotFound", message)
}

/// The error for a call without `api-version`.
pub(super) fn no_version() -> Error {
    let message = "The api-version query parameter (?api-version=) is required for all requests.";
    Error::said(400, "MissingApiVersionParameter", message)
}

/// The error for an `api-version` that is not one.
pub(super) fn bad_version(text: &str) -> Error {
    let message = format!("The api-version '{text:.40}' is invalid.");
    Error::said(400, "InvalidApiVersionParameter", message)
}

/// The error for a resource that has changed since the caller has read it.
pub(super) fn changed_since(id: &str) -> Error {
    let message =
        format!("Precondition failed. The resource {id:.300} has another etag than the If-Match header.");
    Error::said(412, "PreconditionFailed", message)
}

/// The error for a reference to a resource that does not exist.
pub(super) fn dangling(id: &str, by: &str) -> Error {
    let message = format!(
        "Resource {id:.300} referenced by resource {by:.300} was not found. Please make sure that the referenced \
         resource exists, and that both resources are in the same region."
    );
    Error::said(400, "InvalidResourceReference", message)
}

/// The error for an invalid request.
pub(super) fn invalid(code: &'static str, message: String) -> Error {
    Error::said(400, code, message)
}

/// The error for an action that the caller may not do.
pub(super) fn forbidden(action: &str, scope: &str) -> Error {
    let message = format!(
        "The client '{}' with object id '{}' does not have authorization to perform action '{action}' over scope \
         '{scope:.300}' or the scope is invalid. If access was recently granted, please refresh your credentials.",
        super::names::CLIENT,
        super::names::CLIENT
    );
    Error::said(403, "AuthorizationFailed", message)
}
