//! Errors of the `native` dialect: one form for all.

use super::super::{Answer, Denial};
use crate::model::Refusal;
use hyper::header::RETRY_AFTER;
use serde::Serialize;

#[derive(Serialize)]
struct Body<'a> {
    error: Words<'a>,
}

#[derive(Serialize)]
struct Words<'a> {
    code: &'a str,
    message: &'a str,
}

/// An error with the code that belongs to its status.
pub(super) fn error(status: u16, message: &str) -> Answer {
    Answer::json(status, &Body { error: Words { code: code(status), message } })
}

/// A refusal of the model.
pub(super) fn refused(refusal: &Refusal) -> Answer {
    let status = match refusal {
        Refusal::NotFound(_) => 404,
        Refusal::Conflict(_) => 409,
        Refusal::Invalid(_) => 422,
    };
    error(status, &refusal.to_string())
}

/// A refusal of the server.
pub(super) fn denied(denial: Denial) -> Answer {
    match denial {
        Denial::Unauthenticated => error(401, "the token is missing or unknown"),
        Denial::TooLarge { limit_bytes } => {
            error(413, &format!("the body is longer than {limit_bytes} bytes"))
        }
        Denial::Unknown { what } => error(501, &what),
        Denial::Fault { status, retry_after_s } => {
            let answer = error(status, "as the test has ordered");
            match retry_after_s {
                Some(seconds) => answer.with(RETRY_AFTER, seconds),
                None => answer,
            }
        }
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
