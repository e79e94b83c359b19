//! `report.html`: the whole story of a run on one page that needs nothing else, neither a network nor a server.
//!
//! The page carries the ledger, the stream of events and the evidence of failed checks, compressed, and draws itself. Nothing
//! in them can become markup or script: they are unpacked as text and put in as text, and the page's policy lets one script
//! run, which is named by its digest.

use super::standing;
use super::wording::{because, verdict_word};
use crate::ledger::{Ledger, Outcome, Setting};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::Write as _;

const FRAME: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = concat!(
    "(() => {\n\"use strict\";\n",
    include_str!("page/model.js"),
    include_str!("page/draw.js"),
    include_str!("page/view.js"),
    "})();\n"
);

/// What the material may take of the page, bytes as they stand in it: a page of 5 MB still goes by mail.
const MATERIAL_AT_MOST: usize = 4_500_000;

/// The files of evidence of each check: name and text.
pub type Evidence = BTreeMap<String, Vec<(String, String)>>;

/// What a row of the contract demands.
#[derive(Clone, Debug, Serialize)]
pub struct Demand {
    /// What is required.
    pub requires: String,
    /// Why: what happens to a cluster otherwise.
    pub why: String,
    /// How the harness brings it about and what it looks at.
    pub provoked: String,
}

/// What tells of a run beside its ledger.
#[derive(Debug, Default)]
pub struct Material {
    /// The text of its `events.jsonl`, empty where there is none.
    pub events: String,
    /// What was taken of failed checks.
    pub evidence: Evidence,
    /// What the rows demand that its checks judge, by id.
    pub demands: BTreeMap<String, Demand>,
}

#[derive(Serialize)]
struct Head<'a> {
    report: &'a Ledger,
    verdict: &'a str,
    because: Vec<(String, String)>,
    relaxed: Vec<&'a Setting>,
    profiles: Vec<String>,
    evidence: &'a Evidence,
    demands: &'a BTreeMap<String, Demand>,
    left_out: usize,
}

/// The page of a run. Where its events are too many, calls to the cloud and changes of objects are left out, those of checks
/// that passed first, and the page says how many.
///
/// # Errors
/// Only if the ledger cannot be written as JSON.
pub fn to_page(ledger: &Ledger, material: &Material) -> Result<String, serde_json::Error> {
    let without: [fn(&Line<'_>) -> bool; 3] =
        [|_| false, |line| line.is_detail && !line.of_interest, |line| line.is_detail];
    let lines = lines(ledger, &material.events);
    let mut pack = String::new();
    for leave_out in without {
        let kept: Vec<&str> = lines.iter().filter(|line| !leave_out(line)).map(|line| line.text).collect();
        let left_out = lines.len() - kept.len();
        pack = packed(&head(ledger, &material.evidence, material, left_out)?, &kept);
        if pack.len() <= MATERIAL_AT_MOST {
            break;
        }
    }
    if pack.len() > MATERIAL_AT_MOST {
        pack = packed(&head(ledger, &Evidence::new(), material, lines.len())?, &[]);
    }
    let digest = STANDARD.encode(Sha256::digest(SCRIPT));
    let page = FRAME.replace("@HASH@", &format!("sha256-{digest}")).replace("@STYLE@", STYLE);
    Ok(page.replace("@SCRIPT@", SCRIPT).replace("@MATERIAL@", &pack))
}

fn head(
    ledger: &Ledger,
    evidence: &Evidence,
    material: &Material,
    left_out: usize,
) -> Result<String, serde_json::Error> {
    serde_json::to_string(&Head {
        report: ledger,
        verdict: verdict_word(ledger.conformance()),
        because: because(ledger),
        relaxed: ledger.subject.relaxed().collect(),
        profiles: standing::lines(ledger),
        evidence,
        demands: &material.demands,
        left_out,
    })
}

/// One event of the stream.
struct Line<'a> {
    text: &'a str,
    /// A call to the cloud, or a change of an object.
    is_detail: bool,
    /// It happened in a lane while a check ran there that failed.
    of_interest: bool,
}

fn lines<'a>(ledger: &Ledger, events: &'a str) -> Vec<Line<'a>> {
    let failed: Vec<&str> = ledger
        .entries
        .iter()
        .filter(|entry| !matches!(entry.outcome, Outcome::Pass | Outcome::Skip { .. }))
        .map(|entry| entry.id.as_str())
        .collect();
    // How many failed checks run in each lane at the moment.
    let mut running: BTreeMap<u64, usize> = BTreeMap::new();
    let lines = events.lines().map(|text| {
        let event: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        let kind = event.pointer("/event/type").and_then(serde_json::Value::as_str).unwrap_or_default();
        let lane = running.entry(event["lane"].as_u64().unwrap_or(0)).or_default();
        let has_failed = || event["check"].as_str().is_some_and(|id| failed.contains(&id));
        match kind {
            "check-began" if has_failed() => *lane += 1,
            "check-ended" if has_failed() => *lane = lane.saturating_sub(1),
            _ => {}
        }
        Line { text, is_detail: matches!(kind, "cloud-call" | "object-changed"), of_interest: *lane > 0 }
    });
    lines.collect()
}

/// Head and lines, compressed, as they stand in the page.
fn packed(head: &str, lines: &[&str]) -> String {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let written = std::iter::once(&head).chain(lines).try_for_each(|line| {
        encoder.write_all(line.as_bytes())?;
        encoder.write_all(b"\n")
    });
    let bytes = written.and_then(|()| encoder.finish());
    STANDARD.encode(bytes.expect("memory takes what is written"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Level, Sharing};
    use crate::ledger::Entry;
    use flate2::read::GzDecoder;
    use std::io::Read as _;

    fn ledger(outcome: Outcome) -> Ledger {
        let entry = Entry {
            id: "NODE-INIT-01".to_owned(),
            suite: "taint-removal".to_owned(),
            title: "</script><script>alert(1)</script>".to_owned(),
            level: Level::Must,
            sharing: Sharing::Shared,
            outcome,
            duration_ms: 1,
            budget_used_percent: None,
            evidence: None,
            started: String::new(),
            facts: BTreeMap::new(),
        };
        Ledger { entries: vec![entry], ..Ledger::default() }
    }

    fn unpacked(page: &str) -> String {
        let from = page.split("application/gzip-base64\">").nth(1).expect("the material's element");
        let packed = from.split('<').next().expect("its end");
        let mut text = String::new();
        let bytes = STANDARD.decode(packed).expect("base64");
        GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).expect("gzip");
        text
    }

    #[test]
    fn what_was_seen_never_becomes_markup() {
        let evidence = Evidence::from([(
            "NODE-INIT-01".to_owned(),
            vec![("a.log".to_owned(), "<img src=x>".to_owned())],
        )]);
        let failed = ledger(Outcome::Fail { message: "@SCRIPT@ <b>".to_owned() });
        let material = Material { events: "{\"at_ms\":0}\n".to_owned(), evidence, ..Material::default() };
        let page = to_page(&failed, &material).expect("a page");
        assert!(!page.contains("alert(1)") && !page.contains("<img") && !page.contains("<b>"));
        assert_eq!(page.matches("<script").count(), 2, "the material and the one that may run");
        assert!(unpacked(&page).contains("@SCRIPT@ <b>"));
        // The policy names the script as it stands in the page, so that no other runs.
        let script = page.rsplit("<script>").next().and_then(|rest| rest.split("</script>").next());
        let digest = STANDARD.encode(Sha256::digest(script.expect("a script")));
        assert!(page.contains(&format!("script-src 'sha256-{digest}'")));
        assert!(!SCRIPT.contains("innerHTML") && !SCRIPT.contains("</script"));
    }

    /// A stream of so many calls, each unlike the others, the second half beside a failed check.
    fn stream(calls: usize) -> String {
        let mut text = String::new();
        for number in 0..calls {
            if number == calls / 2 {
                text.push_str(
                    "{\"at_ms\":5,\"check\":\"NODE-INIT-01\",\"event\":{\"type\":\"check-began\"}}\n",
                );
            }
            let noise = STANDARD.encode(Sha256::digest(number.to_string()));
            text.push_str(&format!(
                "{{\"at_ms\":{number},\"event\":{{\"type\":\"cloud-call\",\"seq\":{number},\"request\":\"{noise}\"}}}}\n"
            ));
        }
        text
    }

    #[test]
    fn a_long_run_leaves_out_what_matters_least() {
        let failed = ledger(Outcome::Fail { message: "no".to_owned() });
        let of = |calls| Material { events: stream(calls), ..Material::default() };
        let whole = unpacked(&to_page(&failed, &of(1_000)).expect("a page"));
        assert!(whole.contains("\"left_out\":0") && whole.contains("\"seq\":0,"));
        let page = to_page(&failed, &of(100_000)).expect("a page");
        assert!(page.len() < 5_000_000, "{} bytes", page.len());
        let thin = unpacked(&page);
        assert!(thin.contains("\"left_out\":50000"), "{}", &thin[..200]);
        assert!(!thin.contains("\"seq\":1,") && thin.contains("\"seq\":99999,"));
    }
}
