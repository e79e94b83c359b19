//! Manifests that were judged on a real cluster: the model must come to the same verdict in every cell.

use bootstrap::{Cluster, Cni, Outcome, Topology, YesNo, expect, read_paths};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The topologies of the columns of the table.
const COLUMNS: [Topology; 2] = [Topology::SingleControlPlane, Topology::ControlPlaneAndWorker];

/// Manifests whose boot depends on something that they do not show and that the measured clusters lacked, with a part of
/// the condition that the model must name.
const UNMET: [(&str, &str); 2] =
    [("app-armor-runtime-default", "AppArmor"), ("limit-range-default", "room for its requests (cpu: 50")];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/bootstrap-measured")
}

fn table() -> Vec<(String, [Outcome; 2])> {
    let text = std::fs::read_to_string(folder().join("verdicts.tsv")).expect("the verdicts are there");
    let outcome = |word: &str| match word {
        "boots" => Outcome::Boots,
        "deadlock" => Outcome::Deadlock,
        other => panic!("expected boots or deadlock as the verdict of a real cluster, got '{other}'"),
    };
    text.lines()
        .skip(1)
        .map(|line| match line.split('\t').collect::<Vec<_>>()[..] {
            [name, single, two] => (name.to_owned(), [outcome(single), outcome(two)]),
            _ => panic!("'{line}' has not three columns"),
        })
        .collect()
}

/// The clusters of kind on which the manifests were judged.
fn cluster(topology: Topology) -> Cluster {
    Cluster { node_ip: YesNo::Yes, ..Cluster::new(topology, Cni::Kindnet) }
}

#[test]
fn the_model_agrees_with_the_measured_clusters() {
    let clusters = COLUMNS.map(cluster);
    let mut wrong = Vec::new();
    for (name, measured) in table() {
        let sources = read_paths(&[folder().join(format!("{name}.yaml"))]).expect("the manifest is there");
        let expectation = expect(sources, &clusters, &[], None).expect("it can be read");
        for (cell, measured) in expectation.cells.iter().zip(measured) {
            let condition = UNMET.iter().find(|(own, _)| *own == name).map(|(_, condition)| *condition);
            let agrees = match condition {
                None => cell.outcome == measured,
                Some(words) => {
                    measured == Outcome::Deadlock
                        && cell.outcome == Outcome::BootsIf
                        && cell.conditions.iter().any(|own| own.text.contains(words))
                }
            };
            if !agrees {
                let why = cell.explanation.as_ref().map(|e| e.to_text()).unwrap_or_default();
                let conditions: Vec<_> = cell.conditions.iter().map(|own| &own.text).collect();
                wrong.push(format!(
                    "{name} with {}: {} instead of {measured} {conditions:?}\n{why}",
                    cell.cluster.topology, cell.outcome
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} cells differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_measured_manifest_has_its_verdict() {
    let files = std::fs::read_dir(folder()).expect("the folder is there").flatten();
    let found: BTreeSet<String> = files
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".yaml")?.to_owned()))
        .collect();
    let named: BTreeSet<String> = table().into_iter().map(|(name, _)| name).collect();
    assert_eq!(found, named);
    assert!(named.len() >= 23, "only {} manifests", named.len());
}
