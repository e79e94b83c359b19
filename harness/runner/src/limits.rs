//! Resource limits that were set when the program was started.

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

/// Minimum number of open files of a run: twice what a run of a few checks on the embedded cluster needs.
const LEAST_FILES: u64 = 256;

/// Raises the limits as far as allowed, and makes a write beyond the file size limit fail with an error. Otherwise a
/// signal would end the process without a message.
pub fn use_limits() {
    let files = getrlimit(Resource::Nofile);
    // Without permission to raise it, the limit stays; `enough_files` reports one that is too low.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: files.maximum, maximum: files.maximum });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    if let Ok(runtime) = runtime {
        let _inside = runtime.enter();
        // The listener is dropped, but the signal stays caught.
        drop(signal(SignalKind::from_raw(Signal::XFSZ.as_raw())));
    }
}

/// Checks whether a run may open as many files as it needs.
///
/// # Errors
/// How many it may open, and how to raise the limit.
pub fn enough_files() -> Result<(), String> {
    let may = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    if may >= LEAST_FILES {
        return Ok(());
    }
    Err(format!(
        "this process may open only {may} files, but a run needs {LEAST_FILES}; raise the limit ('ulimit -n \
         {LEAST_FILES}')"
    ))
}
