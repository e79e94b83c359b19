//! The table of variants times topologies and CNIs, each with the verdict it must have.

use super::variants;
use bootstrap::{Case, Cluster, Cni, Expectation, Topology, expect, parse_cases, read_paths};
use std::collections::BTreeSet;

fn table() -> Vec<Case> {
    let file = variants().join("cases.yaml");
    let text = std::fs::read_to_string(&file).expect("the table is there");
    parse_cases(&text, &file.display().to_string()).expect("it is a table")
}

fn expectation(case: &Case, clusters: &[Cluster]) -> Expectation {
    let manifests = read_paths(&[variants().join(&case.name)]).expect("the variant is there");
    case.expectation(manifests, clusters).expect("the variant can be read")
}

#[test]
fn every_variant_has_the_verdict_of_the_table() {
    let mut wrong = Vec::new();
    let mut cells = 0;
    for case in folders(table()) {
        for line in &case.expect {
            let clusters: Vec<Cluster> =
                line.cells().map(|(topology, cni)| case.cluster(topology, cni)).collect();
            for cell in expectation(&case, &clusters).cells {
                cells += 1;
                let place = format!("{}: {} with {}", case.name, cell.cluster.topology, cell.cluster.cni);
                let why = cell.explanation.map(|explanation| explanation.to_text()).unwrap_or_default();
                if cell.outcome != line.outcome {
                    wrong.push(format!("{place}: {} instead of {}\n{why}", cell.outcome, line.outcome));
                }
                let because = line.because.as_deref().unwrap_or_default();
                if !why.contains(because) {
                    wrong.push(format!("{place}: the explanation does not name '{because}':\n{why}"));
                }
                if case.evicted && cell.eviction.is_none() {
                    wrong.push(format!("{place}: no word of the eviction"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {cells}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(cells > 500, "only {cells} cells were compared");
}

#[test]
fn every_stuck_cell_has_a_change_that_makes_it_boot() {
    let mut without = BTreeSet::new();
    for case in folders(table()) {
        for line in case.expect.iter().filter(|line| !line.outcome.is_boot()) {
            let clusters: Vec<Cluster> =
                line.topologies.iter().map(|t| case.cluster(*t, line.cnis[0])).collect();
            for cell in expectation(&case, &clusters).cells {
                let explanation = cell.explanation.expect("a stuck cell is explained");
                assert!(!explanation.steps.is_empty(), "{}", case.name);
                if explanation.changes.is_empty() {
                    without.insert(case.name.clone());
                }
            }
        }
    }
    // The port belongs to the other workload's manifest or to the CCM's: a tool cannot decide which of them must change
    // it.
    assert_eq!(without, BTreeSet::from([String::from("port-taken")]));
}

#[test]
fn the_findings_that_the_table_names_are_there() {
    for case in folders(table()).iter().filter(|case| case.finding.is_some()) {
        let cluster = case.cluster(Topology::ControlPlaneAndWorker, Cni::Independent);
        let findings = expectation(case, &[cluster]).findings;
        let ids: Vec<&str> = findings.iter().map(|finding| finding.id).collect();
        assert!(ids.contains(&case.finding.as_deref().unwrap_or_default()), "{}: {ids:?}", case.name);
    }
}

#[test]
fn every_bootstrap_mutant_of_the_contract_is_in_the_table() {
    let found: BTreeSet<String> = table().into_iter().filter_map(|case| case.mutant).collect();
    let wanted: BTreeSet<String> = (1..=11).map(|number| format!("M-BT-{number:02}")).collect();
    assert_eq!(found, wanted);
}

#[test]
fn every_variant_is_in_the_table() {
    let folders = std::fs::read_dir(variants()).expect("the folder is there").flatten();
    let found: BTreeSet<String> = folders
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let named: BTreeSet<String> = table().into_iter().map(|case| case.name).collect();
    assert_eq!(found, named);
}

#[test]
fn the_reference_ccm_as_it_ships_boots_everywhere() {
    let manifests = variants().join("../ccms/reference/manifests");
    let sources = read_paths(&[manifests]).expect("the reference CCM is there");
    let cells = Topology::DEFAULT.iter().flat_map(|t| Cni::DEFAULT.iter().map(move |c| (*t, *c)));
    let clusters: Vec<Cluster> = cells.map(|(topology, cni)| Cluster::new(topology, cni)).collect();
    let expectation = expect(sources, &clusters, &[], None).expect("it can be read");
    assert!(expectation.boots(), "{}", expectation.summary());
    let must: Vec<_> = expectation.findings.iter().filter(|f| f.level == bootstrap::Level::Must).collect();
    assert!(must.is_empty(), "{must:?}");
}

/// The table, never empty.
fn folders(table: Vec<Case>) -> Vec<Case> {
    assert!(table.len() > 40, "only {} cases", table.len());
    table
}
