//! `run --repeat N`: the same run several times, and the checks whose outcomes differ.

use super::series::{OneOf, series};
use harness_config::{API_VERSION, RunPlan, WantedCluster, yaml};
use harness_core::files;
use harness_core::ledger::Ledger;
use harness_core::output;
use harness_report::{Flake, flakes, verdict_word};
use harness_runner::Shown;
use harness_testkit::Suite;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

/// The name of the file with the summary.
const SUMMARY: &str = "repeat.yaml";

/// The summary of several runs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Repeated {
    api_version: &'static str,
    kind: &'static str,
    /// How many runs were requested.
    asked: u32,
    /// How many runs wrote a report.
    runs: usize,
    /// How many runs ended with each verdict.
    verdicts: BTreeMap<&'static str, usize>,
    /// The number of checks.
    checks: usize,
    /// The checks that did not end in the same way in every run.
    flakes: Vec<Flake>,
}

/// Runs this many times.
pub(super) fn repeat(
    suites: &'static [Suite],
    plan: &RunPlan<WantedCluster>,
    reproduce: &str,
    shown: Shown,
    times: u32,
) -> ExitCode {
    let runs = (1..=times).map(|at| OneOf {
        heading: format!("repeat: run {at} of {times}"),
        folder: format!("run-{at}"),
        plan: plan.clone(),
        reproduce: reproduce.to_owned(),
    });
    let mut ended = series(suites, runs.collect(), shown);
    let ledgers: Vec<Ledger> = std::mem::take(&mut ended.ledgers).into_iter().map(|(_, one)| one).collect();
    if ledgers.is_empty() {
        return ExitCode::from(ended.code());
    }
    let mut verdicts = BTreeMap::new();
    for ledger in &ledgers {
        *verdicts.entry(verdict_word(ledger.conformance())).or_default() += 1;
    }
    let repeated = Repeated {
        api_version: API_VERSION,
        kind: "Repeat",
        asked: times,
        runs: ledgers.len(),
        verdicts,
        checks: ledgers.iter().map(|ledger| ledger.all().count()).max().unwrap_or(0),
        flakes: flakes(&ledgers),
    };
    show(&repeated);
    if let Err(why) = write(&plan.output, &repeated) {
        ended.went_wrong(&why);
    }
    ExitCode::from(ended.code())
}

fn show(repeated: &Repeated) {
    let Repeated { asked, runs, verdicts, checks, flakes, .. } = repeated;
    let verdicts: Vec<String> = verdicts.iter().map(|(word, count)| format!("{word} {count}")).collect();
    let of = if *runs as u64 == u64::from(*asked) { String::new() } else { format!(" of {asked}") };
    output::err(&format!(
        "\n{runs}{of} runs ({}): {} of {checks} checks are flakes",
        verdicts.join(", "),
        flakes.len()
    ));
    flakes.iter().for_each(|flake| output::err(&format!("  {flake}")));
}

fn write(folder: &Path, repeated: &Repeated) -> Result<(), String> {
    let path = folder.join(SUMMARY);
    let text = yaml::to_string(repeated).map_err(|error| error.to_string())?;
    output::file(&path, text).map_err(|error| format!("{}: {}", path.display(), files::why(&error)))
}
