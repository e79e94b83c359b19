//! `explore`: looks for bugs that no check covers.

use super::arguments::ExploreOptions;
use super::controls::plan_of;
use super::planning::planned;
use harness_clusters::{Lifetime, facts};
use harness_components::component::Change;
use harness_config::Source;
use harness_core::events::Events;
use harness_core::files;
use harness_core::output;
use harness_core::progress::Terminal;
use harness_explore::{Ended, Exploration, Finding, PATTERNS, Pattern, Results, Scenario, SharedResults};
use harness_report::exit;
use harness_runner::{FinalReport, INTERRUPTED, ORDERLY, guard};
use harness_session::settle;
use std::path::Path;
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
            output::err(&format!("error: cannot start the async runtime: {}", files::why(&error)));
            return Ok(ExitCode::from(exit::ENVIRONMENT));
        }
    };
    let events = Terminal::alone();
    let cancel = CancellationToken::new();
    let (results, last) = (SharedResults::default(), FinalReport::default());
    last.set({
        let (results, folder, events) = (results.clone(), plan.output.clone(), events.clone());
        move || {
            write(&results.so_far(), &folder, &events);
        }
    });
    guard(runtime.handle(), cancel.clone(), ORDERLY, last.clone());
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
        Some(finding) => {
            harness_explore::replay(&plan, finding, &results, runtime.handle(), &events, &cancel)
        }
        None => harness_explore::explore(&plan, &exploration, &results, runtime.handle(), &events, &cancel),
    };
    if !last.take() {
        // Then the code that ends the process is already writing the files, and ends it afterwards.
        loop {
            std::thread::park();
        }
    }
    let results = results.so_far();
    // An environment that never came up has no results, and earlier ones stay.
    let is_empty = outcome.is_err() && results.trials.is_empty();
    let written = is_empty || write(&results, &plan.output, &events);
    last.written();
    if let Err(why) = &outcome {
        events.say(format!("error: {why}"));
    }
    Ok(ExitCode::from(match outcome.is_ok() && written {
        _ if cancel.is_cancelled() => INTERRUPTED,
        false => exit::ENVIRONMENT,
        true if finding.is_some() => replayed(&results, &events),
        true if options.require_clean && !results.findings.is_empty() => exit::NOT_CONFORMANT,
        true => exit::CONFORMANT,
    }))
}

/// Writes the files and prints the summary; returns whether they could be written.
fn write(results: &Results, folder: &Path, events: &Events) -> bool {
    let made = files::create_folder(folder).map_err(|error| format!("--out {}: {error}", folder.display()));
    let written = made.and_then(|()| results.write(folder));
    events.say(format!("{results}; {}", folder.display()));
    if let Err(why) = &written {
        events.say(format!("error: {why}"));
    }
    written.is_ok()
}

/// The exit code of a replay. A fault that was never met, or an environment that failed, proves nothing.
fn replayed(results: &Results, events: &Events) -> u8 {
    let (all, seen, agrees) =
        (results.trials.len(), results.count(Ended::Diverges), results.count(Ended::Agrees));
    if seen > 0 {
        events.say(format!("the finding was seen in {seen} of {all} trials"));
        exit::NOT_CONFORMANT
    } else if agrees < all {
        events.say(format!(
            "error: only {agrees} of {all} trials show anything: in the others the CCM did not make the request at which the \
             fault was to be, or the environment failed"
        ));
        exit::ENVIRONMENT
    } else {
        events.say(format!("the finding was not seen in {all} trials"));
        exit::CONFORMANT
    }
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
