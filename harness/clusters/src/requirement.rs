//! What a backend needs of the machine it runs on, and whether that is there.

use super::host;
use serde::Serialize;
use std::path::PathBuf;

/// One thing that a backend needs of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The thing, in a word or two.
    pub what: &'static str,
    /// Whether it is there.
    pub state: State,
    /// What was found, in words.
    pub found: String,
    /// What it is needed for, a few words.
    pub needed_for: &'static str,
    /// Whether nothing works without it.
    pub need: Need,
    /// How to mend it; empty where it is fine.
    pub way_out: String,
    /// What the harness can do about it itself.
    pub remedy: Option<Remedy>,
}

/// Whether something is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It is, and it is enough.
    Fine,
    /// It is there and too small, too old or too little.
    TooSmall,
    /// It is not there, or cannot be used.
    Missing,
}

/// How badly something is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing works without it.
    Required,
    /// Most works without it.
    Advised,
}

/// What the harness can do by itself, with the rights it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Set a limit of the kernel until the next boot; takes root.
    Limit {
        /// Its file below `/proc/sys`.
        file: String,
        /// The value it gets.
        value: u64,
    },
    /// Make a folder.
    Folder(PathBuf),
}

impl Requirement {
    /// Something that is there.
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

    /// The same, not as it has to be.
    pub(super) fn but(self, state: State, way_out: impl Into<String>) -> Requirement {
        Requirement { state, way_out: way_out.into(), ..self }
    }

    /// The same, without which most works all the same.
    pub(super) fn advised(self) -> Requirement {
        Requirement { need: Need::Advised, ..self }
    }

    /// Whether nothing works as it is.
    pub fn hinders(&self) -> bool {
        self.need == Need::Required && self.state != State::Fine
    }
}

/// Memory that has to be there, MiB.
pub(super) fn memory(least_mib: u64, needed_for: &'static str) -> Requirement {
    let Some(found) = host::memory_mib() else {
        return Requirement::fine("memory", needed_for, "this system does not say how much");
    };
    let asked = Requirement::fine("memory", needed_for, format!("{found} MiB"));
    if found >= least_mib {
        return asked;
    }
    asked.but(State::TooSmall, format!("give this machine or container {least_mib} MiB or more"))
}

/// Cores that make sense.
pub(super) fn cores(least: usize, needed_for: &'static str) -> Requirement {
    let found = host::cores();
    let asked = Requirement::fine("cores", needed_for, found.to_string()).advised();
    if found >= least {
        return asked;
    }
    asked.but(State::TooSmall, format!("{least} or more; with fewer, checks run slower and wait longer"))
}

/// Addresses and ports that programs of a run listen on.
pub(super) fn loopback(needed_for: &'static str) -> Requirement {
    match host::loopback() {
        Ok(()) => Requirement::fine("loopback ports", needed_for, "free ports at 127.0.0.0/8"),
        Err(why) => Requirement::fine("loopback ports", needed_for, why).but(
            State::Missing,
            "bring the loopback interface up ('ip link set lo up') and leave ports to be given out \
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
        let mended = found.but(State::Missing, "make it, or set TMPDIR to a folder that is there");
        return Requirement { remedy: Some(Remedy::Folder(folder)), ..mended };
    }
    if let Err(error) = tempfile::tempfile_in(&folder) {
        let found = asked(format!("{} cannot be written to: {error}", folder.display()));
        return found.but(State::Missing, "set TMPDIR to a folder of yours");
    }
    match host::free_bytes(&folder).map(|bytes| bytes >> 20) {
        Some(free) if free < least_mib => asked(format!("only {free} MiB are free in {}", folder.display()))
            .but(State::TooSmall, format!("make room, or set TMPDIR to where {least_mib} MiB are free")),
        Some(free) => asked(format!("{free} MiB are free in {}", folder.display())),
        None => asked(folder.display().to_string()),
    }
}
