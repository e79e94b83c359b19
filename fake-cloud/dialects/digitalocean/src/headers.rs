//! The headers of every answer: a request id, and how much of the hourly rate limit is left. The limit is
//! counted but never enforced: a test that needs a 429 injects a fault.

use fake_cloud_kit::Answer;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use jiff::Timestamp;
use std::sync::{Mutex, PoisonError};

/// The number of calls that an account may make in an hour.
const HOURLY_LIMIT: u64 = 5000;
/// An hour in seconds.
const WINDOW_S: i64 = 3600;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

/// Counts calls.
#[derive(Debug, Default)]
pub(super) struct RateLimit(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    answers: u64,
    /// The number of answers in this window.
    window: u64,
    /// The end of this window, in Unix seconds.
    window_ends_s: i64,
}

/// The headers of one answer.
#[derive(Clone, Debug)]
pub(super) struct Headers {
    /// The id that a user would give to the vendor's support.
    pub(super) request_id: String,
    left: u64,
    reset_s: i64,
}

impl RateLimit {
    /// Makes an answer and adds the headers that all answers have.
    pub(super) fn answer(&self, make: impl FnOnce(&Headers) -> Answer) -> Answer {
        let headers = self.count();
        let mut answer = make(&headers);
        for (name, value) in &mut answer.headers {
            if *name == CONTENT_TYPE {
                *value = JSON;
            }
        }
        let answer = answer.rate_limited(HOURLY_LIMIT, headers.left, headers.reset_s);
        match HeaderValue::from_str(&headers.request_id) {
            Ok(id) => answer.with(REQUEST_ID, id),
            // Digits and dashes are always valid in a header; without the header the answer is still usable.
            Err(_) => answer,
        }
    }

    fn count(&self) -> Headers {
        let now_s = Timestamp::now().as_second();
        // The counts are correct even if another call has panicked.
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if now_s >= counts.window_ends_s {
            counts.window = 0;
            counts.window_ends_s = now_s + WINDOW_S;
        }
        counts.answers += 1;
        counts.window += 1;
        Headers {
            request_id: format!("0a115e7d-0000-8000-8000-{:012x}", counts.answers),
            left: HOURLY_LIMIT.saturating_sub(counts.window),
            reset_s: counts.window_ends_s,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_numbered_and_counted() {
        let limit = RateLimit::default();
        let header = |answer: &Answer, name: &str| -> String {
            let found = answer.headers.iter().find(|(known, _)| known == name).expect("the header");
            found.1.to_str().expect("text").to_owned()
        };
        let first = limit.answer(|_| Answer::json(200, &1));
        let second = limit.answer(|_| Answer::empty(204));
        assert_eq!(header(&first, "ratelimit-limit"), "5000");
        assert_eq!(header(&first, "ratelimit-remaining"), "4999");
        assert_eq!(header(&second, "ratelimit-remaining"), "4998");
        assert_eq!(header(&first, "ratelimit-reset"), header(&second, "ratelimit-reset"));
        assert_ne!(header(&first, "x-request-id"), header(&second, "x-request-id"));
        assert_eq!(header(&first, "content-type"), "application/json; charset=utf-8");
        assert!(!second.headers.iter().any(|(name, _)| *name == CONTENT_TYPE));
    }
}
