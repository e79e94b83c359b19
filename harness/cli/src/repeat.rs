//! `run --repeat N`: the same run several times, and the checks whose outcomes differ.

use super::compare::read;
use harness_config::{API_VERSION, RunPlan, WantedCluster, yaml};
use harness_core::files;
use harness_core::output;
use harness_report::{Flake, exit, flakes, verdict_word};
use harness_runner::{INTERRUPTED, Run, Shown, exit_code_of};
use harness_testkit::Suite;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use tokio_util::sync::CancellationToken;

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

/// Runs this many times, each with a new environment, so that the leftovers of one run cannot affect the next.
/// Stops when the next run would end in the same way without judging anything: wrong usage, nothing selected,
/// an interruption.
pub(super) fn repeat(
    suites: &'static [Suite],
    plan: &RunPlan<WantedCluster>,
    reproduce: &str,
    shown: Shown,
    times: u32,
) -> ExitCode {
    let (mut codes, mut ledgers) = (Vec::new(), Vec::new());
    for at in 1..=times {
        say(&format!("\nrepeat: run {at} of {times}"));
        let output = plan.output.join(format!("run-{at}"));
        let plan = RunPlan { output: output.clone(), ..plan.clone() };
        let (reproduce, cancel) = (reproduce.to_owned(), CancellationToken::new());
        let run = Run { suites, plan, reproduce, watch: false, cancel };
        let code = exit_code_of(run, &mut { shown });
        codes.push(code);
        if [exit::USAGE, exit::NOTHING_SELECTED, INTERRUPTED].contains(&code) {
            break;
        }
        match read(&output.join("report.yaml")) {
            Ok(ledger) => ledgers.push(ledger),
            Err(why) => {
                say(&format!("error: {why}"));
                codes.push(exit::ENVIRONMENT);
            }
        }
    }
    if ledgers.is_empty() {
        return ExitCode::from(worst(&codes));
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
        say(&format!("error: {why}"));
        codes.push(exit::ENVIRONMENT);
    }
    ExitCode::from(worst(&codes))
}

fn show(repeated: &Repeated) {
    let Repeated { asked, runs, verdicts, checks, flakes, .. } = repeated;
    let verdicts: Vec<String> = verdicts.iter().map(|(word, count)| format!("{word} {count}")).collect();
    let of = if *runs as u64 == u64::from(*asked) { String::new() } else { format!(" of {asked}") };
    say(&format!(
        "\n{runs}{of} runs ({}): {} of {checks} checks are flakes",
        verdicts.join(", "),
        flakes.len()
    ));
    flakes.iter().for_each(|flake| say(&format!("  {flake}")));
}

fn write(folder: &Path, repeated: &Repeated) -> Result<(), String> {
    let path = folder.join(SUMMARY);
    let text = yaml::to_string(repeated).map_err(|error| error.to_string())?;
    output::file(&path, text).map_err(|error| format!("{}: {}", path.display(), files::why(&error)))
}

/// The exit code of several runs: the worst of theirs.
fn worst(codes: &[u8]) -> u8 {
    const WORST_FIRST: [u8; 6] = [
        INTERRUPTED,
        exit::USAGE,
        exit::NOT_CONFORMANT,
        exit::ENVIRONMENT,
        exit::NOTHING_SELECTED,
        exit::CONFORMANT,
    ];
    WORST_FIRST.into_iter().find(|code| codes.contains(code)).unwrap_or(exit::ENVIRONMENT)
}

fn say(line: &str) {
    output::err(line);
}

#[cfg(test)]
mod tests {
    use super::worst;
    use harness_report::exit;

    #[test]
    fn one_bad_run_makes_all_bad() {
        assert_eq!(worst(&[0, 0, 0]), exit::CONFORMANT);
        assert_eq!(worst(&[0, 3, 0]), exit::ENVIRONMENT);
        assert_eq!(worst(&[3, 1, 0]), exit::NOT_CONFORMANT);
        assert_eq!(worst(&[0, 1, 130]), 130);
        assert_eq!(worst(&[]), exit::ENVIRONMENT);
    }
}
