//! The words that every form of report shares.

use super::failure_text::FailureText;
use harness_core::check::Level;
use harness_core::events::CUT;
use harness_core::ledger::{Conformance, Entry, INTERRUPTED, Ledger, Outcome, SkipReason};
use harness_core::output::is_obeyed;
use std::time::Duration;

/// Why a run on an embedded cluster is at most partial.
pub(super) const SIMULATED: &str =
    "the cluster was a simulation in the harness's process; only a run on real kubelets certifies";

/// Why a run that the user ended is at most partial.
pub(super) const WAS_INTERRUPTED: &str = "the run was interrupted";

/// The verdict's word in reports.
pub fn verdict_word(verdict: Conformance) -> &'static str {
    match verdict {
        Conformance::Conformant => "conformant",
        Conformance::Partial => "partial",
        Conformance::NotConformant => "not-conformant",
        Conformance::NotJudged => "not-judged",
    }
}

/// The word for an outcome where people read it: [`outcome_word`], or `interrupted` for a check that the user ended.
pub(super) fn shown_word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Error { message } if message == INTERRUPTED => INTERRUPTED,
        other => outcome_word(other),
    }
}

/// An outcome's word: `pass`, `fail`, `blocked`, `error`, or the kind of skip.
pub fn outcome_word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => "pass",
        Outcome::Fail { .. } => "fail",
        Outcome::Blocked { .. } => "blocked",
        Outcome::Error { .. } => "error",
        Outcome::Skip { reason, .. } => skip_word(*reason),
    }
}

/// The word for a kind of skip.
pub(super) fn skip_word(reason: SkipReason) -> &'static str {
    match reason {
        SkipReason::NotDeclared => "not-declared",
        SkipReason::NotObservable => "not-observable",
        SkipReason::Deselected => "deselected",
    }
}

/// The reason for an outcome, as it was recorded; `None` for a pass.
pub(super) fn outcome_text(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::Pass => None,
        Outcome::Fail { message } | Outcome::Blocked { message, .. } | Outcome::Error { message } => {
            Some(message)
        }
        Outcome::Skip { detail, .. } => Some(detail),
    }
}

/// The reasons why the verdict is not conformant: check id (empty for the whole run) and reason, in the order of the ledger.
pub fn because(ledger: &Ledger) -> Vec<(String, String)> {
    let must = |e: &&Entry| e.level == Level::Must;
    let reason = |e: &Entry| {
        let text = outcome_text(&e.outcome).map(|text| format!(": {}", one_line(text))).unwrap_or_default();
        let text = if shown_word(&e.outcome) == INTERRUPTED { String::new() } else { text };
        (e.id.clone(), format!("{}{text}", shown_word(&e.outcome)))
    };
    let unjudged = || unjudged(ledger).map(reason).collect::<Vec<_>>();
    match ledger.conformance() {
        Conformance::Conformant => Vec::new(),
        Conformance::Partial => {
            let simulated = ledger.subject.simulated.then(|| (String::new(), SIMULATED.to_owned()));
            let relaxed = ledger.subject.relaxed().map(|one| (String::new(), format!("relaxed: {one}")));
            let declared = declared_not_judged(ledger).map(|what| (String::new(), what));
            let interrupted = ledger.is_interrupted().then(|| (String::new(), WAS_INTERRUPTED.to_owned()));
            interrupted
                .into_iter()
                .chain(simulated)
                .chain(relaxed)
                .chain(declared)
                .chain(unjudged())
                .collect()
        }
        Conformance::NotConformant => {
            let failed = |e: &&Entry| matches!(e.outcome, Outcome::Fail { .. });
            let mut reasons: Vec<_> = ledger.entries.iter().filter(must).filter(failed).map(reason).collect();
            if reasons.is_empty() {
                // The check about the blocking claim was left out.
                reasons = ledger.entries.iter().filter(must).filter(is_blocked).map(reason).collect();
            }
            reasons
        }
        Conformance::NotJudged => {
            let whole = match &ledger.environment_error {
                None if ledger.is_interrupted() => {
                    "the run was interrupted before a MUST check was judged".to_owned()
                }
                Some(error) => one_line(&without_result(error)),
                None => String::from("no MUST check was judged"),
            };
            let mut reasons = vec![(String::new(), whole)];
            reasons.extend(unjudged());
            reasons
        }
    }
}

/// Why a run as a whole has no result, as a sentence.
pub(super) fn without_result(error: &str) -> String {
    match error.starts_with(CUT) {
        true => error.to_owned(),
        false => format!("the environment did not come up: {error}"),
    }
}

/// Whether a violation of another claim prevented a judgement.
pub(super) fn is_blocked(entry: &&Entry) -> bool {
    matches!(entry.outcome, Outcome::Blocked { .. })
}

/// Declarations of the profile that no check judges, in one line.
pub(super) fn declared_not_judged(ledger: &Ledger) -> Option<String> {
    let keys = &ledger.subject.declared_not_judged;
    (!keys.is_empty()).then(|| format!("declared, not judged: {}", keys.join(", ")))
}

/// The checks that keep the result from being complete.
pub(super) fn unjudged(ledger: &Ledger) -> impl Iterator<Item = &Entry> {
    ledger.entries.iter().filter(|entry| entry.is_unjudged())
}

/// The line that most likely says why a program ended or hangs, if a failure's text shows its log: the last one that is
/// marked as an error, otherwise the last one that is not marked as debugging output. With the line after it if it ends with a colon.
pub(super) fn telling_log_line(text: &str) -> Option<String> {
    let is_head = |line: &str| {
        ["its last lines:", " now:", " before its restart:"].iter().any(|end| line.trim_end().ends_with(end))
    };
    let mut lines = text.lines().skip_while(|line| !is_head(line));
    lines.next()?;
    let log = lines.take_while(|line| line.starts_with("   ") && !is_head(line));
    let log: Vec<&str> = log.map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = |fits: fn(&str) -> bool| log.iter().rposition(|line| fits(line));
    let at =
        last(is_of_an_error).or_else(|| last(|line| !is_of_debugging(line))).or(log.len().checked_sub(1))?;
    // Some programs say what failed in one line, and why in the next.
    let end = if log[at].ends_with(':') { (at + 2).min(log.len()) } else { at + 1 };
    Some(log[at..end].join(" "))
}

/// Whether a line of a log is marked as an error: as in klog (`E0402 ..`), by a level, or as programs report wrong usage.
fn is_of_an_error(line: &str) -> bool {
    let klog = |line: &str| {
        let mut letters = line.chars();
        matches!(letters.next(), Some('E' | 'F'))
            && letters.by_ref().take(4).filter(char::is_ascii_digit).count() == 4
    };
    let levels = [
        "error:",
        "fatal:",
        "panic:",
        "level=error",
        "level=fatal",
        "\"level\":\"error\"",
        "\"level\":\"fatal\"",
    ];
    let low = line.to_lowercase();
    klog(line)
        || levels.iter().any(|level| low.contains(level))
        || line.split_whitespace().any(|word| ["ERROR", "FATAL", "PANIC"].contains(&word))
        || low.contains("panicked at")
}

fn is_of_debugging(line: &str) -> bool {
    let words = || line.split_whitespace();
    words().any(|word| ["DEBUG", "TRACE"].contains(&word)) || line.contains("level=debug")
}

/// The longest line, in characters.
const MOST: usize = 240;

/// A text in one line: line ends become `; `, several blanks become one, and a text that is too long is cut and ends in
/// `...`. Reports contain such lines, and reports that were submitted must still verify: this cuts within a word.
pub(super) fn one_line(text: &str) -> String {
    let joined = joined(text);
    if joined.chars().count() <= MOST {
        return joined;
    }
    let mut short: String = joined.chars().take(MOST - 3).collect();
    short.push_str("...");
    short
}

/// The same for people: a text that is too long is not cut within a word, unless there is only one.
pub(super) fn whole_words(text: &str) -> String {
    let joined = joined(text);
    if joined.chars().count() <= MOST {
        return joined;
    }
    let short: String = joined.chars().take(MOST - 4).collect();
    let whole = short.rsplit_once(' ').map_or(short.as_str(), |(words, _)| words);
    format!("{} ...", whole.trim_end_matches([',', ';', ':']))
}

/// A failure in one line: what was expected and what was seen last. If they are too long, their middle is left out: what
/// is wrong is often at the end.
pub(super) fn failure_in_short(message: &str) -> String {
    /// What a long expectation may take.
    const EXPECTED: usize = 100;
    let Some(text) = FailureText::of(message) else { return whole_words(message) };
    let (expected, seen) = (joined(&text.expected), joined(&text.seen));
    let whole = format!("expected: {expected}; last seen: {seen}");
    if whole.chars().count() <= MOST {
        return whole;
    }
    let expected = without_middle(&expected, EXPECTED.max(MOST.saturating_sub(30 + seen.chars().count())));
    let room = MOST.saturating_sub("expected: ; last seen: ".len() + expected.chars().count());
    format!("expected: {expected}; last seen: {}", without_middle(&seen, room))
}

/// A text of at most so many characters: if it is longer, whole words in its middle are replaced by `...`.
fn without_middle(text: &str, most: usize) -> String {
    const GAP: &str = " ... ";
    let all = text.chars().count();
    if all <= most {
        return text.to_owned();
    }
    let side = most.saturating_sub(GAP.len()) / 2;
    let head: String = text.chars().take(side).collect();
    let tail: String = text.chars().skip(all - side).collect();
    let head = head.rsplit_once(' ').map_or(head.as_str(), |(words, _)| words);
    let tail = tail.split_once(' ').map_or(tail.as_str(), |(_, words)| words);
    format!("{}{GAP}{tail}", head.trim_end_matches([',', ';', ':']))
}

/// A text in one line; JSON objects in it are left out if it is too long.
fn joined(text: &str) -> String {
    let mut joined = String::new();
    for line in printable(text).lines() {
        let mut words = line.split_whitespace().peekable();
        if words.peek().is_some() && !joined.is_empty() {
            joined.push_str(if joined.ends_with([',', ';', ':']) { " " } else { "; " });
        }
        joined.push_str(&words.collect::<Vec<_>>().join(" "));
    }
    if joined.chars().count() <= MOST {
        return joined;
    }
    without_objects(&joined)
}

/// A text in which JSON objects are `{...}`: part of one says nothing.
fn without_objects(text: &str) -> String {
    let mut short = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("{\"") {
        let (before, object) = rest.split_at(start);
        short.push_str(before);
        short.push_str("{...}");
        let mut values = serde_json::Deserializer::from_str(object).into_iter::<serde_json::Value>();
        match values.next() {
            Some(Ok(_)) => rest = object.get(values.byte_offset()..).unwrap_or_default(),
            // It was cut already.
            _ => return short,
        }
    }
    short.push_str(rest);
    short
}

/// A text without terminal control: colour sequences are removed, tabs become blanks, and line ends become `\n`. Other
/// control characters and the two non-characters, which XML cannot represent either, are removed. Controls of bidirectional
/// text are replaced by their escapes, such as `\u202e`.
pub(super) fn printable(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' if rest.next_if_eq(&'[').is_some() => {
                // Parameters, then one closing byte.
                while rest.next().is_some_and(|c| !matches!(c, '@'..='~')) {}
            }
            '\t' => plain.push_str("    "),
            '\r' => {
                rest.next_if_eq(&'\n');
                plain.push('\n');
            }
            '\n' => plain.push('\n'),
            '\u{fffe}' | '\u{ffff}' => {}
            c if c.is_control() => {}
            c if is_obeyed(c) => plain.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => plain.push(c),
        }
    }
    plain
}

/// A readable duration: `350 ms`, `12.3 s`, `17 min 6 s`, `2 h 5 min`.
pub(super) fn human_duration(millis: u64) -> String {
    let seconds = (millis + 500) / 1000;
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..59_950 => format!("{:.1} s", Duration::from_millis(millis).as_secs_f64()),
        59_950..3_599_500 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_599_500.. => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// A readable time, `2026-11-25 22:43 UTC`; a text that is not RFC 3339 in UTC is returned unchanged.
pub(super) fn human_time(started: &str) -> String {
    match (started.get(..10), started.get(10..11), started.get(11..16)) {
        (Some(day), Some("T"), Some(time)) if started.ends_with('Z') => format!("{day} {time} UTC"),
        _ => started.to_owned(),
    }
}

/// Milliseconds as seconds for a table: `0.3s`, `41.2s`, `612.0s`.
pub(super) fn seconds(millis: u64) -> String {
    format!("{:.1}s", Duration::from_millis(millis).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_a_log_is_found() {
        let text = "expected:  a\nlast seen: ccm ended 3 times\n             its last lines:\n               one\n               two\npromise:   it stays up";
        assert_eq!(telling_log_line(text).as_deref(), Some("two"));
        let both = "seen\n  ccm-a before its restart:\n    old\n  ccm-a now:\n    new";
        assert_eq!(telling_log_line(both).as_deref(), Some("old"));
        assert_eq!(telling_log_line("expected: a\nlast seen: b"), None);
        let log = |lines: &[&str]| format!("ended\n  its last lines:\n    {}", lines.join("\n    "));
        for (lines, expected) in [
            (
                &["error: unexpected argument '--x'", "Usage: ccm", "For more information, try '--help'."][..],
                0,
            ),
            (&["E0402 12:00:00 1 main.go:7] no cloud", "I0402 12:00:01 1 main.go:9] bye"], 0),
            (&["time=x level=error msg=no", "level=info msg=bye"], 0),
            (&["2026 INFO serving", "2026 DEBUG handshake eof"], 0),
            (&["2026 DEBUG one", "2026 DEBUG two"], 1),
            (&["Eleven", "Found 4000 nodes"], 1),
        ] {
            assert_eq!(telling_log_line(&log(lines)).as_deref(), Some(lines[expected]));
        }
        let split = ["ERROR ccm: invalid flags:", "unknown cloud provider \"acme\"", "bye"];
        let both = "ERROR ccm: invalid flags: unknown cloud provider \"acme\"";
        assert_eq!(telling_log_line(&log(&split)).as_deref(), Some(both));
    }

    #[test]
    fn the_middle_of_a_long_failure_is_left_out() {
        let of = |expected: &str, seen: &str| {
            failure_in_short(&format!(
                "expected:  {expected}\nlast seen: {seen}\npromise:   it stays\nwaited:    1.0s"
            ))
        };
        assert_eq!(of("80", "81"), "expected: 80; last seen: 81");
        let long = format!("first {}last", "word ".repeat(60));
        for cut in [of("80", &long), of(&long, "81"), of(&long, &long)] {
            assert!(
                cut.chars().count() <= MOST && cut.contains("first word") && cut.contains("word ... word"),
                "{cut}"
            );
        }
        assert!(of(&long, &long).ends_with("word last"));
    }

    #[test]
    fn a_long_line_ends_with_a_whole_word() {
        let cut = whole_words(&"word, ".repeat(60));
        assert!(cut.len() <= 240 && cut.ends_with("word ..."), "{cut}");
        assert_eq!(whole_words(&"x".repeat(300)).len(), 240);
        // The form in submitted reports.
        assert!(one_line(&"word, ".repeat(60)).ends_with("word, wor..."));
    }

    #[test]
    fn a_long_line_has_no_part_of_an_object() {
        let object = format!("{{\"message\": \"{}\"}}", "x".repeat(300));
        assert_eq!(
            one_line(&format!("asked {object}, then {object} ended")),
            "asked {...}, then {...} ended"
        );
        assert_eq!(one_line(&format!("asked {}", object.trim_end_matches('}'))), "asked {...}");
        assert_eq!(one_line("asked {\"a\": 1} once"), "asked {\"a\": 1} once", "a short one is whole");
    }

    #[test]
    fn durations_and_times_are_for_people() {
        let shown = [350, 12_340, 59_950, 1_026_400, 3_600_000, 7_540_000].map(human_duration);
        assert_eq!(shown, ["350 ms", "12.3 s", "1 min 0 s", "17 min 6 s", "1 h 0 min", "2 h 5 min"]);
        assert_eq!(human_time("2026-11-25T22:43:59.1Z"), "2026-11-25 22:43 UTC");
        assert_eq!(human_time("yesterday"), "yesterday");
    }
}
