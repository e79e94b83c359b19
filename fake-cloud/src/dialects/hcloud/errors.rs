//! Errors of the `hcloud` dialect: a code in words, which clients look at rather than at the status.

use super::super::{Answer, Denial};
use crate::model::Refusal;
use hyper::header::RETRY_AFTER;
use serde_json::{Value, json};

/// Why a call is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fail {
    status: u16,
    code: &'static str,
    message: String,
    details: Value,
}

impl Fail {
    pub(super) fn new(status: u16, code: &'static str, message: impl Into<String>) -> Fail {
        Fail { status, code, message: message.into(), details: json!({}) }
    }

    /// There is no such object.
    pub(super) fn not_found(kind: &str, id: impl std::fmt::Display) -> Fail {
        let message = format!("{kind} with ID '{id:.40}' not found");
        Fail::new(404, "not_found", message)
    }

    /// A field that is not as it should be.
    pub(super) fn field(name: &str, problem: &str) -> Fail {
        Fail {
            status: 422,
            code: "invalid_input",
            message: format!("invalid input in field '{name}': {problem}"),
            details: json!({"fields": [{"name": name, "messages": [problem]}]}),
        }
    }

    /// A field that has to be there.
    pub(super) fn missing(name: &str) -> Fail {
        Fail::field(name, "Missing data for required field.")
    }

    /// The name is somebody else's.
    pub(super) fn taken(name: &str) -> Fail {
        let mut fail = Fail::new(409, "uniqueness_error", format!("name '{name:.80}' is already used"));
        fail.details = json!({"fields": [{"name": "name"}]});
        fail
    }

    /// The object cannot be changed as long as an action runs on it.
    pub(super) fn locked() -> Fail {
        Fail::new(423, "locked", "the resource is locked: another action is running")
    }

    /// More than there may be.
    pub(super) fn limit(message: impl Into<String>) -> Fail {
        Fail::new(403, "resource_limit_exceeded", message)
    }

    /// A body that is not what was asked for.
    pub(super) fn body(error: &serde_json::Error) -> Fail {
        let text = error.to_string();
        match error.classify() {
            serde_json::error::Category::Data => Fail {
                details: json!({"fields": [{"name": field_in(&text), "messages": [text]}]}),
                ..Fail::new(422, "invalid_input", format!("invalid input: {text}"))
            },
            _ => Fail::new(400, "json_error", format!("the body is no JSON: {text}")),
        }
    }

    pub(super) fn answer(&self) -> Answer {
        error(self.status, self.code, &self.message, &self.details)
    }
}

/// The field an error of the parser is about, where it says so.
fn field_in(text: &str) -> &str {
    text.split('`').nth(1).filter(|_| text.contains("field `")).unwrap_or("body")
}

impl From<Refusal> for Fail {
    fn from(refusal: Refusal) -> Fail {
        match &refusal {
            Refusal::NotFound(_) => Fail::new(404, "not_found", refusal.to_string()),
            Refusal::Conflict(_) => Fail::new(409, "conflict", refusal.to_string()),
            Refusal::Invalid(_) => Fail::new(422, "invalid_input", refusal.to_string()),
        }
    }
}

fn error(status: u16, code: &str, message: &str, details: &Value) -> Answer {
    Answer::json(status, &json!({"error": {"code": code, "message": message, "details": details}}))
}

/// A refusal of the server.
pub(super) fn denied(denial: Denial) -> Answer {
    let none = json!({});
    match denial {
        Denial::Unauthenticated => error(401, "unauthorized", "unable to authenticate", &none),
        Denial::TooLarge { limit_bytes } => {
            error(413, "invalid_input", &format!("the body is longer than {limit_bytes} bytes"), &none)
        }
        Denial::Unknown { what } => error(501, "unsupported_error", &what, &none),
        Denial::Fault { status, retry_after_s } => {
            let answer = error(status, code(status), "as the test has ordered", &none);
            match retry_after_s {
                Some(seconds) => answer.with(RETRY_AFTER, seconds),
                None => answer,
            }
        }
    }
}

/// The code that usually comes with a status.
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

    fn shown(answer: &Answer) -> (u16, Value) {
        (answer.status.as_u16(), serde_json::from_slice(&answer.body).expect("JSON"))
    }

    #[test]
    fn a_field_is_named_in_the_message_and_in_the_details() {
        let body = json!({"error": {
            "code": "invalid_input",
            "message": "invalid input in field 'name': is too long",
            "details": {"fields": [{"name": "name", "messages": ["is too long"]}]},
        }});
        assert_eq!(shown(&Fail::field("name", "is too long").answer()), (422, body));
    }

    #[test]
    fn a_fault_has_the_code_of_its_status() {
        for (status, code) in [
            (429, "rate_limit_exceeded"),
            (502, "bad_gateway"),
            (500, "server_error"),
            (418, "invalid_input"),
        ] {
            let (seen, body) = shown(&denied(Denial::Fault { status, retry_after_s: None }));
            assert_eq!((seen, body["error"]["code"].as_str()), (status, Some(code)));
        }
    }
}
