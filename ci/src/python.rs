//! Python programs with requirements, each in its own virtual environment.

use crate::process::{root, run};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// The Python of a virtual environment with this name and these `requirements`; created once and updated each time.
pub(crate) fn environment(name: &str, requirements: &Path) -> Result<String> {
    let place = target().join(name);
    let python = place.join("bin/python").display().to_string();
    if !Path::new(&python).is_file() {
        run("python3", &["-m", "venv", &place.display().to_string()], &[])
            .context("making a virtual environment (Debian and Ubuntu have it in python3-venv)")?;
    }
    let requirements = requirements.display().to_string();
    let install =
        ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", &requirements];
    run(&python, &install, &[])?;
    Ok(python)
}

/// The folder for programs and their output.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}
