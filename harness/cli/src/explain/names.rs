//! Explains names of the contract and of the program other than those of rows and checks: time limits, bugs of real CCMs,
//! suites and profiles of conformance.

use super::lines::{command, labelled};
use harness_config::contract::{Area, Bug, ConformanceProfile, Contract, bugs};
use harness_core::check::{Level, row_of};
use harness_testkit::{Check, Suite};
use std::collections::BTreeSet;

/// The explanation of a time limit, an area, a bug, a suite or a profile of conformance; `None` for another name.
pub(super) fn explanation(contract: &Contract, suites: &[Suite], id: &str) -> Option<String> {
    let same = |name: &str| name.eq_ignore_ascii_case(id);
    let bound = contract.terms.bounds.iter().find(|(name, _)| same(name));
    let suite = suites.iter().find(|suite| same(suite.name));
    let profile = contract.profiles.iter().find(|one| same(&one.profile));
    let bug = bugs().iter().find(|bug| same(&bug.issue));
    let area = contract.areas.iter().find(|area| same(&area.area));
    bound
        .map(|(name, limit)| of_bound(contract, name, limit))
        .or_else(|| area.map(of_area))
        .or_else(|| suite.map(of_suite))
        .or_else(|| profile.map(|profile| of_profile(profile, suites)))
        .or_else(|| bug.map(of_bug))
        .or_else(|| OF_BOOTSTRAP.iter().find(|(name, _)| same(name)).map(of_finding))
}

/// Ids of findings of `bootstrap check` that are not rows of the contract.
const OF_BOOTSTRAP: [(&str, &str); 4] = [
    (
        "BOOT-READ",
        "something in the manifests cannot be read, or the boot model does not know it; the verdict leaves it out",
    ),
    (
        "BOOT-KIND",
        "an object is of a kind that neither Kubernetes nor a CustomResourceDefinition in the manifests defines",
    ),
    ("BOOT-API", "the API server refuses an object, or does not know one of its fields"),
    ("BOOT-REF", "an object that the manifests refer to is neither in them nor built into Kubernetes"),
];

fn of_finding((id, what): &(&str, &str)) -> String {
    let mut text = format!("{id}  a finding of 'ccm-conformance bootstrap check'\n\n");
    text.push_str(&labelled("what:", what));
    text.push_str(&labelled("more:", "ccm-conformance docs bootstrap"));
    text
}

fn of_bound(contract: &Contract, name: &str, limit: &str) -> String {
    let waits = |text: &str| contract.terms.bounds(text).iter().any(|(known, _)| *known == name);
    let rows: Vec<&str> =
        contract.rows().filter(|(_, row)| waits(&row.bound)).map(|(_, row)| row.id.as_str()).collect();
    let mut text = format!("{name}  a time limit of the contract\n\n");
    text.push_str(&labelled("limit:", limit));
    if !rows.is_empty() {
        text.push_str(&labelled("rows:", &rows.join(", ")));
    }
    text.push_str(&labelled(
        "to change it:",
        "key 'budgets' of the profile, with a reason ('ccm-conformance docs profile-keys')",
    ));
    text
}

fn of_bug(bug: &Bug) -> String {
    let mut text = format!("{}  a bug that users of a real CCM met\n\n", bug.issue);
    text.push_str(&labelled("what:", &bug.what));
    text.push_str(&labelled("rows:", &bug.rows.join(", ")));
    text
}

fn of_area(area: &Area) -> String {
    let rows: Vec<&str> = area.rows.iter().map(|row| row.id.as_str()).collect();
    let mut text = format!("{}  an area of the contract with {} rows\n\n", area.area, rows.len());
    text.push_str(&labelled("is about:", &area.title));
    text.push_str(&labelled("promised by:", &area.promised_by.to_string()));
    text.push_str(&labelled("rows:", &rows.join(", ")));
    text + &labelled("checks:", &format!("ccm-conformance list --only '{}-*'", area.area))
}

fn of_suite(suite: &Suite) -> String {
    let all: Vec<&Check> = suite.checks().collect();
    let checks: Vec<&str> = suite.checks().map(|check| check.id.as_str()).collect();
    let musts = suite.checks().filter(|check| check.claim.level == Level::Must).count();
    let rows: BTreeSet<&str> = checks.iter().map(|id| row_of(id)).collect();
    let rows: Vec<&str> = rows.into_iter().collect();
    let mut text = format!("{}  a suite of {} checks, {musts} of them MUST\n\n", suite.name, checks.len());
    text.push_str(&labelled("proves:", suite.proves));
    text.push_str(&labelled("rows:", &rows.join(", ")));
    text.push_str(&labelled("checks:", &format!("ccm-conformance list --suite {}", suite.name)));
    text.push_str(&labelled("run it:", &format!("{}--suite {}", command(suite.judges, &all), suite.name)));
    text
}

fn of_profile(profile: &ConformanceProfile, suites: &[Suite]) -> String {
    let checks = suites.iter().flat_map(Suite::checks).filter(|check| profile.includes(check.id.as_str()));
    let levels: Vec<Level> = checks.map(|check| check.claim.level).collect();
    let musts = levels.iter().filter(|level| **level == Level::Must).count();
    let (name, count) = (&profile.profile, levels.len());
    let mut text = format!("{name}  a profile of conformance with {count} checks, {musts} of them MUST\n\n");
    text.push_str(&labelled("a CCM:", &profile.title));
    text.push_str(&labelled("is about:", &profile.core.join(", ")));
    if !profile.beside.is_empty() {
        text.push_str(&labelled("also needs:", &profile.beside.join(", ")));
    }
    text.push_str(&labelled("checks:", &format!("ccm-conformance list --profile {name}")));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::check::Party;
    use harness_testkit::Check;

    const CHECK: Check = Check::own("NODE-INIT-01", "it holds", "somewhere", |_| Box::pin(async { Ok(()) }));
    const SUITES: &[Suite] =
        &[Suite { name: "taint-removal", proves: "Nodes start", judges: Party::Ccm, tables: &[&[CHECK]] }];

    fn explained(id: &str) -> Option<String> {
        explanation(&Contract::built_in().expect("a contract"), SUITES, id)
    }

    #[test]
    fn limits_bugs_suites_and_profiles_of_conformance_are_explained() {
        for (id, parts) in [
            ("b-watch", &["B-WATCH  a time limit", "limit:        10 s", "NODE-INIT-10"][..]),
            (
                "kubernetes/kubernetes#123024",
                &["a bug that users of a real CCM met", "never got a providerID"],
            ),
            (
                "taint-removal",
                &["a suite of 1 checks", "Nodes start", "run --profile DIR --suite taint-removal"],
            ),
            (
                "node-init",
                &["NODE-INIT  an area of the contract", "NODE-INIT-10", "list --only 'NODE-INIT-*'"],
            ),
            ("node", &["node  a profile of conformance", "list --profile node"]),
        ] {
            let text = explained(id).unwrap_or_else(|| panic!("{id} is not explained"));
            parts.iter().for_each(|part| assert!(text.contains(part), "{id}, {part}:\n{text}"));
        }
        assert_eq!(explained("NODE-INIT-10"), None, "rows are explained elsewhere");
    }
}
