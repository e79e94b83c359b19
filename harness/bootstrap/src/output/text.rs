//! The result as text: findings, the table, explanations.

use super::Checkup;
use crate::check::Cell;
use crate::finding::{Finding, Level};
use crate::model::Outcome;
use bootstrap_manifests::cluster::{Cni, Topology};

/// The whole result, for people.
pub(crate) fn text(checkup: &Checkup) -> String {
    let mut text = String::new();
    for finding in &checkup.findings {
        text.push_str(&one(finding));
    }
    if !checkup.findings.is_empty() {
        text.push('\n');
    }
    if let Some(reason) = &checkup.unreadable {
        text.push_str(&format!("{reason}\n"));
        return text;
    }
    text.push_str(&table(&checkup.cells));
    text.push_str(&conditions(checkup));
    for assumption in &checkup.assumptions {
        text.push_str(&format!("assumed: {assumption}\n"));
    }
    explanations(&mut text, checkup);
    if let Some(provided) = &checkup.provided {
        let exist = if provided.objects.len() == 1 { "exists" } else { "exist" };
        text.push_str(&format!(
            "\nif {} {exist}: {} of {} cells boot\n",
            provided.objects.join(" and "),
            provided.boots,
            checkup.cells.len()
        ));
    }
    text.push_str(&summary(checkup));
    text
}

fn one(finding: &Finding) -> String {
    let mut text = format!("{}: {} {}: {}\n", finding.at(), finding.level, finding.id, finding.what);
    text.push_str(&format!("    why:  {}\n", finding.why));
    if let Some(fix) = &finding.fix {
        let lines: Vec<&str> = fix.lines().collect();
        // A full set of permissions is long.
        if lines.len() > 15 {
            let count = lines.len();
            let recommended = if finding.level == Level::Must { "" } else { " --recommended" };
            text.push_str(&format!(
                "    fix:  {count} lines of new objects, which 'bootstrap fix{recommended}' writes\n"
            ));
        } else {
            let indents = std::iter::once("    fix:  ").chain(std::iter::repeat("          "));
            lines.iter().zip(indents).for_each(|(line, indent)| text.push_str(&format!("{indent}{line}\n")));
        }
    }
    text
}

fn table(cells: &[Cell]) -> String {
    let mut topologies: Vec<Topology> = Vec::new();
    let mut cnis: Vec<Cni> = Vec::new();
    for cell in cells {
        if !topologies.contains(&cell.cluster.topology) {
            topologies.push(cell.cluster.topology);
        }
        if !cnis.contains(&cell.cluster.cni) {
            cnis.push(cell.cluster.cni);
        }
    }
    // As narrow as it can be: with every topology and CNI it just fits into 80 columns.
    let head = std::iter::once("topology \\ CNI".to_owned()).chain(cnis.iter().map(Cni::to_string));
    let mut rows = vec![head.collect::<Vec<String>>()];
    for topology in topologies {
        let word = |cni: &Cni| {
            let own = |cell: &&Cell| cell.cluster.topology == topology && cell.cluster.cni == *cni;
            cells.iter().find(own).map_or(String::new(), short)
        };
        rows.push(std::iter::once(topology.to_string()).chain(cnis.iter().map(word)).collect());
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..=cnis.len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        text.push_str(cells.collect::<Vec<_>>().join(" ").trim_end());
        text.push('\n');
    }
    for cell in cells {
        if let Some(eviction) = &cell.eviction {
            let often = if eviction.lasting { "again and again" } else { "during a slow boot" };
            text.push_str(&format!(
                "* {}, CNI {}: {} may be evicted {often}: it is evicted from a Node that is not Ready after {} s\n",
                cell.cluster.topology, cell.cluster.cni, eviction.workload, eviction.after_seconds
            ));
        }
    }
    text
}

fn short(cell: &Cell) -> String {
    let mark = if cell.eviction.is_some() { "*" } else { "" };
    let words = match cell.outcome {
        Outcome::Boots => "boots",
        Outcome::BootsIf => "boots if",
        Outcome::Deadlock => "FAILS",
        Outcome::SomeOrders => "MAY FAIL",
        Outcome::Undecided => "undecided",
    };
    format!("{words}{mark}")
}

/// The conditions of `boots if`; they are the same in every cell.
fn conditions(checkup: &Checkup) -> String {
    let all = checkup.cells.first().map(|cell| cell.conditions.as_slice()).unwrap_or_default();
    let never = checkup.cells.iter().all(|cell| cell.outcome == Outcome::Deadlock);
    let when = if never { "without these obstacles, boots if" } else { "boots if" };
    all.iter().map(|condition| format!("{when} {} [{}]\n", condition.text, condition.place)).collect()
}

/// Cells with the same explanation are printed together.
fn explanations(text: &mut String, checkup: &Checkup) {
    let mut groups: Vec<(String, Vec<String>, Outcome, bool)> = Vec::new();
    for cell in checkup.failing() {
        let Some(explanation) = &cell.explanation else { continue };
        let words = explanation.to_text();
        let name = format!("{} with CNI {}", cell.cluster.topology, cell.cluster.cni);
        match groups.iter_mut().find(|(known, _, outcome, _)| *known == words && *outcome == cell.outcome) {
            Some((_, names, _, _)) => names.push(name),
            None => groups.push((words, vec![name], cell.outcome, explanation.is_cycle())),
        }
    }
    for (words, names, outcome, circular) in groups {
        // Without a cycle nothing waits for each other: something is only missing.
        let heading = match outcome {
            Outcome::Deadlock if !circular => "does not boot".to_owned(),
            other => other.to_string(),
        };
        text.push_str(&format!("\n{heading}: {}\n", names.join(", ")));
        words.lines().for_each(|line| text.push_str(&format!("  {line}\n")));
    }
}

fn summary(checkup: &Checkup) -> String {
    let count = |level: Level| checkup.findings.iter().filter(|finding| finding.level == level).count();
    let failing = checkup.failing().count();
    let cells = match (failing, checkup.cells.len()) {
        (0, 1) => "the cell boots".to_owned(),
        (0, all) => format!("each of the {all} cells boots"),
        (failing, all) => {
            let dead = checkup.cells.iter().filter(|cell| cell.outcome == Outcome::Deadlock).count();
            match (dead == failing, failing == all) {
                (true, true) if all == 1 => "the cell does not boot".to_owned(),
                (true, true) => format!("none of the {all} cells boots"),
                (true, false) => format!("{failing} of {all} cells do not boot"),
                (false, _) => format!("{failing} of {all} cells do not boot, or only in some orders"),
            }
        }
    };
    let mut text =
        format!("\n{cells}; MUST findings: {}, SHOULD: {}\n", count(Level::Must), count(Level::Should));
    if failing > 0 && checkup.cells.iter().all(|cell| cell.explanation.is_none()) {
        text.push_str(
            "--explain shows why, and what to change; 'bootstrap fix' prints the manifests with the changes that it can \
             make, with --write it changes the files\n",
        );
    }
    text
}
