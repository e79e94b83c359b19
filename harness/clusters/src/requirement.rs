//! A backend's requirements of the machine, and whether they are met.

use super::host;
use harness_core::files;
use serde::Serialize;
use std::path::PathBuf;

/// One requirement of a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Its name, a word or two.
    pub what: &'static str,
    /// Whether it is met.
    pub state: State,
    /// What was found, as text.
    pub found: String,
    /// What it is needed for, a few words.
    pub needed_for: &'static str,
    /// Whether nothing works without it.
    pub need: Need,
    /// How to fix it; empty if it is met.
    pub way_out: String,
    /// What the harness itself can do about it.
    pub remedy: Option<Remedy>,
}

/// Whether a requirement is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It is met.
    Fine,
    /// It exists but is too small or too little.
    TooSmall,
    /// It exists but is too old.
    TooOld,
    /// It does not exist, or cannot be used.
    Missing,
}

/// How important a requirement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing works without it.
    Required,
    /// Most works without it.
    Advised,
}

/// What the harness itself can do, with its permissions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Set a limit of the kernel until the next boot; requires root.
    Limit {
        /// Its file below `/proc/sys`.
        file: String,
        /// Its new value.
        value: u64,
    },
    /// Create a folder.
    Folder(PathBuf),
}

impl Requirement {
    /// A requirement that is met.
    pub(super) fn fine(
        what: &'static str,
        needed_for: &'static str,
        found: impl Into<String>,
    ) -> Requirement {
        Requirement {
            what,
            state: State::Fine,
            found: found.into(),
            needed_for,
            need: Need::Required,
            way_out: String::new(),
            remedy: None,
        }
    }

    /// The same requirement, not met.
    pub(super) fn but(self, state: State, way_out: impl Into<String>) -> Requirement {
        Requirement { state, way_out: way_out.into(), ..self }
    }

    /// The same requirement, without which most things still work.
    pub(super) fn advised(self) -> Requirement {
        Requirement { need: Need::Advised, ..self }
    }

    /// Whether nothing works in its current state.
    pub fn hinders(&self) -> bool {
        self.need == Need::Required && self.state != State::Fine
    }
}

/// The required memory, MiB.
pub(super) fn memory(least_mib: u64, needed_for: &'static str) -> Requirement {
    let Some(found) = host::memory_mib() else {
        return Requirement::fine("memory", needed_for, "this system does not report how much");
    };
    let asked = Requirement::fine("memory", needed_for, format!("{found} MiB"));
    if found >= least_mib {
        return asked;
    }
    asked.but(State::TooSmall, format!("give this machine or container {least_mib} MiB or more"))
}

/// The recommended number of cores.
pub(super) fn cores(least: usize, needed_for: &'static str) -> Requirement {
    let found = host::cores();
    let asked = Requirement::fine("cores", needed_for, found.to_string()).advised();
    if found >= least {
        return asked;
    }
    asked.but(State::TooSmall, format!("{least} or more; with fewer, checks run slower and wait longer"))
}

/// Addresses and ports on which programs of a run listen.
pub(super) fn loopback(needed_for: &'static str) -> Requirement {
    match host::loopback() {
        Ok(()) => Requirement::fine("loopback ports", needed_for, "free ports at 127.0.0.0/8"),
        Err(why) => Requirement::fine("loopback ports", needed_for, why).but(
            State::Missing,
            "enable the loopback interface ('ip link set lo up') and check the range of free ports \
             (net.ipv4.ip_local_port_range)",
        ),
    }
}

/// The folder of a run's own files.
pub(super) fn temporary_files(least_mib: u64, needed_for: &'static str) -> Requirement {
    let folder = std::env::temp_dir();
    let asked = |found: String| Requirement::fine("temporary files", needed_for, found);
    if !folder.is_dir() {
        let found = asked(format!("{} is not a folder", folder.display()));
        let missing = found.but(State::Missing, "create it, or set TMPDIR to an existing folder");
        return Requirement { remedy: Some(Remedy::Folder(folder)), ..missing };
    }
    if let Err(error) = tempfile::tempfile_in(&folder) {
        let found = asked(format!("{} cannot be written to: {}", folder.display(), files::why(&error)));
        return found.but(State::Missing, "set TMPDIR to a folder that you can write to");
    }
    match host::free_bytes(&folder).map(|bytes| bytes >> 20) {
        Some(free) if free < least_mib => asked(format!("only {free} MiB are free in {}", folder.display()))
            .but(
                State::TooSmall,
                format!("free some space, or set TMPDIR to a folder with {least_mib} MiB free"),
            ),
        Some(free) => asked(format!("{free} MiB are free in {}", folder.display())),
        None => asked(folder.display().to_string()),
    }
}
