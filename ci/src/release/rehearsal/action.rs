//! The Action, used by a tag, a moving tag and a commit.

use super::place::{Place, REPOSITORY, output};
use crate::process::say;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;

/// Checks out the Action as a runner does, and runs the steps of `action.yml`: the release is found, its program
/// downloaded and verified, and the checks run.
///
/// # Errors
/// A step fails, the program is not that of the release, or the result is not the expected one.
pub(super) fn uses(place: &Place, reference: &str, tag: &str, only: &str) -> Result<()> {
    let job = place.path(&format!("job-{reference}"));
    let sources = job.join("action");
    fs::create_dir(&job)?;
    place.git(&job, &["clone", "--quiet", "--no-checkout", &place.repository(), "action"])?;
    place.git(&sources, &["checkout", "--quiet", reference])?;
    let found = step(place, &job, "release", &[("ACTION_REF", reference)])?;
    let (found_tag, folder) = (output(&found, "tag")?, output(&found, "folder")?);
    ensure!(found_tag == tag, "the Action at {reference} belongs to {found_tag} instead of {tag}");

    let environment = [("TAG", tag), ("FOLDER", folder), ("GH_TOKEN", "none")];
    let program = step(place, &job, "program", &environment)?;
    let program = output(&program, "program")?;
    ensure!(Path::new(program).starts_with(folder), "{program} was not downloaded");

    let inputs = [
        ("PROGRAM", program),
        ("PROFILE", "reference"),
        ("CLUSTER", "embedded"),
        ("ONLY", only),
        ("OUT", "results"),
        ("CERTIFY", "false"),
    ];
    let unset = ["IMAGE", "BINARY", "KUBERNETES", "SUITES", "SKIP", "SHARD", "ARGUMENTS", "ARTIFACT"];
    let unset = unset.map(|name| (name, ""));
    let ran = step(place, &job, "run", &[&inputs[..], &unset].concat())?;
    let (code, verdict) = (output(&ran, "exit-code")?, output(&ran, "verdict")?);
    ensure!(
        (code, verdict) == ("0", "partial"),
        "the Action at {reference} ends with {code} and the verdict '{verdict}'; some checks have to give 'partial'"
    );
    ensure!(job.join(output(&ran, "page")?).is_file(), "the Action at {reference} wrote no page");
    say(&format!(
        "Action at {reference}: the program of {tag} was downloaded and verified; verdict {verdict}"
    ));
    Ok(())
}

/// Runs the script of a step, and returns its outputs.
fn step(place: &Place, job: &Path, script: &str, more: &[(&str, &str)]) -> Result<Vec<(String, String)>> {
    let text = |path: &Path| path.display().to_string();
    let (sources, temporary, tools) = (text(&job.join("action")), text(job), text(&job.join("tools")));
    let outputs = format!("outputs-{script}");
    let to = text(&job.join(&outputs));
    let path = text(&job.join("action/ci/action").join(script));
    let environment = [
        ("GIVEN", ""),
        ("ACTION_REPOSITORY", REPOSITORY),
        ("GITHUB_ACTION_PATH", &sources),
        ("GITHUB_OUTPUT", &to),
        ("GITHUB_RUN_ID", "1"),
        ("GITHUB_JOB", "rehearsal"),
        ("RUNNER_NAME", "this machine"),
        ("RUNNER_TEMP", &temporary),
        ("RUNNER_TOOL_CACHE", &tools),
    ];
    let said = place.run(job, &[&path], &[&environment[..], more].concat())?;
    ensure!(!said.contains("was not verified"), "the Action did not verify the provenance:\n{said}");
    let name = job.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    place
        .outputs(&format!("{name}/{outputs}"))
        .with_context(|| format!("the step '{script}' printed:\n{said}"))
}
