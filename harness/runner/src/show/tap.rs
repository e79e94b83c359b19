//! The Test Anything Protocol, version 14: <https://testanything.org/tap-version-14-specification.html>.

use super::started::Started;
use crate::libtest::trouble_text;
use harness_core::ledger::{Entry, INTERRUPTED, Ledger, Outcome};
use harness_report::verdict_word;

pub(super) fn began(started: &Started<'_>) -> String {
    format!("TAP version 14\n1..{}\n", started.total)
}

/// The line of the check that ended as number `number`, and its details in YAML.
pub(super) fn check_ended(entry: &Entry, number: usize) -> String {
    let trouble = match &entry.outcome {
        Outcome::Error { message } if message == INTERRUPTED => None,
        _ => trouble_text(entry),
    };
    let ok = if trouble.is_some() { "not ok" } else { "ok" };
    let mut text = format!("{ok} {number} - {} {}", entry.id, escaped(&entry.title));
    match &entry.outcome {
        Outcome::Skip { detail, .. } => text.push_str(&format!(" # SKIP {}", first_line(detail))),
        Outcome::Blocked { by, .. } if trouble.is_none() => {
            text.push_str(&format!(" # SKIP blocked by {by}"))
        }
        Outcome::Error { .. } if trouble.is_none() => text.push_str(&format!(" # SKIP {INTERRUPTED}")),
        _ => {}
    }
    text.push_str(&format!("\n  ---\n  duration_ms: {}\n  level: {}\n", entry.duration_ms, entry.level));
    if let Some(trouble) = trouble {
        text.push_str("  message: |\n");
        for line in trouble.lines() {
            text.push_str(&format!("    {line}\n"));
        }
    }
    text.push_str("  ...\n");
    text
}

pub(super) fn ended(ledger: &Ledger) -> String {
    format!("# {}\n", verdict_word(ledger.conformance()))
}

/// The whole output of a run in which no check began.
pub(super) fn failed(why: &str) -> String {
    format!("TAP version 14\nBail out! {}\n", first_line(why))
}

fn first_line(text: &str) -> String {
    escaped(text.lines().next().unwrap_or_default())
}

/// A description in which nothing begins a directive.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('#', "\\#")
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::check::Level;
    use harness_core::ledger::SkipReason;

    #[test]
    fn lines_are_those_of_the_protocol() {
        let shown = |outcome| check_ended(&Entry::sample("A-01", Level::Must, outcome), 3);
        assert_eq!(
            shown(Outcome::Pass),
            "ok 3 - A-01 claim\n  ---\n  duration_ms: 1\n  level: MUST\n  ...\n"
        );
        let detail = "no #1 of it\nat all".to_owned();
        let skip = shown(Outcome::Skip { reason: SkipReason::NotObservable, detail });
        assert!(skip.starts_with("ok 3 - A-01 claim # SKIP no \\#1 of it\n"), "{skip}");
        let fail = shown(Outcome::Fail { message: "expected:  1\nlast seen: 2".to_owned() });
        assert!(fail.starts_with("not ok 3 - A-01 claim\n"), "{fail}");
        assert!(fail.contains("\n  message: |\n    expected:  1\n    last seen: 2\n"), "{fail}");
        assert_eq!(failed("no disk\nat all"), "TAP version 14\nBail out! no disk\n");
    }
}
