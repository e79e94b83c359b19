//! The page about an exploration: findings first, then a matrix of scenarios and patterns. It needs no script and no
//! network.

use crate::finding::Finding;
use crate::results::{Ended, Results, Trialed, columns};
use crate::scenario::Step;
use std::collections::BTreeMap;
use std::fmt::Write as _;

const STYLE: &str = include_str!("page.css");

/// The page as HTML.
pub(crate) fn to_page(results: &Results) -> String {
    let subject = &results.subject;
    let ccm = if subject.ccm.is_empty() { "a cloud controller manager" } else { &subject.ccm };
    let title = format!("Exploration of {}", escaped(ccm));
    let how = match subject.started.is_empty() {
        true => String::new(),
        false => format!(
            "<p class=\"faint\">Began {}: <code>{}</code></p>\n",
            escaped(&subject.started),
            escaped(&subject.reproduce)
        ),
    };
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <h1>{title}</h1>\n{how}<p class=\"faint\">{}</p>\n",
        escaped(&results.to_string())
    );
    findings(results, &mut page);
    matrix(results, &mut page);
    errors(results, &mut page);
    page.push_str("</body>\n</html>\n");
    page
}

fn findings(results: &Results, page: &mut String) {
    page.push_str("<h2>Findings</h2>\n");
    if results.findings.is_empty() {
        // A CCM that does not even do its work without faults was not explored.
        page.push_str(match results.is_explored() {
            true => "<p class=\"good\">Nothing was found.</p>\n",
            false => "<p class=\"bad\">Nothing can be said about the CCM: its scenarios did not end, even without a fault.</p>\n",
        });
    }
    let (stable, unstable): (Vec<&Finding>, Vec<&Finding>) =
        results.findings.iter().partition(|finding| finding.seen.is_stable());
    for found in stable.into_iter().chain(unstable) {
        finding(found, page);
    }
}

fn finding(finding: &Finding, page: &mut String) {
    let class = if finding.seen.is_stable() { "stable" } else { "unstable" };
    let (times, of) = (finding.seen.times, finding.seen.of);
    let _ = write!(
        page,
        "<article class=\"{class}\">\n<h3>{} <span class=\"faint\">({times} of {of} times)</span></h3>\n",
        escaped(&finding.summary)
    );
    for difference in &finding.differences {
        let _ = writeln!(
            page,
            "<dl><dt>object</dt><dd>{}</dd><dt>expected</dt><dd class=\"good\">{}</dd>\
             <dt>got</dt><dd class=\"bad\">{}</dd></dl>",
            escaped(&difference.subject),
            escaped(&difference.expected),
            escaped(&difference.actual)
        );
    }
    page.push_str("<p>Steps:</p>\n<ol>\n");
    for step in &finding.scenario.steps {
        let faint = if *step == Step::Settle { " class=\"faint\"" } else { "" };
        let _ = writeln!(page, "<li{faint}>{}</li>", escaped(&step.to_string()));
    }
    page.push_str("</ol>\n");
    for (title, requests) in [
        ("Last writes to the API server", &finding.requests.api),
        ("Last calls to the cloud", &finding.requests.cloud),
    ] {
        if !requests.is_empty() {
            let lines = escaped(&requests.join("\n"));
            let count = requests.len();
            let _ =
                writeln!(page, "<details><summary>{title} ({count})</summary><pre>{lines}</pre></details>");
        }
    }
    page.push_str("</article>\n");
}

/// How many trials of each scenario and pattern ended as they must.
fn matrix(results: &Results, page: &mut String) {
    let mut rows: BTreeMap<&str, BTreeMap<&str, Vec<&Trialed>>> = BTreeMap::new();
    for trial in &results.trials {
        rows.entry(&trial.scenario).or_default().entry(trial.column()).or_default().push(trial);
    }
    if rows.is_empty() {
        return;
    }
    let used = |column: &&str| rows.values().any(|row| row.contains_key(column));
    let columns: Vec<&str> = columns().into_iter().filter(used).collect();
    page.push_str("<h2>Trials by scenario and pattern</h2>\n<p class=\"faint\">Each field shows how many trials there were, and in red how many led to a finding.</p>\n<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">scenario</th>");
    for column in &columns {
        let _ = write!(page, "<th scope=\"col\">{}</th>", escaped(column));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for (scenario, row) in &rows {
        let _ = write!(page, "<tr><th scope=\"row\">{}</th>", escaped(scenario));
        for column in &columns {
            let trials = row.get(column).map(Vec::as_slice).unwrap_or_default();
            let found = trials.iter().filter(|trial| trial.outcome == Ended::Diverges).count();
            let _ = match (trials.len(), found) {
                (0, _) => write!(page, "<td></td>"),
                (all, 0) => write!(page, "<td class=\"good\">{all}</td>"),
                (all, found) => write!(page, "<td>{all} <span class=\"bad\">{found}</span></td>"),
            };
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table></div>\n");
}

fn errors(results: &Results, page: &mut String) {
    let failed: Vec<&Trialed> = results.trials.iter().filter(|trial| trial.outcome == Ended::Error).collect();
    if failed.is_empty() {
        return;
    }
    page.push_str(match results.is_explored() {
        true => "<h2>Errors of the environment</h2>\n<p>These trials prove nothing about the CCM.</p>\n",
        false => "<h2>What was not explored</h2>\n<p>These trials did not end as they must without any fault, or the environment failed.</p>\n",
    });
    for trial in failed {
        let _ = writeln!(
            page,
            "<dl><dt>{}</dt><dd class=\"lines\">{}</dd></dl>",
            escaped(&trial.plan),
            escaped(&trial.error)
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::divergence::{Broken, Divergence, Requests};
    use crate::finding::Seen;
    use crate::plan::Plan;
    use crate::results::Subject;
    use crate::scenario::Scenario;
    use crate::trial::Outcome;
    use std::time::Duration;

    #[test]
    fn findings_come_first_and_no_text_becomes_markup() {
        let scenario = Scenario::built_in(&["node-life".to_owned()]).expect("a scenario").remove(0);
        let plan = Plan::plain(scenario);
        let difference = Divergence {
            subject: "<b>Node</b>".to_owned(),
            expected: "one & only".to_owned(),
            actual: "none".to_owned(),
        };
        let requests = Requests { api: vec!["patch nodes".to_owned()], cloud: Vec::new() };
        let broken = Broken { step: 2, divergences: vec![difference.clone()], requests: requests.clone() };
        let finding = Finding::new(&plan, broken.clone(), Seen { times: 3, of: 3 });
        let subject = Subject {
            ccm: "acme & co".to_owned(),
            started: "2026-01-01T00:00:00Z".to_owned(),
            reproduce: "ccm-conformance explore".to_owned(),
        };
        let mut results = Results { subject, ..Results::default() };
        results.add(Trialed::of(&plan, &Outcome::Diverges(broken), Duration::ZERO), Some(finding));
        let page = to_page(&results);
        assert!(page.contains("<h1>Exploration of acme &amp; co</h1>"), "{page}");
        assert!(page.contains("Began 2026-01-01T00:00:00Z: <code>ccm-conformance explore</code>"), "{page}");
        assert!(page.contains("&lt;b&gt;Node&lt;/b&gt;") && page.contains("one &amp; only"), "{page}");
        assert!(!page.contains("<b>") && !page.contains("<script"), "{page}");
        let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}: {page}"));
        assert!(at("<article") < at("<table"));
        assert!(at("patch nodes") > 0);
    }

    #[test]
    fn what_does_not_work_without_a_fault_was_not_explored() {
        let plan = Plan::plain(Scenario::built_in(&["node-life".to_owned()]).expect("a scenario").remove(0));
        let mut results = Results::default();
        results.add(Trialed::of(&plan, &Outcome::Agrees, Duration::ZERO), None);
        assert!(to_page(&results).contains("Nothing was found."));
        results.add(Trialed::of(&plan, &Outcome::Error("it ended\ntwice".to_owned()), Duration::ZERO), None);
        let page = to_page(&results);
        assert!(page.contains("Nothing can be said") && !page.contains("Nothing was found."), "{page}");
        assert!(page.contains("What was not explored") && page.contains("it ended\ntwice"), "{page}");
    }
}
