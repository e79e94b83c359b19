//! `clean`: removes what earlier runs left, by label and name; leaves runs alone that are still going.

use crate::cluster::{Leftover, remove_leftovers};
use crate::images::{Engine, EngineError};
use crate::report::exit;
use crate::session::{FOLDER_PREFIX, RunDir};
use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;

pub(super) fn clean() -> ExitCode {
    let mut failed = false;
    let (going, mut folders) = run_folders();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            say(&format!("no runtime: {error}"));
            return ExitCode::from(exit::ENVIRONMENT);
        }
    };
    match runtime.block_on(async {
        let engine = match Engine::connect().await {
            Ok(engine) => engine,
            // Without Docker no run can have left anything there.
            Err(EngineError::NoSocket { path }) => {
                say(&format!("no Docker engine at {}: nothing to look for there", path.display()));
                return Ok(Vec::new());
            }
            Err(error) => return Err(error.into()),
        };
        let abandoned = |thing: &Leftover| thing.run.as_ref().is_none_or(|run| !going.contains(run.as_str()));
        remove_leftovers(&engine, abandoned).await.map_err(anyhow::Error::from)
    }) {
        Ok(removed) => removed.iter().for_each(|what| say(&format!("removed {} {}", what.kind, what.name))),
        Err(error) => {
            failed = true;
            say(&format!("{error:#}"));
        }
    }
    folders.retain(|folder| match std::fs::remove_dir_all(folder) {
        Ok(()) => {
            say(&format!("removed {}", folder.display()));
            false
        }
        Err(error) => {
            say(&format!("removing {}: {error}", folder.display()));
            true
        }
    });
    for run in &going {
        say(&format!("run {run} is still going: left alone"));
    }
    if failed || !folders.is_empty() { ExitCode::from(exit::ENVIRONMENT) } else { ExitCode::SUCCESS }
}

fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Ids of runs whose owner lives, and the folders of all others.
fn run_folders() -> (BTreeSet<String>, Vec<std::path::PathBuf>) {
    let mut going = BTreeSet::new();
    let mut abandoned = Vec::new();
    for entry in std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(run) = name.strip_prefix(FOLDER_PREFIX) else { continue };
        if !entry.path().is_dir() {
            continue;
        }
        if RunDir::is_owned(&entry.path()) {
            going.insert(run.to_owned());
        } else {
            abandoned.push(entry.path());
        }
    }
    (going, abandoned)
}
