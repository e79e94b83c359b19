//! How the checks of a run ended, read from its stream of events.

use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The facts from the events of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunFigures {
    /// Checks that failed or were blocked, with the reason.
    pub(crate) held_against: Vec<String>,
    /// Checks that were repeated, with what failed them first.
    pub(crate) judged_again: Vec<String>,
    /// Checks that ended with an environment error, with the error.
    pub(crate) errors: Vec<String>,
    /// How many checks ended in any way.
    pub(crate) ended: usize,
    /// How each check ended, skipped ones with the reason.
    pub(crate) outcomes: BTreeMap<String, String>,
}

impl RunFigures {
    /// Why checks did not pass at once, a line for each.
    pub(crate) fn reasons(&self) -> impl Iterator<Item = String> + '_ {
        let of = |kind: &'static str, all: &Vec<String>| -> Vec<String> {
            all.iter().map(|reason| format!("{kind} {reason}")).collect()
        };
        let all = [
            of("failed or blocked:", &self.held_against),
            of("not judged:", &self.errors),
            of("judged again:", &self.judged_again),
        ];
        all.into_iter().flatten()
    }

    /// Checks that ended differently in another run of the same program, a line for each.
    pub(crate) fn differences<'a>(&'a self, other: &'a RunFigures) -> impl Iterator<Item = String> + 'a {
        let of = |figures: &'a RunFigures, id: &str| -> &'a str {
            figures.outcomes.get(id).map_or("not run", String::as_str)
        };
        let ids: BTreeSet<&String> = self.outcomes.keys().chain(other.outcomes.keys()).collect();
        ids.into_iter().filter_map(move |id| {
            let (here, there) = (of(self, id), of(other, id));
            (here != there).then(|| format!("{id}: {here}, but {there} in the first run"))
        })
    }
}

/// Reads them from the stream of events.
///
/// # Errors
/// It cannot be read, or plans no checks.
pub(crate) fn figures(events: &Path) -> Result<RunFigures> {
    let text = std::fs::read_to_string(events).with_context(|| events.display().to_string())?;
    let mut levels: BTreeMap<String, String> = BTreeMap::new();
    let mut figures = RunFigures::default();
    for line in text.lines() {
        let event: Value = serde_json::from_str(line)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let payload = &event["event"];
        match payload["type"].as_str() {
            Some("checks-planned") => {
                for check in payload["checks"].as_array().into_iter().flatten() {
                    levels.insert(text(&check["id"]), text(&check["level"]));
                }
            }
            Some("check-ended") => {
                let check = text(&event["check"]);
                let outcome = text(&payload["ended"]["outcome"]);
                let with = |why: &Value| format!("{check}: {}", text(why));
                figures.judged_again.extend(payload["facts"].get("first-try").map(with));
                if outcome == "error" {
                    figures.errors.push(with(&payload["ended"]["message"]));
                }
                figures.ended += usize::from(outcome != "skip");
                let skipped = [&payload["ended"]["reason"], &payload["ended"]["detail"]].map(text).join(", ");
                let how = if outcome == "skip" { format!("skipped ({skipped})") } else { outcome.clone() };
                figures.outcomes.insert(check.clone(), how);
                let is_must = levels.get(&check).is_some_and(|level| level == "MUST");
                if is_must && (outcome == "fail" || outcome == "blocked") {
                    figures.held_against.push(with(&payload["ended"]["message"]));
                }
            }
            _ => {}
        }
    }
    anyhow::ensure!(!levels.is_empty(), "{} plans no checks", events.display());
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_that_ended_differently_are_named() {
        let run = |outcomes: &[(&str, &str)]| RunFigures {
            outcomes: outcomes.iter().map(|(id, how)| ((*id).to_owned(), (*how).to_owned())).collect(),
            ..RunFigures::default()
        };
        let (first, later) =
            (run(&[("A-01", "pass"), ("A-02", "pass")]), run(&[("A-01", "fail"), ("A-03", "pass")]));
        assert_eq!(
            later.differences(&first).collect::<Vec<_>>(),
            [
                "A-01: fail, but pass in the first run",
                "A-02: not run, but pass in the first run",
                "A-03: pass, but not run in the first run"
            ]
        );
        assert_eq!(first.differences(&first).count(), 0);
    }
}
