//! Operations: actions of the model, which a client waits for. Each change is answered with one.

use super::errors::{Google, not_found};
use super::names::{CREATED, PROJECT, Scope, link, number, project_link, short};
use super::query::query;
use fake_cloud_driver::Op;
use fake_cloud_kit::{Answer, Call, Plan, Request, planned};
use fake_cloud_model::{Action, Cloud};
use serde_json::{Value, json};
use std::time::Duration;

/// What the names of operations begin with.
const PREFIX: &str = "operation-";
/// The user that has begun all operations.
const USER: &str = "cloud-controller-manager@conformance-project.iam.gserviceaccount.com";

/// What an operation does: its type (`insert`, `delete`, ..), and the place and link of its target.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) verb: &'static str,
    pub(super) scope: Scope,
    pub(super) target: String,
}

impl Change {
    pub(super) fn of(verb: &'static str, scope: &Scope, collection: &str, name: &str) -> Change {
        Change { verb, scope: scope.clone(), target: link(scope, collection, name) }
    }
}

/// The answer to a change: its operation, which has failed if there is a `failure`, and otherwise is not over before
/// `until`.
pub(super) fn began(
    cloud: &mut Cloud,
    change: &Change,
    failure: Option<String>,
    (now, until): (Duration, Duration),
) -> Answer {
    let resources = vec![(change.scope.path(), change.target.clone())];
    let action = cloud.begin_action(change.verb, resources, failure, (now, until)).clone();
    Answer::json(200, &shown(&action, &change.scope, now))
}

/// The plan of a call that reads an operation, or waits for it. Waiting is answered at once, which the API allows: the
/// caller has to look at the status in any case.
pub(super) fn get(request: &Request, scope: Scope, name: &str) -> Plan {
    let name = name.to_owned();
    planned(&Google, Call::new(Op::Other), query(request), move |_, _, cloud, now| {
        let missing = || not_found(&short(&scope, "operations", &name));
        let action = name.strip_prefix(PREFIX).and_then(|id| cloud.action(id)).ok_or_else(missing)?;
        if action.resources.first().map(|(place, _)| place.as_str()) != Some(scope.path().as_str()) {
            return Err(missing());
        }
        Ok(Answer::json(200, &shown(action, &scope, now)))
    })
}

fn shown(action: &Action, scope: &Scope, now: Duration) -> Value {
    let name = format!("{PREFIX}{}", action.id);
    let target = action.resources.first().map(|(_, target)| target.clone()).unwrap_or_default();
    let over = !action.runs(now);
    let mut shown = json!({
        "kind": "compute#operation",
        "id": action.id,
        "name": name,
        "operationType": action.command,
        "targetLink": target,
        "targetId": number(&target).to_string(),
        "user": USER,
        "status": if over { "DONE" } else { "RUNNING" },
        "progress": action.progress(now),
        "insertTime": CREATED,
        "startTime": CREATED,
        "selfLink": link(scope, "operations", &name),
    });
    match scope {
        Scope::Global => {}
        Scope::Region(region) => shown["region"] = json!(project_link(&format!("/regions/{region}"))),
        Scope::Zone(zone) => shown["zone"] = json!(project_link(&format!("/zones/{zone}"))),
    }
    if over {
        shown["endTime"] = json!(CREATED);
        if let Some(code) = &action.error {
            let message = format!("The operation in project {PROJECT} failed with the code {code}.");
            shown["error"] = json!({"errors": [{"code": code, "message": message}]});
            shown["httpErrorStatusCode"] = json!(400);
            shown["httpErrorMessage"] = json!("BAD REQUEST");
        }
    }
    shown
}
