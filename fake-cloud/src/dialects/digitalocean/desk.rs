//! What every answer carries: a request id, and how much of the hourly limit is left. The limit is counted but never
//! enforced: a test that wants a 429 orders one.

use super::super::{Answer, Texts};
use crate::admin::{Instance, LoadBalancer};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use jiff::Timestamp;
use std::sync::{Mutex, PoisonError};

/// Calls an account may make in an hour.
const HOURLY_LIMIT: u64 = 5000;
/// An hour, seconds.
const WINDOW_S: i64 = 3600;

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

/// Where answers go out, and what they have shown.
#[derive(Debug)]
pub(super) struct Desk {
    opened: String,
    counts: Mutex<Counts>,
    /// Droplets as they were shown.
    pub(super) droplets: Texts<Instance>,
    /// Load balancers as they were shown.
    pub(super) load_balancers: Texts<LoadBalancer>,
}

#[derive(Debug, Default)]
struct Counts {
    answers: u64,
    /// Answers in this window.
    window: u64,
    /// When this window is over, Unix seconds.
    window_ends_s: i64,
}

/// What one answer is given.
#[derive(Clone, Debug)]
pub(super) struct Ticket {
    /// The id a user would quote to the vendor's support.
    pub(super) request_id: String,
    remaining: u64,
    reset_s: i64,
}

impl Desk {
    pub(super) fn open() -> Desk {
        Desk {
            opened: time_text(Timestamp::now()),
            counts: Mutex::default(),
            droplets: Texts::default(),
            load_balancers: Texts::default(),
        }
    }

    /// When the cloud began, as the API writes times. Droplets are as old as the cloud.
    pub(super) fn opened(&self) -> &str {
        &self.opened
    }

    /// The time, as the API writes it.
    pub(super) fn now(&self) -> String {
        time_text(Timestamp::now())
    }

    /// Has an answer made and gives it the headers that all answers have.
    pub(super) fn answer(&self, make: impl FnOnce(&Ticket) -> Answer) -> Answer {
        let ticket = self.ticket();
        let mut answer = make(&ticket);
        for (name, value) in &mut answer.headers {
            if *name == CONTENT_TYPE {
                *value = JSON;
            }
        }
        answer.headers.reserve(4);
        let answer = answer.with(LIMIT, HOURLY_LIMIT).with(REMAINING, ticket.remaining);
        let answer = answer.with(RESET, ticket.reset_s);
        match HeaderValue::from_str(&ticket.request_id) {
            Ok(id) => answer.with(REQUEST_ID, id),
            // Digits and dashes always make a header; without one the answer is still an answer.
            Err(_) => answer,
        }
    }

    fn ticket(&self) -> Ticket {
        let now_s = Timestamp::now().as_second();
        // Counts are right whatever else happened to the call of somebody who panicked.
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if now_s >= counts.window_ends_s {
            counts.window = 0;
            counts.window_ends_s = now_s + WINDOW_S;
        }
        counts.answers += 1;
        counts.window += 1;
        Ticket {
            request_id: format!("0a115e7d-0000-8000-8000-{:012x}", counts.answers),
            remaining: HOURLY_LIMIT.saturating_sub(counts.window),
            reset_s: counts.window_ends_s,
        }
    }
}

/// Seconds in UTC, as in `2026-01-02T03:04:05Z`.
fn time_text(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_numbered_and_counted() {
        let desk = Desk::open();
        let header = |answer: &Answer, name: HeaderName| -> String {
            let found = answer.headers.iter().find(|(known, _)| *known == name).expect("the header");
            found.1.to_str().expect("text").to_owned()
        };
        let first = desk.answer(|_| Answer::json(200, &1));
        let second = desk.answer(|_| Answer::empty(204));
        assert_eq!((header(&first, LIMIT), header(&first, REMAINING)), ("5000".into(), "4999".into()));
        assert_eq!(header(&second, REMAINING), "4998");
        assert_eq!(header(&first, RESET), header(&second, RESET));
        assert_ne!(header(&first, REQUEST_ID), header(&second, REQUEST_ID));
        assert_eq!(header(&first, CONTENT_TYPE), "application/json; charset=utf-8");
        assert!(!second.headers.iter().any(|(name, _)| *name == CONTENT_TYPE));
    }

    #[test]
    fn times_have_seconds_and_a_z() {
        let time = Timestamp::from_millisecond(1_767_323_045_678).expect("in range");
        assert_eq!(time_text(time), "2026-01-02T03:04:05Z");
    }
}
