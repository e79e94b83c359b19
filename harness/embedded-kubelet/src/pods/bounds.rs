//! Limits the resources that programs may use on this machine.
//!
//! A kubelet uses the kernel's control groups for that, but not every user can create them. So a thread looks
//! at all processes of all programs twice a second. A program that uses too much memory or has too many
//! processes is killed with all its processes. A program that uses most of the processors for a long time
//! gets a lower priority. Faster effects are left to the kernel's limits of single processes, which are
//! wider. When the machine itself runs out of memory, the largest program is killed first.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, getpgrp, kill_process, prlimit, setpriority_pgrp};

use embedded_runtime::settings::Bounds;
use processes::{Descendants, Offspring, Process};

/// The time between two looks.
const LOOK: Duration = Duration::from_millis(500);
/// A second of processor time, in ticks: `USER_HZ`.
const TICKS: u64 = 100;
/// How much more than its memory limit one process may request from the kernel: much of it is never used.
const ASKED_FOR: u64 = 4;
/// The largest file that a program may write, bytes.
const LARGEST_FILE: u64 = 4 << 30;
/// When the machine has less free memory than this part of it, and less than this many bytes, the largest
/// program is killed.
const LEFT: (u64, u64) = (20, 1 << 30);
/// A program with fewer bytes than this is not the reason why a machine runs out of memory.
const SMALL: u64 = 256 << 20;
/// The niceness of a program that uses most of the processors: it only gets what others leave.
const NICE: i32 = 19;

/// The resource that a program used too much of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Overrun {
    /// Memory, with a description.
    Memory(String),
    /// Processes, with a description.
    Processes(String),
    /// Processor time, with a description. The program keeps running.
    Processor(String),
}

impl fmt::Display for Overrun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Overrun::Memory(words) | Overrun::Processes(words) | Overrun::Processor(words)) = self;
        f.write_str(words)
    }
}

/// Watches the programs of all clusters in this process as long as it exists. It has to see all of them to
/// find the largest.
pub(crate) struct Guard {
    orders: mpsc::Sender<Watched>,
}

/// A program that is watched.
struct Watched {
    offspring: Offspring,
    bounds: Bounds,
    tell: Box<dyn Fn(Overrun) + Send>,
    /// The processor time that all of its processes have used, in ticks, at each look of the last seconds.
    used: VecDeque<u64>,
    yields: bool,
}

impl Guard {
    /// The guard of this process. Its thread ends when it is not used any more.
    ///
    /// # Errors
    /// No thread can be created.
    pub(crate) fn shared() -> io::Result<Arc<Guard>> {
        static GUARD: Mutex<Weak<Guard>> = Mutex::new(Weak::new());
        let mut shared = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(guard) = shared.upgrade() {
            return Ok(guard);
        }
        let (orders, received) = mpsc::channel();
        std::thread::Builder::new().name("program-guard".to_owned()).spawn(move || look_after(&received))?;
        let guard = Arc::new(Guard { orders });
        *shared = Arc::downgrade(&guard);
        Ok(guard)
    }

    /// Watches a program that has just been started until it has ended. `tell` is called with the resource
    /// that the program uses too much of, before the program is killed for it.
    pub(crate) fn watch(&self, root: i32, bounds: Bounds, tell: impl Fn(Overrun) + Send + 'static) {
        limit(root, bounds);
        let (offspring, tell) = (Offspring::of(root), Box::new(tell));
        let (used, yields) = (VecDeque::new(), false);
        // The thread ends only with this guard.
        let _ = self.orders.send(Watched { offspring, bounds, tell, used, yields });
    }
}

/// Sets the kernel's limits for each of the program's processes: memory that it requests between two looks,
/// core dumps, single files.
fn limit(root: i32, bounds: Bounds) {
    let limits = [
        // Runtimes request memory according to the machine, not to their limit.
        (Resource::Data, bounds.memory.max(Bounds::default().memory).saturating_mul(ASKED_FOR)),
        (Resource::Core, 0),
        (Resource::Fsize, LARGEST_FILE),
    ];
    for (resource, most) in limits {
        let new = Rlimit { current: Some(most), maximum: Some(most) };
        if let Err(error) = prlimit(Pid::from_raw(root), resource, new) {
            // It has already ended, or had a lower limit.
            tracing::debug!(root, ?resource, %error, "no limit for a program");
        }
    }
}

/// Looks at the programs until the last sender of orders is gone.
fn look_after(orders: &mpsc::Receiver<Watched>) {
    let (mut watched, mut descendants) = (Vec::<Watched>::new(), Descendants::default());
    let mut next = Instant::now() + LOOK;
    loop {
        let order = match watched.is_empty() {
            true => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
            false => orders.recv_timeout(next.saturating_duration_since(Instant::now())),
        };
        match order {
            Ok(one) => {
                if watched.is_empty() {
                    next = Instant::now() + LOOK;
                }
                watched.push(one);
            }
            Err(RecvTimeoutError::Timeout) => {
                look(&mut watched, &mut descendants);
                next = Instant::now() + LOOK;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn look(watched: &mut Vec<Watched>, descendants: &mut Descendants) {
    let (all, gone) = Process::living_and_ended();
    descendants.bury(&all, &gone);
    let mut largest: Option<(u64, usize, Vec<Process>)> = None;
    let mut ended = Vec::new();
    for (at, one) in watched.iter_mut().enumerate() {
        let own = one.offspring.among(&all);
        descendants.note(&one.offspring);
        if own.is_empty() {
            ended.push(at);
            continue;
        }
        let memory = own.iter().map(|process| process.memory()).sum();
        if let Some(overrun) = one.overrun(memory, own.len()) {
            (one.tell)(overrun);
            kill(&own);
            continue;
        }
        one.spend(&own);
        if largest.as_ref().is_none_or(|(most, ..)| memory > *most) {
            largest = Some((memory, at, own));
        }
    }
    if let Some((memory, at, own)) = largest
        && memory > SMALL
        && let Some(left) = almost_out_of_memory()
    {
        let words = format!(
            "this machine had {} MiB of memory left, and of the programs this one had most, {} MiB",
            left >> 20,
            memory >> 20
        );
        (watched[at].tell)(Overrun::Memory(words));
        kill(&own);
    }
    for at in ended.into_iter().rev() {
        watched.swap_remove(at);
    }
}

impl Watched {
    /// Whether the program has too much of a resource that it does not give back.
    fn overrun(&self, memory: u64, processes: usize) -> Option<Overrun> {
        if memory > self.bounds.memory {
            return Some(Overrun::Memory(format!(
                "its {processes} processes had {} MiB of memory, of {} MiB at most",
                memory >> 20,
                self.bounds.memory >> 20
            )));
        }
        (processes > self.bounds.processes).then(|| {
            Overrun::Processes(format!("it had {processes} processes, of {} at most", self.bounds.processes))
        })
    }

    /// Records the processor time of the program, and lowers its priority if it used most of the machine's
    /// for a long time.
    fn spend(&mut self, own: &[Process]) {
        let looks =
            usize::try_from(Bounds::PATIENCE_S * 1000).unwrap_or(usize::MAX) / LOOK.as_millis() as usize;
        self.used.push_back(own.iter().map(|process| process.used).sum());
        if self.used.len() <= looks {
            return;
        }
        let before = self.used.pop_front().unwrap_or_default();
        let spent = self.used.back().copied().unwrap_or_default().saturating_sub(before);
        let processors = std::thread::available_parallelism().map_or(1, |all| all.get() as u64);
        let share = Bounds::PATIENCE_S * TICKS * processors * self.bounds.processor / 100;
        if spent <= share {
            return;
        }
        // Processes that were started since then still have the normal priority.
        let others = own.iter().filter_map(|process| Pid::from_raw(process.group));
        for group in others.filter(|group| *group != getpgrp()) {
            if let Err(error) = setpriority_pgrp(Some(group), NICE) {
                tracing::debug!(?group, %error, "a program does not yield");
            }
        }
        if !self.yields {
            self.yields = true;
            (self.tell)(Overrun::Processor(format!(
                "its processes used {:.1} processors for {} s, of {processors} that there are; from now on they yield to others",
                spent as f64 / (Bounds::PATIENCE_S * TICKS) as f64,
                Bounds::PATIENCE_S
            )));
        }
    }
}

fn kill(all: &[Process]) {
    for process in all {
        // It may have ended by now.
        let _ = Pid::from_raw(process.pid).map(|pid| kill_process(pid, Signal::KILL));
    }
}

/// The bytes of memory that this machine has left, if that is too little.
fn almost_out_of_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let of = |name: &str| {
        let amount = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(amount.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
    };
    let (total, left) = (of("MemTotal")?, of("MemAvailable")?);
    (left < (total / LEFT.0).min(LEFT.1)).then_some(left)
}
