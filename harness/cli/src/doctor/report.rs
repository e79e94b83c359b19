//! Prints the results of examining a machine, for people and for programs.

use super::examination::{Examination, Examined};
use harness_clusters::{Fidelity, Need, Requirement, State, facts};
use harness_config::API_VERSION;
use serde::Serialize;
use std::fmt::Write as _;

pub(super) fn as_text(found: &Examination, fixing: bool) -> String {
    let mut text = String::new();
    for one in &found.clusters {
        let _ = writeln!(text, "--cluster {:<10} {}", one.cluster.as_str(), standing(one));
        one.requirements.iter().for_each(|one| show(one, &mut text));
        text.push('\n');
    }
    text.push_str("programs that other commands start\n");
    found.tools.iter().for_each(|one| show(one, &mut text));
    if !found.fixed.is_empty() {
        let _ = writeln!(text, "\n{}", found.fixed.join("\n"));
    } else if fixing {
        text.push_str("\nthere is nothing that '--fix' can change\n");
    } else if !found.remedies().is_empty() {
        text.push_str("\n'--fix' changes what is marked with *\n");
    }
    let works: Vec<&str> =
        found.clusters.iter().filter(|one| one.works()).map(|one| one.cluster.as_str()).collect();
    let _ = match works.as_slice() {
        [] => writeln!(text, "\nno kind of cluster that was checked works here"),
        works => writeln!(text, "\nworks here: --cluster {}", works.join(", ")),
    };
    text
}

/// Describes whether it works.
fn standing(one: &Examined) -> String {
    let hindered: Vec<&str> =
        one.requirements.iter().filter(|one| one.hinders()).map(|one| one.what).collect();
    if !hindered.is_empty() {
        return format!("does not work: {}", hindered.join(", "));
    }
    let old: Vec<&str> =
        one.requirements.iter().filter(|one| one.state == State::TooOld).map(|one| one.what).collect();
    match facts(one.cluster).fidelity {
        Fidelity::Simulated => "works (a simulation: a result is at most partial)".to_owned(),
        Fidelity::Real if !old.is_empty() => format!("works in part; too old: {}", old.join(", ")),
        Fidelity::Real => "works".to_owned(),
        Fidelity::Absent => {
            "works (for profiles of 'kind: image-credentials' and 'network-proxy')".to_owned()
        }
    }
}

fn show(one: &Requirement, text: &mut String) {
    let mark = if one.remedy.is_some() { '*' } else { ' ' };
    let _ = writeln!(
        text,
        " {mark}{:<10} {:<18} {}",
        state(one),
        one.what,
        one.found.replace('\n', "\n                               ")
    );
    if one.state != State::Fine {
        let _ = writeln!(text, "             for: {}", one.needed_for);
        let _ = writeln!(text, "             fix: {}", one.way_out);
    }
}

fn state(one: &Requirement) -> &'static str {
    match one.state {
        State::Fine => "fine",
        State::TooSmall => "too small",
        State::TooOld => "too old",
        State::Missing => "missing",
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    api_version: &'static str,
    kind: &'static str,
    harness_version: &'static str,
    clusters: Vec<ClusterItem<'a>>,
    programs: Vec<Item<'a>>,
    fixed: &'a [String],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ClusterItem<'a> {
    cluster: &'static str,
    works: bool,
    certifies: bool,
    requirements: Vec<Item<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Item<'a> {
    what: &'a str,
    state: State,
    found: &'a str,
    needed_for: &'a str,
    required: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    fix: &'a str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    fixable: bool,
}

fn item(one: &Requirement) -> Item<'_> {
    Item {
        what: one.what,
        state: one.state,
        found: &one.found,
        needed_for: one.needed_for,
        required: one.need == Need::Required,
        fix: &one.way_out,
        fixable: one.remedy.is_some(),
    }
}

fn cluster(one: &Examined) -> ClusterItem<'_> {
    ClusterItem {
        cluster: one.cluster.as_str(),
        works: one.works(),
        certifies: facts(one.cluster).fidelity != Fidelity::Simulated,
        requirements: one.requirements.iter().map(item).collect(),
    }
}

pub(super) fn as_json(found: &Examination) -> String {
    let file = File {
        api_version: API_VERSION,
        kind: "Doctor",
        harness_version: env!("CARGO_PKG_VERSION"),
        clusters: found.clusters.iter().map(cluster).collect(),
        programs: found.tools.iter().map(item).collect(),
        fixed: &found.fixed,
    };
    serde_json::to_string_pretty(&file).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_clusters::Remedy;
    use harness_config::BackendKind;

    fn examined() -> Examination {
        let fine = Requirement {
            what: "Docker",
            state: State::Fine,
            found: "28 at unix:///docker.sock".to_owned(),
            needed_for: "machines",
            need: Need::Required,
            way_out: String::new(),
            remedy: None,
        };
        let low = Requirement {
            what: "inotify watches",
            state: State::TooSmall,
            found: "8".to_owned(),
            need: Need::Advised,
            way_out: "sysctl".to_owned(),
            remedy: Some(Remedy::Limit { file: "fs/x".to_owned(), value: 9 }),
            ..fine.clone()
        };
        let gone = Requirement {
            what: "kind",
            state: State::Missing,
            found: "cannot run 'kind'".to_owned(),
            way_out: "install it".to_owned(),
            ..fine.clone()
        };
        let of = |cluster, requirements| Examined { cluster, requirements };
        Examination {
            clusters: vec![
                of(BackendKind::Kind, vec![fine.clone(), low.clone(), gone]),
                of(BackendKind::Embedded, vec![fine, low]),
            ],
            tools: Vec::new(),
            fixed: Vec::new(),
        }
    }

    #[test]
    fn the_text_lists_what_works_what_does_not_and_how_to_fix_it() {
        let text = as_text(&examined(), false);
        for part in [
            "--cluster kind       does not work: kind\n",
            "--cluster embedded   works (a simulation: a result is at most partial)\n",
            "  fine       Docker             28 at unix:///docker.sock\n",
            " *too small  inotify watches    8\n             for: machines\n             fix: sysctl\n",
            "  missing    kind               cannot run 'kind'\n             for: machines\n             fix: install it\n",
            "'--fix' changes what is marked with *\n",
            "\nworks here: --cluster embedded\n",
        ] {
            assert!(text.contains(part), "{part}\nis not in\n{text}");
        }
        let fixed = Examination { fixed: vec!["fixed: fs.x".to_owned()], ..examined() };
        assert!(as_text(&fixed, true).contains("\nfixed: fs.x\n"));
    }

    #[test]
    fn programs_read_the_same() {
        let json: serde_json::Value = serde_json::from_str(&as_json(&examined())).expect("JSON");
        assert_eq!((&json["kind"], &json["clusters"][0]["works"]), (&"Doctor".into(), &false.into()));
        assert_eq!(json["clusters"][1]["works"], true);
        let low = &json["clusters"][1]["requirements"][1];
        assert_eq!(
            (&low["state"], &low["required"], &low["fixable"]),
            (&"too-small".into(), &false.into(), &true.into())
        );
        assert_eq!(json["clusters"][0]["requirements"][2]["fix"], "install it");
    }
}
