//! The state of this dialect in addition to the model: when the cloud began, and cached JSON.

use super::errors;
use fake_cloud_driver::{Instance, LoadBalancer};
use fake_cloud_kit::{Answer, Error, SharedVoice, Texts};
use jiff::Timestamp;

/// The state.
#[derive(Debug)]
pub(super) struct State {
    started: String,
    /// The cached JSON of instances.
    pub(super) instances: Texts<Instance>,
    /// The cached JSON of NodeBalancers.
    pub(super) balancers: Texts<LoadBalancer>,
}

impl State {
    pub(super) fn new() -> State {
        State {
            started: time_text(Timestamp::now()),
            instances: Texts::default(),
            balancers: Texts::default(),
        }
    }

    /// The time when the cloud began, in the API's form. Instances are as old as the cloud.
    pub(super) fn started(&self) -> &str {
        &self.started
    }

    /// The current time, in the API's form.
    pub(super) fn now(&self) -> String {
        time_text(Timestamp::now())
    }
}

impl SharedVoice for State {
    fn answer(&self, result: Result<Answer, Error>) -> Answer {
        result.unwrap_or_else(|error| errors::shown(&error))
    }
}

/// A time with whole seconds in UTC without a zone, as in `2026-01-02T03:04:05`.
fn time_text(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_no_zone() {
        let time = Timestamp::from_millisecond(1_767_323_045_678).expect("in range");
        assert_eq!(time_text(time), "2026-01-02T03:04:05");
    }
}
