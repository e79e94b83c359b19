//! The API's times and its rate limit, which depend on when the cloud was started.

use fake_cloud_kit::Answer;
use jiff::{SignedDuration, Timestamp};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The number of calls per hour; one is added each second.
const LIMIT: u64 = 3600;

/// When the cloud was started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock(Timestamp);

impl Clock {
    pub(super) fn start() -> Clock {
        Clock(Timestamp::now())
    }

    /// A time of the model in the API's form, e.g. `2026-01-02T03:04:05+00:00`.
    pub(super) fn text(self, time: Duration) -> String {
        self.at(time).strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string()
    }

    /// The time this many days after a time of the model.
    pub(super) fn text_after_days(self, time: Duration, days: u64) -> String {
        self.text(time.saturating_add(Duration::from_secs(days * 24 * 60 * 60)))
    }

    fn at(self, time: Duration) -> Timestamp {
        let later = SignedDuration::try_from(time).ok().and_then(|time| self.0.checked_add(time).ok());
        later.unwrap_or(Timestamp::MAX)
    }
}

/// The number of calls that are left. It is only reported; to have a call rejected, a test injects a fault.
#[derive(Debug)]
pub(super) struct RateLimit(Mutex<(u64, u64)>);

impl RateLimit {
    pub(super) fn new() -> RateLimit {
        RateLimit(Mutex::new((LIMIT, 0)))
    }

    /// Counts a call and adds the rest to its answer.
    pub(super) fn count(&self, answer: Answer, clock: Clock, now: Duration) -> Answer {
        let left = {
            // Two numbers are never half written.
            let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let given_back = now.as_secs().saturating_sub(left.1);
            *left = (left.0.saturating_add(given_back).min(LIMIT).saturating_sub(1), now.as_secs());
            if answer.status.as_u16() == 429 { 0 } else { left.0 }
        };
        let full = clock.at(now.saturating_add(Duration::from_secs(LIMIT - left)));
        answer.rate_limited(LIMIT, left, full.as_second())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_the_api_does() {
        let clock = Clock("2026-01-02T03:04:05.678Z".parse().expect("a time"));
        assert_eq!(clock.text(Duration::ZERO), "2026-01-02T03:04:05+00:00");
        assert_eq!(clock.text(Duration::from_secs(60)), "2026-01-02T03:05:05+00:00");
        assert_eq!(clock.text_after_days(Duration::ZERO, 90), "2026-04-02T03:04:05+00:00");
        assert_eq!(clock.text(Duration::MAX), "9999-12-30T22:00:00+00:00");
    }

    #[test]
    fn remaining_calls_are_reported_and_refill() {
        let clock = Clock("2026-01-02T03:04:05Z".parse().expect("a time"));
        let limit = RateLimit::new();
        let count = |at: u64| {
            let answer = limit.count(Answer::empty(204), clock, Duration::from_secs(at));
            let texts: Vec<String> =
                answer.headers.iter().map(|(_, value)| value.to_str().expect("text").to_owned()).collect();
            texts
        };
        assert_eq!(count(0), ["3600", "3599", "1767323046"]);
        assert_eq!(count(0), ["3600", "3598", "1767323047"]);
        assert_eq!(count(1)[1], "3598");
        assert_eq!(count(100)[1], "3599");
    }
}
