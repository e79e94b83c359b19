//! What this dialect keeps besides the model: when it began, the rate limit, and what it has shown.

use super::errors;
use super::headers::RateLimit;
use fake_cloud_driver::{Instance, LoadBalancer};
use fake_cloud_kit::{Answer, Error, SharedVoice, Texts};
use jiff::Timestamp;

/// What is kept.
#[derive(Debug)]
pub(super) struct State {
    started: String,
    limit: RateLimit,
    /// Droplets as they were shown.
    pub(super) droplets: Texts<Instance>,
    /// Load balancers as they were shown.
    pub(super) load_balancers: Texts<LoadBalancer>,
}

impl State {
    pub(super) fn new() -> State {
        State {
            started: time_text(Timestamp::now()),
            limit: RateLimit::default(),
            droplets: Texts::default(),
            load_balancers: Texts::default(),
        }
    }

    /// When the cloud began, as the API writes times. Droplets are as old as the cloud.
    pub(super) fn started(&self) -> &str {
        &self.started
    }

    /// The time, as the API writes it.
    pub(super) fn now(&self) -> String {
        time_text(Timestamp::now())
    }
}

impl SharedVoice for State {
    fn answer(&self, result: Result<Answer, Error>) -> Answer {
        self.limit.answer(|headers| result.unwrap_or_else(|error| errors::shown(&error, headers)))
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
    fn times_have_seconds_and_a_z() {
        let time = Timestamp::from_millisecond(1_767_323_045_678).expect("in range");
        assert_eq!(time_text(time), "2026-01-02T03:04:05Z");
    }
}
