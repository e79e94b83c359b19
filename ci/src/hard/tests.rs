//! Measurements that are also tests of the workspace: here with more cases, and for their figures. They are
//! built with the whole workspace: its libraries have other features than those of a single package, and
//! would have to be compiled again.

use crate::process::{TestProgram, root, say, test_programs};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::{Command, Stdio};

/// The access tests of the embedded API server and of the fake cloud: packages' folders and tests of their
/// program `it`.
const ACCESS: [(&str, &[&str]); 2] = [
    (
        "harness/embedded-apiserver",
        &[
            "doors::requests_without_a_valid_credential_are_rejected",
            "doors::slow_oversized_and_smuggled_requests_do_nothing_to_anybody",
            "escalations::no_account_gets_more_rights_than_it_has",
        ],
    ),
    (
        "fake-cloud",
        &[
            "access::requests_without_a_valid_token_are_rejected",
            "access::slow_oversized_and_smuggled_requests_do_nothing_to_anybody",
        ],
    ),
];

pub(super) fn access() -> Result<Vec<String>> {
    let programs = test_programs(&["--workspace", "--test", "it"])?;
    let mut wrong = Vec::new();
    for (package, tests) in ACCESS {
        for test in tests {
            wrong.extend(one(&programs, package, test, &[])?);
        }
    }
    Ok(wrong)
}

/// Clients of the embedded API server that never read.
pub(super) fn unread() -> Result<Vec<String>> {
    let programs = test_programs(&["--workspace", "--test", "unread"])?;
    let mut wrong = Vec::new();
    for test in [
        "watches_that_are_not_read_cost_little",
        "watches_of_one_connection_that_are_not_read_cost_little",
        "lists_that_are_not_read_are_bounded_for_each_user",
    ] {
        wrong.extend(one(&programs, "harness/embedded-apiserver", test, &[])?);
    }
    Ok(wrong)
}

/// Measures this many combinations of fault and operation, or all.
pub(super) fn faults(cells: Option<usize>, seed: u64) -> Result<Vec<String>> {
    let programs = test_programs(&["--workspace", "--test", "faults"])?;
    let (cells, seed) = (cells.map_or("all".to_owned(), |cells| cells.to_string()), seed.to_string());
    let test = "a_cloud_that_fails_is_recovered_from_and_nothing_is_left_in_it";
    one(&programs, "suites", test, &[("HARD_CELLS", &cells), ("HARD_SEED", &seed)])
}

/// Runs one test of the package in a folder and prints its figures; returns the fault if it fails.
fn one(
    programs: &[TestProgram],
    package_folder: &str,
    test: &str,
    environment: &[(&str, &str)],
) -> Result<Vec<String>> {
    let folder = root().join(package_folder);
    let program = programs.iter().find(|program| program.folder == folder);
    let Some(TestProgram { path, .. }) = program else {
        bail!("the package in {package_folder} has no such test program")
    };
    let output = Command::new(path)
        .args(["--exact", test, "--nocapture"])
        .envs(environment.iter().copied())
        .current_dir(&folder)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("starting {path}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let is_figure = |line: &&str| ["access ", "faults ", "memory "].iter().any(|part| line.starts_with(part));
    text.lines().filter(is_figure).for_each(say);
    // A filter that matches no test counts as a success for the test program.
    if output.status.success() && text.contains("1 passed") {
        return Ok(Vec::new());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let name = Path::new(package_folder).file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(vec![format!("{name}, {test}: {}", said.trim())])
}
