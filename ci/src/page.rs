//! Tests `report.html` in a real browser, and takes screenshots.

use crate::process::{is_installed, program, root, run};
use crate::python::{environment, target};
use anyhow::{Result, bail};

/// The names of Chromium on different systems.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Makes pages of runs, tests them, and takes screenshots at two widths in both themes.
pub(crate) fn check() -> Result<()> {
    let Some(browser) = BROWSERS.iter().find(|name| is_installed(name, &["--version"])) else {
        bail!("no browser: install Chromium (Debian: chromium); looked for {}", BROWSERS.join(", "));
    };
    let folder = root().join("suites/tests/page");
    let python = environment("page", &folder.join("requirements.txt"))?;
    let program = format!("'{}'", program("ccm-conformance")?.display());
    let screenshots = target().join("page-screenshots").display().to_string();
    let variables = [
        ("PROGRAM", program.as_str()),
        ("BROWSER", &path_of(browser)?),
        ("SCREENSHOTS", &screenshots),
        ("PYTHONDONTWRITEBYTECODE", "1"),
    ];
    let folder = folder.display().to_string();
    run(&python, &["-m", "unittest", "discover", "--start-directory", &folder], &variables)
}

/// The path of a program.
fn path_of(program: &str) -> Result<String> {
    let all = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&all).map(|folder| folder.join(program)).find(|path| path.is_file());
    match found {
        Some(path) => Ok(path.display().to_string()),
        None => bail!("{program} runs and is in no folder of PATH"),
    }
}
