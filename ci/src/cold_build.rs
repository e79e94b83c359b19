//! Measures the cost of a build from nothing: processor time by crate, as used by rustc itself.
//!
//! Cargo starts rustc through this program, which starts the compiler, waits for it and records the time that
//! it used.

use crate::process::{command, say};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

/// Set for the wrapper of rustc: the file in which it records times.
const TIMES: &str = "CCM_CONFORMANCE_RUSTC_TIMES";
/// How many crates are listed; the others are summed up.
const NAMED: usize = 25;
/// Clock ticks in a second, the unit in which Linux reports processor time to programs on every architecture.
const TICKS: f64 = 100.0;

/// Builds a package with its dependencies in a separate folder and prints the time for each crate.
pub(crate) fn measure(package: &str, profile: &str) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("ccm-conformance-cold-build-{}", std::process::id()));
    let built = build(package, profile, &folder);
    let removed = std::fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()));
    built.and(removed)
}

fn build(package: &str, profile: &str, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let times = folder.join("times");
    let began = Instant::now();
    let status = command("cargo")
        .args(["build", "--locked", "--profile", profile, "--package", package])
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .env("RUSTC_WRAPPER", std::env::current_exe()?)
        .env(TIMES, &times)
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .status()
        .context("starting cargo")?;
    if !status.success() {
        bail!("cargo build failed: {status}");
    }
    let text = std::fs::read_to_string(&times).with_context(|| format!("reading {}", times.display()))?;
    let all = used_by_children()?;
    for line in table(&text, all) {
        say(&line);
    }
    say(&format!("{all:9.1}  altogether, in {:.0} s", began.elapsed().as_secs_f64()));
    Ok(())
}

/// Seconds of processor time by crate, the most expensive first.
fn table(times: &str, all: f64) -> Vec<String> {
    let mut crates: BTreeMap<&str, (f64, u32)> = BTreeMap::new();
    for (name, took) in times.lines().filter_map(|line| line.split_once(' ')) {
        let (sum, count) = crates.entry(name).or_default();
        *sum += took.parse::<f64>().unwrap_or_default();
        *count += 1;
    }
    let mut crates: Vec<(&str, f64, u32)> =
        crates.into_iter().map(|(name, (sum, n))| (name, sum, n)).collect();
    crates.sort_by(|a, b| b.1.total_cmp(&a.1));
    let of_rustc: f64 = crates.iter().map(|(_, sum, _)| sum).sum();
    let mut lines = vec![String::from("processor seconds")];
    for (name, sum, count) in crates.iter().take(NAMED) {
        let times = if *count > 1 { format!(" ({count} times)") } else { String::new() };
        lines.push(format!("{sum:9.1}  {name}{times}"));
    }
    if let Some(others) = crates.get(NAMED..).filter(|others| !others.is_empty()) {
        let sum: f64 = others.iter().map(|(_, sum, _)| sum).sum();
        lines.push(format!("{sum:9.1}  {} other crates", others.len()));
    }
    lines.push(format!("{:9.1}  build scripts and cargo itself", (all - of_rustc).max(0.0)));
    lines
}

/// Whether Cargo started this program instead of rustc; then it has done rustc's work.
pub(crate) fn as_rustc() -> Option<ExitCode> {
    let times = std::env::var_os(TIMES)?;
    let mut arguments = std::env::args_os().skip(1);
    let rustc = arguments.next()?;
    let arguments: Vec<OsString> = arguments.collect();
    let status = Command::new(rustc).args(&arguments).status().ok()?;
    let named = arguments.iter().position(|argument| argument == "--crate-name");
    if let Some(name) = named.and_then(|at| arguments.get(at + 1))
        && let Ok(used) = used_by_children()
        && let Ok(mut file) = OpenOptions::new().create(true).append(true).open(times)
    {
        // One write, so that lines of compilers that end at the same time stay whole. A lost time is
        // attributed to Cargo.
        let _ = file.write_all(format!("{} {used:.2}\n", name.to_string_lossy()).as_bytes());
    }
    Some(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

/// The processor time of all children that have ended, including their own children, in seconds.
fn used_by_children() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").context("reading /proc/self/stat")?;
    children_in(&stat).with_context(|| format!("'{stat}' is not of the form of proc(5)"))
}

/// User and system time of the children in proc(5)'s stat: the fields 16 and 17, the second of which ends with the last `)`.
fn children_in(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(13);
    let (user, system): (f64, f64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((user + system) / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_children_are_read_whatever_the_program_is_called() {
        let stat = "7 (a b) c) S 1 7 7 0 -1 4194304 100 0 0 0 3 2 450 50 20 0 1 0 99 0 0";
        assert_eq!(children_in(stat), Some(5.0));
        assert_eq!(children_in("7 (x) S 1"), None);
        assert!(used_by_children().is_ok());
    }

    #[test]
    fn crates_are_listed_with_the_dearest_first_and_what_is_left_is_cargos() {
        let lines = table("serde 2.50\nharness 40.00\nserde 1.50\n", 50.0);
        assert_eq!(
            lines,
            [
                "processor seconds",
                "     40.0  harness",
                "      4.0  serde (2 times)",
                "      6.0  build scripts and cargo itself"
            ]
        );
    }
}
