//! `pods/log`: the output of a container, from the component that runs the containers.

use std::convert::Infallible;

use bytes::Bytes;
use embedded_objects::kinds::Kind;
use embedded_objects::status::{self, Status};
use futures::stream::{self, StreamExt as _};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::sync::watch;

use crate::http::call::Call;
use crate::http::closed;
use crate::http::reply::{Content, Outcome, Reply, TEXT};
use embedded_state::query::Query;
use embedded_state::{Container, Followed, LogLine};

/// Answers with the container's lines; the parameters are those of `PodLogOptions` without `stream`.
///
/// # Errors
///
/// The messages of a real API server and its kubelet for a container that is not named, unknown, or has no log.
pub(crate) fn log(call: &Call, kind: &'static Kind) -> Outcome {
    let pod = call.api.find(kind, call.namespace_of(kind), call.name())?.value();
    let name = container_of(&pod, call.query.text("container"), call.name())?;
    let options = Options::parse(&call.query, call.clock.at).map_err(status::bad_request)?;
    let asked = Container { namespace: call.namespace(), pod: call.name(), name: &name };
    let previous = call.query.flag("previous") == Some(true);
    let source = call.api.logs.get();
    // A run that has ended has no further output.
    if call.query.flag("follow") == Some(true) && !previous {
        return match source.and_then(|source| source.follow(asked)) {
            Some(followed) => Ok(follow(options, followed, call.api.closing.clone())),
            None => none(&pod, asked, previous),
        };
    }
    match source.and_then(|source| source.lines(asked, previous)) {
        Some(lines) => Ok(Reply::text(Written::new(options).first(lines))),
        None => none(&pod, asked, previous),
    }
}

/// The answer for a container that has no log.
fn none(pod: &Value, container: Container<'_>, previous: bool) -> Outcome {
    let Container { pod: of, name, .. } = container;
    if previous {
        let why = format!("previous terminated container {name:?} in pod {of:?} not found");
        return Err(status::bad_request(why));
    }
    match waiting(pod, name) {
        Some(waits) => {
            let why = format!("container {name:?} in pod {of:?} is waiting to start: {waits}");
            Err(status::bad_request(why))
        }
        // The status says that it runs, but no component runs it: a simulated container has no output.
        None => Ok(Reply::text(Bytes::new())),
    }
}

/// Answers with the lines so far and with new ones, until the run ends.
fn follow(options: Options, followed: Followed, closing: watch::Receiver<bool>) -> Reply {
    let mut written = Written::new(options);
    let first = written.first(followed.kept);
    let state = (written, followed.coming, Some(first));
    let parts = stream::unfold(state, move |(mut written, mut coming, first)| {
        let mut closing = closing.clone();
        async move {
            let bytes = match first {
                Some(first) => first,
                None if written.is_full() => return None,
                None => tokio::select! {
                    () = closed(&mut closing) => return None,
                    lines = coming.next() => written.next(&lines?),
                },
            };
            Some((bytes, (written, coming, None)))
        }
    });
    let frames = parts
        .filter(|bytes| std::future::ready(!bytes.is_empty()))
        .map(|bytes| Ok::<_, Infallible>(Frame::data(Bytes::from(bytes))));
    let body = StreamBody::new(frames).boxed_unsync();
    Reply { code: 200, content: Content::Stream(TEXT.to_owned(), body), warnings: Vec::new() }
}

/// The requested part of a log.
struct Options {
    tail: Option<usize>,
    limit: Option<usize>,
    since: Option<Timestamp>,
    stamped: bool,
}

impl Options {
    fn parse(query: &Query, now: Timestamp) -> Result<Self, String> {
        let positive = |name: &str| query.number(name).map(|n| n.and_then(|n| usize::try_from(n).ok()));
        let since = match (query.number("sinceSeconds")?, query.text("sinceTime")) {
            (Some(seconds), _) => now.checked_sub(SignedDuration::from_secs(seconds)).ok(),
            (None, Some(time)) => Some(time.parse().map_err(|_| format!("sinceTime: not a time: {time:?}"))?),
            (None, None) => None,
        };
        Ok(Self {
            tail: positive("tailLines")?,
            limit: positive("limitBytes")?,
            since,
            stamped: query.flag("timestamps") == Some(true),
        })
    }
}

/// The text of a log, and how much of it was written.
struct Written {
    options: Options,
    bytes: usize,
}

impl Written {
    fn new(options: Options) -> Self {
        Self { options, bytes: 0 }
    }

    fn is_full(&self) -> bool {
        self.options.limit.is_some_and(|limit| self.bytes >= limit)
    }

    /// The lines so far, or only the last ones if their number is limited.
    fn first(&mut self, mut lines: Vec<LogLine>) -> Vec<u8> {
        if let Some(since) = self.options.since {
            lines.retain(|line| line.at >= since);
        }
        if let Some(tail) = self.options.tail {
            lines.drain(..lines.len().saturating_sub(tail));
        }
        self.next(&lines)
    }

    fn next(&mut self, lines: &[LogLine]) -> Vec<u8> {
        let text = |line: &LogLine| {
            if self.options.stamped { format!("{} {}", line.at, line.text) } else { line.text.clone() }
        };
        let mut bytes = lines.iter().map(text).collect::<String>().into_bytes();
        bytes.truncate(self.options.limit.map_or(usize::MAX, |limit| limit.saturating_sub(self.bytes)));
        self.bytes += bytes.len();
        bytes
    }
}

/// The container in question: the one in the request, otherwise the only one.
pub(super) fn container_of(pod: &Value, named: Option<&str>, pod_name: &str) -> Result<String, Status> {
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

/// Why a container has not started, as in its status; `None` if it has.
fn waiting(pod: &Value, name: &str) -> Option<String> {
    let all = ["containerStatuses", "initContainerStatuses"];
    let mut statuses = all.iter().flat_map(|field| pod["status"][*field].as_array().into_iter().flatten());
    let state = statuses.find(|status| status["name"] == name).map(|status| &status["state"]);
    match state.map(|state| (state["waiting"]["reason"].as_str(), state)) {
        Some((Some(reason), _)) => Some(reason.to_owned()),
        Some((None, state)) if state["running"].is_object() || state["terminated"].is_object() => None,
        _ => Some("ContainerCreating".to_owned()),
    }
}
