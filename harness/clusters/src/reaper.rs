//! The reaper of a run: a process in a session of its own that takes away what the run has made when the run itself no
//! longer can, because it was killed, or has hung.
//!
//! It reads what there is from a pipe. The pipe's end without a word of farewell is the run's. It is this program's command
//! `reap`; what it then does stands in `cli`.

use crate::images::own_program;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, MutexGuard};

/// The command of this program that is the reaper.
pub const COMMAND: &str = "reap";

/// What a run tells its reaper, a line each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Told {
    /// The run has this folder, and what bears the id in its name belongs to it.
    Has(PathBuf),
    /// It is gone, or is to stay.
    Released(PathBuf),
    /// The run makes containers, too.
    UsesEngine,
    /// The run has ended in order.
    Ended,
}

/// The reaper of this process.
static REAPER: Mutex<Option<Reaper>> = Mutex::new(None);

struct Reaper {
    child: Child,
    pipe: ChildStdin,
    folders: BTreeSet<PathBuf>,
}

/// Starts the reaper of this process, unless it has one. From now on what this process has started, however detached, is
/// known as its own.
///
/// # Errors
/// This program cannot be started again.
pub fn start() -> std::io::Result<()> {
    let mut reaper = lock();
    if reaper.is_some() {
        return Ok(());
    }
    // Whose parent has ended becomes a child of this process, where the system knows such a thing.
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let mut child = Command::new(own_program()?)
        .arg(COMMAND)
        .arg(std::process::id().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    let pipe = child.stdin.take().ok_or_else(|| std::io::Error::other("a child without its pipe"))?;
    *reaper = Some(Reaper { child, pipe, folders: BTreeSet::new() });
    Ok(())
}

/// The run has this folder. Without a reaper nothing is told, here and below.
pub fn has(folder: &Path) {
    if let Some(reaper) = lock().as_mut() {
        reaper.folders.insert(folder.to_owned());
        reaper.tell(&Told::Has(folder.to_owned()));
    }
}

/// A folder is gone, or is to stay when the run ends.
pub fn released(folder: &Path) {
    if let Some(reaper) = lock().as_mut() {
        reaper.folders.remove(folder);
        reaper.tell(&Told::Released(folder.to_owned()));
    }
}

/// The run makes containers.
pub fn uses_engine() {
    if let Some(reaper) = lock().as_mut() {
        reaper.tell(&Told::UsesEngine);
    }
}

/// What would be taken away if this process ended now.
pub fn holds() -> Vec<PathBuf> {
    lock().as_ref().map(|reaper| reaper.folders.iter().cloned().collect()).unwrap_or_default()
}

/// The run has ended: the reaper ends what is still running of it, takes away what the run could not, and goes.
pub fn end() {
    let Some(mut reaper) = lock().take() else { return };
    if reaper.folders.is_empty() {
        reaper.tell(&Told::Ended);
    }
    drop(reaper.pipe);
    let _ = reaper.child.wait();
}

impl Reaper {
    /// A reaper that is gone takes nothing away; the run itself still does.
    fn tell(&mut self, told: &Told) {
        let line = serde_json::to_string(told).unwrap_or_default() + "\n";
        if let Err(error) = self.pipe.write_all(line.as_bytes()) {
            tracing::warn!(%error, "the reaper is gone");
        }
    }
}

fn lock() -> MutexGuard<'static, Option<Reaper>> {
    REAPER.lock().expect("no holder of this lock panics")
}
