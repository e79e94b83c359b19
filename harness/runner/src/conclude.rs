//! Opens and completes a run's output folder: the stream of events, and the reports made from it.

use super::evidence_path::with_openable_evidence;
use super::github::tell_github;
use super::page::page_of;
use super::results::{make_ready, without_empty_evidence};
use harness_config::{Completeness, RunPlan};
use harness_core::events::{Cost, EVENTS_FILE, Events, Payload, Sink};
use harness_core::files;
use harness_core::ledger::Conformance;
use harness_core::ledger::Ledger;
use harness_core::output::{self, Tone};
use harness_core::progress::{Terminal, Verbosity};
use harness_report::{exit, exit_code, summary_without_verdict, to_badge, to_junit, to_yaml, verdict_line};
use std::path::Path;

/// Prepares the output folder, and starts the stream of events, which is also shown on the terminal.
///
/// # Errors
/// Those of [`begin_in`].
pub fn open<C>(plan: &RunPlan<C>, verbosity: Verbosity) -> std::io::Result<Events> {
    begin_in(&plan.output, vec![Box::new(Terminal::showing(verbosity))])
}

/// Prepares a folder for results by removing the evidence of an earlier run, and starts a stream of events there.
///
/// # Errors
/// The folder cannot be created or written to, another run is writing there, or it contains evidence that was not written
/// by a run.
pub fn begin_in(output: &Path, sinks: Vec<Box<dyn Sink>>) -> std::io::Result<Events> {
    files::writable_folder(output)?;
    // The stream's lock also protects the folder.
    let lock = Events::lock_folder(output)?;
    make_ready(output)?;
    Events::begin(&output.join(EVENTS_FILE), sinks, lock)
}

/// Ends the run's stream and returns its totals.
pub fn end_run(events: &Events) -> Ledger {
    let took = jiff::Timestamp::now().duration_since(events.began());
    events.emit(Payload::RunEnded { duration_ms: u64::try_from(took.as_millis()).unwrap_or(0) });
    events.path().and_then(|path| path.parent().map(without_empty_evidence));
    events.fold().ledger()
}

/// Ends the run's stream, writes the reports, and prints the summary without the verdict, which follows at the end
/// ([`say_verdict`]). Returns the ledger and the exit code. `annotates` is whether GitHub's annotations are written
/// wherever the run is.
pub fn conclude(plan: &RunPlan, events: &Events, annotates: bool) -> (Ledger, u8) {
    let ledger = end_run(events);
    let written = write_reports(&plan.output, &ledger, &plan.output.join(EVENTS_FILE), events);
    match events.written() {
        Ok(()) => {
            let file = plan.output.join(EVENTS_FILE);
            // Messages after the end of the run are in the file, too, but are not part of its record.
            let recorded = ledger.stream.as_ref().map(|stream| stream.events);
            let cost = events.cost();
            let cost = Cost { events: recorded.unwrap_or(cost.events), ..cost };
            events.say_detail(format!("wrote {} ({cost})", file.display()));
        }
        Err(why) => events.say(format!("error: {why}")),
    }
    events.say_detail(summary_without_verdict(&with_openable_evidence(&ledger, &plan.output)));
    tell_github(&ledger, &plan.output, events, annotates);
    let completeness = if plan.require_complete { Completeness::Required } else { Completeness::Optional };
    let code = match exit_code(&ledger, completeness) {
        // A verdict without its report files does not count.
        exit::CONFORMANT if !written || events.written().is_err() => exit::ENVIRONMENT,
        code => code,
    };
    (ledger, code)
}

/// Prints the verdict, as the last line of a run.
pub fn say_verdict(ledger: &Ledger) {
    let tone = match ledger.conformance() {
        Conformance::Conformant => Tone::Good,
        Conformance::NotConformant => Tone::Bad,
        Conformance::Partial | Conformance::NotJudged => Tone::Odd,
    };
    let line = verdict_line(ledger);
    let (word, rest) = line.split_once(':').unwrap_or((line.as_str(), ""));
    output::err_styled(&format!("{}:{}", tone.paint(word), output::plain(rest)));
}

/// Prints what could not be removed, if anything.
pub(super) fn say_left_behind(outcome: Result<(), String>, events: &Events) {
    if let Err(why) = outcome {
        events.say(format!("left behind ('ccm-conformance clean' tries again):\n{why}"));
    }
}

/// Writes report.yaml, junit.xml, badge.json and report.html into a folder, each completely or not at all, and prints
/// what cannot be written. Returns whether all were written. `stream` is the file of events from which the ledger was
/// made.
pub fn write_reports(folder: &Path, ledger: &Ledger, stream: &Path, events: &Events) -> bool {
    let texts = [
        ("report.html", page_of(ledger, stream)),
        ("report.yaml", to_yaml(ledger).map_err(|error| harness_core::check::chain(&error))),
        ("junit.xml", to_junit(ledger).map_err(|error| harness_core::check::chain(&error))),
        ("badge.json", Ok(to_badge(ledger))),
    ];
    let (all, mut written) = (texts.len(), Vec::new());
    for (name, text) in texts {
        let path = folder.join(name);
        match text.and_then(|text| output::file(&path, text).map_err(|error| files::why(&error))) {
            Ok(()) => written.push(name),
            Err(why) => events.say(format!("error: {} could not be written: {why}", path.display())),
        }
    }
    if let Some((first, others)) = written.split_first() {
        let others = if others.is_empty() { String::new() } else { format!(" ({})", others.join(", ")) };
        events.say_detail(format!("wrote {}{others}", folder.join(first).display()));
    }
    written.len() == all
}
