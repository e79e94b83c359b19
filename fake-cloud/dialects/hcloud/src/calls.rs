//! The common parts of all calls: their query and body are read first, errors get the dialect's form, and
//! changes begin actions.

use super::clock::Clock;
use super::errors;
use super::query::{Query, is_label_key, is_label_value};
use fake_cloud_kit::{self as kit, Answer, Body, Call, Error, Plan, Request, Voice};
use fake_cloud_model::{Action, Cloud};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// The time when a call takes effect.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub(super) clock: Clock,
    pub(super) time: Duration,
}

impl Now {
    /// The time in the API's form.
    pub(super) fn text(self) -> String {
        self.clock.text(self.time)
    }
}

impl Voice for Clock {
    fn answer(&self, result: Result<Answer, Error>) -> Answer {
        result.unwrap_or_else(errors::shown)
    }
}

/// Like [`kit::planned`], with the time of this API.
pub(super) fn planned<F>(clock: Clock, call: Call, query: Query, run: F) -> Plan
where
    F: FnOnce(&Query, &mut Cloud, Now) -> Result<Answer, Error> + Send + 'static,
{
    kit::planned(&clock, call, query, |clock, query, cloud, time| {
        run(query, cloud, Now { clock: *clock, time })
    })
}

/// Like [`kit::planned_with`], with the time of this API.
pub(super) fn planned_with<T, F>(clock: Clock, call: Call, request: &Request, body: Body<T>, run: F) -> Plan
where
    T: Send + 'static,
    F: FnOnce(T, &mut Cloud, Now) -> Result<Answer, Error> + Send + 'static,
{
    kit::planned_with(&clock, call, request, body, |clock, body, cloud, time| {
        run(body, cloud, Now { clock: *clock, time })
    })
}

/// A reference to an object in a body, by number or by name.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum IdOrName {
    /// Its id.
    Id(u64),
    /// Its name, or its id as text.
    Name(String),
}

impl IdOrName {
    pub(super) fn is(&self, id: u64, name: &str) -> bool {
        match self {
            IdOrName::Id(wanted) => *wanted == id,
            IdOrName::Name(wanted) => wanted == name || *wanted == id.to_string(),
        }
    }
}

impl std::fmt::Display for IdOrName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            IdOrName::Id(id) => write!(f, "{id}"),
            IdOrName::Name(name) => write!(f, "{name:.80}"),
        }
    }
}

/// An id of the model as a number; 0 for an id that a test has invented.
pub(super) fn number(id: &str) -> u64 {
    id.parse().unwrap_or_default()
}

/// Checks the name of a new object.
pub(super) fn check_name(name: &str) -> Result<(), Error> {
    const LONGEST_CHARS: usize = 255;
    match name {
        "" => Err(errors::missing("name")),
        long if long.chars().nth(LONGEST_CHARS).is_some() => Err(errors::field("name", "is too long")),
        odd if odd.chars().any(char::is_control) => Err(errors::field("name", "has an invalid character")),
        _ => Ok(()),
    }
}

/// Checks labels.
pub(super) fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), Error> {
    match labels.iter().find(|(key, value)| !is_label_key(key) || !is_label_value(value)) {
        None => Ok(()),
        Some((key, _)) => Err(errors::field(&format!("labels.{key:.80}"), "is not a valid label")),
    }
}

/// An action as the API shows it.
#[derive(Serialize)]
pub(super) struct ShownAction {
    id: u64,
    command: String,
    status: &'static str,
    progress: u64,
    started: String,
    finished: Option<String>,
    resources: Vec<ShownResource>,
    error: Option<ShownError>,
}

#[derive(Serialize)]
struct ShownResource {
    id: u64,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Serialize)]
struct ShownError {
    code: String,
    message: &'static str,
}

/// The status of an action in the API's words.
pub(super) fn status_of(action: &Action, now: Now) -> &'static str {
    match (&action.error, action.runs(now.time)) {
        (_, true) => "running",
        (None, false) => "success",
        (Some(_), false) => "error",
    }
}

/// An action in the form that is shown.
pub(super) fn show_action(action: &Action, now: Now) -> ShownAction {
    let runs = action.runs(now.time);
    ShownAction {
        id: number(&action.id),
        command: action.command.clone(),
        status: status_of(action, now),
        progress: action.progress(now.time),
        started: now.clock.text(action.started),
        finished: (!runs).then(|| now.clock.text(action.ends)),
        resources: action
            .resources
            .iter()
            .map(|(kind, id)| ShownResource { id: number(id), kind: kind.clone() })
            .collect(),
        error: action
            .error
            .as_ref()
            .filter(|_| !runs)
            .map(|code| ShownError { code: code.clone(), message: "as the test has ordered" }),
    }
}

/// Changes an object with a new action, unless another action is running on it. Answers with the new action.
pub(super) fn act(
    cloud: &mut Cloud,
    now: Now,
    command: &str,
    resources: Vec<(String, String)>,
    change: impl FnOnce(&mut Cloud) -> Result<(), Error>,
) -> Result<ShownAction, Error> {
    let (kind, id) = resources.first().cloned().unwrap_or_default();
    if cloud.actions().any(|action| action.runs(now.time) && action.concerns(&kind, &id)) {
        return Err(errors::locked());
    }
    let failure = cloud.take_action_failure();
    if failure.is_none() {
        change(cloud)?;
    }
    Ok(show_action(cloud.begin_action(command, resources, failure, (now.time, now.time)), now))
}

/// The answer to a change with an action.
pub(super) fn changed(action: &ShownAction) -> Answer {
    Answer::one(201, "action", action)
}
