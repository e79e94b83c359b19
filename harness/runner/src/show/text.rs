//! What a person reads of checks: a line for each, and all of a failure at once.

use super::started::Started;
use crate::libtest::trouble_text;
use harness_config::Choice;
use harness_core::check::Level;
use harness_core::ledger::{Entry, INTERRUPTED, Outcome, SkipReason};
use harness_core::output::{Tone, plain};
use harness_core::progress::Verbosity;
use std::time::Duration;

/// How many checks that something blocks are listed after the first.
const LISTED: usize = 4;
/// Width of the column of ids; longer ids shift their line.
const IDS: usize = 27;

/// What is about to run, and what is not.
pub(super) fn began(started: &Started<'_>, verbosity: Verbosity) -> String {
    if verbosity == Verbosity::Quiet {
        return String::new();
    }
    let skipped = |reason| {
        let fits = |choice: &Choice| matches!(choice, Choice::Skip(why, _) if *why == reason);
        started.planned.iter().filter(|one| fits(&one.choice)).count()
    };
    let left_out = [
        (skipped(SkipReason::Deselected), "deselected"),
        (skipped(SkipReason::NotDeclared), "not declared or not requested"),
        (skipped(SkipReason::NotObservable), "not observable here"),
    ];
    let left_out: Vec<String> = left_out
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, why)| format!("{count} {why}"))
        .collect();
    let count = started.total;
    let mut text = format!("\nrunning {count} check{}", if count == 1 { "" } else { "s" });
    if !left_out.is_empty() {
        text.push_str(&format!(" of {} ({})", started.planned.len(), left_out.join(", ")));
    }
    text.push('\n');
    if verbosity == Verbosity::Verbose {
        for one in started.planned {
            if let Choice::Skip(SkipReason::NotDeclared | SkipReason::NotObservable, why) = &one.choice {
                text.push_str(&line(Tone::Faint, "SKIP", None, one.check.id.as_str(), why));
            }
        }
    }
    text
}

/// A check that starts, for those who want to know.
pub(super) fn check_began(id: &str, title: &str, verbosity: Verbosity) -> String {
    match verbosity {
        Verbosity::Verbose => line(Tone::Faint, "START", None, id, title),
        Verbosity::Normal | Verbosity::Quiet => String::new(),
    }
}

/// A check that has ended. `before` is how many checks were not judged before it for the same reason: that is described
/// once, and after a few of them no more are listed.
pub(super) fn check_ended(entry: &Entry, verbosity: Verbosity, before: usize) -> String {
    let has_begun = entry.duration_ms > 0 || verbosity == Verbosity::Verbose;
    if !has_begun && matches!(&entry.outcome, Outcome::Error { message } if message == INTERRUPTED) {
        return String::new();
    }
    let is_news = before == 0;
    if before > LISTED && verbosity != Verbosity::Verbose {
        return String::new();
    }
    let took = Some(Duration::from_millis(entry.duration_ms));
    let id = entry.id.as_str();
    let head = match &entry.outcome {
        Outcome::Pass => line(Tone::Good, "PASS", took, id, &entry.title),
        Outcome::Fail { .. } => {
            line(Tone::Bad, "FAIL", took, id, &format!("{}: {}", entry.level, entry.title))
        }
        Outcome::Blocked { by, .. } => {
            line(Tone::Odd, "BLOCKED", took, id, &repeated(&format!("by {by}"), before, verbosity))
        }
        Outcome::Error { message } if message == INTERRUPTED => {
            line(Tone::Odd, "SKIP", took, id, &format!("({INTERRUPTED})"))
        }
        Outcome::Error { .. } => {
            line(Tone::Odd, "ERROR", took, id, &repeated("the environment failed", before, verbosity))
        }
        Outcome::Skip { detail, .. } => line(Tone::Faint, "SKIP", None, id, detail),
    };
    let details = details(entry).filter(|_| is_news);
    if details.is_none() && verbosity == Verbosity::Quiet {
        return String::new();
    }
    match details {
        Some(details) => format!("{head}{}\n\n", details.trim_end()),
        None => head,
    }
}

/// Why a check was not judged; where that is described if it is not the first one.
fn repeated(why: &str, before: usize, verbosity: Verbosity) -> String {
    match before {
        0 => why.to_owned(),
        LISTED if verbosity != Verbosity::Verbose => {
            format!("{why}, see above; further ones are not listed ('-v' lists them)")
        }
        _ => format!("{why}, see above"),
    }
}

/// All that is known of a check with trouble; the others need no more than their line.
fn details(entry: &Entry) -> Option<String> {
    match &entry.outcome {
        Outcome::Error { message } if message == INTERRUPTED => None,
        Outcome::Blocked { .. } if entry.level != Level::Must => None,
        _ => trouble_text(entry),
    }
}

fn line(tone: Tone, word: &str, took: Option<Duration>, id: &str, rest: &str) -> String {
    let took = took.map_or_else(String::new, |took| format!("{:.1} s", took.as_secs_f64()));
    format!("{}  {took:>8}  {id:<IDS$}  {}\n", tone.paint(&format!("{word:>7}")), plain(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(outcome: Outcome, verbosity: Verbosity) -> String {
        let entry = Entry { duration_ms: 1_250, ..Entry::sample("A-01", Level::Must, outcome) };
        harness_core::output::unstyled(&check_ended(&entry, verbosity, 0))
    }

    #[test]
    fn what_blocks_many_checks_is_described_once() {
        let blocked = Outcome::Blocked { by: "OBS-10".to_owned(), message: "it does not start".to_owned() };
        let first = shown(blocked.clone(), Verbosity::Normal);
        assert!(first.contains("by OBS-10\nblocked by OBS-10: it does not start"), "{first}");
        let entry = Entry::sample("A-02", Level::Must, blocked);
        let second = harness_core::output::unstyled(&check_ended(&entry, Verbosity::Normal, 1));
        assert!(second.ends_with("by OBS-10, see above\n") && second.lines().count() == 1, "{second}");
        let last = harness_core::output::unstyled(&check_ended(&entry, Verbosity::Normal, LISTED));
        assert!(last.ends_with("further ones are not listed ('-v' lists them)\n"), "{last}");
        assert_eq!(check_ended(&entry, Verbosity::Normal, LISTED + 1), "");
        assert!(check_ended(&entry, Verbosity::Verbose, LISTED + 1).contains("A-02"));
    }

    #[test]
    fn a_check_is_a_line_and_a_failure_begins_with_what_was_expected() {
        let pass = shown(Outcome::Pass, Verbosity::Normal);
        assert_eq!(pass, "   PASS     1.2 s  A-01                         claim\n");
        let message = "expected:  30343\nlast seen: 30012\npromise:   it follows".to_owned();
        let fail = shown(Outcome::Fail { message }, Verbosity::Quiet);
        let lines: Vec<&str> = fail.lines().collect();
        assert_eq!(lines[0], "   FAIL     1.2 s  A-01                         MUST: claim");
        assert_eq!(lines[1..3], ["expected:  30343", "last seen: 30012"]);
        assert!(fail.contains("\nexplain:   ccm-conformance explain A-01\n"), "{fail}");
    }

    #[test]
    fn quiet_shows_only_trouble() {
        let skip = || Outcome::Skip { reason: SkipReason::NotObservable, detail: "no audit log".to_owned() };
        let interrupted = || Outcome::Error { message: INTERRUPTED.to_owned() };
        for outcome in [Outcome::Pass, skip(), interrupted()] {
            assert_eq!(shown(outcome, Verbosity::Quiet), "");
        }
        assert!(
            shown(skip(), Verbosity::Normal).contains("SKIP            "),
            "{}",
            shown(skip(), Verbosity::Normal)
        );
        assert!(shown(interrupted(), Verbosity::Normal).contains("(interrupted)"));
        assert_eq!(check_began("A-01", "claim", Verbosity::Normal), "");
        assert!(check_began("A-01", "claim", Verbosity::Verbose).contains("START"));
    }
}
