//! The reaper of a run: a process in its own session that removes what the run has created when the run cannot, because
//! it was killed or hangs.
//!
//! It reads from a pipe what exists. If the pipe is closed without a final message, the run has ended. It is this
//! program's command `reap`; its cleanup is in `cli`.

use crate::images::own_program;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, MutexGuard};

/// The command of this program that is the reaper.
pub const COMMAND: &str = "reap";

/// The messages of a run to its reaper, one per line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReaperMessage {
    /// The run has this folder, and everything with the id in its name belongs to it.
    Has(PathBuf),
    /// It is gone, or should stay.
    Released(PathBuf),
    /// The run also creates containers.
    UsesEngine,
    /// The run has ended normally.
    Ended,
}

/// The reaper of this process.
static REAPER: Mutex<Option<Reaper>> = Mutex::new(None);

struct Reaper {
    child: Child,
    pipe: ChildStdin,
    folders: BTreeSet<PathBuf>,
}

/// Starts the reaper of this process, unless it has one. From now on everything that this process starts, even detached,
/// is recognised as its own.
///
/// # Errors
/// This program cannot be started again.
pub fn start() -> std::io::Result<()> {
    let mut reaper = lock();
    if reaper.is_some() {
        return Ok(());
    }
    // Where the system supports it, processes whose parent has ended become children of this process.
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

/// Tells the reaper that the run has this folder. Without a reaper, this and the following do nothing.
pub fn has(folder: &Path) {
    if let Some(reaper) = lock().as_mut() {
        reaper.folders.insert(folder.to_owned());
        reaper.tell(&ReaperMessage::Has(folder.to_owned()));
    }
}

/// Tells the reaper that a folder is gone, or should stay when the run ends.
pub fn released(folder: &Path) {
    if let Some(reaper) = lock().as_mut() {
        reaper.folders.remove(folder);
        reaper.tell(&ReaperMessage::Released(folder.to_owned()));
    }
}

/// Tells the reaper that the run creates containers.
pub fn uses_engine() {
    if let Some(reaper) = lock().as_mut() {
        reaper.tell(&ReaperMessage::UsesEngine);
    }
}

/// What would be removed if this process ended now.
pub fn holds() -> Vec<PathBuf> {
    lock().as_ref().map(|reaper| reaper.folders.iter().cloned().collect()).unwrap_or_default()
}

/// Tells the reaper that the run has ended: the reaper ends what still runs of it, removes what the run could not, and
/// exits.
pub fn end() {
    let Some(mut reaper) = lock().take() else { return };
    if reaper.folders.is_empty() {
        reaper.tell(&ReaperMessage::Ended);
    }
    drop(reaper.pipe);
    let _ = reaper.child.wait();
}

impl Reaper {
    /// A reaper that is gone removes nothing; the run itself still does.
    fn tell(&mut self, message: &ReaperMessage) {
        let line = serde_json::to_string(message).unwrap_or_default() + "\n";
        if let Err(error) = self.pipe.write_all(line.as_bytes()) {
            tracing::warn!(%error, "the reaper is gone");
        }
    }
}

fn lock() -> MutexGuard<'static, Option<Reaper>> {
    REAPER.lock().expect("no holder of this lock panics")
}
