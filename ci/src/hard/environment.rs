//! Disturbances of a run's environment that no check makes. In spite of them, a correct CCM fails no MUST: a
//! check that cannot be judged is reported as an environment error.

use super::disturbance::{Disturbance, disturb};
use super::kills::On;
use super::watched::until_it_ends;
use crate::process::say;
use crate::run_figures::{RunFigures, figures};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How often it is checked whether the run has ended.
const LOOK: Duration = Duration::from_millis(200);
/// After this time a run is considered stuck.
const LIMIT: Duration = Duration::from_secs(3600);

/// Runs the reference CCM once for each disturbance, each time with the checks `only`, if given.
pub(super) fn measure(
    program: &Path,
    on: On,
    chosen: &[Disturbance],
    only: Option<&str>,
) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for disturbance in Disturbance::of(on).into_iter().filter(|one| chosen.is_empty() || chosen.contains(one))
    {
        wrong.extend(one(program, on, disturbance, only)?);
    }
    Ok(wrong)
}

fn one(program: &Path, on: On, disturbance: Disturbance, only: Option<&str>) -> Result<Vec<String>> {
    let folder = tempfile::tempdir()?;
    let (out, console) = (folder.path().join("out"), folder.path().join("console.txt"));
    let mut command = Command::new(program);
    command.args(["run", "--cluster", on.word(), "--out"]).arg(&out);
    command.args(only.iter().flat_map(|only| only.split(',')).flat_map(|only| ["--only", only]));
    let prepared = disturbance.prepare(folder.path(), &mut command)?;
    let console_file = std::fs::File::create(&console)?;
    let mut child = command
        .env("TMPDIR", folder.path())
        .stdin(Stdio::null())
        .stdout(console_file.try_clone()?)
        .stderr(console_file)
        .spawn()
        .with_context(|| format!("starting {}", program.display()))?;
    let disturbing = disturb(disturbance, child.id(), console.clone());
    let status = until_it_ends(&mut child, LOOK, LIMIT, |_| ())?;
    let times = disturbing.stop() + prepared.map_or(0, |prepared| prepared.times());
    let Some(status) = status else { bail!("a run went on for more than {} s", LIMIT.as_secs()) };
    let said = std::fs::read_to_string(&console).unwrap_or_default();
    let read =
        figures(&out.join("events.jsonl")).with_context(|| format!("the run ended with {status}:\n{said}"));
    let RunFigures { held_against, judged_again, errors, ended, .. } = read?;
    say(&format!(
        "surroundings {disturbance} on {}, {times} times: ended with {}, {} checks judged again, {} not judged, {} failed or \
         blocked",
        on.word(),
        status.code().unwrap_or(-1),
        judged_again.len(),
        errors.len(),
        held_against.len()
    ));
    let mut wrong: Vec<String> =
        held_against.iter().map(|check| format!("{disturbance} on {}: {check}", on.word())).collect();
    if !matches!(status.code(), Some(0 | 3)) || ended == 0 {
        wrong.push(format!("{disturbance} on {}: the run ended with {status}:\n{said}", on.word()));
    }
    if times == 0 {
        wrong.push(format!("{disturbance} on {}: nothing was disturbed", on.word()));
    }
    Ok(wrong)
}
