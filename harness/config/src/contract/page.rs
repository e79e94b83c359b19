//! The pages of the contract, in Markdown.

use super::change::since_in_words;
use super::{Area, Change, Contract, Obligation, Party, Row, bugs_of};
use std::fmt::Write as _;

/// The first line of every page.
const HEAD: &str = "<!-- generated from the table of the same name: REWRITE_DOCUMENTS=1 cargo test -p harness-config --lib documents -->\n";

/// The page of an area.
pub(super) fn page(contract: &Contract, area: &Area) -> String {
    let mut text = format!("{HEAD}# {}: {}\n\n{}\n", area.area, area.title, area.about.trim_end());
    if let Some(setup) = &area.setup {
        let _ = write!(text, "\nThe steps by hand start with:\n\n```sh\n{}\n```\n", setup.trim_end());
    }
    for row in &area.rows {
        text.push('\n');
        text.push_str(&section(contract, area, row));
    }
    text
}

fn section(contract: &Contract, area: &Area, row: &Row) -> String {
    let mut text = format!("## {}\n\n**{}**", row.id, row.level_in_words(&contract.changes));
    let owners: Vec<String> = row.owners(area).iter().map(ToString::to_string).collect();
    let _ = write!(text, ", decided by {}", owners.join(" and "));
    let gates: Vec<String> = row.gates(area).iter().map(|gate| format!("`{gate}`")).collect();
    if !gates.is_empty() {
        let _ = write!(text, ", if the CCM declares {}", gates.join(" and "));
    }
    if row.except_hosted {
        text.push_str(", unless the CCM runs outside the cluster that it manages");
    }
    let _ = write!(text, "\n\n{} {}\n", row.requires, row.why);
    if !row.claims.is_empty() {
        text.push_str("\n| check | what it claims |\n|---|---|\n");
    }
    for claim in &row.claims {
        let only = if claim.framework { " for CCMs of the framework profile" } else { "" };
        let level = claim.level.map(|level| format!("{level}{only}"));
        let since = claim.since.as_ref().map(|since| since_in_words(&contract.changes, since));
        let own = if claim.since.is_some() { &claim.before } else { &row.before };
        let before = own.as_ref().map(|before| format!("before: {before}"));
        let limits: Vec<String> = level.into_iter().chain(since).chain(before).collect();
        let limits = if limits.is_empty() { String::new() } else { format!(" ({})", limits.join(", ")) };
        let _ = writeln!(text, "| `{}`{limits} | {} |", claim.check(row), claim.requires.replace('|', "\\|"));
    }
    let _ = write!(text, "\n*{}:* {}\n", provoked(area.promised_by), row.provoked);
    if let Some(steps) = &row.by_hand {
        let _ = write!(text, "\n```sh\n{}\n```\n", steps.trim_end());
    }
    let _ = write!(text, "\n*Bound:* {}. *Source:* {}.\n", row.bound, contract.terms.source(&row.source));
    let bugs: Vec<String> = bugs_of(&row.id).map(|bug| format!("{} ({})", bug.issue, bug.what)).collect();
    if !bugs.is_empty() {
        let _ = write!(text, "\n*Seen in:* {}.\n", bugs.join("; "));
    }
    if !row.judged_by.is_empty() {
        let others: Vec<String> = row.judged_by.iter().map(|row| format!("`{row}`")).collect();
        let _ = write!(text, "\n*Judged by:* {}\n", others.join(", "));
    }
    let reasons: Vec<&str> = contract.reasons(&row.id).map(|one| one.reason.as_str()).collect();
    if !reasons.is_empty() {
        let _ = write!(text, "\n*Not checked:* {}\n", reasons.join(" "));
    }
    text
}

/// The changes of the framework, and what is based on each.
fn changes(contract: &Contract) -> String {
    let mut text = "\n## Changes of the framework\n\nThe profile of a CCM declares the version of the framework that it is built on (`framework.version`), and the CCM is judged by that version.\n\n| version | change | older versions | rows and checks | source |\n|---|---|---|---|---|\n".to_owned();
    for one in &contract.changes {
        let based = based_on(contract, one).join(", ");
        let source = contract.terms.source(&one.source);
        let _ = writeln!(text, "| {} | {} | {} | {based} | {source} |", one.version, one.change, one.older);
    }
    text
}

/// The ids of rows and checks that are based on a change.
pub(super) fn based_on(contract: &Contract, change: &Change) -> Vec<String> {
    let is_it = |since: &Option<String>| since.as_ref() == Some(&change.name);
    let of = |row: &Row| {
        let claims = row.claims.iter().filter(|claim| is_it(&claim.since)).map(|claim| claim.check(row));
        is_it(&row.since).then(|| row.id.clone()).into_iter().chain(claims).collect::<Vec<_>>()
    };
    contract.rows().flat_map(|(_, row)| of(row)).collect()
}

/// The heading for how a row is provoked.
pub(super) fn provoked(subject: Party) -> &'static str {
    if subject == Party::Harness { "Kept" } else { "Provoked" }
}

/// The index of the pages.
pub(super) fn index(contract: &Contract) -> String {
    let mut text = format!("{HEAD}# The contract\n\n{}\n", contract.terms.about.trim_end());
    text.push_str("\n## Areas\n\n| area | topic | applies to | rows | MUST | SHOULD | other |\n|---|---|---|---|---|---|---|\n");
    for area in &contract.areas {
        let count =
            |wanted: &[Obligation]| area.rows.iter().filter(|row| wanted.contains(&row.level)).count();
        let _ = writeln!(
            text,
            "| [{}]({}) | {} | {} | {} | {} | {} | {} |",
            area.area,
            area.page(),
            area.title,
            area.promised_by,
            area.rows.len(),
            count(&[Obligation::Must, Obligation::MustNot]),
            count(&[Obligation::Should, Obligation::ShouldNot]),
            count(&[Obligation::May, Obligation::Info]),
        );
    }
    text.push_str("\n## Profiles of conformance\n\nA profile counts only if each of its applicable MUST checks passed: none failed, was blocked, left out or not observable, and none met an error of the environment.\n\n| profile | rows | further rows | meaning |\n|---|---|---|---|\n");
    for one in &contract.profiles {
        let names = |names: &[String]| {
            names.iter().map(|name| name.replace('*', "all")).collect::<Vec<_>>().join(", ")
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            one.profile,
            names(&one.core),
            names(&one.beside),
            one.title
        );
    }
    text.push_str(&changes(contract));
    text.push_str("\n## Bounds\n\n| name | meaning |\n|---|---|\n");
    for (name, what) in &contract.terms.bounds {
        let _ = writeln!(text, "| {name} | {what} |");
    }
    let _ = write!(
        text,
        "\n## Sources\n\nFiles of Kubernetes {}.\n\n| name | file |\n|---|---|\n",
        contract.terms.kubernetes
    );
    for (name, file) in &contract.terms.sources {
        let _ = writeln!(text, "| {name} | {file} |");
    }
    text
}
