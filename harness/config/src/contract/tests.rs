//! Tests that the tables are complete, that the pages match them, and that gaps in the coverage are found.

use super::*;
use harness_core::check::CheckId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

fn contract() -> Contract {
    Contract::built_in().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn documents_of_the_contract_are_those_of_its_tables() {
    let contract = contract();
    let mut pages = vec![("README.md".to_owned(), page::index(&contract))];
    pages.extend(contract.areas.iter().map(|area| (area.page(), page::page(&contract, area))));
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/contract");
    for (name, wanted) in pages {
        let file = folder.join(&name);
        if std::env::var_os("REWRITE_DOCUMENTS").is_some() {
            std::fs::write(&file, wanted).expect("the page is ours");
            continue;
        }
        let found = std::fs::read_to_string(&file).unwrap_or_default();
        let way_out = "REWRITE_DOCUMENTS=1 cargo test -p harness-config --lib documents";
        assert!(found == wanted, "docs/contract/{name} is out of date; {way_out}");
    }
}

#[test]
fn rows_belong_to_their_area_and_stand_there_once() {
    let contract = contract();
    let mut seen = BTreeSet::new();
    for (area, row) in contract.rows() {
        assert!(row.id.starts_with(&format!("{}-", area.area)), "{}: not of {}", row.id, area.area);
        assert!(seen.insert(&row.id), "{}: twice", row.id);
        let _ = CheckId::new(&row.id);
        assert!(!row.owners(area).is_empty(), "{}: who decides it?", row.id);
        for text in [&row.requires, &row.why, &row.provoked] {
            assert!(text.ends_with(['.', '?']), "{}: no sentence: {text}", row.id);
        }
        assert!(row.by_hand.is_some() || area.promised_by != Party::Ccm, "{}: by hand?", row.id);
        for claim in &row.claims {
            let _ = CheckId::new(&claim.check(row));
        }
        for word in row.bound.split(|c: char| !c.is_ascii_alphanumeric() && c != '-') {
            let known = contract.terms.bounds.keys().any(|name| name == word);
            assert!(!word.starts_with("B-") || known, "{}: bound {word}?", row.id);
        }
    }
    let orders: BTreeSet<u32> = contract.areas.iter().map(|area| area.order).collect();
    assert_eq!(orders.len(), contract.areas.len(), "every area has its place");
}

#[test]
fn profiles_name_rows_and_areas_that_there_are() {
    let contract = contract();
    let of_ccms: Vec<&Row> =
        contract.rows().filter(|(area, _)| area.promised_by == Party::Ccm).map(|(_, row)| row).collect();
    for one in &contract.profiles {
        for name in one.core.iter().chain(&one.beside) {
            let of = |(area, row): (&Area, &Row)| {
                area.promised_by != Party::Harness && profile::means(name, &row.id)
            };
            assert!(contract.rows().any(of), "{}: {name}?", one.profile);
        }
        assert!(one.title.len() > 5, "{}", one.profile);
    }
    let full = contract.profiles.iter().find(|one| one.profile == "full").expect("all of it");
    assert!(of_ccms.iter().all(|row| full.is_about(&row.id)) && !full.includes("CREDP-01"));
    let node = contract.profiles.iter().find(|one| one.profile == "node").expect("of Nodes");
    assert!(node.is_about("NODE-INIT-10.list") && node.includes("OBS-10") && !node.is_about("OBS-10"));
    assert!(!node.includes("OBS-1") && !node.includes("NODE-INITIAL-1"));
}

#[test]
fn changes_of_the_framework_are_known_and_in_order() {
    let contract = contract();
    let minor =
        |change: &Change| change.version.strip_prefix("1.").and_then(|minor| minor.parse::<u32>().ok());
    let minors: Vec<Option<u32>> = contract.changes.iter().map(minor).collect();
    assert!(minors.iter().all(Option::is_some) && minors.is_sorted(), "{minors:?}");
    for change in &contract.changes {
        for text in [&change.change, &change.older] {
            assert!(text.ends_with('.'), "{}: no sentence: {text}", change.name);
        }
    }
    for (_, row) in contract.rows() {
        let of_claims = row.claims.iter().map(|claim| (&claim.since, &claim.before));
        for (since, before) in [(&row.since, &row.before)].into_iter().chain(of_claims) {
            assert!(
                since.iter().all(|name| contract.changes.iter().any(|change| change.name == *name)),
                "{}: {since:?}?",
                row.id
            );
            assert!(before.is_none() || since.is_some(), "{}: before which change?", row.id);
        }
    }
    let label =
        contract.changes.iter().find(|change| change.name == "false-exclusion-label").expect("of 1.34");
    assert_eq!(page::based_on(&contract, label), ["SVC-NODES-04"]);
    let claim = harness_core::check::Claim::of(&CheckId::new("SVC-NODES-04")).since.expect("a change");
    assert_eq!((claim.minor, claim.what), (34, label.change.as_str()));
}

#[test]
fn bugs_are_of_rows_that_there_are_and_say_what_happened() {
    let contract = contract();
    let bugs: Vec<Bug> = read(&files::built_in(BUGS)).expect("bugs");
    for bug in &bugs {
        assert!(
            bug.issue.split_once('#').is_some_and(|(_, number)| number.parse::<u32>().is_ok()),
            "{bug:?}"
        );
        for row in &bug.rows {
            assert!(contract.row(row).is_some(), "{}: {row}?", bug.issue);
        }
    }
    let first = bugs_of("NODE-LIFE-03").next().expect("one");
    assert_eq!(first.issue, "oci-cloud-controller-manager#57");
    assert_eq!(bugs_of("NODE-LIFE-0").next(), None);
}

#[test]
fn abbreviations_are_written_out() {
    let terms = contract().terms;
    let source = terms.source("NC syncNode: one update; NA; the cloud's manual");
    let (nc, na) = (&terms.sources["NC"], &terms.sources["NA"]);
    assert_eq!(source, format!("{nc} syncNode: one update; {na}; the cloud's manual"));
    let named: Vec<&str> =
        terms.bounds("B-START + B-SVC(2), not B-WATCHES").into_iter().map(|(a, _)| a).collect();
    assert_eq!(named, ["B-START", "B-SVC"]);
}

/// A contract with three rows, one of which has a claim of its own and one a reason.
fn small() -> Contract {
    let row = |id: &str, level: &str, more: &str| {
        format!(
            "- {{id: {id}, level: {level}, requires: r., why: w., provoked: p., bound: b, source: s{more}}}\n"
        )
    };
    let text = format!(
        "area: A\ntitle: t\norder: 1\npromisedBy: ccm\nowner: [framework]\nabout: a\nrows:\n{}{}{}",
        row(
            "A-1",
            "MUST",
            ", claims: [{claim: held, requires: r.}, {claim: event, level: SHOULD, framework: true, requires: r.}]"
        ),
        row("A-2", "SHOULD NOT", ", framework: true, claims: [{requires: r.}]"),
        row("A-3", "MUST NOT", "")
    );
    let area = yaml::from_str(&text, Path::new("small")).expect("an area");
    let reason =
        |row: &str, in_part| Unchecked { reason: "why".to_owned(), in_part, rows: vec![row.to_owned()] };
    Contract { areas: vec![area], unchecked: vec![reason("A-3", false)], ..contract() }
}

fn seen(id: &str) -> CountedCheck {
    CountedCheck { id: CheckId::new(id), not_observable: BTreeMap::new() }
}

#[test]
fn checks_that_keep_to_the_contract_are_counted_and_nothing_is_said_against_them() {
    let mut held = seen("A-1.held");
    held.not_observable.insert("kind".to_owned(), vec!["barriers".to_owned()]);
    let checks = [held, seen("A-1.event"), seen("A-2")];
    let backends = ["kind".to_owned(), "embedded".to_owned()];
    let found = coverage(&small(), &checks, &backends);
    assert_eq!(found.objections, [""; 0]);
    let area = &found.areas[0];
    assert_eq!((area.rows, area.checked, area.checks), (3, 2, 3));
    assert_eq!((area.musts, area.musts_checked), (2, 1));
    assert_eq!((area.not_observable["kind"], area.not_observable["embedded"]), (0, 0));
    let found = coverage(&small(), &checks[..1], &backends);
    assert_eq!((found.areas[0].not_observable["kind"], found.areas[0].not_observable["embedded"]), (1, 0));
    assert_eq!(found.not_observable["A-1.held"]["kind"], ["barriers"]);
    let mut other = small();
    other.areas[0].rows[2].judged_by.push("A-2".to_owned());
    other.unchecked.clear();
    let found = coverage(&other, &checks, &backends);
    assert_eq!((found.objections, found.areas[0].checked, found.missing), (vec![], 3, vec![]));
}

#[test]
fn contradictions_of_a_contract_are_named() {
    let checks = [seen("A-1.held"), seen("A-2"), seen("A-3.part")];
    let mut contract = small();
    contract.unchecked.push(Unchecked {
        reason: "w".to_owned(),
        in_part: true,
        rows: vec!["A-2".to_owned(), "B-1".to_owned()],
    });
    assert_eq!(
        coverage(&contract, &checks, &[]).objections,
        [
            "A-1.event: the contract has a claim that no check judges",
            "B-1: unchecked.yaml has a reason for it, the contract no such row",
        ]
    );
    assert_eq!(
        coverage(&contract, &checks, &[]).outdated,
        ["A-3: it has a check, its reason in unchecked.yaml says otherwise",]
    );
    let missing: Vec<String> = coverage(&small(), &[], &[]).missing.into_iter().map(|one| one.row).collect();
    assert_eq!(missing, ["A-1", "A-2", "A-3"]);
    let objections = coverage(&small(), &[], &[]).objections;
    assert_eq!(
        objections.last().map(String::as_str),
        Some("A-2: the contract has a claim that no check judges")
    );
    assert!(objections.contains(&"A-1: MUST without check and without reason".to_owned()), "{objections:?}");
}
