//! `pods/log`: what a container has written, from whoever runs the containers.

use embedded_semantics::kinds::Kind;
use embedded_semantics::status::{self, Status};
use jiff::SignedDuration;
use serde_json::Value;

use crate::http::call::Call;
use crate::http::reply::{Outcome, Reply};
use crate::logs::{Container, LogLine};

/// Answers with the container's lines; the parameters are those of `PodLogOptions` but `follow` and `stream`.
///
/// # Errors
///
/// The sentences a real API server and its kubelet give for a container that is not named, unknown, or has no log.
pub(crate) fn log(call: &Call, kind: &'static Kind) -> Outcome {
    let pod = call.api.find(kind, call.namespace_of(kind), call.name())?.value();
    let name = container_of(&pod, call.query.text("container"), call.name())?;
    if call.query.flag("follow") == Some(true) {
        return Err(status::bad_request(
            "following a log is not modelled by the embedded cluster; ask again",
        ));
    }
    let number = |name: &str| call.query.number(name).map_err(status::bad_request);
    let positive = |name: &str| number(name).map(|n| n.and_then(|n| usize::try_from(n).ok()));
    let (tail, limit, since) = (positive("tailLines")?, positive("limitBytes")?, number("sinceSeconds")?);
    let asked = Container { namespace: call.namespace(), pod: call.name(), name: &name };
    let previous = call.query.flag("previous") == Some(true);
    let Some(mut lines) = call.api.logs.get().and_then(|source| source.lines(asked, previous)) else {
        return Err(status::bad_request(if previous {
            format!("previous terminated container {name:?} in pod {:?} not found", call.name())
        } else {
            let waits = waiting(&pod, &name).unwrap_or_else(|| "ContainerCreating".to_owned());
            format!("container {name:?} in pod {:?} is waiting to start: {waits}", call.name())
        }));
    };
    if let Some(since) =
        since.and_then(|seconds| call.clock.at.checked_sub(SignedDuration::from_secs(seconds)).ok())
    {
        lines.retain(|line| line.at >= since);
    }
    if let Some(tail) = tail {
        lines.drain(..lines.len().saturating_sub(tail));
    }
    let stamped = call.query.flag("timestamps") == Some(true);
    let text =
        |line: &LogLine| if stamped { format!("{} {}", line.at, line.text) } else { line.text.clone() };
    let mut bytes = lines.iter().map(text).collect::<String>().into_bytes();
    bytes.truncate(limit.unwrap_or(usize::MAX));
    Ok(Reply::text(bytes))
}

/// The container that is meant: the one named, else the only one.
fn container_of(pod: &Value, named: Option<&str>, pod_name: &str) -> Result<String, Status> {
    let names = |field: &str| -> Vec<&str> {
        pod["spec"][field].as_array().into_iter().flatten().filter_map(|one| one["name"].as_str()).collect()
    };
    let (main, init) = (names("containers"), names("initContainers"));
    match (named, main.as_slice()) {
        (Some(named), _) if main.contains(&named) || init.contains(&named) => Ok(named.to_owned()),
        (Some(named), _) => {
            Err(status::bad_request(format!("container {named} is not valid for pod {pod_name}")))
        }
        (None, [only]) if init.is_empty() => Ok((*only).to_owned()),
        (None, _) => {
            let choose = format!(
                "a container name must be specified for pod {pod_name}, choose one of: [{}]",
                main.join(" ")
            );
            let choose = if init.is_empty() {
                choose
            } else {
                format!("{choose} or one of the init containers: [{}]", init.join(" "))
            };
            Err(status::bad_request(choose))
        }
    }
}

/// Why a container has not started, in the word of its status.
fn waiting(pod: &Value, name: &str) -> Option<String> {
    let statuses = pod["status"]["containerStatuses"].as_array()?;
    let status = statuses.iter().find(|status| status["name"] == name)?;
    status["state"]["waiting"]["reason"].as_str().map(str::to_owned)
}
