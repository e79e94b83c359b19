//! Errors of the `hcloud` dialect: a code in words, which clients use instead of the status.

use fake_cloud_kit::{Answer, Denial, Error};
use serde_json::{Value, json};

/// The error for a missing object.
pub(super) fn not_found(kind: &str, id: impl std::fmt::Display) -> Error {
    Error::said(404, "not_found", format!("{kind} with ID '{id:.40}' not found"))
}

/// The error for an invalid field.
pub(super) fn field(name: &str, problem: &str) -> Error {
    let error = Error::said(422, "invalid_input", format!("invalid input in field '{name}': {problem}"));
    error.detailed(fields(name, problem))
}

/// The error for a missing field.
pub(super) fn missing(name: &str) -> Error {
    field(name, "Missing data for required field.")
}

/// The error for a name that is already in use.
pub(super) fn taken(name: &str) -> Error {
    let error = Error::said(409, "uniqueness_error", format!("name '{name:.80}' is already used"));
    error.detailed(json!({"fields": [{"name": "name"}]}))
}

/// The error for a change of an object while an action is running on it.
pub(super) fn locked() -> Error {
    Error::said(423, "locked", "the resource is locked: another action is running")
}

/// The error for exceeding a limit.
pub(super) fn limit(message: String) -> Error {
    Error::said(403, "resource_limit_exceeded", message)
}

/// The answer for an error.
pub(super) fn shown(error: Error) -> Answer {
    let (status, retry_after_s) = (error.status(), error.retry_after_s());
    let (code, message, details) = match error {
        Error::Number { ref parameter, .. } => {
            let text = error.text();
            let problem = text.strip_prefix(parameter.as_str()).unwrap_or(&text).trim_start();
            return shown(field(parameter, problem));
        }
        Error::Said { code, message, details, .. } => (code, message.into_owned(), details),
        Error::Body(error) if error.is_data() => {
            let text = error.to_string();
            let details = fields(field_in(&text), &text);
            ("invalid_input", format!("invalid input: {text}"), Some(details))
        }
        Error::Body(error) => ("json_error", format!("the body is not JSON: {error}"), None),
        Error::Denied(Denial::Unauthenticated) => ("unauthorized", "unable to authenticate".to_owned(), None),
        Error::Denied(Denial::Unknown { what }) => ("unsupported_error", what, None),
        Error::Refused(_) | Error::Denied(_) => (code(status), error.text().into_owned(), None),
    };
    let details = details.unwrap_or_else(|| json!({}));
    let words = json!({"code": code, "message": message, "details": details});
    Answer::one(status, "error", &words).retry_after(retry_after_s)
}

fn fields(name: &str, problem: &str) -> Value {
    json!({"fields": [{"name": name, "messages": [problem]}]})
}

/// The field that a parser error is about, if the error names it.
fn field_in(text: &str) -> &str {
    text.split('`').nth(1).filter(|_| text.contains("field `")).unwrap_or("body")
}

/// The usual code for a status.
fn code(status: u16) -> &'static str {
    match status {
        401 => "unauthorized",
        403 => "forbidden",
        404 => "not_found",
        409 => "conflict",
        412 => "resource_unavailable",
        423 => "locked",
        429 => "rate_limit_exceeded",
        502 => "bad_gateway",
        503 => "service_error",
        504 => "timeout",
        500..=599 => "server_error",
        _ => "invalid_input",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(error: Error) -> (u16, Value) {
        let answer = shown(error);
        (answer.status.as_u16(), serde_json::from_slice(&answer.body).expect("JSON"))
    }

    #[test]
    fn a_field_is_named_in_the_message_and_in_the_details() {
        let body = |name: &str, problem: &str| {
            json!({"error": {
                "code": "invalid_input",
                "message": format!("invalid input in field '{name}': {problem}"),
                "details": {"fields": [{"name": name, "messages": [problem]}]},
            }})
        };
        assert_eq!(seen(field("name", "is too long")), (422, body("name", "is too long")));
        let number = Error::Number { parameter: "per_page".to_owned(), most: Some(50) };
        assert_eq!(seen(number), (422, body("per_page", "must be a number, from 1 to 50")));
    }

    #[test]
    fn a_fault_has_the_code_of_its_status() {
        for (status, code) in [
            (429, "rate_limit_exceeded"),
            (502, "bad_gateway"),
            (500, "server_error"),
            (418, "invalid_input"),
        ] {
            let (seen, body) = seen(Error::Denied(Denial::Fault { status, retry_after_s: None }));
            assert_eq!((seen, body["error"]["code"].as_str()), (status, Some(code)));
        }
    }
}
