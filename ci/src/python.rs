//! Python programs with requirements, each in a virtual environment of its own.

use crate::process::{root, run};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// Python of a virtual environment of this name that has what `requirements` names; made once and brought up to date each
/// time.
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

/// Where programs and what they make are kept.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}
