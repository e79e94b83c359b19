//! Explains the terms of the glossary, and the scenarios of `explore`.

use super::lines::labelled;
use crate::book;
use harness_explore::Scenario;

/// The explanation of a term or a scenario; `None` for another name.
pub(super) fn explanation(id: &str) -> Option<String> {
    let same = |name: &str| name.trim_matches('`').eq_ignore_ascii_case(id);
    let term = terms().find(|(term, _, also)| {
        same(term) || also.split(", ").any(|name| same(name.split(" (").next().unwrap_or(name)))
    });
    term.map(|(term, meaning, also)| of_term(term, meaning, also)).or_else(|| {
        let scenarios = Scenario::built_in(&[]).ok()?;
        scenarios.iter().find(|one| one.name.eq_ignore_ascii_case(id)).map(of_scenario)
    })
}

/// The names of the terms and the scenarios.
pub(super) fn names() -> Vec<String> {
    let scenarios = Scenario::built_in(&[]).unwrap_or_default();
    let terms = terms().map(|(term, ..)| term.trim_matches('`').to_owned());
    terms.chain(scenarios.into_iter().map(|one| one.name)).collect()
}

/// The rows of the tables of the glossary: term, meaning, and other names of it.
fn terms() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let text = book::page("glossary").unwrap_or_default();
    text.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.strip_suffix('|')?.split(" | ").map(str::trim);
        let (term, meaning) = (cells.next()?, cells.next()?);
        // The row below the head of a table has no letters.
        let is_row = term != "term" && term.contains(char::is_alphabetic);
        is_row.then(|| (term, meaning, cells.next().unwrap_or_default()))
    })
}

fn of_term(term: &str, meaning: &str, also: &str) -> String {
    let mut text = format!("{}  a term of the glossary\n\n", term.trim_matches('`'));
    text.push_str(&labelled("means:", &without_links(meaning)));
    if !also.is_empty() {
        text.push_str(&labelled("also called:", also));
    }
    text + &labelled("more:", "ccm-conformance docs glossary")
}

fn of_scenario(scenario: &Scenario) -> String {
    let name = &scenario.name;
    let mut text = format!("{name}  a scenario of 'explore', with {} steps\n\n", scenario.steps.len());
    text.push_str(&labelled("what happens:", &scenario.about));
    text + &labelled("explore it:", &format!("ccm-conformance explore --scenario {name}"))
}

/// A text whose links to pages are the commands that print them.
fn without_links(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        plain.push_str(before);
        match link.split_once("](").and_then(|(name, after)| Some((name, after.split_once(')')?))) {
            Some((name, (target, after))) => {
                plain.push_str(name);
                let page = target.split('#').next().unwrap_or_default();
                if let Some(page) = page.strip_suffix(".md").filter(|page| book::page(page).is_some()) {
                    plain.push_str(&format!(" ('ccm-conformance docs {page}')"));
                }
                rest = after;
            }
            None => {
                plain.push('[');
                rest = link;
            }
        }
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_of_reports_and_scenarios_are_explained() {
        for (id, parts) in [
            ("blocked", &["blocked  a term", "means:"][..]),
            ("first-try", &["means:", "judged once more"]),
            ("Profile", &["describes the CCM", "('ccm-conformance docs profile')"]),
            ("shard", &["part  a term", "also called:  shard"]),
            ("journal", &["request log  a term"]),
            ("lane", &["environment  a term"]),
            ("service-life", &["a scenario of 'explore'", "explore --scenario service-life"]),
        ] {
            let text = explanation(id).unwrap_or_else(|| panic!("{id} is not explained"));
            parts.iter().for_each(|part| assert!(text.contains(part), "{id}, {part}:\n{text}"));
        }
        assert_eq!(explanation("NODE-INIT-10"), None);
        assert!(names().len() > 40 && !names().iter().any(|name| name.starts_with('-')));
    }
}
