//! A Pod's status as its kubelet posts it. Pure functions.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodCondition};
use serde_json::{Value, json};
use std::net::IpAddr;

/// How a run of a container ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) reason: String,
    pub(crate) message: Option<String>,
    pub(crate) started: Option<Timestamp>,
    pub(crate) finished: Timestamp,
    pub(crate) id: String,
}

/// The state of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Phase {
    Waiting { reason: String, message: Option<String> },
    Running { since: Timestamp, id: String },
    Ended(Ended),
}

/// One container as the status shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) name: String,
    pub(crate) image: String,
    pub(crate) phase: Phase,
    pub(crate) last: Option<Ended>,
    pub(crate) restarts: u32,
    pub(crate) started: bool,
    pub(crate) ready: bool,
}

/// The whole Pod at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) init: Vec<Shown>,
    pub(crate) containers: Vec<Shown>,
    /// The node's addresses: none, one, or one of each family; the first is `hostIP`.
    pub(crate) host_ips: Vec<IpAddr>,
    /// The Pod's own addresses, in the same order.
    pub(crate) pod_ips: Vec<IpAddr>,
    pub(crate) start: Timestamp,
    /// Whether ended containers are restarted.
    pub(crate) restarts: Restarts,
}

/// The Pod's `restartPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Restarts {
    Always,
    OnFailure,
    Never,
}

impl Restarts {
    pub(crate) fn of(pod: &Pod) -> Restarts {
        match pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()) {
            Some("Never") => Restarts::Never,
            Some("OnFailure") => Restarts::OnFailure,
            _ => Restarts::Always,
        }
    }

    /// Whether a container that ended with this code is restarted.
    pub(crate) fn again(self, code: i32) -> bool {
        match self {
            Restarts::Always => true,
            Restarts::OnFailure => code != 0,
            Restarts::Never => false,
        }
    }
}

/// Whether all init containers are done.
pub(crate) fn initialized(init: &[Shown]) -> bool {
    init.iter().all(|one| matches!(&one.phase, Phase::Ended(ended) if ended.code == 0))
}

/// Pending, Running, Succeeded or Failed.
pub(crate) fn phase(snapshot: &Snapshot) -> &'static str {
    let ended = |one: &Shown| match &one.phase {
        Phase::Ended(ended) => Some(ended.code),
        _ => None,
    };
    if snapshot.restarts == Restarts::Never && snapshot.init.iter().filter_map(ended).any(|code| code != 0) {
        return "Failed";
    }
    if !initialized(&snapshot.init) {
        return "Pending";
    }
    let codes: Vec<_> = snapshot.containers.iter().map(ended).collect();
    if !codes.is_empty() && codes.iter().all(|code| code.is_some_and(|code| !snapshot.restarts.again(code))) {
        return if codes.iter().all(|code| *code == Some(0)) { "Succeeded" } else { "Failed" };
    }
    let never_ran = |one: &Shown| matches!(one.phase, Phase::Waiting { .. }) && one.last.is_none();
    if snapshot.containers.iter().any(never_ran) { "Pending" } else { "Running" }
}

/// The status to post instead of the known one; conditions keep their transition times.
pub(crate) fn status(pod: &Pod, snapshot: &Snapshot, minor: u32, now: Timestamp) -> Value {
    let generation = pod.metadata.generation.filter(|_| minor >= 34);
    let phase = phase(snapshot);
    let mut status = json!({
        "observedGeneration": generation,
        "phase": phase,
        "startTime": text(snapshot.start),
        "conditions": conditions(pod, snapshot, phase, minor, now),
        "containerStatuses": snapshot.containers.iter().map(container).collect::<Vec<_>>(),
    });
    if !snapshot.init.is_empty() {
        status["initContainerStatuses"] = snapshot.init.iter().map(container).collect();
    }
    for (one, all, ips) in [("hostIP", "hostIPs", &snapshot.host_ips), ("podIP", "podIPs", &snapshot.pod_ips)]
    {
        if let Some(first) = ips.first() {
            status[one] = json!(first.to_string());
            status[all] = ips.iter().map(|ip| json!({"ip": ip.to_string()})).collect();
        }
    }
    status
}

fn conditions(pod: &Pod, snapshot: &Snapshot, phase: &str, minor: u32, now: Timestamp) -> Vec<Value> {
    let known = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let done = phase == "Succeeded";
    let generation = pod.metadata.generation.filter(|_| minor >= 34);
    let mut conditions = Conditions { known, done, now, generation, list: Vec::new() };
    if minor >= 29 {
        let mut all = snapshot.containers.iter().chain(&snapshot.init);
        let sandbox = all.any(|one| !matches!(&one.phase, Phase::Waiting { .. }) || one.last.is_some());
        conditions.add("PodReadyToStartContainers", sandbox && !done && phase != "Failed", None);
    }
    let incomplete = |one: &Shown| !initialized(std::slice::from_ref(one));
    let reason = || match done {
        true => ("PodCompleted", String::new()),
        false => (
            "ContainersNotInitialized",
            format!("containers with incomplete status: [{}]", names(&snapshot.init, incomplete)),
        ),
    };
    conditions.add("Initialized", !snapshot.init.iter().any(incomplete), Some(reason()));
    let all_ready = !snapshot.containers.is_empty() && snapshot.containers.iter().all(|one| one.ready);
    let unready = match done {
        true => ("PodCompleted", String::new()),
        false => (
            "ContainersNotReady",
            format!("containers with unready status: [{}]", names(&snapshot.containers, |one| !one.ready)),
        ),
    };
    if all_ready && !gates_open(pod, known) {
        let text = "the status of a readiness gate is not \"True\"".to_owned();
        conditions.add("Ready", false, Some(("ReadinessGatesNotReady", text)));
    } else {
        conditions.add("Ready", all_ready, Some(unready.clone()));
    }
    conditions.add("ContainersReady", all_ready, Some(unready));
    conditions.add("PodScheduled", true, None);
    conditions.list
}

/// The names of the containers for which `wanted` holds.
fn names(of: &[Shown], wanted: impl Fn(&Shown) -> bool) -> String {
    let names: Vec<&str> = of.iter().filter(|one| wanted(one)).map(|one| one.name.as_str()).collect();
    names.join(" ")
}

/// Whether all readiness gates of the Pod are true.
fn gates_open(pod: &Pod, known: &[PodCondition]) -> bool {
    let gates = pod.spec.as_ref().and_then(|spec| spec.readiness_gates.as_deref()).unwrap_or_default();
    gates.iter().all(|gate| known.iter().any(|one| one.type_ == gate.condition_type && one.status == "True"))
}

/// Collects the conditions of a Pod.
struct Conditions<'a> {
    /// The known conditions.
    known: &'a [PodCondition],
    /// Whether the Pod has succeeded.
    done: bool,
    now: Timestamp,
    generation: Option<i64>,
    list: Vec<Value>,
}

impl Conditions<'_> {
    /// Adds one; its reason is included if it is false, or if the Pod is done.
    fn add(&mut self, type_: &str, holds: bool, reason: Option<(&str, String)>) {
        let status = if holds { "True" } else { "False" };
        let same = self.known.iter().find(|one| one.type_ == type_ && one.status == status);
        let since = same.and_then(|one| one.last_transition_time.as_ref()).map_or(self.now, |time| time.0);
        let (reason, message) = match reason.filter(|_| !holds || self.done) {
            Some((reason, message)) => {
                (Some(reason.to_owned()), Some(message).filter(|text| !text.is_empty()))
            }
            None => (None, None),
        };
        self.list.push(json!({
            "type": type_, "status": status, "reason": reason, "message": message,
            "lastProbeTime": null, "lastTransitionTime": text(since), "observedGeneration": self.generation,
        }));
    }
}

fn container(one: &Shown) -> Value {
    let ended = |ended: &Ended| {
        json!({"terminated": {
            "exitCode": ended.code,
            "reason": ended.reason,
            "message": ended.message,
            "startedAt": ended.started.map(text),
            "finishedAt": text(ended.finished),
            "containerID": ended.id,
        }})
    };
    let state = match &one.phase {
        Phase::Waiting { reason, message } => json!({"waiting": {"reason": reason, "message": message}}),
        Phase::Running { since, .. } => json!({"running": {"startedAt": text(*since)}}),
        Phase::Ended(how) => ended(how),
    };
    let id = match (&one.phase, &one.last) {
        (Phase::Running { id, .. }, _) => Some(id.clone()),
        (Phase::Ended(ended), _) | (Phase::Waiting { .. }, Some(ended)) => Some(ended.id.clone()),
        (Phase::Waiting { .. }, None) => None,
    };
    json!({
        "name": one.name,
        "image": one.image,
        "imageID": if id.is_some() { format!("embedded://{}", one.image) } else { String::new() },
        "containerID": id,
        "state": state,
        "lastState": one.last.as_ref().map_or_else(|| json!({}), ended),
        "restartCount": one.restarts,
        "started": one.started,
        "ready": one.ready,
    })
}

/// Formats a time as the API does: whole seconds.
fn text(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(phase: Phase) -> Shown {
        Shown {
            name: "c".to_owned(),
            image: "i".to_owned(),
            phase,
            last: None,
            restarts: 0,
            started: false,
            ready: false,
        }
    }

    fn ended(code: i32) -> Phase {
        Phase::Ended(Ended {
            code,
            reason: "Error".to_owned(),
            message: None,
            started: None,
            finished: Timestamp::UNIX_EPOCH,
            id: String::new(),
        })
    }

    fn waiting() -> Phase {
        Phase::Waiting { reason: "ContainerCreating".to_owned(), message: None }
    }

    fn running() -> Phase {
        Phase::Running { since: Timestamp::UNIX_EPOCH, id: "x".to_owned() }
    }

    #[track_caller]
    fn check(init: Vec<Phase>, containers: Vec<Phase>, restarts: Restarts, expected: &str) {
        let snapshot = Snapshot {
            init: init.into_iter().map(shown).collect(),
            containers: containers.into_iter().map(shown).collect(),
            host_ips: Vec::new(),
            pod_ips: Vec::new(),
            start: Timestamp::UNIX_EPOCH,
            restarts,
        };
        assert_eq!(phase(&snapshot), expected);
    }

    #[test]
    fn phases_follow_the_containers() {
        check(vec![], vec![waiting()], Restarts::Always, "Pending");
        check(vec![], vec![running()], Restarts::Always, "Running");
        check(vec![], vec![ended(1)], Restarts::Always, "Running");
        check(vec![], vec![ended(0)], Restarts::OnFailure, "Succeeded");
        check(vec![], vec![ended(1), ended(0)], Restarts::Never, "Failed");
        check(vec![], vec![ended(0), running()], Restarts::Never, "Running");
        check(vec![running()], vec![waiting()], Restarts::Always, "Pending");
        check(vec![ended(1)], vec![waiting()], Restarts::Never, "Failed");
        check(vec![ended(0)], vec![running()], Restarts::Always, "Running");
    }

    #[test]
    fn readiness_names_the_containers_that_are_not() {
        let snapshot = Snapshot {
            init: vec![],
            containers: vec![shown(running())],
            host_ips: vec![IpAddr::from([10, 0, 0, 1]), IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 1])],
            pod_ips: Vec::new(),
            start: Timestamp::UNIX_EPOCH,
            restarts: Restarts::Always,
        };
        let mut pod = Pod::default();
        pod.metadata.generation = Some(3);
        let status = status(&pod, &snapshot, 36, Timestamp::UNIX_EPOCH);
        assert_eq!(status["observedGeneration"], 3);
        assert!(
            status["conditions"].as_array().expect("a list").iter().all(|one| one["observedGeneration"] == 3)
        );
        let ready =
            status["conditions"].as_array().and_then(|all| all.iter().find(|one| one["type"] == "Ready"));
        let ready = ready.expect("the condition is there");
        assert_eq!(ready["status"], "False");
        assert_eq!(ready["message"], "containers with unready status: [c]");
        assert_eq!(status["hostIP"], "10.0.0.1");
        assert_eq!(status["hostIPs"], json!([{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]));
        assert!(status["podIP"].is_null() && status["podIPs"].is_null());
        assert_eq!(status["startTime"], "1970-01-01T00:00:00Z");
    }
}
