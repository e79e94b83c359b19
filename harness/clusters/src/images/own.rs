//! The path of this program, from which images and simulated containers are made.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The program, if it is not the one of this process.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Sets the program for a process that runs another one, such as a test. The first call wins.
pub fn set_own_program(path: &Path) {
    PROGRAM.get_or_init(|| path.to_owned());
}

/// The path of the program.
///
/// # Errors
/// The system does not report it.
pub fn own_program() -> std::io::Result<PathBuf> {
    PROGRAM.get().map_or_else(std::env::current_exe, |path| Ok(path.clone()))
}
