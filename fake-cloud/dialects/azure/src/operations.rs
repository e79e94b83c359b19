//! Long-running operations: actions of the model, which a client follows with `Azure-AsyncOperation` or `Location`.

use super::errors::{Arm, no_part};
use super::names::{LOCATION, SUBSCRIPTION};
use super::query::query;
use fake_cloud_driver::Op;
use fake_cloud_kit::{Answer, Call, Plan, Request, planned};
use fake_cloud_model::Cloud;
use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue, LOCATION as LOCATION_HEADER};
use serde_json::{Value, json};
use std::time::Duration;

const ASYNC_OPERATION: HeaderName = HeaderName::from_static("azure-asyncoperation");
/// After how many seconds a client should ask again.
const RETRY_AFTER_S: u64 = 1;
/// The version in links to operations.
const VERSION: &str = "2024-05-01";

/// The answer to a change: the given one if its operation is over, otherwise one that leads to the operation.
/// `failure` is the code with which the operation fails; `until` is when it ends at the earliest.
pub(super) fn began(
    cloud: &mut Cloud,
    base: &str,
    command: &str,
    answer: Answer,
    failure: Option<String>,
    (now, until): (Duration, Duration),
) -> Answer {
    let failed = failure.is_some();
    let action = cloud.begin_action(command, Vec::new(), failure, (now, until));
    if !failed && !action.runs(now) {
        return answer;
    }
    let link = |kind: &str| {
        let text = format!(
            "{base}/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Network/locations/{LOCATION}/{kind}/{}?api-version={VERSION}",
            action.id
        );
        HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""))
    };
    let (operation, result) = (link("operations"), link("operationResults"));
    // A resource that was replaced keeps its 200; the end of a deletion is not known yet.
    let answer = match answer.status {
        StatusCode::OK | StatusCode::CREATED if !answer.body.is_empty() => updating(answer),
        _ => Answer::empty(202),
    };
    answer.with(ASYNC_OPERATION, operation).with(LOCATION_HEADER, result).retry_after(Some(RETRY_AFTER_S))
}

/// The same answer for a resource whose operation is not over: clients do not follow the operation of one whose state
/// is final.
fn updating(answer: Answer) -> Answer {
    let Ok(mut resource) = serde_json::from_slice::<Value>(&answer.body) else { return answer };
    resource["properties"]["provisioningState"] = json!("Updating");
    Answer { body: resource.to_string().into(), ..answer }
}

/// The status of an operation.
pub(super) fn status(request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(&Arm, Call::new(Op::Other), query(request), move |_, _, cloud, now| {
        let action = cloud.action(&id).ok_or_else(|| no_part(&id))?;
        if action.runs(now) {
            return Ok(Answer::json(200, &json!({"status": "InProgress"})).retry_after(Some(RETRY_AFTER_S)));
        }
        let status = match &action.error {
            None => json!({"status": "Succeeded"}),
            Some(code) => {
                let message = format!("The operation failed with the code {code}.");
                json!({"status": "Failed", "error": {"code": code, "message": message}})
            }
        };
        Ok(Answer::json(200, &status))
    })
}

/// The end of an operation: 202 until then, and 204 afterwards.
pub(super) fn result(request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(&Arm, Call::new(Op::Other), query(request), move |_, _, cloud, now| {
        let action = cloud.action(&id).ok_or_else(|| no_part(&id))?;
        let answer = if action.runs(now) {
            Answer::empty(202).retry_after(Some(RETRY_AFTER_S))
        } else {
            Answer::empty(204)
        };
        Ok(answer)
    })
}
