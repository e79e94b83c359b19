//! `explain`: a row of the contract and its checks, and every other name that a report or a page of the book mentions, for
//! a reader of that name.

mod glossary;
mod lines;
mod names;
mod needs;
mod subjects;

use super::controls::list::{Mutant, mutants};
use super::list::needs;
use harness_clusters::facts;
use harness_components::component::{Component, of_party};
use harness_config::contract::{Area, Contract, Party, Row, bugs_of};
use harness_config::{BackendKind, did_you_mean};
use harness_core::check::{CheckId, Facility, Isolation};
use harness_core::ledger::Share;
use harness_core::output;
use harness_report::exit;
use harness_runner::seen;
use harness_testkit::{Check, Suite};
use lines::{command, labelled};
pub(super) use needs::OURS;
use std::fmt::Write as _;
use std::process::ExitCode;

/// Explains each of these names; the exit code says whether all are known.
pub(super) fn explain(suites: &'static [Suite], ids: &[String]) -> ExitCode {
    let mut all = ExitCode::from(exit::CONFORMANT);
    for (at, id) in ids.iter().enumerate() {
        if at > 0 {
            output::out("\n");
        }
        if let Err(code) = explain_one(suites, id) {
            all = code;
        }
    }
    all
}

fn explain_one(suites: &'static [Suite], id: &str) -> Result<(), ExitCode> {
    let checks: Vec<&Check> = suites.iter().flat_map(Suite::checks).collect();
    let explained =
        Contract::built_in().map_err(|error| harness_core::check::chain(&error)).and_then(|contract| {
            let mutants = mutants(&[], Share::WHOLE)?;
            if let Some(text) = names::explanation(&contract, suites, id) {
                return Ok(text);
            }
            if let Some(text) = subjects::explanation(id)? {
                return Ok(text);
            }
            if let Some(text) = needs::explanation(&checks, id).or_else(|| glossary::explanation(id)) {
                return Ok(text);
            }
            let suites: Vec<&str> = suites.iter().map(|suite| suite.name).collect();
            explanation(&contract, &checks, &mutants, id)
                .ok_or_else(|| unknown(&contract, &checks, &mutants, &suites, id))
        });
    match explained {
        Ok(text) => {
            output::out(&text);
            Ok(())
        }
        Err(why) => {
            output::err(&format!("error: {why}"));
            Err(ExitCode::from(exit::USAGE))
        }
    }
}

/// The explanation of a row with all of its checks, or of one check and its row; `None` if there is no row or check with
/// this id.
fn explanation(contract: &Contract, all: &[&Check], mutants: &[Mutant], id: &str) -> Option<String> {
    let named = all.iter().find(|check| check.id.as_str().eq_ignore_ascii_case(id));
    // A claim has to be one of the row's checks; the row alone means all of them.
    let row = contract.row(id).or_else(|| named.and_then(|check| contract.row(check.id.row())));
    let ids: Vec<CheckId> = all.iter().map(|check| check.id).collect();
    let Some((area, row)) = row else {
        return named.map(|check| of_private(check, mutants, &ids));
    };
    let whole = row.id.eq_ignore_ascii_case(id);
    let checks: Vec<&Check> = match named {
        Some(check) if !whole => vec![check],
        _ => all.iter().filter(|check| check.id.row() == row.id).copied().collect(),
    };
    let mut text = of_row(contract, area, row);
    for check in &checks {
        text.push_str(&of_check(check, mutants, &ids));
    }
    let name = named.filter(|_| !whole).map_or(row.id.as_str(), |check| check.id.as_str());
    text.push_str(&ending(contract, area, row, &checks, name));
    Some(text)
}

/// Why an id is not explained, with the names that were perhaps meant.
fn unknown(contract: &Contract, all: &[&Check], mutants: &[Mutant], suites: &[&str], id: &str) -> String {
    /// How many ids with the same beginning are named.
    const NAMED: usize = 4;
    let rows: Vec<&str> = contract.rows().map(|(_, row)| row.id.as_str()).collect();
    // The name of an area.
    let area = format!("{}-", id.trim_end_matches('-').to_uppercase());
    let alike: Vec<&str> = rows.iter().copied().filter(|row| row.starts_with(&area)).collect();
    // A mutant of another group with the same number has nothing to do with it.
    let upper = id.to_uppercase();
    let group = upper.rsplit_once('-').map_or("", |(group, _)| group);
    let is_control = ["M-", "S-", "A-"].iter().any(|kind| upper.starts_with(kind))
        && !mutants.iter().any(|one| one.mutant.rsplit_once('-').is_some_and(|(of, _)| of == group));
    let claims: Vec<&str> =
        all.iter().map(|check| check.id.as_str()).filter(|check| check.starts_with(&upper_row(id))).collect();
    let hint = if id.contains('*') {
        "; it takes names, no patterns: 'ccm-conformance list' shows those of a suite".to_owned()
    } else if id.contains('.') && !claims.is_empty() {
        // Only the claims are compared: the ids of a row begin alike.
        let part = |id: &str| id.split_once('.').map_or(String::new(), |(_, claim)| format!("'{claim}'"));
        let names = claims.iter().filter_map(|claim| claim.split_once('.')).map(|(_, claim)| claim);
        let near = did_you_mean(id.split_once('.').map_or(id, |(_, claim)| claim), names);
        match claims.iter().find(|claim| near.contains(&part(claim))) {
            Some(claim) => format!("; did you mean '{claim}'?"),
            None => format!("; its row has {}", claims.join(", ")),
        }
    } else if is_control {
        "; 'ccm-conformance controls --list' shows all mutants, variants and adversaries".to_owned()
    } else if alike.is_empty() {
        let checks = all.iter().map(|check| check.id.as_str());
        let mutants = mutants.iter().map(|mutant| mutant.mutant.as_str());
        let bounds = contract.terms.bounds.keys().map(String::as_str);
        let more = [glossary::names(), needs::names()].concat();
        let names = rows.into_iter().chain(checks).chain(mutants).chain(bounds).chain(suites.iter().copied());
        match did_you_mean(id, names.chain(more.iter().map(String::as_str))) {
            near if near.is_empty() => {
                "; 'ccm-conformance list' shows all checks, and 'ccm-conformance docs glossary' all terms"
                    .to_owned()
            }
            near => near,
        }
    } else {
        let more = if alike.len() > NAMED { " .." } else { "" };
        let named: Vec<&str> = alike.iter().copied().take(NAMED).collect();
        format!("; ids that begin with it: {}{more}", named.join(", "))
    };
    format!("nothing that 'explain' knows is called '{id}'{hint}")
}

/// The id of the row in the id of a check, as rows write it, with the dot that separates the claim.
fn upper_row(id: &str) -> String {
    format!("{}.", id.split('.').next().unwrap_or(id).to_uppercase())
}

/// The component that a row is about, after a preposition.
fn whose(party: Party) -> &'static str {
    of_party(party).map_or("one", Component::noun)
}

fn of_row(contract: &Contract, area: &Area, row: &Row) -> String {
    let mut text = format!("{}  {}\n\n", row.id, row.level_in_words(&contract.changes));
    text.push_str(&labelled("required:", &row.requires));
    text.push_str(&labelled("why:", &row.why));
    text.push_str(&labelled(
        "area:",
        &format!("{} ('ccm-conformance docs contract/{}')", area.title, area.page().trim_end_matches(".md")),
    ));
    let owners: Vec<String> = row.owners(area).iter().map(ToString::to_string).collect();
    text.push_str(&labelled("decided by:", &owners.join(", ")));
    let mut applies: Vec<String> = row.gates(area).iter().map(|gate| format!("declares {gate}")).collect();
    if row.except_hosted {
        applies.push("runs in the cluster that it manages".to_owned());
    }
    if !applies.is_empty() {
        text.push_str(&labelled(
            "applies:",
            &format!("to {} that {}", whose(area.promised_by), applies.join(" and ")),
        ));
    }
    let profiles: Vec<&str> = contract
        .profiles
        .iter()
        .filter(|one| one.includes(&row.id))
        .map(|one| one.profile.as_str())
        .collect();
    if !profiles.is_empty() {
        text.push_str(&labelled("profiles:", &profiles.join(", ")));
    }
    let how = if of_party(area.promised_by).is_some() { "provoked:" } else { "kept:" };
    text.push_str(&labelled(how, &row.provoked));
    text.push_str(&labelled("bound:", &row.bound));
    for (name, what) in contract.terms.bounds(&row.bound) {
        text.push_str(&labelled("", &format!("{name}: {what}")));
    }
    text.push_str(&labelled("source:", &contract.terms.source(&row.source)));
    for bug in bugs_of(&row.id) {
        text.push_str(&labelled("seen in:", &format!("{}: {}", bug.issue, bug.what)));
    }
    if let Some(steps) = &row.by_hand {
        text.push_str("\n  by hand (replace the words in capitals by your names):\n");
        let setup = area.setup.iter().flat_map(|setup| setup.lines().chain([""]));
        for line in setup.chain(steps.lines()) {
            let _ = writeln!(text, "{}", format!("    {line}").trim_end());
        }
    }
    text
}

fn of_check(check: &Check, mutants: &[Mutant], all: &[CheckId]) -> String {
    let isolation = match check.isolation {
        Isolation::Shared if check.holds_up && check.hangs => {
            "alone, or with other checks that hang if the CCM has workers for all: it holds up a loop of the CCM"
        }
        Isolation::Shared if check.holds_up => {
            "only with checks of its own row or of a similar one: it holds up a loop of the CCM"
        }
        Isolation::Shared if check.disturbs() => {
            "at the same time as others if the CCM has workers for all, otherwise only with checks of its row"
        }
        Isolation::NoCluster if check.facilities.contains(Facility::CsiDrivers) => {
            "at the same time as others, without a CCM"
        }
        Isolation::NoCluster => "at any time: it needs neither cluster nor CCM",
        Isolation::DedicatedCluster => {
            "in an environment made for it, at any time; with real kubelets after all others"
        }
        Isolation::Shared => "at the same time as others, on its own objects",
        Isolation::SharedCrash => {
            "at the same time as others until the leader crashes, then with those that watch the same crash"
        }
        Isolation::Quiet => "only with checks that also wait for what a busy CCM does late",
        Isolation::Alone => "alone: it disturbs the CCM or the whole cloud",
        Isolation::FreshCluster => "alone, on a cluster that no CCM has touched yet",
        Isolation::AfterTheRun => "after all others: it judges what the whole run showed",
    };
    let level = match (check.claim.framework_only, check.claim.level) {
        (true, level) => format!("{level} for CCMs of the framework profile, {} for others", level.softer()),
        (false, level) => level.to_string(),
    };
    let takes = match check.takes_s {
        0 => String::new(),
        seconds => format!("; about {seconds} s when it passes"),
    };
    let mut text = format!("\n  check {}  {level}\n", check.id);
    text.push_str(&labelled("  claim:", check.claim.title));
    text.push_str(&labelled("  source:", check.claim.source));
    let needs = needs(check);
    if !needs.is_empty() {
        text.push_str(&labelled("  needs:", &needs.join(", ")));
    }
    if let Some(since) = &check.claim.since {
        text.push_str(&labelled("  since:", &since.to_string()));
    }
    text.push_str(&labelled("  runs:", &format!("{isolation}{takes}")));
    let of_it: Vec<String> = mutants
        .iter()
        .filter(|one| one.is_for(check.id, all))
        .map(|one| format!("{} ({})", one.mutant, one.what))
        .collect();
    if !of_it.is_empty() {
        text.push_str(&labelled("  mutants:", &of_it.join(", ")));
    }
    let seen = seen(check, OURS);
    let shown = |backend: &BackendKind| match seen.not_observable.get(backend.as_str()) {
        None => format!("{backend} yes"),
        Some(lacking) => {
            format!("{backend} no ({} not possible: {})", lacking.join(", "), facts(*backend).lacks_because)
        }
    };
    let shown = match check.isolation {
        Isolation::NoCluster if !check.facilities.contains(Facility::CsiDrivers) => {
            "anywhere, without a cluster".to_owned()
        }
        _ => OURS.iter().map(shown).collect::<Vec<_>>().join("; "),
    };
    text.push_str(&labelled("  observable:", &shown));
    text
}

/// The explanation of a check that is not part of the contract.
fn of_private(check: &Check, mutants: &[Mutant], all: &[CheckId]) -> String {
    let head = format!("{}  a private check: not of the contract, no effect on the verdict\n", check.id);
    head + &of_check(check, mutants, all)
}

/// The last part; `name` is what to run, if there are checks.
fn ending(contract: &Contract, area: &Area, row: &Row, checks: &[&Check], name: &str) -> String {
    let name = (!checks.is_empty()).then_some(name);
    let mut text = String::from("\n");
    if !row.judged_by.is_empty() {
        text.push_str(&labelled("judged by:", &row.judged_by.join(", ")));
    }
    // A reason for a missing check is outdated if there is one.
    for one in contract.reasons(&row.id).filter(|one| one.in_part || name.is_none()) {
        let label = if one.in_part { "in part:" } else { "no check:" };
        text.push_str(&labelled(label, &one.reason));
    }
    let component = of_party(area.promised_by);
    if let Some(name) = name {
        let run = command(area.promised_by, checks);
        text.push_str(&labelled("run it:", &format!("{run}--only {name}")));
    } else if component.is_none() {
        text.push_str(&labelled("no check:", "the harness keeps it in every run"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(id: &'static str) -> Check {
        Check::own(id, "it holds", "somewhere", |_| Box::pin(async { Ok(()) }))
    }

    fn explained(id: &str) -> Result<String, String> {
        let contract = Contract::built_in().expect("a contract");
        let mutants = mutants(&[], Share::WHOLE).expect("mutants");
        let of_kind = [Facility::LinkControl];
        let (list, gone) = (check("NODE-INIT-10.list"), check("NODE-INIT-10.gone").with(&of_kind));
        let checks = [&list, &gone, &check("NODE-INIT-01")];
        explanation(&contract, &checks, &mutants, id)
            .ok_or_else(|| unknown(&contract, &checks, &mutants, &["routes"], id))
    }

    #[test]
    fn a_row_is_explained_with_its_checks_and_a_check_with_its_row() {
        let row = explained("node-init-10").expect("a row");
        assert!(row.starts_with("NODE-INIT-10  MUST\n"), "{row}");
        for part in [
            "required:",
            "why:",
            "decided by:",
            "provoked:",
            "by hand (replace the words",
            "B-WATCH: 10 s",
            "kubernetes/kubernetes#123024",
            "source:",
            "check NODE-INIT-10.list",
            "check NODE-INIT-10.gone",
            "docs contract/node-init",
            "kind yes",
            "embedded no (link-control not possible",
            " ccm-conformance run --profile DIR --only NODE-INIT-10\n",
        ] {
            assert!(row.contains(part), "{part}:\n{row}");
        }
        let check = explained("NODE-INIT-10.list").expect("a check");
        assert!(check.contains("check NODE-INIT-10.list") && !check.contains("NODE-INIT-10.gone"), "{check}");
        assert!(check.contains("M-NI-05b (lists machines, and removes"), "{check}");
        assert!(check.contains("--only NODE-INIT-10.list\n"), "{check}");
    }

    #[test]
    fn the_beginning_of_an_id_names_those_that_have_it() {
        let refused = explained("node-init").expect_err("not an id");
        assert!(refused.contains("'node-init'; ids that begin with it: NODE-INIT-01, "), "{refused}");
        assert!(refused.ends_with(" .."), "{refused}");
        assert!(
            explained("nope")
                .expect_err("not an id")
                .contains("; 'ccm-conformance list' shows all checks, and ")
        );
    }

    #[test]
    fn a_row_without_a_check_says_so_and_an_unknown_id_suggests_the_nearest() {
        let own = explained("TEST-01").expect("a row");
        assert!(own.contains("kept:") && own.contains("the harness keeps it"), "{own}");
        for (id, near) in [
            ("NODE-INIT-1", "'NODE-INIT-01'"),
            ("NODE-INIT-10.lst", "'NODE-INIT-10.list'"),
            ("rotes", "'routes'"),
            ("M-NI-1", "'M-NI-01'"),
        ] {
            let refused = explained(id).expect_err("no such id");
            assert!(refused.contains(&format!("did you mean {near}?")), "{refused}");
        }
        let refused = explained("M-XX-01").expect_err("no such group of mutants");
        assert!(
            refused
                .ends_with("'ccm-conformance controls --list' shows all mutants, variants and adversaries")
        );
        let refused = explained("NODE-INIT-10.something").expect_err("no such claim");
        assert!(
            refused.contains("its row has NODE-INIT-10.") && refused.contains(", NODE-INIT-10."),
            "{refused}"
        );
        let refused = explained("NODE-INIT-*").expect_err("a pattern");
        assert!(refused.contains("no patterns"), "{refused}");
    }
}
