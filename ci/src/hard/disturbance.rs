//! What is done to a run's environment from outside, while the run judges.

use super::kills::On;
use super::slow_docker::SlowDocker;
use super::taken_port::TakenPort;
use anyhow::Result;
use clap::ValueEnum;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A disturbance of the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Disturbance {
    /// Every 15 s the API server answers nothing for 2 s (kind).
    FrozenApiServer,
    /// Every 30 s etcd is told to end, and its kubelet starts it again (kind).
    EtcdRestarts,
    /// Every request to Docker takes 300 ms longer (kind).
    SlowDocker,
    /// Another program has taken the port for the API server (kind).
    PortTaken,
    /// One machine is killed while checks run (kind).
    MachineKilled,
    /// Every 10 s the program, with API server and cloud in it, does not run for 3 s (embedded).
    FrozenProgram,
    /// Twice as many busy loops as there are processors.
    BusyMachine,
}

/// Something that has to be there before the run begins.
pub(super) enum Prepared {
    /// A way to Docker that takes long.
    SlowDocker(SlowDocker),
    /// Somebody who takes the first port that is chosen.
    TakenPort(TakenPort),
}

impl Prepared {
    /// How often it has disturbed the run.
    pub(super) fn times(&self) -> usize {
        match self {
            Prepared::SlowDocker(slow) => slow.times(),
            Prepared::TakenPort(taken) => taken.times(),
        }
    }
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.write_str(value.as_ref().map_or("", |value| value.get_name()))
    }
}

impl Disturbance {
    /// Those of runs on that kind of cluster.
    pub(super) fn of(on: On) -> Vec<Disturbance> {
        match on {
            On::Embedded => vec![Disturbance::FrozenProgram, Disturbance::BusyMachine],
            On::Kind => vec![
                Disturbance::FrozenApiServer,
                Disturbance::EtcdRestarts,
                Disturbance::SlowDocker,
                Disturbance::PortTaken,
                Disturbance::MachineKilled,
                Disturbance::BusyMachine,
            ],
        }
    }

    /// What has to be there before the run begins; the run is to use it.
    pub(super) fn prepare(self, folder: &Path, run: &mut Command) -> Result<Option<Prepared>> {
        Ok(match self {
            Disturbance::SlowDocker => Some(Prepared::SlowDocker(SlowDocker::begin(folder, run)?)),
            Disturbance::PortTaken => Some(Prepared::TakenPort(TakenPort::begin(folder, run)?)),
            _ => None,
        })
    }

    /// After how long it comes for the first time, and then again; `None` where it does not come by itself.
    fn pauses(self) -> Option<(Duration, Duration)> {
        let seconds = |first, then| Some((Duration::from_secs(first), Duration::from_secs(then)));
        match self {
            Disturbance::FrozenApiServer => seconds(10, 15),
            Disturbance::EtcdRestarts => seconds(15, 30),
            Disturbance::MachineKilled => seconds(60, 100_000),
            Disturbance::FrozenProgram => seconds(5, 10),
            Disturbance::BusyMachine => seconds(0, 100_000),
            Disturbance::SlowDocker | Disturbance::PortTaken => None,
        }
    }
}

/// Somebody who disturbs a run until he is told to stop.
pub(super) struct Disturbing {
    stop: Arc<AtomicBool>,
    times: Arc<AtomicUsize>,
    thread: JoinHandle<()>,
}

impl Disturbing {
    /// Stops it; how often the run was disturbed.
    pub(super) fn stop(self) -> usize {
        self.stop.store(true, Ordering::SeqCst);
        let _ = self.thread.join();
        self.times.load(Ordering::SeqCst)
    }
}

/// Disturbs a run from now on: that process, which writes to that file.
pub(super) fn disturb(disturbance: Disturbance, process: u32, console: PathBuf) -> Disturbing {
    let (stop, times) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (told, count) = (stop.clone(), times.clone());
    let thread = std::thread::spawn(move || {
        let Some((first, then)) = disturbance.pauses() else { return };
        let mut pause = first;
        while wait(pause, &told) {
            let done = match disturbance {
                Disturbance::FrozenApiServer => in_control_planes(&console, FREEZE),
                Disturbance::EtcdRestarts => in_control_planes(&console, "pkill -TERM -x etcd"),
                Disturbance::MachineKilled => kill_machine(&console),
                Disturbance::FrozenProgram => freeze(process),
                Disturbance::BusyMachine => keep_busy(&told),
                Disturbance::SlowDocker | Disturbance::PortTaken => false,
            };
            count.fetch_add(usize::from(done), Ordering::SeqCst);
            // What could not be done, as there is no cluster yet, is tried again soon.
            pause = if done { then } else { Duration::from_secs(2) };
        }
    });
    Disturbing { stop, times, thread }
}

/// Stops the API server for 2 s.
const FREEZE: &str = "pkill -STOP -x kube-apiserver && sleep 2; pkill -CONT -x kube-apiserver";

/// Waits; whether to go on then.
#[expect(clippy::disallowed_methods, reason = "moments are what is chosen here")]
fn wait(pause: Duration, stop: &AtomicBool) -> bool {
    let until = Instant::now() + pause;
    while !stop.load(Ordering::SeqCst) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(100));
    }
    !stop.load(Ordering::SeqCst)
}

/// The run's machines of that role, once it has said its id and its first check has begun.
fn machines(console: &Path, role: &str) -> Vec<String> {
    let said = std::fs::read_to_string(console).unwrap_or_default();
    let Some(run) = said.lines().find_map(|line| line.strip_prefix("run ")) else { return Vec::new() };
    let id: String = run.chars().take_while(char::is_ascii_alphanumeric).collect();
    if !said.contains("test ") {
        return Vec::new();
    }
    let role = format!("label=io.x-k8s.kind.role={role}");
    let listed = Command::new("docker")
        .args(["ps", "--format", "{{.Names}}", "--filter", &format!("name={id}"), "--filter", &role])
        .output();
    let listed =
        listed.map(|listed| String::from_utf8_lossy(&listed.stdout).into_owned()).unwrap_or_default();
    listed.lines().map(str::to_owned).collect()
}

/// Has a shell do something in every control plane at once; whether it was done in one.
fn in_control_planes(console: &Path, script: &str) -> bool {
    let started: Vec<_> = machines(console, "control-plane")
        .iter()
        .filter_map(|machine| {
            let mut command = Command::new("docker");
            command.args(["exec", machine, "sh", "-c", script]);
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()
        })
        .collect();
    let ended = started.into_iter().map(|mut child| child.wait().is_ok_and(|status| status.success()));
    ended.filter(|done| *done).count() > 0
}

/// Kills one machine that is no control plane, or the only one that there is.
fn kill_machine(console: &Path) -> bool {
    let machines = [machines(console, "worker"), machines(console, "control-plane")].concat();
    let Some(machine) = machines.first() else { return false };
    let killed = Command::new("docker").args(["kill", machine]).stdout(Stdio::null()).status();
    killed.is_ok_and(|status| status.success())
}

/// Stops a process for 3 s.
#[expect(clippy::disallowed_methods, reason = "the time is what disturbs")]
fn freeze(process: u32) -> bool {
    let signal = |signal: &str| {
        let sent =
            Command::new("kill").args(["-s", signal, &process.to_string()]).stderr(Stdio::null()).status();
        sent.is_ok_and(|status| status.success())
    };
    let stopped = signal("STOP");
    std::thread::sleep(Duration::from_secs(3));
    signal("CONT") && stopped
}

/// Computes nothing, with twice as many threads as there are processors, until it is to stop.
fn keep_busy(stop: &AtomicBool) -> bool {
    let threads = 2 * std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
    });
    true
}
