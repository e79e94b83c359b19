//! Where this program is: images and simulated containers are made from it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The program, where it is another than the one that this process runs.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Names the program for a process that runs another, as tests do. The first name stays.
pub fn set_own_program(path: &Path) {
    PROGRAM.get_or_init(|| path.to_owned());
}

/// Where the program is.
///
/// # Errors
/// The system does not say.
pub fn own_program() -> std::io::Result<PathBuf> {
    PROGRAM.get().map_or_else(std::env::current_exe, |path| Ok(path.clone()))
}
