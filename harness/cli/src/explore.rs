//! `explore`: looks for bugs that no check covers.

use super::arguments::ExploreOptions;
use super::controls::plan_of;
use super::planning::planned;
use harness_clusters::{Lifetime, facts};
use harness_components::component::Change;
use harness_config::Source;
use harness_core::events::Events;
use harness_core::output;
use harness_core::progress::Terminal;
use harness_explore::{Exploration, Finding, PATTERNS, Pattern, Results, Scenario};
use harness_report::exit;
use harness_runner::{FinalReport, INTERRUPTED, ORDERLY, guard};
use harness_session::settle;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// How many embedded clusters work at the same time: trials mostly wait.
const EMBEDDED_JOBS: usize = 12;

/// `ccm-conformance explore`.
pub(super) fn explore(options: &ExploreOptions) -> ExitCode {
    match Scenario::built_in(&options.scenario).and_then(|scenarios| begin(options, scenarios)) {
        Ok(code) => code,
        Err(why) => refused(&why),
    }
}

/// # Errors
/// What is wrong with the input; nothing was started.
fn begin(options: &ExploreOptions, scenarios: Vec<Scenario>) -> Result<ExitCode, String> {
    let chosen = PATTERNS.iter().filter(|pattern| options.pattern.iter().any(|name| name == pattern.name()));
    let patterns: Vec<Pattern> = chosen.copied().collect();
    if options.list {
        output::out(&list(&scenarios));
        return Ok(ExitCode::from(exit::CONFORMANT));
    }
    let finding = options.replay.as_deref().map(Finding::read).transpose()?;
    let chosen = match (&options.mutant, &options.stranger) {
        (Some(id), _) => Ok(plan_of(Change::Mutant, id, options.overrides())?),
        (None, Some(id)) => Ok(plan_of(Change::Variant, id, options.overrides())?),
        (None, None) => planned(&Source::Defaults, options.overrides()),
    };
    let mut plan = match chosen {
        Ok(plan) => plan,
        Err(code) => return Ok(code),
    };
    if !plan.profile.has_ccm() {
        return Err(format!("profile '{}' has no CCM that could be explored", plan.profile.name));
    }
    // A second replica would take over from one that is killed, and the trial would be about that.
    plan.profile.replicas = 1;
    let runtime = match Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            output::err(&format!("error: cannot start the async runtime: {error}"));
            return Ok(ExitCode::from(exit::ENVIRONMENT));
        }
    };
    let events = Terminal::alone();
    let cancel = CancellationToken::new();
    guard(runtime.handle(), cancel.clone(), ORDERLY, FinalReport::default());
    let (plan, why) = runtime.block_on(settle(plan));
    why.iter().for_each(|why| events.say(why));
    let lifetime = facts(plan.cluster.backend()).lifetime;
    let usual = if lifetime == Lifetime::Process { EMBEDDED_JOBS } else { 1 };
    let exploration = Exploration {
        scenarios,
        patterns,
        budget: options.budget.0,
        jobs: options.jobs.map_or(usual, usize::from),
        seed: options.seed,
        most_findings: usize::from(options.max_findings),
    };
    let plan = Arc::new(plan);
    let outcome = match &finding {
        Some(finding) => harness_explore::replay(&plan, finding, runtime.handle(), &events, &cancel),
        None => harness_explore::explore(&plan, &exploration, runtime.handle(), &events, &cancel),
    };
    Ok(match outcome {
        Err(why) => {
            events.say(format!("error: {why}"));
            ExitCode::from(exit::ENVIRONMENT)
        }
        Ok(results) => {
            let fails = options.require_clean || finding.is_some();
            concluded(&results, &plan.output, fails, cancel.is_cancelled(), &events)
        }
    })
}

/// Writes the files and prints the summary.
fn concluded(
    results: &Results,
    folder: &std::path::Path,
    findings_fail: bool,
    interrupted: bool,
    events: &Events,
) -> ExitCode {
    let written = std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()));
    let written = written.and_then(|()| results.write(folder));
    events.say(format!("{results}; {}", folder.display()));
    if let Err(why) = written {
        events.say(format!("error: {why}"));
        return ExitCode::from(exit::ENVIRONMENT);
    }
    ExitCode::from(match interrupted {
        true => INTERRUPTED,
        false if findings_fail && !results.findings.is_empty() => exit::NOT_CONFORMANT,
        false => exit::CONFORMANT,
    })
}

fn list(scenarios: &[Scenario]) -> String {
    let mut text = String::from("Scenarios\n");
    for scenario in scenarios {
        text.push_str(&format!("  {:<24}{}\n", scenario.name, scenario.about));
    }
    text.push_str("\nPatterns: a request, call or step ...\n");
    for pattern in PATTERNS {
        text.push_str(&format!("  {:<24}{}\n", pattern.name(), pattern.in_words()));
    }
    text
}

fn refused(why: &str) -> ExitCode {
    output::err(&format!("error: {why}"));
    ExitCode::from(exit::USAGE)
}
