//! Several runs one after another, each with a folder and an environment of its own, so that the leftovers of one run cannot
//! affect the next.

use super::compare::read;
use harness_config::{RunPlan, WantedCluster};
use harness_core::ledger::Ledger;
use harness_core::output;
use harness_report::exit;
use harness_runner::{INTERRUPTED, Run, Shown, Watch, exit_code_of};
use harness_testkit::Suite;
use tokio_util::sync::CancellationToken;

/// One of the runs.
pub(super) struct OneOf {
    /// Says which run it is, before it begins.
    pub(super) heading: String,
    /// The folder of its report, in the folder of the plan.
    pub(super) folder: String,
    /// What it does; its output folder is that of the whole series.
    pub(super) plan: RunPlan<WantedCluster>,
    /// The command that repeats this run.
    pub(super) reproduce: String,
}

/// How a series ended.
#[derive(Debug, Default)]
pub(super) struct Ended {
    codes: Vec<u8>,
    /// The runs that wrote a report, each with its position.
    pub(super) ledgers: Vec<(usize, Ledger)>,
}

impl Ended {
    /// Something else went wrong: the summary of the series could not be written.
    pub(super) fn went_wrong(&mut self, why: &str) {
        output::err(&format!("error: {why}"));
        self.codes.push(exit::ENVIRONMENT);
    }

    /// The exit code of the series: the worst of its runs.
    pub(super) fn code(&self) -> u8 {
        worst(&self.codes)
    }
}

/// Carries out the runs. Stops when the next run would end in the same way without judging anything: wrong usage, nothing
/// selected, an interruption.
pub(super) fn series(suites: &'static [Suite], runs: Vec<OneOf>, shown: Shown) -> Ended {
    let mut ended = Ended::default();
    for (at, OneOf { heading, folder, plan, reproduce }) in runs.into_iter().enumerate() {
        output::err(&format!("\n{heading}"));
        let output = plan.output.join(folder);
        let plan = RunPlan { output: output.clone(), ..plan };
        let run = Run { suites, plan, reproduce, watch: Watch::No, cancel: CancellationToken::new() };
        let code = exit_code_of(run, &mut { shown });
        ended.codes.push(code);
        if [exit::USAGE, exit::NOTHING_SELECTED, INTERRUPTED].contains(&code) {
            break;
        }
        match read(&output.join("report.yaml")) {
            Ok(ledger) => ended.ledgers.push((at, ledger)),
            Err(why) => ended.went_wrong(&why),
        }
    }
    ended
}

/// The exit code of several runs: the worst of theirs.
fn worst(codes: &[u8]) -> u8 {
    const WORST_FIRST: [u8; 7] = [
        INTERRUPTED,
        exit::USAGE,
        exit::NOT_CONFORMANT,
        exit::ENVIRONMENT,
        exit::NOTHING_SELECTED,
        exit::PRIVATE_FAILED,
        exit::CONFORMANT,
    ];
    WORST_FIRST.into_iter().find(|code| codes.contains(code)).unwrap_or(exit::ENVIRONMENT)
}

#[cfg(test)]
mod tests {
    use super::worst;
    use harness_report::exit;

    #[test]
    fn one_bad_run_makes_all_bad() {
        assert_eq!(worst(&[0, 0, 0]), exit::CONFORMANT);
        assert_eq!(worst(&[0, 5, 0]), exit::PRIVATE_FAILED);
        assert_eq!(worst(&[0, 3, 5]), exit::ENVIRONMENT);
        assert_eq!(worst(&[3, 1, 0]), exit::NOT_CONFORMANT);
        assert_eq!(worst(&[0, 1, 130]), 130);
        assert_eq!(worst(&[]), exit::ENVIRONMENT);
    }
}
