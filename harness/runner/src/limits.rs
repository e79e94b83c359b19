//! Limits that whoever starts the program has set for it.

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

/// The open files that a run needs at least: those of a run of few checks on the embedded cluster, twice over.
const LEAST_FILES: u64 = 256;

/// Uses what the limits allow, and lets a write beyond the limit of a file's size fail: the signal that comes with it would end the
/// process without a word.
pub fn use_limits() {
    let files = getrlimit(Resource::Nofile);
    // Whoever may not raise it keeps it; too few are told by `enough_files`.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: files.maximum, maximum: files.maximum });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    if let Ok(runtime) = runtime {
        let _inside = runtime.enter();
        // What hears it is dropped; that it is heard stays.
        drop(signal(SignalKind::from_raw(Signal::XFSZ.as_raw())));
    }
}

/// Whether a run may open as many files as it needs.
///
/// # Errors
/// How many it may, and the way out.
pub fn enough_files() -> Result<(), String> {
    let may = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    if may >= LEAST_FILES {
        return Ok(());
    }
    Err(format!(
        "this process may open {may} files, a run needs {LEAST_FILES}; raise the limit ('ulimit -n {LEAST_FILES}')"
    ))
}
