//! `controls`: proves that the checks find faults, and only faults. Every MUST check must fail with the null
//! CCM, and each mutant of the reference CCM must be noticed by the checks named for it. No check may fail on
//! a conforming variant: a CCM that is correct in an unusual way. An adversary, a hostile CCM, fails the
//! checks about what it breaks and has no other effect.

mod alone;
mod benches;
mod choose;
pub(super) mod list;
mod outcome;
mod results;
mod show;
mod work;

use super::arguments::ControlOptions;
use super::planning::planned;
pub(super) use alone::plan_of;
use benches::Benches;
use choose::{Choosing, SOAK, overrides, soaking};
use harness_clusters::facts;
use harness_components::component::of_kind;
use harness_config::{Offer, ProfileKind, Source};
use harness_core::events::Events;
use harness_core::files;
use harness_core::output;
use harness_core::progress::Verbosity;
use harness_report::exit;
use harness_runner::{FinalReport, INTERRUPTED, ORDERLY, guard, open, plan_checks, refuse};
use harness_session::settle;
use harness_session::up::Prepared;
use harness_testkit::Suite;
use outcome::Judged;
use results::Results;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Instant;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

pub(super) fn controls(suites: &'static [Suite], options: &ControlOptions) -> ExitCode {
    match show::shown(options) {
        Ok(text) if options.list => {
            output::out_wrapped(&text);
            return ExitCode::from(exit::CONFORMANT);
        }
        // What was named exists.
        Ok(_) => {}
        Err(why) => {
            output::err(&format!("error: {why}"));
            return ExitCode::from(exit::USAGE);
        }
    }
    let ccm = of_kind(ProfileKind::Profile);
    let without = soaking(overrides(options, harness_config::NULL_PROFILE), Some(SOAK));
    let both = planned(&Source::Defaults, overrides(options, ccm.changeable()))
        .and_then(|with_mutants| Ok((with_mutants, planned(&Source::Defaults, without)?)));
    let (with_mutants, with_nothing) = match both {
        Ok(both) => both,
        Err(code) => return code,
    };
    let everything = match plan_checks(suites, &with_mutants, &Offer::declared(&with_mutants.profile)) {
        Ok(everything) => everything,
        Err(problems) => return refuse(&problems),
    };
    let events = match open(&with_mutants, Verbosity::Normal) {
        Ok(events) => events,
        Err(error) => {
            let out = with_mutants.output.display();
            output::err(&format!("error: output folder {out}: {}", files::why_not_written(&error)));
            return ExitCode::from(exit::USAGE);
        }
    };
    let runtime = match Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            output::err(&format!("error: cannot start the async runtime: {}", files::why(&error)));
            return ExitCode::from(exit::ENVIRONMENT);
        }
    };
    let cancel = CancellationToken::new();
    guard(runtime.handle(), cancel.clone(), ORDERLY, FinalReport::default());
    let (with_mutants, chosen) = runtime.block_on(settle(with_mutants));
    let with_nothing = with_nothing.on(with_mutants.cluster.clone());
    chosen.iter().for_each(|chosen| events.say(chosen));
    let choosing = Choosing {
        suites,
        options,
        with_mutants: &with_mutants,
        with_nothing: &with_nothing,
        everything: &everything,
    };
    let work = match choosing.work() {
        Ok(work) => work,
        Err(why) => {
            events.say(format!("error: {why}"));
            return ExitCode::from(exit::USAGE);
        }
    };
    let began = Instant::now();
    let usual = facts(with_mutants.cluster.backend()).side_by_side;
    let parallel = options.side_by_side.unwrap_or(usual).max(1);
    if work.len() > 1 {
        events.say(format!(
            "{} runs with other CCMs, {parallel} at the same time; '--list' lists the CCMs, '--mutant', '--variant' and \
             '--adversary' select some",
            work.len()
        ));
    }
    let benches = Benches {
        suites,
        plan: &with_mutants,
        prepared: Prepared::new(Arc::new(with_mutants.clone())),
        queue: Mutex::new(work.into()),
        large: Arc::new(()),
        machine: RwLock::new(()),
        handle: runtime.handle(),
        events: &events,
        cancel: &cancel,
    };
    let judged = match judge_all(&benches, parallel) {
        Ok(judged) => judged,
        Err(why) => {
            events.say(format!("error: {why}"));
            return ExitCode::from(exit::ENVIRONMENT);
        }
    };
    let cluster = with_mutants.cluster.backend().to_string();
    let results = Results::of(cluster, judged, began.elapsed());
    let written = tell(&results, &with_mutants.output, &events);
    match written {
        false => ExitCode::from(exit::ENVIRONMENT),
        true if cancel.is_cancelled() => ExitCode::from(INTERRUPTED),
        true if results.are_good() => ExitCode::from(exit::CONFORMANT),
        true => ExitCode::from(exit::NOT_CONFORMANT),
    }
}

/// Judges everything in the queue, in `parallel` parallel environments.
fn judge_all(benches: &Benches<'_>, parallel: usize) -> Result<Vec<Judged>, String> {
    let outcomes: Vec<Result<Vec<Judged>, String>> = std::thread::scope(|scope| {
        let lanes = (1..).take(parallel);
        let running: Vec<_> = lanes.map(|lane| scope.spawn(move || benches.judge(lane))).collect();
        running.into_iter().filter_map(|bench| bench.join().ok()).collect()
    });
    Ok(outcomes.into_iter().collect::<Result<Vec<_>, String>>()?.concat())
}

/// Prints the results and writes them into the output folder; returns whether they could be written.
fn tell(results: &Results, output: &Path, events: &Events) -> bool {
    let amiss = results.amiss();
    if !amiss.is_empty() {
        events.say(format!("not as it should be:\n{}", amiss.join("\n")));
    }
    match results.write(output) {
        Ok(file) => {
            events.say(format!("{results}; {}", file.display()));
            true
        }
        Err(why) => {
            events.say(format!("{results}\nerror: {why}"));
            false
        }
    }
}
