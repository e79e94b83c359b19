//! Operations: work that a call has begun and that fails. Work that succeeds is done when the call is answered.

use super::errors::Native;
use super::queries::none;
use fake_cloud_driver::Op;
use fake_cloud_kit::{Answer, Call, Error, Plan, Request, planned};
use fake_cloud_model::{Action, Cloud};
use serde::Serialize;
use std::time::Duration;

#[derive(Serialize)]
struct Operation<'a> {
    id: &'a str,
    state: &'static str,
    error: Option<Words<'a>>,
}

#[derive(Serialize)]
struct Words<'a> {
    code: &'a str,
    message: &'static str,
}

/// An operation in the form that callers see.
fn shown(status: u16, action: &Action, now: Duration) -> Answer {
    let error = action.error.as_deref().filter(|_| !action.runs(now));
    let error = error.map(|code| Words { code, message: "as the test has ordered" });
    let state = match (&error, action.runs(now)) {
        (_, true) => "running",
        (Some(_), false) => "failed",
        (None, false) => "done",
    };
    Answer::one(status, "operation", &Operation { id: &action.id, state, error })
}

/// The plan of a call that changes something: it runs `change`, unless a fault says that the call is accepted
/// and then fails.
pub(super) fn changing<F>(request: &Request, call: Call, change: F) -> Plan
where
    F: FnOnce(&mut Cloud, Duration) -> Result<Answer, Error> + Send + 'static,
{
    planned(&Native, call, none(request), move |_, _, cloud, now| match cloud.take_action_failure() {
        None => change(cloud, now),
        Some(code) => Ok(shown(202, cloud.begin_action("change", Vec::new(), Some(code), (now, now)), now)),
    })
}

pub(super) fn get(request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(&Native, Call::on(Op::Other, &id), none(request), move |_, _, cloud, now| {
        let unknown = || Error::new(404, format!("operation {id:.40} does not exist"));
        Ok(shown(200, cloud.action(&id).ok_or_else(unknown)?, now))
    })
}
