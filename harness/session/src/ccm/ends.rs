//! How the programs of a Pod have exited so far, read from its status, and when to stop waiting for them. Pure functions.

use harness_clusters::images::IMAGE_REGISTRY;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStateTerminated, ContainerStatus, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How often a program may exit before it has worked, while the API server and the cloud answer. The first two restarts
/// happen within about ten seconds of the first start.
const ENDS_AT_START: u32 = 3;
/// Signals that end programs, by the exit codes from 128 on.
const SIGNALS: [(i32, &str); 13] = [
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (11, "SIGSEGV"),
    (13, "SIGPIPE"),
    (15, "SIGTERM"),
    (24, "SIGXCPU"),
    (31, "SIGSYS"),
];
/// Reasons that add no information to an exit code.
const PLAIN_REASONS: [&str; 3] = ["", "Error", "Completed"];

/// The last end of a container's program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramEnd {
    /// The Pod's uid.
    pub uid: String,
    /// The Pod's name.
    pub pod: String,
    /// The container.
    pub container: String,
    /// The image that the Pod names.
    pub image: String,
    /// How often its program has exited so far.
    pub ends: u32,
    /// How often it was restarted.
    pub restarts: u32,
    /// Its exit code; 128 plus the number of a signal if a signal ended it.
    pub exit_code: Option<i32>,
    /// The reason, if the kubelet reports a specific one: `OOMKilled`, `StartError`.
    pub reason: Option<String>,
    /// The message of the kubelet or the program itself.
    pub message: Option<String>,
    /// How long it ran, in whole seconds.
    pub ran_for: Option<Duration>,
}

impl fmt::Display for ProgramEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.exit_code {
            Some(code) => write!(f, "exit code {code}")?,
            None => f.write_str("an unknown exit code")?,
        }
        let signal = self.exit_code.and_then(signal_of);
        let more: Vec<&str> = signal.into_iter().chain(self.reason.as_deref()).collect();
        if !more.is_empty() {
            write!(f, " ({})", more.join(", "))?;
        }
        match self.ran_for {
            Some(time) => write!(f, " after {} s", time.as_secs()),
            None => Ok(()),
        }
    }
}

impl ProgramEnd {
    /// How often it was restarted, as text.
    pub fn restarted(&self) -> String {
        match self.restarts {
            1 => "restarted once so far".to_owned(),
            times => format!("restarted {times} times so far"),
        }
    }

    /// A question for the user after several ends. An image that the harness made of a program is not named: its name
    /// says nothing to a user.
    pub fn doubt(&self) -> String {
        let what = if self.is_of_a_program() { "the program" } else { self.image.as_str() };
        format!("is {what} the CCM that the profile describes?")
    }

    /// Whether the harness made the image of a program on this machine.
    fn is_of_a_program(&self) -> bool {
        self.image.starts_with(IMAGE_REGISTRY)
    }

    /// What exit codes of this kind usually mean, if that helps.
    pub fn hint(&self) -> Option<&'static str> {
        match self.exit_code {
            Some(127) if self.is_of_a_program() => Some(
                "127 usually means that the program, or the interpreter or dynamic loader that it needs, or for a script a \
                 command in it, does not exist. On the embedded cluster it sees the system's folders (/usr, /bin, /lib, /opt) \
                 and its own, but neither home folders nor /tmp ('ccm-conformance docs sandbox'): put what it needs next to it",
            ),
            Some(126) => Some(
                "126 usually means that the program cannot be executed: it is not executable, or is built for another \
                 architecture",
            ),
            Some(127) => Some(
                "127 usually means that the program, or the interpreter or dynamic loader that it needs, does not \
                 exist",
            ),
            _ => None,
        }
    }
}

fn signal_of(code: i32) -> Option<&'static str> {
    SIGNALS.iter().find(|(number, _)| code - 128 == *number).map(|(_, name)| *name)
}

/// The last end of each program of a Pod that has exited. An init container that succeeded does not count.
pub fn ends_of(pod: &Pod) -> Vec<ProgramEnd> {
    let is_init = |end: &ProgramEnd| {
        let init = pod.status.as_ref().and_then(|status| status.init_container_statuses.as_ref());
        init.is_some_and(|all| all.iter().any(|status| status.name == end.container))
    };
    let all = statuses_of(pod).filter_map(|status| end_of(pod, status));
    all.filter(|end| end.exit_code != Some(0) || !is_init(end)).collect()
}

/// The statuses of a Pod's containers, the init containers last.
pub(crate) fn statuses_of(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.as_ref();
    let main = status.and_then(|status| status.container_statuses.as_ref());
    let init = status.and_then(|status| status.init_container_statuses.as_ref());
    main.into_iter().chain(init).flatten()
}

fn end_of(pod: &Pod, status: &ContainerStatus) -> Option<ProgramEnd> {
    let terminated =
        |state: &Option<ContainerState>| state.as_ref().and_then(|state| state.terminated.clone());
    let runs = status.state.as_ref().is_some_and(|state| state.running.is_some());
    let last = terminated(&status.state).or_else(|| terminated(&status.last_state));
    let restarts = u32::try_from(status.restart_count).unwrap_or(0);
    if restarts == 0 && last.is_none() {
        return None;
    }
    Some(ProgramEnd {
        uid: pod.uid().unwrap_or_default(),
        pod: pod.name_any(),
        container: status.name.clone(),
        image: status.image.clone(),
        ends: restarts + u32::from(!runs && last.is_some()),
        restarts,
        exit_code: last.as_ref().map(|end| end.exit_code),
        reason: last
            .as_ref()
            .and_then(|end| end.reason.clone())
            .filter(|why| !PLAIN_REASONS.contains(&why.as_str())),
        message: last.as_ref().and_then(|end| end.message.clone()).filter(|text| !text.trim().is_empty()),
        ran_for: last.as_ref().and_then(lasted),
    })
}

fn lasted(end: &ContainerStateTerminated) -> Option<Duration> {
    let (Time(from), Time(to)) = (end.started_at.as_ref()?, end.finished_at.as_ref()?);
    // A program that was never started has the zero time as its start.
    (from.as_second() > 0).then(|| Duration::try_from(to.duration_since(*from)).unwrap_or_default())
}

/// Counts how often the programs of some Pods exit after a moment.
#[derive(Clone, Debug, Default)]
pub struct Starts {
    /// How many ends of each container's program are known, by the Pod's uid.
    known: BTreeMap<(String, String), u32>,
    /// How many of them count against it.
    counted: BTreeMap<(String, String), u32>,
}

impl Starts {
    /// Starts counting: earlier ends in these Pods do not count.
    pub fn from_now(pods: &[Arc<Pod>]) -> Starts {
        let mut starts = Starts::default();
        starts.news(pods);
        starts
    }

    /// The programs that have exited since the last call, each with the number of times.
    pub fn news(&mut self, pods: &[Arc<Pod>]) -> Vec<(ProgramEnd, u32)> {
        let mut news = Vec::new();
        for end in pods.iter().flat_map(|pod| ends_of(pod)) {
            let known = self.known.entry((end.uid.clone(), end.container.clone())).or_default();
            let times = end.ends.saturating_sub(*known);
            *known = end.ends.max(*known);
            if times > 0 {
                news.push((end, times));
            }
        }
        news
    }

    /// Counts ends of that program that nothing else explains. Returns whether it has used up its tries.
    pub fn count(&mut self, end: &ProgramEnd, times: u32) -> bool {
        let counted = self.counted.entry((end.uid.clone(), end.container.clone())).or_default();
        *counted += times;
        *counted >= ENDS_AT_START
    }
}

#[cfg(test)]
mod tests;
