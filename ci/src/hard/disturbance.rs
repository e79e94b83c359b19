//! Disturbances of a run's environment from outside, during the run.

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
    /// Every 15 s the API server does not answer for 2 s (kind)
    FrozenApiServer,
    /// Every 30 s etcd gets SIGTERM, and its kubelet restarts it (kind)
    EtcdRestarts,
    /// Every request to Docker takes 300 ms longer (kind)
    SlowDocker,
    /// Another program has taken the port for the API server (kind)
    PortTaken,
    /// One machine is killed while checks run (kind)
    MachineKilled,
    /// Every 10 s the program, including API server and cloud, is frozen for 3 s (embedded)
    FrozenProgram,
    /// Twice as many busy loops as processors
    BusyMachine,
}

/// A disturbance that has to be prepared before the run begins.
pub(super) enum Prepared {
    /// A slow proxy to Docker.
    SlowDocker(SlowDocker),
    /// A program that takes the first port that is chosen.
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
    /// The disturbances for runs on this kind of cluster.
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

    /// Prepares the disturbance before the run begins, and makes the run use it.
    pub(super) fn prepare(self, folder: &Path, run: &mut Command) -> Result<Option<Prepared>> {
        Ok(match self {
            Disturbance::SlowDocker => Some(Prepared::SlowDocker(SlowDocker::begin(folder, run)?)),
            Disturbance::PortTaken => Some(Prepared::TakenPort(TakenPort::begin(folder, run)?)),
            _ => None,
        })
    }

    /// The time before the first disturbance, and between later ones; `None` if it does not come by itself.
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

/// A thread that disturbs a run until it is stopped.
pub(super) struct Disturbing {
    stop: Arc<AtomicBool>,
    times: Arc<AtomicUsize>,
    thread: JoinHandle<()>,
}

impl Disturbing {
    /// Stops it; returns how often the run was disturbed.
    pub(super) fn stop(self) -> usize {
        self.stop.store(true, Ordering::SeqCst);
        let _ = self.thread.join();
        self.times.load(Ordering::SeqCst)
    }
}

/// Starts to disturb a run: the process is the run's, and the console the file of its output.
pub(super) fn disturb(disturbance: Disturbance, process: u32, console: PathBuf) -> Disturbing {
    let (stop, times) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (stop_signal, count) = (stop.clone(), times.clone());
    let thread = std::thread::spawn(move || {
        let Some((first, then)) = disturbance.pauses() else { return };
        let mut pause = first;
        while wait(pause, &stop_signal) {
            let done = match disturbance {
                Disturbance::FrozenApiServer => in_control_planes(&console, FREEZE),
                Disturbance::EtcdRestarts => in_control_planes(&console, "pkill -TERM -x etcd"),
                Disturbance::MachineKilled => kill_machine(&console),
                Disturbance::FrozenProgram => freeze(process),
                Disturbance::BusyMachine => keep_busy(&stop_signal),
                Disturbance::SlowDocker | Disturbance::PortTaken => false,
            };
            count.fetch_add(usize::from(done), Ordering::SeqCst);
            // An attempt that fails because there is no cluster yet is repeated soon.
            pause = if done { then } else { Duration::from_secs(2) };
        }
    });
    Disturbing { stop, times, thread }
}

/// Stops the API server for 2 s.
const FREEZE: &str = "pkill -STOP -x kube-apiserver && sleep 2; pkill -CONT -x kube-apiserver";

/// Waits; returns whether to continue after that.
#[expect(clippy::disallowed_methods, reason = "moments are what is chosen here")]
fn wait(pause: Duration, stop: &AtomicBool) -> bool {
    let until = Instant::now() + pause;
    while !stop.load(Ordering::SeqCst) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(100));
    }
    !stop.load(Ordering::SeqCst)
}

/// The run's machines with this role, once it has printed its id and its first check has begun.
fn machines(console: &Path, role: &str) -> Vec<String> {
    let said = std::fs::read_to_string(console).unwrap_or_default();
    let Some(run) = said.lines().find_map(|line| line.strip_prefix("run ")) else { return Vec::new() };
    let id: String = run.chars().take_while(char::is_ascii_alphanumeric).collect();
    if !said.contains("\nrunning ") {
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

/// Runs a script in every control plane at once; returns whether it succeeded in one.
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

/// Kills one machine that is not a control plane, or the only machine.
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

/// Uses twice as many busy threads as there are processors, until it has to stop.
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
