//! The pages of a site with submitted reports: a matrix of CCMs and Kubernetes versions, and a badge for each report.
//!
//! Pure functions: the same reports give the same pages.

use super::badge::{Badge, badge};
use super::profile_result::profile_results;
use super::submission::{About, MadeBy, Row};
use super::wording::verdict_word;
use harness_core::ledger::Ledger;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

const STYLE: &str = include_str!("site/site.css");

/// A submitted report, for a site.
#[derive(Debug)]
pub struct Submitted {
    /// The description of the submission.
    pub about: About,
    /// The report.
    pub ledger: Ledger,
}

/// The page that lists all reports. Each has its own page at `1.MINOR/VENDOR/`. `newest` is the newest minor version of
/// Kubernetes that the harness judges: reports that are too old for it are marked as expired.
pub fn to_site_index(reports: &[Submitted], newest: u32) -> String {
    let rows: Vec<(Row, &Ledger)> = reports
        .iter()
        .filter_map(|report| Some((Row::of(report.about.clone(), &report.ledger)?, &report.ledger)))
        .collect();
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src 'self'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Conformance of cloud controller managers</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <h1>Conformance of cloud controller managers</h1>\n\
         <p>Which Kubernetes cloud controller managers keep the promises that a cluster relies on? Each result is a full run of \
         <code>ccm-conformance</code> on real kubelets. Its report and events can be downloaded and verified.</p>\n"
    );
    if rows.is_empty() {
        page.push_str("<p>No report has been submitted yet.</p>\n");
    } else {
        matrix(&rows, newest, &mut page);
        profiles(&rows, &mut page);
    }
    page.push_str("</body>\n</html>\n");
    page
}

/// CCMs by Kubernetes versions, the newest version first.
fn matrix(rows: &[(Row, &Ledger)], newest: u32, page: &mut String) {
    let minors: BTreeSet<u32> = rows.iter().map(|(row, _)| row.minor).collect();
    let mut products: BTreeMap<(&str, &str), BTreeMap<u32, &Row>> = BTreeMap::new();
    for (row, _) in rows {
        products.entry((&row.about.vendor, &row.about.product)).or_default().insert(row.minor, row);
    }
    page.push_str("<h2>Results by Kubernetes version</h2>\n<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">CCM</th>");
    for minor in minors.iter().rev() {
        let _ = write!(page, "<th scope=\"col\">Kubernetes 1.{minor}</th>");
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for ((_, product), results) in &products {
        let url = results.values().rev().find_map(|row| row.about.url.as_deref());
        let product = match url {
            Some(url) => format!("<a href=\"{}\">{}</a>", escaped(url), escaped(product)),
            None => escaped(product),
        };
        let _ = write!(page, "<tr><th scope=\"row\">{product}</th>");
        for minor in minors.iter().rev() {
            match results.get(minor) {
                Some(row) => cell(row, newest, page),
                None => page.push_str("<td class=\"not-judged\">no report</td>"),
            }
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table></div>\n");
}

fn cell(row: &Row, newest: u32, page: &mut String) {
    let Row { minor, about, verdict, musts: (passed, all), day, harness } = row;
    let made_by = match about.made_by {
        MadeBy::Vendor => "reported by its maker",
        MadeBy::Project => "reported by this project",
    };
    let word = verdict_word(*verdict);
    let expired = if row.has_expired(newest) { " (expired)" } else { "" };
    let _ = write!(
        page,
        "<td><a href=\"1.{minor}/{vendor}/index.html\"><span class=\"{word}\">{}{expired}</span></a><br>\
         {passed} of {all} MUSTs<br><span class=\"small\">{} · {} · harness {} · {made_by}</span></td>",
        word.replace('-', " "),
        escaped(&about.version),
        escaped(day),
        escaped(harness),
        vendor = escaped(&about.vendor),
    );
}

/// Reports by profiles of conformance.
fn profiles(rows: &[(Row, &Ledger)], page: &mut String) {
    let results: Vec<_> = rows.iter().map(|(row, ledger)| (row, profile_results(ledger))).collect();
    let mut names: Vec<&str> = Vec::new();
    // A profile that no CCM declares would be an empty column.
    for one in results.iter().flat_map(|(_, results)| results).filter(|one| one.musts > 0) {
        if !names.contains(&one.profile.as_str()) {
            names.push(&one.profile);
        }
    }
    if names.is_empty() {
        return;
    }
    page.push_str("<h2>Results by conformance profile</h2>\n<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">CCM</th>");
    for name in &names {
        let _ = write!(page, "<th scope=\"col\">{}</th>", escaped(name));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for (row, results) in &results {
        let _ = write!(
            page,
            "<tr><th scope=\"row\">{}<br><span class=\"small\">{} · Kubernetes 1.{}</span></th>",
            escaped(&row.about.product),
            escaped(&row.about.version),
            row.minor
        );
        for name in &names {
            match results.iter().find(|one| one.profile == *name) {
                Some(one) if one.musts > 0 => {
                    let word = one.standing.replace('-', " ");
                    let (class, passed, musts) = (escaped(&one.standing), one.passed, one.musts);
                    let _ = write!(
                        page,
                        "<td><span class=\"{class}\">{}</span><br><span class=\"small\">{passed} of {musts}</span></td>",
                        escaped(&word)
                    );
                }
                _ => page.push_str("<td class=\"not-declared\">not declared</td>"),
            }
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table></div>\n");
}

/// The badge of a report as a picture.
pub fn to_badge_svg(ledger: &Ledger) -> String {
    /// Average width of a character, and the space around a text, in pixels.
    const CHARACTER: usize = 7;
    const ROOM: usize = 12;
    let Badge { label, message, colour } = badge(ledger);
    let fill = match colour {
        "brightgreen" => "#2c7a3f",
        "yellow" => "#8a6100",
        "red" => "#b3202c",
        _ => "#5a636e",
    };
    let (left, right) =
        (label.chars().count() * CHARACTER + ROOM, message.chars().count() * CHARACTER + ROOM);
    let (label, message) = (escaped(label), escaped(&message));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{whole}\" height=\"20\" role=\"img\" aria-label=\"{label}: {message}\">\n\
         <title>{label}: {message}</title>\n\
         <rect width=\"{whole}\" height=\"20\" rx=\"3\" fill=\"#3b424a\"/>\n\
         <path d=\"M{left} 0h{square}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-{square}z\" fill=\"{fill}\"/>\n\
         <g fill=\"#fff\" font-family=\"Verdana,DejaVu Sans,sans-serif\" font-size=\"11\" text-anchor=\"middle\">\n\
         <text x=\"{at_label}\" y=\"14\" textLength=\"{label_length}\">{label}</text>\n\
         <text x=\"{at_message}\" y=\"14\" textLength=\"{message_length}\">{message}</text>\n\
         </g>\n</svg>\n",
        whole = left + right,
        square = right - 3,
        at_label = left / 2,
        at_message = left + right / 2,
        label_length = left - ROOM,
        message_length = right - ROOM,
    )
}

/// A text, escaped for markup and attributes.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for mark in text.chars() {
        match mark {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(mark),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::check::Level;
    use harness_core::ledger::{Entry, Outcome, Subject};

    fn submitted(product: &str, minor: u32, outcome: Outcome) -> Submitted {
        let about = About {
            vendor: "acme".to_owned(),
            product: product.to_owned(),
            version: "1.2".to_owned(),
            url: Some("https://acme.example/ccm".to_owned()),
            made_by: MadeBy::Project,
        };
        let subject = Subject {
            kubernetes_version: format!("v1.{minor}.2"),
            backend: "kind".to_owned(),
            ..Subject::default()
        };
        let entries = vec![Entry::sample("A-01", Level::Must, outcome)];
        Submitted {
            about,
            ledger: Ledger {
                subject,
                entries,
                started: "2026-03-01T12:00:00Z".to_owned(),
                ..Ledger::default()
            },
        }
    }

    fn failed() -> Outcome {
        Outcome::Fail { message: "no".to_owned() }
    }

    #[test]
    fn the_newest_kubernetes_comes_first_and_a_missing_report_is_named() {
        let page = to_site_index(
            &[
                submitted("Acme", 36, Outcome::Pass),
                submitted("Acme", 35, failed()),
                submitted("Other", 36, failed()),
            ],
            36,
        );
        let (newer, older) = (page.find("Kubernetes 1.36</th>"), page.find("Kubernetes 1.35</th>"));
        assert!(newer.is_some() && newer < older, "{page}");
        assert!(
            page.contains(
                "<a href=\"1.36/acme/index.html\"><span class=\"conformant\">conformant</span></a>"
            ),
            "{page}"
        );
        assert!(page.contains("<span class=\"not-conformant\">not conformant</span>"), "{page}");
        assert_eq!(page.matches("no report").count(), 1, "{page}");
        assert!(to_site_index(&[submitted("Acme", 33, Outcome::Pass)], 36).contains("conformant (expired)"));
        assert!(to_site_index(&[], 36).contains("No report"));
    }

    #[test]
    fn nothing_in_a_submission_becomes_markup() {
        let page = to_site_index(&[submitted("<b onclick=\"x\">'&", 36, Outcome::Pass)], 36);
        assert!(page.contains("&lt;b onclick=&quot;x&quot;&gt;&#39;&amp;"), "{page}");
        assert!(!page.contains("<b "), "{page}");
    }

    #[test]
    fn a_badge_says_its_verdict_in_words_too() {
        let svg = to_badge_svg(&submitted("Acme", 36, failed()).ledger);
        assert!(svg.contains("aria-label=\"CCM conformance: not conformant, 0 of 1 MUSTs\""), "{svg}");
        assert!(svg.contains("#b3202c"), "{svg}");
    }
}
