//! Runs of one CCM on several versions of Kubernetes next to each other: a summary, and a page with a column for each version.
//!
//! Pure functions: the same reports give the same text and the same page.

use super::site::escaped;
use super::wording::{human_duration, shown_word, verdict_word};
use harness_core::check::Level;
use harness_core::ledger::{Entry, Ledger, Outcome, SkipReason};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

const STYLE: &str = concat!(include_str!("site/site.css"), include_str!("versions/versions.css"));

/// The runs on several versions, in the order in which they were asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    /// The runs.
    pub runs: Vec<VersionRun>,
    /// The checks that did not end alike on all versions, by id.
    pub differences: Vec<VersionCheck>,
    /// The checks that ended alike everywhere.
    #[serde(skip)]
    alike: Vec<VersionCheck>,
}

/// The run on one version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionRun {
    /// The version or node image that was asked for.
    pub asked: String,
    /// The folder of its report, in the folder of the summary.
    pub folder: String,
    /// The version that the API server reports; empty if there was no cluster.
    pub kubernetes: String,
    /// Its verdict, in one word.
    pub verdict: &'static str,
    /// How many MUST checks passed.
    pub passed: usize,
    /// How many MUST checks apply, whether or not they were selected.
    pub musts: usize,
    /// Its duration in milliseconds.
    pub took_ms: u64,
}

/// A check on all versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionCheck {
    /// The check.
    pub id: String,
    /// Its level.
    pub level: Level,
    /// Its title.
    pub title: String,
    /// Its outcome in each run, in one word; `unknown` if the run did not have the check.
    pub outcomes: Vec<&'static str>,
}

impl VersionCheck {
    fn is_alike(&self) -> bool {
        self.outcomes.windows(2).all(|pair| pair[0] == pair[1])
    }
}

/// Puts runs next to each other. Each has what was asked for, its folder, and its ledger.
pub fn versions(runs: &[(String, String, Ledger)]) -> Versions {
    let known: Vec<BTreeMap<&str, &Entry>> = runs
        .iter()
        .map(|(_, _, ledger)| ledger.all().map(|entry| (entry.id.as_str(), entry)).collect())
        .collect();
    let ids: BTreeSet<&str> = known.iter().flat_map(BTreeMap::keys).copied().collect();
    let check = |id: &str| {
        let entry = known.iter().find_map(|run| run.get(id))?;
        let word =
            |run: &BTreeMap<&str, &Entry>| run.get(id).map_or("unknown", |one| shown_word(&one.outcome));
        Some(VersionCheck {
            id: id.to_owned(),
            level: entry.level,
            title: entry.title.clone(),
            outcomes: known.iter().map(word).collect(),
        })
    };
    let (alike, differences) = ids.into_iter().filter_map(check).partition(VersionCheck::is_alike);
    Versions { runs: runs.iter().map(run).collect(), differences, alike }
}

fn run((asked, folder, ledger): &(String, String, Ledger)) -> VersionRun {
    let applies = |entry: &&Entry| {
        let reason = match &entry.outcome {
            Outcome::Skip { reason, .. } => Some(*reason),
            _ => None,
        };
        entry.level == Level::Must && reason != Some(SkipReason::NotDeclared)
    };
    let musts = ledger.entries.iter().filter(applies);
    VersionRun {
        asked: asked.clone(),
        folder: folder.clone(),
        kubernetes: ledger.subject.kubernetes_version.clone(),
        verdict: verdict_word(ledger.conformance()),
        passed: musts.clone().filter(|entry| entry.outcome == Outcome::Pass).count(),
        musts: musts.count(),
        took_ms: ledger.duration_ms,
    }
}

impl fmt::Display for Versions {
    /// A line for each version, and one for each check that did not end alike.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.runs.iter().map(|run| run.asked.len()).max().unwrap_or(0);
        for run in &self.runs {
            let VersionRun { asked, kubernetes, verdict, passed, musts, took_ms, .. } = run;
            let version = if kubernetes.is_empty() { "no cluster" } else { kubernetes };
            writeln!(
                f,
                "{asked:<width$}  {version}: {}, {passed} of {musts} MUST checks passed, {}",
                verdict.replace('-', " "),
                human_duration(*took_ms)
            )?;
        }
        let all = self.differences.len() + self.alike.len();
        match self.differences.len() {
            0 => write!(f, "all {all} checks ended alike on all versions")?,
            some => write!(f, "{some} of {all} checks did not end alike on all versions")?,
        }
        for VersionCheck { id, outcomes, .. } in &self.differences {
            write!(f, "\n  {id}: {}", outcomes.join(", "))?;
        }
        Ok(())
    }
}

/// The page: versions as columns, first the checks that differ, then all others, by suite. Each column leads to the report of
/// its run.
pub fn to_versions_page(versions: &Versions) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Kubernetes versions</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <h1>One CCM on {} versions of Kubernetes</h1>\n",
        versions.runs.len()
    );
    page.push_str("<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">Kubernetes</th><th scope=\"col\">Verdict</th><th scope=\"col\">MUST checks passed</th><th scope=\"col\">Duration</th></tr></thead>\n<tbody>\n");
    for run in &versions.runs {
        let VersionRun { kubernetes, verdict, passed, musts, took_ms, .. } = run;
        let version = if kubernetes.is_empty() { "no cluster" } else { kubernetes };
        let _ = writeln!(
            page,
            "<tr><th scope=\"row\">{}<br><span class=\"small\">{}</span></th><td class=\"{verdict}\">{}</td><td>{passed} of {musts}</td><td>{}</td></tr>",
            link(run),
            escaped(version),
            verdict.replace('-', " "),
            human_duration(*took_ms)
        );
    }
    page.push_str("</tbody>\n</table></div>\n");
    let _ = writeln!(page, "<h2>Checks that did not end alike ({})</h2>", versions.differences.len());
    if versions.differences.is_empty() {
        page.push_str("<p>Every check ended alike on all versions.</p>\n");
    } else {
        table(versions, &versions.differences, &mut page);
    }
    let _ = writeln!(
        page,
        "<details><summary>Checks that ended alike on all versions ({})</summary>",
        versions.alike.len()
    );
    table(versions, &versions.alike, &mut page);
    page.push_str("</details>\n</body>\n</html>\n");
    page
}

fn link(run: &VersionRun) -> String {
    format!("<a href=\"{}/report.html\">{}</a>", escaped(&run.folder), escaped(&run.asked))
}

fn table(versions: &Versions, checks: &[VersionCheck], page: &mut String) {
    page.push_str("<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">Check</th>");
    for run in &versions.runs {
        let _ = write!(page, "<th scope=\"col\">{}</th>", link(run));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for VersionCheck { id, level, title, outcomes } in checks {
        let _ = write!(
            page,
            "<tr><th scope=\"row\">{} <span class=\"small\">{level}</span><br><span class=\"small\">{}</span></th>",
            escaped(id),
            escaped(title)
        );
        for word in outcomes {
            let _ = write!(page, "<td class=\"{word}\">{}</td>", word.replace('-', " "));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table></div>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::ledger::Subject;

    fn run(asked: &str, outcome: Outcome) -> (String, String, Ledger) {
        let subject = Subject { kubernetes_version: format!("v{asked}.1"), ..Subject::default() };
        let entries = vec![
            Entry::sample("A-01", Level::Must, outcome),
            Entry::sample("A-02", Level::Must, Outcome::Pass),
        ];
        let ledger = Ledger { subject, entries, duration_ms: 61_000, ..Ledger::default() };
        (asked.to_owned(), asked.to_owned(), ledger)
    }

    #[test]
    fn versions_are_columns_and_differences_come_first() {
        let failed = Outcome::Fail { message: "no".to_owned() };
        let all = versions(&[run("1.35", Outcome::Pass), run("1.36", failed)]);
        let text = all.to_string();
        assert!(
            text.starts_with("1.35  v1.35.1: conformant, 2 of 2 MUST checks passed, 1 min 1 s\n"),
            "{text}"
        );
        assert!(
            text.contains("\n1.36  v1.36.1: not conformant, 1 of 2 MUST checks passed, 1 min 1 s\n"),
            "{text}"
        );
        assert!(
            text.ends_with("1 of 2 checks did not end alike on all versions\n  A-01: pass, fail"),
            "{text}"
        );
        let page = to_versions_page(&all);
        assert!(page.contains("<a href=\"1.36/report.html\">1.36</a>"), "{page}");
        assert!(page.find("A-01") < page.find("A-02"), "{page}");
        assert!(page.contains("<td class=\"pass\">pass</td><td class=\"fail\">fail</td>"), "{page}");
    }

    #[test]
    fn a_check_that_one_version_did_not_have_is_a_difference() {
        let mut old = run("1.20", Outcome::Pass);
        old.2.entries.remove(0);
        let all = versions(&[old, run("1.36", Outcome::Pass)]);
        assert_eq!(all.differences.len(), 1);
        assert_eq!(all.differences[0].outcomes, ["unknown", "pass"]);
    }

    #[test]
    fn what_was_typed_becomes_no_markup() {
        let page = to_versions_page(&versions(&[run("<b>", Outcome::Pass)]));
        assert!(page.contains("&lt;b&gt;") && !page.contains("<b>"), "{page}");
        assert!(page.contains("Every check ended alike"), "{page}");
    }
}
