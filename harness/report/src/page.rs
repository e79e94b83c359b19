//! `report.html`: a run on one page that needs neither a network nor a server; two runs on such a page, next to each other;
//! and the live page, which requests its data from a run in progress.
//!
//! The page contains the ledger, the stream of events and the evidence of failed checks in compressed form, and renders them
//! with a script. This data cannot become markup or script: it is decompressed and inserted as text, and the page's policy
//! allows only the one script that has the given digest.

mod again;
mod causes;
mod head;
mod material;

use super::compare::Difference;
use super::site::escaped;
use super::summary::{summary_without_verdict as summary, verdict_line};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use causes::causes;
use flate2::Compression;
use flate2::write::GzEncoder;
use harness_core::ledger::{Conformance, Ledger, Outcome};
use head::{Head, MarkedDifference, RunHead};
pub use material::{Demand, Demands, Evidence, Material, Side};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::Write as _;

const FRAME: &str = include_str!("page/page.html");
const STYLE: &str = concat!(
    include_str!("page/theme.css"),
    include_str!("page/page.css"),
    include_str!("page/list.css"),
    include_str!("page/detail.css"),
    include_str!("page/print.css"),
);
const SCRIPT: &str = concat!(
    "(() => {\n\"use strict\";\n",
    include_str!("page/words.js"),
    include_str!("page/dom.js"),
    include_str!("page/model.js"),
    include_str!("page/diff.js"),
    include_str!("page/timeline.js"),
    include_str!("page/header.js"),
    include_str!("page/story.js"),
    include_str!("page/detail.js"),
    include_str!("page/filter.js"),
    include_str!("page/list.js"),
    include_str!("page/keys.js"),
    include_str!("page/report.js"),
    include_str!("page/compare.js"),
    include_str!("page/live.js"),
    "})();\n"
);

/// The largest size of the data in the page, in encoded bytes: a page of 5 MB can still be sent by mail.
const MATERIAL_AT_MOST: usize = 4_500_000;

/// The word in place of the verdict while a run is in progress.
const UNDER_WAY: &str = "under-way";

/// The page of a run. If there are too many events, calls to the cloud and changes of objects are left out, beginning with
/// those of passed checks, and the page shows how many.
///
/// # Errors
/// The ledger cannot be written as JSON.
pub fn to_page(ledger: &Ledger, material: &Material, demands: &Demands) -> Result<String, serde_json::Error> {
    page_of(&[Side { name: "", ledger, material }], demands, None)
}

/// The page of two runs next to each other, in the same form and within the same size limit.
///
/// # Errors
/// As [`to_page`].
pub fn to_comparison(
    sides: &[Side<'_>; 2],
    demands: &Demands,
    differences: &[Difference],
) -> Result<String, serde_json::Error> {
    page_of(sides, demands, Some(differences))
}

/// The live page of a run: it requests its data from the server that it was loaded from.
pub fn live_page() -> String {
    framed("; connect-src 'self'", "", "")
}

/// The data of the live page except events and evidence: the ledger so far, and the checks that have not ended. `unended` is
/// `None` once the run has ended.
///
/// # Errors
/// As [`to_page`].
pub fn live_head(ledger: &Ledger, unended: Option<&[String]>) -> Result<String, serde_json::Error> {
    let nothing = Material::default();
    let mut head = RunHead::of(&Side { name: "", ledger, material: &nothing });
    if let Some(unended) = unended {
        // A check that has not ended counts neither for the CCM nor against it.
        let entries = ledger.entries.iter().filter(|entry| !unended.contains(&entry.id)).cloned().collect();
        let ended = Ledger { entries, ..ledger.clone() };
        head.because = match ended.conformance() {
            Conformance::NotConformant => causes(&ended),
            Conformance::Conformant | Conformance::Partial | Conformance::NotJudged => Vec::new(),
        };
        (head.verdict, head.profiles, head.unended) = (UNDER_WAY, Vec::new(), Some(unended));
    }
    serde_json::to_string(&head)
}

fn page_of(
    sides: &[Side<'_>],
    demands: &Demands,
    differences: Option<&[Difference]>,
) -> Result<String, serde_json::Error> {
    const KEEP: [fn(&Line<'_>) -> bool; 4] =
        [|_| true, |line| !line.is_detail || line.of_interest, |line| !line.is_detail, |_| false];
    let all: Vec<Vec<Line<'_>>> =
        sides.iter().map(|side| lines(side.ledger, &side.material.events)).collect();
    let nothing = Evidence::new();
    let mut pack = String::new();
    for (at, keep) in KEEP.iter().enumerate() {
        let mut head = Head {
            runs: sides.iter().map(RunHead::of).collect(),
            demands,
            differences: differences.map(MarkedDifference::all),
        };
        let mut kept: Vec<&str> = Vec::new();
        for (run, lines) in head.runs.iter_mut().zip(&all) {
            let before = kept.len();
            kept.extend(lines.iter().filter(|line| keep(line)).map(|line| line.text));
            run.lines = kept.len() - before;
            run.left_out = lines.len() - run.lines;
            if at + 1 == KEEP.len() {
                run.evidence = &nothing;
            }
        }
        pack = packed(&serde_json::to_string(&head)?, &kept);
        if pack.len() <= MATERIAL_AT_MOST {
            break;
        }
    }
    Ok(framed("", &pack, &plain(sides)))
}

/// The page with this data; `sources` is what its policy allows in addition to its own script and style, and `plain` what a
/// browser without scripts shows.
fn framed(sources: &str, material: &str, plain: &str) -> String {
    let page = FRAME.replace("@POLICY@", &format!("{}{sources}", policy())).replace("@STYLE@", STYLE);
    // Observed text comes last, as it may contain the name of another part.
    page.replace("@SCRIPT@", SCRIPT).replace("@MATERIAL@", material).replace("@PLAIN@", plain)
}

/// The verdict and what led to it, as text: what a browser without scripts shows.
fn plain(sides: &[Side<'_>]) -> String {
    let of_one = |side: &Side<'_>| {
        let name = if side.name.is_empty() { String::new() } else { format!("{}\n", side.name) };
        format!("<pre>{}</pre>", escaped(&(name + &verdict_line(side.ledger) + "\n" + &summary(side.ledger))))
    };
    sides.iter().map(of_one).collect()
}

/// The page's content security policy: a browser may run its own script, and nothing else.
fn policy() -> String {
    let digest = STANDARD.encode(Sha256::digest(SCRIPT));
    format!("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'")
}

/// One event of the stream.
struct Line<'a> {
    text: &'a str,
    /// A call to the cloud, or a change of an object.
    is_detail: bool,
    /// It happened in a lane while a check that failed ran there.
    of_interest: bool,
}

fn lines<'a>(ledger: &Ledger, events: &'a str) -> Vec<Line<'a>> {
    let failed: Vec<&str> = ledger
        .all()
        .filter(|entry| !matches!(entry.outcome, Outcome::Pass | Outcome::Skip { .. }))
        .map(|entry| entry.id.as_str())
        .collect();
    // How many failed checks run in each lane at the moment.
    let mut running: BTreeMap<u64, usize> = BTreeMap::new();
    // Messages after the end of the run concern the files that are written, including this page. If they were included, a
    // replay could not produce the same page.
    let mut is_over = false;
    let lines = events.lines().map_while(|text| {
        if is_over {
            return None;
        }
        let event: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        let kind = event.pointer("/event/type").and_then(serde_json::Value::as_str).unwrap_or_default();
        let lane = running.entry(event["lane"].as_u64().unwrap_or(0)).or_default();
        let has_failed = || event["check"].as_str().is_some_and(|id| failed.contains(&id));
        match kind {
            "check-began" if has_failed() => *lane += 1,
            "check-ended" if has_failed() => *lane = lane.saturating_sub(1),
            "run-ended" => is_over = true,
            _ => {}
        }
        let is_detail = matches!(kind, "cloud-call" | "object-changed");
        Some(Line { text, is_detail, of_interest: *lane > 0 })
    });
    lines.collect()
}

/// Head and lines in the page's compressed encoding.
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
    use flate2::read::GzDecoder;
    use harness_core::check::Level;
    use harness_core::ledger::Entry;
    use std::io::Read as _;

    fn ledger(outcome: Outcome) -> Ledger {
        let title = "</script><script>alert(1)</script>".to_owned();
        let entry = Entry { title, ..Entry::sample("NODE-INIT-01", Level::Must, outcome) };
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
    fn observed_text_never_becomes_markup() {
        let evidence = Evidence::from([(
            "NODE-INIT-01".to_owned(),
            vec![("a.log".to_owned(), "<img src=x>".to_owned())],
        )]);
        let failed = ledger(Outcome::Fail { message: "@SCRIPT@ <b>".to_owned() });
        let material = Material { events: "{\"at_ms\":0}\n".to_owned(), evidence };
        let page = to_page(&failed, &material, &Demands::new()).expect("a page");
        assert!(!page.contains("<script>alert(1)") && !page.contains("<img") && !page.contains("<b>"));
        // Without scripts, the verdict and the failure can be read.
        let (_, plain) = page.split_once("<noscript>").expect("text for a browser without scripts");
        let (plain, _) = plain.split_once("</noscript>").expect("its end");
        assert!(plain.contains("NOT CONFORMANT") && plain.contains("@SCRIPT@ &lt;b&gt;"), "{plain}");
        assert_eq!(page.matches("<script").count(), 2, "the material and the one that may run");
        assert!(unpacked(&page).contains("@SCRIPT@ <b>"));
        // The policy contains the digest of the script in the page, so that no other script runs.
        let script = page.rsplit("<script>").next().and_then(|rest| rest.split("</script>").next());
        let digest = STANDARD.encode(Sha256::digest(script.expect("a script")));
        assert!(page.contains(&format!("script-src 'sha256-{digest}'")));
        assert!(!SCRIPT.contains("innerHTML") && !SCRIPT.contains("</script"));
    }

    #[test]
    fn the_page_ends_with_the_run() {
        let passed = ledger(Outcome::Pass);
        let whole = "{\"at_ms\":0,\"event\":{\"type\":\"said\",\"text\":\"{\\\"type\\\":\\\"run-ended\\\"}\"}}\n\
                     {\"at_ms\":9,\"event\":{\"type\":\"run-ended\",\"duration_ms\":9}}\n";
        let more =
            whole.to_owned() + "{\"at_ms\":9,\"event\":{\"type\":\"said\",\"text\":\"wrote report.yaml\"}}\n";
        let page = |events: &str| {
            let material = Material { events: events.to_owned(), ..Material::default() };
            to_page(&passed, &material, &Demands::new()).expect("a page")
        };
        assert_eq!(page(whole), page(&more), "what is said after the end is not in it");
        assert!(unpacked(&page(whole)).contains("\"duration_ms\":9") && page(whole) != page(""));
    }

    /// A stream of so many different calls, the second half during a failed check.
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
        let whole = unpacked(&to_page(&failed, &of(1_000), &Demands::new()).expect("a page"));
        assert!(whole.contains("\"left_out\":0") && whole.contains("\"seq\":0,"));
        let page = to_page(&failed, &of(100_000), &Demands::new()).expect("a page");
        assert!(page.len() < 5_000_000, "{} bytes", page.len());
        let thin = unpacked(&page);
        assert!(thin.contains("\"left_out\":50000"), "{}", &thin[..200]);
        assert!(!thin.contains("\"seq\":1,") && thin.contains("\"seq\":99999,"));
    }
}
