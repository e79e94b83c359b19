//! Submitted reports: the rules for a submission and its report, and the table of all submissions.
//!
//! Pure functions. A submission is a folder `MINOR/VENDOR` with [`ABOUT_FILE`], `report.yaml` and its packed stream of
//! events, which `verify` accepts. The additional rules are here.

use super::wording::verdict_word;
use harness_core::check::Level;
use harness_core::ledger::{Conformance, Ledger, Outcome, SkipReason};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The file that describes the submission.
pub const ABOUT_FILE: &str = "submission.yaml";
/// The number of newer minor versions of Kubernetes after which an entry has expired.
const COUNTS_FOR: u32 = 3;
/// The maximum length of a value, in characters.
const LONGEST: usize = 100;

/// The description of a submission: `submission.yaml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct About {
    /// The vendor of the CCM, and the name of the folder: lower-case letters, digits and hyphens.
    pub vendor: String,
    /// The name of the CCM.
    pub product: String,
    /// Its version, as the vendor writes it.
    pub version: String,
    /// Its home page, `https://..`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The submitter of the report.
    pub made_by: MadeBy,
}

/// The submitter of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MadeBy {
    /// The vendor of the CCM. Only conformant reports are accepted.
    Vendor,
    /// This project, about another vendor's CCM. It is published whatever the verdict.
    Project,
}

/// The rules that a submission violates, one sentence each. `folder` is the last two parts of its path.
pub fn broken_rules(about: &About, report: &Ledger, folder: (&str, &str)) -> Vec<String> {
    let mut broken = Vec::new();
    let mut rule = |holds: bool, why: String| {
        if !holds {
            broken.push(why);
        }
    };
    for (key, text) in [("product", &about.product), ("version", &about.version)] {
        let sound = (1..=LONGEST).contains(&text.chars().count()) && !text.chars().any(char::is_control);
        rule(sound, format!("{ABOUT_FILE}: {key}: a line of 1 to {LONGEST} characters is expected"));
    }
    rule(
        is_vendor(&about.vendor),
        format!("{ABOUT_FILE}: vendor: '{}' is not of lower-case letters, digits and hyphens", about.vendor),
    );
    if let Some(url) = &about.url {
        rule(is_url(url), format!("{ABOUT_FILE}: url: '{url}' is not an https:// address without blanks"));
    }
    let (minor, vendor) = folder;
    rule(
        vendor == about.vendor,
        format!(
            "the folder is {vendor}, and {ABOUT_FILE} says vendor '{}': name it after the vendor",
            about.vendor
        ),
    );
    let subject = &report.subject;
    let reported = minor_of(&subject.kubernetes_version);
    rule(
        reported.is_some_and(|reported| minor == format!("1.{reported}")),
        format!(
            "the folder is {minor}, and the report is of Kubernetes '{}': it belongs to the folder of its minor version",
            subject.kubernetes_version
        ),
    );
    rule(
        !subject.simulated && subject.backend == "kind",
        format!(
            "the cluster was '{}'; only a real one that the harness made counts: run with '--cluster kind'",
            subject.backend
        ),
    );
    let verdict = report.conformance();
    match about.made_by {
        MadeBy::Vendor => {
            rule(subject.certify, "the run was not one for certification: run with '--certify'".to_owned());
            rule(
                verdict == Conformance::Conformant,
                format!("the verdict is '{}'; a vendor submits what is conformant", verdict_word(verdict)),
            );
        }
        MadeBy::Project => {
            rule(verdict != Conformance::NotJudged, "nothing was judged in it".to_owned());
        }
    }
    broken
}

/// A line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The minor version of Kubernetes.
    pub minor: u32,
    /// The CCM and its vendor.
    pub about: About,
    /// Its verdict.
    pub verdict: Conformance,
    /// The number of passed and of applicable MUST checks.
    pub musts: (usize, usize),
    /// The date of its run, `2026-11-24`.
    pub day: String,
    /// The version of the harness.
    pub harness: String,
}

impl Row {
    /// The line of a submission; `None` if the report has no version of Kubernetes.
    pub fn of(about: About, report: &Ledger) -> Option<Row> {
        let applies = report.entries.iter().filter(|entry| {
            let undeclared = matches!(entry.outcome, Outcome::Skip { reason: SkipReason::NotDeclared, .. });
            entry.level == Level::Must && !undeclared
        });
        let passed = applies.clone().filter(|entry| entry.outcome == Outcome::Pass).count();
        Some(Row {
            minor: minor_of(&report.subject.kubernetes_version)?,
            about,
            verdict: report.conformance(),
            musts: (passed, applies.count()),
            day: report.started.chars().take(10).collect(),
            harness: report.subject.harness_version.clone(),
        })
    }

    /// Whether it has expired; `newest` is the newest minor version that the harness judges.
    pub fn has_expired(&self, newest: u32) -> bool {
        newest >= self.minor + COUNTS_FOR
    }
}

/// The table of all submissions in Markdown, the newest Kubernetes first.
pub fn table(rows: &[Row], newest: u32) -> String {
    if rows.is_empty() {
        return "No report has been submitted yet.\n".to_owned();
    }
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by(|a, b| {
        (b.minor, &a.about.vendor, &a.about.product).cmp(&(a.minor, &b.about.vendor, &b.about.product))
    });
    let mut text =
        "| Kubernetes | CCM | version | verdict | MUSTs | made by | run |\n|---|---|---|---|---|---|---|\n"
            .to_owned();
    for row in rows {
        let product = cell(&row.about.product);
        let product = match &row.about.url {
            Some(url) => format!("[{product}]({url})"),
            None => product,
        };
        let word = verdict_word(row.verdict).replace('-', " ");
        let verdict = if row.has_expired(newest) { format!("expired ({word})") } else { word };
        let made_by = match row.about.made_by {
            MadeBy::Vendor => "vendor",
            MadeBy::Project => "this project",
        };
        let (passed, all) = row.musts;
        text.push_str(&format!(
            "| [1.{minor}](1.{minor}/{vendor}/report.yaml) | {product} | {version} | {verdict} | {passed} of {all} | {made_by} | {day}, harness {harness} |\n",
            minor = row.minor,
            vendor = row.about.vendor,
            version = cell(&row.about.version),
            day = cell(&row.day),
            harness = cell(&row.harness),
        ));
    }
    text
}

/// A text for a table cell, escaped so that it cannot end the cell and is neither a link nor markup.
fn cell(text: &str) -> String {
    let mut escaped = String::new();
    for mark in text.chars() {
        if mark.is_ascii_punctuation() && !matches!(mark, '.' | '-' | '+' | ',' | ':' | '/') {
            escaped.push('\\');
        }
        escaped.push(mark);
    }
    escaped
}

fn is_vendor(name: &str) -> bool {
    let sound = |mark: char| mark.is_ascii_lowercase() || mark.is_ascii_digit() || mark == '-';
    (1..=40).contains(&name.len()) && name.chars().all(sound) && !name.starts_with('-')
}

fn is_url(url: &str) -> bool {
    let rest = url.strip_prefix("https://").unwrap_or_default();
    let sound = |mark: char| mark.is_ascii_graphic() && !"()<>|\"'`\\".contains(mark);
    (1..=200).contains(&rest.len()) && rest.chars().all(sound)
}

fn minor_of(kubernetes: &str) -> Option<u32> {
    let (minor, _) = kubernetes.strip_prefix("v1.")?.split_once('.')?;
    minor.parse().ok()
}

/// The folder of a report's minor version, `1.36`; `None` if the report has no version.
pub fn minor_folder(report: &Ledger) -> Option<String> {
    minor_of(&report.subject.kubernetes_version).map(|minor| format!("1.{minor}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::ledger::{Entry, Subject};

    fn about(made_by: MadeBy) -> About {
        let text = str::to_owned;
        About { vendor: text("acme"), product: text("Acme CCM"), version: text("1.2"), url: None, made_by }
    }

    fn report(outcome: Outcome) -> Ledger {
        let subject = Subject {
            backend: "kind".to_owned(),
            kubernetes_version: "v1.36.2".to_owned(),
            harness_version: "0.1.0".to_owned(),
            certify: true,
            ..Subject::default()
        };
        let entries = vec![
            Entry::sample("A-01", Level::Must, Outcome::Pass),
            Entry::sample("A-02", Level::Must, outcome),
        ];
        Ledger { subject, entries, started: "2026-11-24T10:00:00Z".to_owned(), ..Ledger::default() }
    }

    fn left_out() -> Outcome {
        Outcome::Skip { reason: SkipReason::Deselected, detail: String::new() }
    }

    #[test]
    fn a_vendor_submits_what_is_conformant_and_certified_on_a_real_cluster() {
        let sound = report(Outcome::Pass);
        assert_eq!(broken_rules(&about(MadeBy::Vendor), &sound, ("1.36", "acme")), [""; 0]);
        type Change = fn(&mut Ledger, &mut About);
        let changes: [(&str, Change); 9] = [
            ("certify", |report, _| report.subject.certify = false),
            ("verdict", |report, _| report.entries[1].outcome = left_out()),
            ("--cluster kind", |report, _| report.subject.backend = "embedded".to_owned()),
            ("--cluster kind", |report, _| report.subject.simulated = true),
            ("minor version", |report, _| report.subject.kubernetes_version = "v1.35.0".to_owned()),
            ("vendor", |_, about| about.vendor = "Acme".to_owned()),
            ("version:", |_, about| about.version = "1\n2".to_owned()),
            ("product:", |_, about| about.product = String::new()),
            ("url:", |_, about| about.url = Some("https://a.example/x)[y](z".to_owned())),
        ];
        for (named, change) in changes {
            let (mut report, mut about) = (sound.clone(), about(MadeBy::Vendor));
            change(&mut report, &mut about);
            let broken = broken_rules(&about, &report, ("1.36", "acme"));
            assert!(broken.iter().any(|why| why.contains(named)), "{named}: {broken:?}");
        }
        let misplaced = broken_rules(&about(MadeBy::Vendor), &sound, ("1.36", "other"));
        assert!(misplaced[0].contains("the folder is other"), "{misplaced:?}");
    }

    #[test]
    fn the_project_shows_what_it_found() {
        let mut partial = report(left_out());
        partial.subject.certify = false;
        assert_eq!(broken_rules(&about(MadeBy::Project), &partial, ("1.36", "acme")), [""; 0]);
    }

    #[test]
    fn the_table_has_the_newest_first_and_says_what_has_expired() {
        let row = |minor: u32, product: &str| {
            let mut report = report(Outcome::Pass);
            report.subject.kubernetes_version = format!("v1.{minor}.0");
            let about = About { product: product.to_owned(), ..about(MadeBy::Project) };
            Row::of(about, &report).expect("a version")
        };
        let text = table(&[row(33, "Old"), row(36, "New | <b>[x](y)")], 36);
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert!(lines[0].starts_with("| [1.36](1.36/acme/report.yaml) | New \\| \\<b\\>\\[x\\]\\(y\\) | 1.2 | conformant | 2 of 2 | this project | 2026-11-24, harness 0.1.0 |"), "{text}");
        assert!(lines[1].contains("| expired (conformant) |"), "{text}");
        assert!(table(&[], 36).contains("No report"));
    }
}
