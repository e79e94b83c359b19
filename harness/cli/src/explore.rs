//! `explore`: looks for bugs that no check covers.

use super::arguments::ExploreOptions;
use super::command_line::reproduce;
use super::controls::plan_of;
use super::planning::planned;
use harness_clusters::{Lifetime, facts};
use harness_components::component::Change;
use harness_config::{Profile, Source};
use harness_core::check::chain;
use harness_core::events::{EVENTS_FILE, Events};
use harness_core::progress::Terminal;
use harness_core::{files, output};
use harness_explore::{
    Ended, Exploration, Finding, Findings, PAGE_FILE, PATTERNS, Pattern, Results, Scenario, SharedResults,
    Stopped, Subject, TRIALS_FILE,
};
use harness_report::exit;
use harness_runner::{FinalReport, INTERRUPTED, ORDERLY, guard};
use harness_session::settle;
use harness_session::up::startable;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// The folder in a profile's folder with findings that must not be seen again.
const KNOWN_FINDINGS: &str = "findings";
/// How many embedded clusters work at the same time: trials mostly wait.
const EMBEDDED_JOBS: usize = 12;

/// `ccm-conformance explore`.
pub(super) fn explore(options: &ExploreOptions) -> ExitCode {
    let random = harness_explore::random(options.seed, usize::from(options.random));
    match Scenario::choose(&options.scenario, random).and_then(|scenarios| begin(options, scenarios)) {
        Ok(code) => code,
        Err(why) => refused(&why),
    }
}

/// # Errors
/// What is wrong with the input; nothing was started.
fn begin(options: &ExploreOptions, scenarios: Vec<Scenario>) -> Result<ExitCode, String> {
    let chosen = PATTERNS.iter().filter(|pattern| options.pattern.iter().any(|name| name == pattern.name()));
    let mut patterns: Vec<Pattern> = chosen.copied().collect();
    if options.list {
        output::out_wrapped(&list(&scenarios));
        return Ok(ExitCode::from(exit::CONFORMANT));
    }
    if options.budget.0.is_zero() {
        return Err("--budget is 0s: nothing would be tried; give more time, for example 5m".to_owned());
    }
    let finding = options.replay.as_deref().map(Finding::read).transpose()?;
    let chosen = match (&options.mutant, &options.variant) {
        (Some(id), _) => Ok(plan_of(Change::Mutant, id, options.overrides())?),
        (None, Some(id)) => Ok(plan_of(Change::Variant, id, options.overrides())?),
        (None, None) => planned(&Source::Defaults, options.overrides()),
    };
    let plan = match chosen {
        Ok(plan) => plan,
        Err(code) => return Ok(code),
    };
    if !plan.profile.has_ccm() {
        return Err(format!("profile '{}' has no CCM that could be explored", plan.profile.name));
    }
    files::writable_folder(&plan.output)
        .map_err(|error| format!("--out {}: {error}", plan.output.display()))?;
    let known = known_findings(&plan.profile)?;
    let declared = plan.profile.declares();
    let (scenarios, beyond): (Vec<Scenario>, Vec<Scenario>) =
        scenarios.into_iter().partition(|scenario| scenario.needs().is_subset(&declared));
    let runtime = match Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            output::err(&format!("error: cannot start the async runtime: {}", files::why(&error)));
            return Ok(ExitCode::from(exit::ENVIRONMENT));
        }
    };
    let events = Terminal::alone();
    let cancel = CancellationToken::new();
    let ccm = options.mutant.as_ref().or(options.variant.as_ref());
    let ccm = ccm.map_or(plan.profile.name.clone(), |id| format!("{}, {id}", plan.profile.name));
    let words: Vec<String> = std::env::args().skip(1).collect();
    let started = jiff::Timestamp::now().round(jiff::Unit::Second).unwrap_or_default().to_string();
    let subject = Subject { ccm: ccm.clone(), started, reproduce: reproduce(&words) };
    let (results, last) = (SharedResults::of(subject), FinalReport::default());
    let findings = if finding.is_some() { Findings::Kept } else { Findings::Replaced };
    last.set({
        let (results, folder, events) = (results.clone(), plan.output.clone(), events.clone());
        move || {
            write(&results.so_far(), &folder, findings, &events);
        }
    });
    guard(runtime.handle(), cancel.clone(), ORDERLY, last.clone());
    let (plan, why) = runtime.block_on(settle(plan));
    if let Err(error) = startable(&plan)
        && error.is_usage()
    {
        return Err(chain(&error));
    }
    why.iter().for_each(|why| events.say(why));
    let lifetime = facts(plan.cluster.backend()).lifetime;
    if !beyond.is_empty() {
        let names: Vec<&str> = beyond.iter().map(|scenario| scenario.name.as_str()).collect();
        events.say(format!("skipped, as the profile does not declare what they need: {}", names.join(", ")));
    }
    let usual = if lifetime == Lifetime::Process { EMBEDDED_JOBS } else { 1 };
    if patterns.is_empty() {
        patterns = PATTERNS.to_vec();
    }
    if lifetime != Lifetime::Process {
        let skipped: Vec<&str> = patterns
            .iter()
            .filter(|pattern| pattern.needs_embedded())
            .map(|pattern| pattern.name())
            .collect();
        patterns.retain(|pattern| !pattern.needs_embedded());
        events.say(format!(
            "faults of requests to the API server need '--cluster embedded' and are skipped; so are the patterns: {}",
            if skipped.is_empty() { "none".to_owned() } else { skipped.join(", ") }
        ));
    }
    let exploration = Exploration {
        scenarios,
        patterns,
        known: known.iter().map(|(_, finding)| finding.clone()).collect(),
        most_pairs: options.pairs.map_or(usize::MAX, |pairs| usize::try_from(pairs).unwrap_or(usize::MAX)),
        shard: options.shard,
        budget: options.budget.0,
        jobs: options.jobs.map_or(usual, usize::from),
        seed: options.seed,
        most_findings: usize::from(options.max_findings),
    };
    events.say(format!("CCM: profile {ccm}"));
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
    let written = is_empty || write(&results, &plan.output, findings, &events);
    last.written();
    if let Err(why) = &outcome {
        events.say(format!("error: {why}"));
    }
    Ok(ExitCode::from(match outcome.is_ok() && written {
        _ if cancel.is_cancelled() => INTERRUPTED,
        _ if matches!(outcome, Err(Stopped::NotStarted(_))) => exit::NOT_CONFORMANT,
        false => exit::ENVIRONMENT,
        true if finding.is_some() => replayed(&results, &events),
        true if !is_explored(&results, &events) => exit::ENVIRONMENT,
        true if seen_again(&known, &results, &events) => exit::NOT_CONFORMANT,
        true if options.require_clean && !results.findings.is_empty() => exit::NOT_CONFORMANT,
        true => exit::CONFORMANT,
    }))
}

/// The findings in the profile's folder, with their files: bugs of this CCM that must not come back.
///
/// # Errors
/// The file with what is wrong with it.
fn known_findings(profile: &Profile) -> Result<Vec<(PathBuf, Finding)>, String> {
    let folder = profile.folder().join(KNOWN_FINDINGS);
    if !profile.file.exists() || !folder.is_dir() {
        return Ok(Vec::new());
    }
    let unreadable = |error: std::io::Error| format!("{}: {}", folder.display(), files::why(&error));
    let mut all = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            all.push(path);
        }
    }
    all.sort();
    all.into_iter().map(|path| Finding::read(&path).map(|finding| (path, finding))).collect()
}

/// Names the files of known findings that were seen again; returns whether there are any.
fn seen_again(known: &[(PathBuf, Finding)], results: &Results, events: &Events) -> bool {
    let is_seen = |finding: &Finding| {
        results.trials.iter().any(|trial| trial.outcome == Ended::Diverges && trial.plan == finding.summary)
    };
    let again: Vec<&PathBuf> =
        known.iter().filter(|(_, known)| is_seen(known)).map(|(path, _)| path).collect();
    for path in &again {
        events.say(format!("seen again: {}", path.display()));
    }
    if !known.is_empty() && again.is_empty() {
        events.say(format!("none of the {} known findings of the profile was seen again", known.len()));
    }
    !again.is_empty()
}

/// Joins the results of the parts of an exploration, which several machines have carried out.
///
/// # Errors
/// The part that cannot be read, or the file that cannot be written.
pub(super) fn merge_explorations(parts: &[PathBuf], out: &Path) -> Result<u8, String> {
    let parts = parts.iter().map(|folder| Results::read(folder)).collect::<Result<Vec<Results>, String>>()?;
    let merged = Results::merge(parts)?;
    std::fs::create_dir_all(out)
        .map_err(|error| format!("{}: {}", out.display(), files::why_not_written(&error)))?;
    merged.write(out, Findings::Replaced)?;
    output::out(&format!("{merged}; {}", out.display()));
    Ok(exit::CONFORMANT)
}

/// Whether a folder has the results of an exploration, and none of a run.
pub(super) fn is_exploration(folder: &Path) -> bool {
    folder.join(TRIALS_FILE).exists() && !folder.join(EVENTS_FILE).exists()
}

/// Writes the files and prints the summary; returns whether they could be written.
fn write(results: &Results, folder: &Path, findings: Findings, events: &Events) -> bool {
    let made = files::create_folder(folder).map_err(|error| format!("--out {}: {error}", folder.display()));
    let written = made.and_then(|()| results.write(folder, findings));
    events.say(results.to_string());
    if written.is_ok() {
        events.say(format!("wrote {}", folder.join(PAGE_FILE).display()));
    }
    if !results.findings.is_empty() && findings == Findings::Replaced {
        events.say(format!(
            "findings: {}/findings; 'explore --replay FILE' with the same CCM carries one of them out again",
            folder.display()
        ));
    }
    if let Err(why) = &written {
        events.say(format!("error: {why}"));
    }
    written.is_ok()
}

/// Whether the exploration says something about the CCM; otherwise prints why it does not.
fn is_explored(results: &Results, events: &Events) -> bool {
    for trial in results.unexplored() {
        events.say(format!("error: {}: {}", trial.plan, trial.error));
    }
    if results.trials.is_empty() {
        events.say(format!(
            "error: no trial has ended in {} s: the CCM has not begun to work in this time; 'ccm-conformance run --only \
             NODE-INIT-01' with the same options shows why, and '--budget' gives more time",
            results.took_ms / 1000
        ));
    }
    results.is_explored()
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
