//! `coverage`: which rows of the contract the checks judge.

use super::arguments::ListOutput;
use super::controls::list::{mutants, unproven};
use super::explain::OURS;
use harness_config::contract::{Contract, Coverage, Missing, Party, coverage as held};
use harness_core::ledger::Share;
use harness_core::output;
use harness_report::exit;
use harness_runner::{of_contract, seen};
use harness_testkit::Suite;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;

pub(super) fn coverage(suites: &'static [Suite], form: ListOutput) -> ExitCode {
    let contract = match Contract::built_in() {
        Ok(contract) => contract,
        Err(error) => {
            output::err(&format!("error: {}", harness_core::check::chain(&error)));
            return ExitCode::from(exit::USAGE);
        }
    };
    let checks: Vec<_> = of_contract(suites).map(|check| seen(check, OURS)).collect();
    let backends: Vec<String> = OURS.iter().map(ToString::to_string).collect();
    let mut found = held(&contract, &checks, &backends);
    let mutants = match mutants(&[], Share::WHOLE) {
        Ok(mutants) => mutants,
        Err(error) => {
            output::err(&format!("error: {error}"));
            return ExitCode::from(exit::USAGE);
        }
    };
    let binding: Vec<_> = of_contract(suites).map(|check| (check.id, check.claim.level)).collect();
    let unproven = unproven(&mutants, &binding).into_iter();
    found.objections.extend(unproven.map(|id| format!("{id}: no mutant shows that this check can fail")));
    match form {
        ListOutput::Text => output::out_wrapped(&as_text(&found, &backends)),
        ListOutput::Json => output::out(&(serde_json::to_string_pretty(&found).unwrap_or_default() + "\n")),
    }
    if found.objections.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(exit::NOT_CONFORMANT) }
}

fn as_text(found: &Coverage, backends: &[String]) -> String {
    let mut text =
        format!("{:<12}{:>5}{:>9}{:>6}{:>9}{:>8}", "area", "rows", "checked", "MUST", "checked", "checks");
    for backend in backends {
        let _ = write!(text, "  {}", not_on(backend));
    }
    text.push('\n');
    let (mut rows, mut checked, mut musts, mut musts_checked, mut checks) = (0, 0, 0, 0, 0);
    for area in &found.areas {
        if area.promised_by == Party::Harness {
            let _ = writeln!(text, "{:<12}{:>5}  promised by the harness itself", area.area, area.rows);
            continue;
        }
        let _ = write!(
            text,
            "{:<12}{:>5}{:>9}{:>6}{:>9}{:>8}",
            area.area, area.rows, area.checked, area.musts, area.musts_checked, area.checks
        );
        for backend in backends {
            let (count, width) =
                (area.not_observable.get(backend).copied().unwrap_or_default(), not_on(backend).len() + 2);
            let _ = write!(text, "{count:>width$}");
        }
        text.push('\n');
        if area.promised_by == Party::Ccm {
            rows += area.rows;
            checked += area.checked;
            musts += area.musts;
            musts_checked += area.musts_checked;
            checks += area.checks;
        }
    }
    let _ = writeln!(text, "{:<12}{rows:>5}{checked:>9}{musts:>6}{musts_checked:>9}{checks:>8}", "of CCMs");
    for (head, in_part) in [("Without a check", false), ("In part", true)] {
        let of_kind = |one: &&Missing| one.in_part == in_part;
        reasons(head, found.missing.iter().filter(of_kind), &mut text);
    }
    for backend in backends {
        let lacking = |(id, by): (&String, &BTreeMap<String, Vec<String>>)| {
            by.get(backend).map(|lacking| (lacking.join(", "), id.clone()))
        };
        grouped(
            &format!("Not observable on {backend}"),
            found.not_observable.iter().filter_map(lacking),
            &mut text,
        );
    }
    for (head, lines) in [("Reasons that no longer hold", &found.outdated), ("Objections", &found.objections)]
    {
        if !lines.is_empty() {
            let _ = writeln!(text, "\n{head}");
        }
        for line in lines {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

/// The head of a backend's column.
fn not_on(backend: &str) -> String {
    format!("not on {backend}")
}

fn reasons<'a>(head: &str, missing: impl Iterator<Item = &'a Missing>, text: &mut String) {
    let reason = |one: &Missing| {
        if one.reason.is_empty() { "no reason is given".to_owned() } else { one.reason.clone() }
    };
    grouped(head, missing.map(|one| (reason(one), format!("{} ({})", one.row, one.level))), text);
}

/// Lists items under their common reason, in the order in which the reasons occur.
fn grouped(head: &str, of: impl Iterator<Item = (String, String)>, text: &mut String) {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for (reason, id) in of {
        match groups.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, ids)) => ids.push(id),
            None => groups.push((reason, vec![id])),
        }
    }
    if !groups.is_empty() {
        let _ = writeln!(text, "\n{head}");
    }
    for (reason, ids) in groups {
        let _ = writeln!(text, "  {reason}");
        for ids in ids.chunks(5) {
            let _ = writeln!(text, "    {}", ids.join(", "));
        }
    }
}
