//! The row of a Pod, computed from the states of its containers.

use serde_json::{Value, json};

use super::age::age;
use embedded_objects::kinds::Kind;
use embedded_objects::value::PathAccess as _;

const NONE: &str = "<none>";

/// The conditions of the row of a Pod that has ended.
pub(super) fn finished(kind: &Kind, object: &Value) -> Option<Value> {
    let message = match (kind.kind, object.text("status.phase")) {
        ("Pod", "Succeeded") => "The pod has completed successfully.",
        ("Pod", "Failed") => "The pod failed.",
        _ => return None,
    };
    let reason = object.text("status.phase");
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

/// The counts over all containers.
struct Tally {
    reason: String,
    ready: usize,
    restarts: i64,
    last_restart: String,
}

impl Tally {
    fn restart(&mut self, container: &Value) {
        self.restarts += container.int("restartCount");
        let ended = container.text("lastState.terminated.finishedAt");
        if ended > self.last_restart.as_str() {
            ended.clone_into(&mut self.last_restart);
        }
    }
}

fn condition<'a>(pod: &'a Value, kind: &str) -> Option<&'a Value> {
    pod.list("status.conditions").iter().find(|condition| condition.text("type") == kind)
}

fn is_true(pod: &Value, kind: &str) -> bool {
    condition(pod, kind).is_some_and(|condition| condition.text("status") == "True")
}

/// The word for a container that has ended.
fn ended(terminated: &Value) -> String {
    match (terminated.text("reason"), terminated.int("signal")) {
        ("", 0) => format!("ExitCode:{}", terminated.int("exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

/// The cells of a Pod's row.
pub(super) fn cells(pod: &Value, now: &str) -> Vec<Value> {
    let sidecars: Vec<&str> = pod
        .list("spec.initContainers")
        .iter()
        .filter(|container| container.text("restartPolicy") == "Always")
        .map(|container| container.text("name"))
        .collect();
    let phase = pod.text("status.phase");
    let reason = match pod.text("status.reason") {
        "" => phase,
        reason => reason,
    };
    let mut tally = Tally { reason: reason.to_owned(), ready: 0, restarts: 0, last_restart: String::new() };
    if condition(pod, "PodScheduled").is_some_and(|condition| condition.text("reason") == "SchedulingGated") {
        tally.reason = "SchedulingGated".to_owned();
    }
    let initializing = init_containers(pod, &sidecars, &mut tally);
    if !initializing || is_true(pod, "Initialized") {
        let statuses = pod.list("status.initContainerStatuses").iter();
        let kept = statuses.filter(|status| sidecars.contains(&status.text("name")));
        (tally.restarts, tally.last_restart) = (0, String::new());
        for status in kept {
            tally.restart(status);
        }
        containers(pod, &mut tally);
    }
    if pod.has("metadata.deletionTimestamp") {
        if pod.text("status.reason") == "NodeLost" {
            tally.reason = "Unknown".to_owned();
        } else if !matches!(phase, "Succeeded" | "Failed") {
            tally.reason = "Terminating".to_owned();
        }
    }
    let restarts = if tally.restarts != 0 && !tally.last_restart.is_empty() {
        format!("{} ({} ago)", tally.restarts, age(&tally.last_restart, now))
    } else {
        tally.restarts.to_string()
    };
    let total = pod.list("spec.containers").len() + sidecars.len();
    let or_none = |text: &str| json!(if text.is_empty() { NONE } else { text });
    let ip = pod.list("status.podIPs").first().map(|ip| ip.text("ip")).unwrap_or_default();
    vec![
        json!(pod.text("metadata.name")),
        json!(format!("{}/{total}", tally.ready)),
        json!(tally.reason),
        json!(restarts),
        json!(age(pod.text("metadata.creationTimestamp"), now)),
        or_none(ip),
        or_none(pod.text("spec.nodeName")),
        or_none(pod.text("status.nominatedNodeName")),
        json!(gates(pod)),
    ]
}

/// Counts the init containers up to the first that has not ended; returns whether there is one.
fn init_containers(pod: &Value, sidecars: &[&str], tally: &mut Tally) -> bool {
    for (at, container) in pod.list("status.initContainerStatuses").iter().enumerate() {
        tally.restart(container);
        let terminated = container.at("state.terminated");
        let waiting = container.text("state.waiting.reason");
        if !terminated.is_null() && terminated.int("exitCode") == 0 {
            continue;
        }
        if sidecars.contains(&container.text("name")) && container.truth("started") {
            tally.ready += usize::from(container.truth("ready"));
            continue;
        }
        tally.reason = if !terminated.is_null() {
            format!("Init:{}", ended(terminated))
        } else if !waiting.is_empty() && waiting != "PodInitializing" {
            format!("Init:{waiting}")
        } else {
            format!("Init:{at}/{}", pod.list("spec.initContainers").len())
        };
        return true;
    }
    false
}

fn containers(pod: &Value, tally: &mut Tally) {
    let (mut running, mut failed) = (false, String::new());
    for container in pod.list("status.containerStatuses").iter().rev() {
        tally.restart(container);
        let terminated = container.at("state.terminated");
        let waiting = container.text("state.waiting.reason");
        if !waiting.is_empty() {
            waiting.clone_into(&mut tally.reason);
        } else if !terminated.is_null() {
            tally.reason = ended(terminated);
            if terminated.int("exitCode") != 0 {
                tally.reason.clone_into(&mut failed);
            }
        } else if container.truth("ready") && container.has("state.running") {
            running = true;
            tally.ready += 1;
        }
    }
    if tally.reason == "Completed" {
        if running && is_true(pod, "Ready") {
            tally.reason = "Running".to_owned();
        } else if !failed.is_empty() {
            tally.reason = failed;
        } else if running {
            tally.reason = "NotReady".to_owned();
        }
    }
}

fn gates(pod: &Value) -> String {
    let gates = pod.list("spec.readinessGates");
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let open = gates.iter().filter(|gate| is_true(pod, gate.text("conditionType"))).count();
    format!("{open}/{}", gates.len())
}
