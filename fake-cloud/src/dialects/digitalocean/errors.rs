//! Errors of the `digitalocean` dialect: `{"id", "message", "request_id"}`, where `id` follows from the status.

use super::super::{Answer, Denial};
use super::desk::Ticket;
use crate::model::Refusal;
use hyper::header::RETRY_AFTER;
use serde::Serialize;
use std::borrow::Cow;

/// Why a call is not answered as the caller hoped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    status: u16,
    message: Cow<'static, str>,
}

impl Trouble {
    pub(super) fn new(status: u16, message: impl Into<Cow<'static, str>>) -> Trouble {
        Trouble { status, message: message.into() }
    }

    /// What was asked for makes no sense.
    pub(super) fn invalid(message: impl Into<Cow<'static, str>>) -> Trouble {
        Trouble::new(422, message)
    }

    /// There is no such thing.
    pub(super) fn not_found() -> Trouble {
        Trouble::new(404, "The resource you were accessing could not be found.")
    }

    /// What the caller sees of it.
    pub(super) fn answer(&self, ticket: &Ticket) -> Answer {
        let body = Body { id: id(self.status), message: &self.message, request_id: &ticket.request_id };
        Answer::json(self.status, &body)
    }
}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Trouble {
        match refusal {
            Refusal::NotFound(_) => Trouble::not_found(),
            Refusal::Conflict(text) | Refusal::Invalid(text) => Trouble::invalid(text),
        }
    }
}

impl From<serde_json::Error> for Trouble {
    fn from(error: serde_json::Error) -> Trouble {
        if error.is_data() {
            Trouble::invalid(format!("request payload validation failed: {error}"))
        } else {
            Trouble::new(400, format!("error parsing request body: {error}"))
        }
    }
}

#[derive(Serialize)]
struct Body<'a> {
    id: &'a str,
    message: &'a str,
    request_id: &'a str,
}

/// A refusal of the server.
pub(super) fn denied(denial: Denial, ticket: &Ticket) -> Answer {
    match denial {
        Denial::Unauthenticated => Trouble::new(401, "Unable to authenticate you").answer(ticket),
        Denial::TooLarge { limit_bytes } => {
            Trouble::new(413, format!("the body is longer than {limit_bytes} bytes")).answer(ticket)
        }
        Denial::Unknown { what } => Trouble::new(501, what).answer(ticket),
        Denial::Fault { status, retry_after_s } => {
            let answer = Trouble::new(status, fault_message(status)).answer(ticket);
            match retry_after_s {
                Some(seconds) => answer.with(RETRY_AFTER, seconds),
                None => answer,
            }
        }
    }
}

/// What the real API says with this status.
fn fault_message(status: u16) -> &'static str {
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
