//! Which rows of the contract are covered by checks.

use super::{Area, Contract, Party, Row};
use harness_core::check::{CheckId, Level};
use serde::Serialize;
use std::collections::BTreeMap;

/// A check, for the coverage.
#[derive(Clone, Debug)]
pub struct CountedCheck {
    /// Its id.
    pub id: CheckId,
    /// Backends on which it is 'not observable', each with the missing facilities.
    pub not_observable: BTreeMap<String, Vec<String>>,
}

/// The counts for one area.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AreaCount {
    /// The area.
    pub area: String,
    /// The party that its rows are about.
    pub promised_by: Party,
    /// Its rows.
    pub rows: usize,
    /// How many rows a check judges.
    pub checked: usize,
    /// How many rows have the level MUST or MUST NOT.
    pub musts: usize,
    /// How many of those a check judges.
    pub musts_checked: usize,
    /// Its checks.
    pub checks: usize,
    /// How many rows have no check that the backend can show, by backend.
    pub not_observable: BTreeMap<String, usize>,
}

/// A row that no check judges, or not completely.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Missing {
    /// The row.
    pub row: String,
    /// How binding it is.
    pub level: super::Obligation,
    /// Whether checks judge a part of it.
    pub in_part: bool,
    /// The reason; empty if none is given.
    pub reason: String,
}

/// The coverage of the contract.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Coverage {
    /// Every area.
    pub areas: Vec<AreaCount>,
    /// The rows that no check judges, or not completely.
    pub missing: Vec<Missing>,
    /// Checks that a backend cannot show, each with the missing facilities: by check, then by backend.
    pub not_observable: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    /// Reasons of rows that have a check now, or that do not exist any more.
    pub outdated: Vec<String>,
    /// Faults that must not occur.
    pub objections: Vec<String>,
}

/// Compares checks with the contract. `backends` are those that are counted.
pub fn coverage(contract: &Contract, checks: &[CountedCheck], backends: &[String]) -> Coverage {
    let mut found = Coverage::default();
    for check in checks {
        if !check.not_observable.is_empty() {
            found.not_observable.insert(check.id.to_string(), check.not_observable.clone());
        }
    }
    for area in &contract.areas {
        found.areas.push(count(area, checks, backends));
        for row in &area.rows {
            look(contract, area, row, checks, &mut found);
        }
    }
    for unchecked in &contract.unchecked {
        let unknown = unchecked.rows.iter().filter(|row| contract.row(row).is_none());
        found.objections.extend(
            unknown.map(|row| format!("{row}: unchecked.yaml has a reason for it, the contract no such row")),
        );
    }
    found
}

/// The checks that judge a row: its own, and those of the rows that it refers to.
fn of_row<'a>(row: &'a Row, checks: &'a [CountedCheck]) -> impl Iterator<Item = &'a CountedCheck> {
    let names = |id: &str| row.id == id || row.judged_by.iter().any(|other| other == id);
    checks.iter().filter(move |check| names(check.id.row()))
}

fn count(area: &Area, checks: &[CountedCheck], backends: &[String]) -> AreaCount {
    let judged: Vec<(&Row, Vec<&CountedCheck>)> = area
        .rows
        .iter()
        .map(|row| (row, of_row(row, checks).collect::<Vec<_>>()))
        .filter(|(_, checks)| !checks.is_empty())
        .collect();
    let musts =
        |rows: &mut dyn Iterator<Item = &Row>| rows.filter(|row| row.level.level() == Level::Must).count();
    let not_shown = |backend: &String| {
        let shown = |check: &&CountedCheck| !check.not_observable.contains_key(backend);
        judged.iter().filter(|(_, checks)| !checks.iter().any(shown)).count()
    };
    AreaCount {
        area: area.area.clone(),
        promised_by: area.promised_by,
        rows: area.rows.len(),
        checked: judged.len(),
        musts: musts(&mut area.rows.iter()),
        musts_checked: musts(&mut judged.iter().map(|(row, _)| *row)),
        checks: checks.iter().filter(|check| area.rows.iter().any(|row| row.id == check.id.row())).count(),
        not_observable: backends.iter().map(|backend| (backend.clone(), not_shown(backend))).collect(),
    }
}

/// Checks whether a row is judged, and if not, whether a reason is given. Rows about the harness itself are
/// kept by its own code, as the row says.
fn look(contract: &Contract, area: &Area, row: &Row, checks: &[CountedCheck], found: &mut Coverage) {
    let judged = of_row(row, checks).next().is_some();
    let unknown = row.judged_by.iter().filter(|other| contract.row(other).is_none());
    found
        .objections
        .extend(unknown.map(|other| format!("{}: judged by {other}, which is not a row", row.id)));
    for claim in row.claims.iter().map(|claim| claim.check(row)) {
        if !checks.iter().any(|check| check.id == claim) {
            found.objections.push(format!("{claim}: the contract has a claim that no check judges"));
        }
    }
    let mut reasons = contract.reasons(&row.id).peekable();
    if area.promised_by == Party::Harness {
        if reasons.peek().is_some() {
            found.objections.push(format!("{}: the harness's own promise needs no reason", row.id));
        }
        return;
    }
    if !judged && reasons.peek().is_none() {
        if row.level.level() == Level::Must {
            found.objections.push(format!("{}: {} without check and without reason", row.id, row.level));
        }
        found.missing.push(Missing {
            row: row.id.clone(),
            level: row.level,
            in_part: false,
            reason: String::new(),
        });
    }
    for reason in reasons {
        if judged != reason.in_part {
            let is = if judged { "has a check" } else { "has no check of any part" };
            found.outdated.push(format!("{}: it {is}, its reason in unchecked.yaml says otherwise", row.id));
            if judged {
                continue;
            }
        }
        found.missing.push(Missing {
            row: row.id.clone(),
            level: row.level,
            in_part: reason.in_part,
            reason: reason.reason.clone(),
        });
    }
}
