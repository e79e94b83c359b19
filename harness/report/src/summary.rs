//! The summary on the terminal at the end of a run.

use super::common_causes::{CommonCause, common_causes};
use super::failure_text::likely_cause;
use super::profile_result;
use super::wording::{
    self, failure_in_short, is_blocked, one_line, outcome_text, outcome_word, printable, seconds, shown_word,
    telling_log_line, verdict_word, whole_words,
};
use harness_core::check::{Level, row_of};
use harness_core::ledger::{
    Conformance, Entry, FIRST_TRY, INTERRUPTED, Ledger, Outcome, SkipReason, upgrades_from,
};
use std::fmt::Write as _;

/// Writing into a `String` cannot fail.
macro_rules! put {
    ($text:expr) => { $text.push('\n') };
    ($text:expr, $($format:tt)*) => {{
        let _ = writeln!($text, $($format)*);
    }};
}

mod speed;
pub use speed::CHECKS_STAGE;
use speed::speed;

/// The summary: durations, unjudged checks with reasons, declared deviations, failures with reasons, counts, and the verdict
/// as the last line. Lines end in `\n`; there are no colours.
pub fn summary(ledger: &Ledger) -> String {
    let mut text = summary_without_verdict(ledger);
    put!(text, "\n{}", verdict_line(ledger));
    text
}

/// The summary without its last line, for a run that still has work to do before it ends.
pub fn summary_without_verdict(ledger: &Ledger) -> String {
    let mut text = String::new();
    if let Some(ran) = few(ledger) {
        of_few(ledger, ran, &mut text);
        return text;
    }
    speed(ledger, &mut text);
    declared(ledger, &mut text);
    noted(ledger, &mut text, false);
    private(ledger, &mut text);
    if ledger.environment_error.is_none() {
        unjudged(ledger, &mut text);
        let below = |entry: &Entry| entry.level != Level::Must;
        unobservable(ledger, below, "Not observable here, below MUST", &mut text);
    }
    profiles(ledger, &mut text);
    explanations(ledger, &mut text);
    common(ledger, &mut text);
    troubles(ledger, &mut text);
    counts(ledger, &mut text);
    relaxed(ledger, &mut text);
    if let Some(error) = &ledger.environment_error {
        put!(text, "\n{}", printable(&wording::without_result(error)));
    }
    text
}

/// Up to so many checks that the user chose get a short summary: their results are in sight.
const FEW: usize = 3;

/// The number of checks that ran, if the user chose few of all.
fn few(ledger: &Ledger) -> Option<usize> {
    let ran = ledger.all().filter(|e| !matches!(e.outcome, Outcome::Skip { .. })).count();
    let is_left_out = |e: &Entry| matches!(e.outcome, Outcome::Skip { reason: SkipReason::Deselected, .. });
    let chosen = ledger.environment_error.is_none() && ledger.entries.iter().any(is_left_out);
    (chosen && (1..=FEW).contains(&ran)).then_some(ran)
}

/// The summary of few checks: what the lines of the checks themselves do not show.
fn of_few(ledger: &Ledger, ran: usize, text: &mut String) {
    let (whole, all) = (seconds(ledger.duration_ms), ledger.all().count());
    put!(text, "\n{ran} of {all} checks ran, in {whole} with the cluster; the others were left out");
    unobservable(ledger, |_| true, "Not observable here", text);
    noted(ledger, text, true);
    private(ledger, text);
    explanations(ledger, text);
    troubles(ledger, text);
    relaxed(ledger, text);
}

/// The checks that met an error, were blocked, or failed.
fn troubles(ledger: &Ledger, text: &mut String) {
    if ledger.environment_error.is_none() {
        trouble(ledger, text, "Environment errors", |e| shown_word(&e.outcome) == "error");
    }
    trouble(ledger, text, "Blocked by what the CCM did elsewhere", |e| is_blocked(&e));
    trouble(ledger, text, FAILED, |e| matches!(e.outcome, Outcome::Fail { .. }));
}

/// The heading of failed checks.
const FAILED: &str = "Failed ('ccm-conformance explain ID' says what is required and why)";

/// The verdict and its subject, in one line.
pub fn verdict_line(ledger: &Ledger) -> String {
    let subject = &ledger.subject;
    let mut about = vec![subject.profile.clone()];
    if let Some(version) = &subject.framework_version {
        about.push(format!("framework {version}"));
    }
    for (label, fact) in [
        ("Kubernetes", subject.kubernetes_version.trim_start_matches('v')),
        ("on", subject.backend.as_str()),
        ("topology", subject.topology.as_str()),
    ] {
        if !fact.is_empty() {
            about.push(format!("{label} {fact}"));
        }
    }
    about.extend(ledger.is_interrupted().then(|| wording::WAS_INTERRUPTED.to_owned()));
    about.extend(upgrades_from(&subject.settings).map(|old| format!("upgrade from {old}")));
    let word = verdict_word(ledger.conformance()).replace('-', " ").to_uppercase();
    format!("{word}: {}", about.join(", "))
}

/// Relaxed settings, and declarations that no check judges, in one line each.
fn relaxed(ledger: &Ledger, text: &mut String) {
    let relaxed: Vec<String> = ledger.subject.relaxed().map(ToString::to_string).collect();
    if !relaxed.is_empty() {
        put!(text, "\nrelaxed, so at most partial: {}", relaxed.join(", "));
    }
    if let Some(declared) = wording::declared_not_judged(ledger) {
        put!(text, "{declared}; so at most partial");
    }
}

/// Outcomes in the order of the table's columns.
const COLUMNS: &[&str] =
    &["pass", "fail", "blocked", "error", INTERRUPTED, "not-observable", "deselected", "not-declared"];

fn counts(ledger: &Ledger, text: &mut String) {
    if ledger.entries.is_empty() {
        return;
    }
    // With all columns, the table of an interrupted run would be wider than 80 columns.
    let is_empty = |column: &str| !ledger.entries.iter().any(|entry| shown_word(&entry.outcome) == column);
    let is_shown = |column: &&&str| match ledger.is_interrupted() {
        true => !is_empty(column),
        false => **column != INTERRUPTED,
    };
    let columns = || COLUMNS.iter().filter(is_shown);
    let _ = write!(text, "\n        ");
    for column in columns() {
        let _ = write!(text, "  {column}");
    }
    put!(text);
    for level in [Level::Must, Level::Should, Level::Info] {
        let _ = write!(text, "  {level:<6}");
        for column in columns() {
            let fits = |e: &&Entry| e.level == level && shown_word(&e.outcome) == *column;
            let count = ledger.entries.iter().filter(fits).count();
            let _ = write!(text, "  {count:>width$}", width = column.len());
        }
        put!(text);
    }
}

/// The private checks of a vendor that did not pass, each in one line.
fn private(ledger: &Ledger, text: &mut String) {
    if ledger.private.is_empty() {
        return;
    }
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for entry in &ledger.private {
        let word = outcome_word(&entry.outcome);
        match counts.iter_mut().find(|(known, _)| *known == word) {
            Some((_, count)) => *count += 1,
            None => counts.push((word, 1)),
        }
    }
    let counts: Vec<String> = counts.iter().map(|(word, count)| format!("{count} {word}")).collect();
    put!(text, "\nPrivate checks (not of the contract, no effect on the verdict): {}", counts.join(", "));
    let width = ledger.private.iter().map(|entry| entry.id.len()).max().unwrap_or(0);
    for entry in ledger.private.iter().filter(|entry| entry.outcome != Outcome::Pass) {
        let (word, why) = (outcome_word(&entry.outcome), outcome_text(&entry.outcome).map(one_line));
        put!(text, "  {:<width$}  {:<6}  {word}: {}", entry.id, entry.level, why.unwrap_or_default());
        if let Some(evidence) = &entry.evidence {
            put!(text, "  {:<width$}          evidence: {evidence}", "");
        }
    }
}

/// The results of the profiles of conformance.
fn profiles(ledger: &Ledger, text: &mut String) {
    let lines = profile_result::lines(ledger);
    if !lines.is_empty() && !ledger.entries.is_empty() && !ledger.is_interrupted() {
        put!(text, "\nProfiles of conformance");
        for line in lines {
            put!(text, "  {line}");
        }
    }
}

/// The causes that explain most failures, before the checks that failed because of them.
fn explanations(ledger: &Ledger, text: &mut String) {
    let troubled = |e: &Entry| matches!(e.outcome, Outcome::Fail { .. } | Outcome::Blocked { .. });
    if ledger.explanations.is_empty() || !ledger.entries.iter().any(troubled) {
        return;
    }
    put!(text, "\nExplained by");
    for explanation in &ledger.explanations {
        put!(text, "  {}", one_line(explanation));
    }
}

/// Common causes of failures, before the failures themselves.
fn common(ledger: &Ledger, text: &mut String) {
    let causes = common_causes(ledger);
    if causes.is_empty() {
        return;
    }
    put!(text, "\nFailures with a likely common cause");
    for CommonCause { cause, checks } in causes {
        put!(text, "  {} checks: {cause}", checks.len());
        for ids in checks.chunks(6) {
            put!(text, "    {}", ids.join(", "));
        }
    }
}

/// Deviations from the declarations, and what INFO checks observed: all of it after a run of few checks, otherwise how much.
fn noted(ledger: &Ledger, text: &mut String, has_few: bool) {
    const ALWAYS_SHOWN: &[&str] = &["more-than-declared", "other-defaults", FIRST_TRY, "not-counted"];
    let is_always_shown = |name: &str| ALWAYS_SHOWN.contains(&name);
    let facts = ledger.entries.iter().flat_map(|entry| entry.facts.iter().map(move |fact| (entry, fact)));
    let (shown, others): (Vec<_>, Vec<_>) = facts
        .filter(|(entry, (name, _))| entry.level == Level::Info || is_always_shown(name))
        .partition(|(_, (name, _))| has_few || is_always_shown(name));
    let width = shown.iter().map(|(entry, _)| entry.id.len()).max().unwrap_or(0);
    if !shown.is_empty() {
        put!(text, "\nNoted ('ccm-conformance explain ID' says what was looked at)");
    }
    for (entry, (name, value)) in shown {
        let name = name.replace('_', " ");
        put!(text, "  {:<width$}  {:<6}  {name}: {}", entry.id, entry.level, one_line(value));
    }
    if !others.is_empty() {
        put!(text, "\nValues that INFO checks observed, all in report.html: {}", others.len());
    }
}

/// How many checks with the same cause are listed after the first.
const MOST_OTHERS: usize = 24;

fn trouble(ledger: &Ledger, text: &mut String, head: &str, wanted: impl Fn(&Entry) -> bool) {
    let found: Vec<&Entry> = ledger.entries.iter().filter(|e| wanted(e)).collect();
    if found.is_empty() {
        return;
    }
    put!(text, "\n{head}");
    let width = found.iter().map(|e| e.id.len()).max().unwrap_or(0);
    // A cause that stopped many checks is shown once.
    let mut causes: Vec<(String, &Entry, Vec<&str>)> = Vec::new();
    for entry in found {
        // What blocked a check may have looked different from cluster to cluster.
        let cause = match &entry.outcome {
            Outcome::Blocked { by, .. } => by.clone(),
            other => outcome_text(other).map(one_line).unwrap_or_default(),
        };
        match causes.iter_mut().find(|(known, ..)| *known == cause) {
            Some((_, _, others)) => others.push(&entry.id),
            None => causes.push((cause, entry, Vec::new())),
        }
    }
    for (_, entry, others) in causes {
        let message = outcome_text(&entry.outcome).unwrap_or_default();
        let why = failure_in_short(message);
        put!(text, "  {:<width$}  {:<6}  {why}", entry.id, entry.level);
        if let Some(cause) = likely_cause(message) {
            put!(text, "  {:<width$}          likely: {}", "", whole_words(&cause));
        }
        if let Some(line) = telling_log_line(message).filter(|line| !why.contains(line)) {
            put!(text, "  {:<width$}          its log: {}", "", one_line(&line));
        }
        if let Some(evidence) = &entry.evidence {
            put!(text, "  {:<width$}          evidence: {evidence}", "");
        }
        let mut names: Vec<String> = others.iter().take(MOST_OTHERS).map(|id| (*id).to_owned()).collect();
        if others.len() > names.len() {
            names.push(format!("and {} more (report.yaml)", others.len() - names.len()));
        }
        for (line, ids) in filled(&names, 66).iter().enumerate() {
            put!(text, "    {}{ids}", if line == 0 { "and so: " } else { "        " });
        }
    }
}

fn unjudged(ledger: &Ledger, text: &mut String) {
    let mut reasons: Vec<(String, Vec<&Entry>)> = Vec::new();
    for entry in wording::unjudged(ledger) {
        let why = match &entry.outcome {
            Outcome::Error { message } if message == INTERRUPTED => INTERRUPTED.to_owned(),
            // Its text is shown above.
            Outcome::Error { .. } => String::from("environment error"),
            Outcome::Blocked { by, .. } => format!("blocked by {by}"),
            Outcome::Skip { reason: SkipReason::Deselected, detail } if is_of_another_suite(detail) => {
                OTHER_SUITES.to_owned()
            }
            other => {
                let detail = outcome_text(other).map(one_line).unwrap_or_default();
                format!("{}: {detail}", outcome_word(other))
            }
        };
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, all)) => all.push(entry),
            None => reasons.push((why, vec![entry])),
        }
    }
    let simulated = ledger.subject.simulated && ledger.conformance() == Conformance::Partial;
    if simulated {
        put!(text, "\nPartial: {}", wording::SIMULATED);
    }
    if reasons.is_empty() {
        return;
    }
    let head = match ledger.conformance() {
        Conformance::Partial if !simulated => "Partial because these checks were not judged",
        Conformance::Partial
        | Conformance::Conformant
        | Conformance::NotConformant
        | Conformance::NotJudged => "Checks not judged",
    };
    put!(text, "\n{head}");
    for (why, entries) in reasons {
        if entries.iter().all(is_blocked) {
            put!(text, "  {why}: {}, named below", entries.len());
            continue;
        }
        let names = if why == OTHER_SUITES { by_suite(&entries) } else { names(&entries) };
        put!(text, "  {why}");
        for line in filled(&names, 72) {
            put!(text, "    {line}");
        }
    }
}

/// Of these checks, those that the environment cannot show. Those below MUST do not keep a result from being complete, but
/// a user who asked for them wants to know why.
fn unobservable(ledger: &Ledger, of: fn(&Entry) -> bool, head: &str, text: &mut String) {
    let mut reasons: Vec<(&str, Vec<&Entry>)> = Vec::new();
    for entry in ledger.entries.iter().filter(|entry| of(entry)) {
        let Outcome::Skip { reason: SkipReason::NotObservable, detail } = &entry.outcome else { continue };
        match reasons.iter_mut().find(|(known, _)| known == detail) {
            Some((_, all)) => all.push(entry),
            None => reasons.push((detail, vec![entry])),
        }
    }
    if reasons.is_empty() {
        return;
    }
    put!(text, "\n{head}");
    for (why, entries) in reasons {
        put!(text, "  {}", one_line(why));
        for line in filled(&names(&entries), 72) {
            put!(text, "    {line}");
        }
    }
}

/// From this number of checks on, ids are not listed; the report contains them.
const TOO_MANY: usize = 48;

/// The reason of all checks in suites that the user did not choose: one for all of them.
const OTHER_SUITES: &str = "deselected: suites that were not asked for";

/// Whether a check was left out with its suite (`suite routes was not asked for`).
fn is_of_another_suite(detail: &str) -> bool {
    detail.starts_with("suite ") && detail.ends_with(" was not asked for")
}

/// Names in lines of at most so many columns, separated by commas.
fn filled(names: &[String], widest: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for name in names {
        match lines.last_mut().filter(|line| line.len() + 2 + name.len() <= widest) {
            Some(line) => line.push_str(&format!(", {name}")),
            None => lines.push(name.clone()),
        }
    }
    lines
}

/// A list of checks: their ids, or the number for each suite if there are very many.
fn names(entries: &[&Entry]) -> Vec<String> {
    if entries.len() < TOO_MANY {
        return entries.iter().map(|entry| entry.id.clone()).collect();
    }
    by_suite(entries)
}

/// How many checks of each suite there are.
fn by_suite(entries: &[&Entry]) -> Vec<String> {
    let mut suites: Vec<(&str, usize)> = Vec::new();
    for entry in entries {
        match suites.iter_mut().find(|(suite, _)| *suite == entry.suite) {
            Some((_, count)) => *count += 1,
            None => suites.push((&entry.suite, 1)),
        }
    }
    suites.iter().map(|(suite, count)| format!("{count} of {suite}")).collect()
}

fn declared(ledger: &Ledger, text: &mut String) {
    if ledger.subject.declared.is_empty() {
        return;
    }
    put!(text, "\nDeclared deviations");
    let width = ledger.subject.declared.keys().map(String::len).max().unwrap_or(0);
    for (id, reason) in &ledger.subject.declared {
        let of_it = ledger.all().filter(|e| e.id == *id || row_of(&e.id) == id);
        let mut words: Vec<&str> = of_it.map(|e| outcome_word(&e.outcome)).collect();
        words.dedup();
        let words = if words.is_empty() { "unknown".to_owned() } else { words.join(", ") };
        put!(text, "  {id:<width$}  {words}: {}", one_line(reason));
    }
}
