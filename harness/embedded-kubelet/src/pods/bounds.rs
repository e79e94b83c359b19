//! What programs may take of this machine.
//!
//! A kubelet has the kernel's control groups for that. Not everybody may make one, so a thread looks twice a second at all
//! processes of all programs: who takes too much memory or has too many processes is killed with all of them, who uses most
//! of the processors for long yields to everybody else. What happens faster than that is left to the kernel's limits of single
//! processes, which are wider. When the machine itself runs out of memory the largest program goes first.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, getpgrp, kill_process, prlimit, setpriority_pgrp};

use embedded_runtime::settings::Bounds;
use processes::{Descendants, Offspring, Process};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(500);
/// A second of processor time, in ticks: `USER_HZ`.
const TICKS: u64 = 100;
/// How much more than its memory one process may ask the kernel for: much of it is never used.
const ASKED_FOR: u64 = 4;
/// The largest file that a program may write, bytes.
const LARGEST_FILE: u64 = 4 << 30;
/// When the machine has less memory left than this part of it, and than this many bytes, the largest program goes.
const LEFT: (u64, u64) = (20, 1 << 30);
/// A program below this size is not why a machine runs out of memory, bytes.
const SMALL: u64 = 256 << 20;
/// How nice a program is that uses most of the processors: it gets what others leave.
const NICE: i32 = 19;

/// What a program took too much of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Overrun {
    /// Memory; in words.
    Memory(String),
    /// Processes; in words.
    Processes(String),
    /// Processor time; in words. It goes on.
    Processor(String),
}

impl fmt::Display for Overrun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Overrun::Memory(words) | Overrun::Processes(words) | Overrun::Processor(words)) = self;
        f.write_str(words)
    }
}

/// Looks after the programs of all clusters of this process as long as it lives: which of them is the largest can be told by
/// one only that sees them all.
pub(crate) struct Guard {
    orders: mpsc::Sender<Watched>,
}

/// A program that is looked after.
struct Watched {
    offspring: Offspring,
    bounds: Bounds,
    tell: Box<dyn Fn(Overrun) + Send>,
    /// Processor time used by all of its processes, at each look of the last seconds, ticks.
    used: VecDeque<u64>,
    yields: bool,
}

impl Guard {
    /// The one of this process. Its thread ends when nobody has it any more.
    ///
    /// # Errors
    /// There can be no more threads.
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

    /// Looks after a program that has just been started, until it has ended; `tell` hears what it takes too much of, before
    /// it is killed for it.
    pub(crate) fn watch(&self, root: i32, bounds: Bounds, tell: impl Fn(Overrun) + Send + 'static) {
        limit(root, bounds);
        let (offspring, tell) = (Offspring::of(root), Box::new(tell));
        let (used, yields) = (VecDeque::new(), false);
        // The thread ends with this guard only.
        let _ = self.orders.send(Watched { offspring, bounds, tell, used, yields });
    }
}

/// The kernel's limits for each of its processes: what is asked for between two looks, dumps of its memory, single files.
fn limit(root: i32, bounds: Bounds) {
    let limits = [
        // Runtimes ask for room by the machine and not by their limit.
        (Resource::Data, bounds.memory.max(Bounds::default().memory).saturating_mul(ASKED_FOR)),
        (Resource::Core, 0),
        (Resource::Fsize, LARGEST_FILE),
    ];
    for (resource, most) in limits {
        let new = Rlimit { current: Some(most), maximum: Some(most) };
        if let Err(error) = prlimit(Pid::from_raw(root), resource, new) {
            // It has ended already, or had a lower limit than this.
            tracing::debug!(root, ?resource, %error, "no limit for a program");
        }
    }
}

/// Looks at whoever there is until nobody orders any more.
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
    /// Whether it has too much of what is not given back.
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

    /// Takes note of the processor time it used; makes it yield when that was most of this machine's for long.
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
        // Whoever has come since does not, yet.
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
        // It may have ended meanwhile.
        let _ = Pid::from_raw(process.pid).map(|pid| kill_process(pid, Signal::KILL));
    }
}

/// The memory this machine has left, bytes, where that is too little to go on.
fn almost_out_of_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let of = |name: &str| {
        let amount = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(amount.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
    };
    let (total, left) = (of("MemTotal")?, of("MemAvailable")?);
    (left < (total / LEFT.0).min(LEFT.1)).then_some(left)
}
