//! What a person is shown of many findings: the cause first, and of long lists the beginning.

use super::finding::Finding;
use std::mem::{Discriminant, discriminant};

/// How many consequences of a cause are shown.
const CONSEQUENCES: usize = 3;
/// How many findings of one kind are shown.
const OF_A_KIND: usize = 20;
/// How to see all of them.
const ALL: &str = "'ccm-conformance verify --output json' lists all";

/// Findings for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownFindings {
    /// How many reasons there are, without the consequences of others.
    pub reasons: usize,
    /// A line for each reason that is shown.
    pub lines: Vec<String>,
}

/// The findings for a person: first what explains others, with a few of those, then everything else.
pub fn shown(findings: &[Finding]) -> ShownFindings {
    let (causes, rest): (Vec<&Finding>, Vec<&Finding>) = findings.iter().partition(|one| one.is_cause());
    let (consequences, others): (Vec<&Finding>, Vec<&Finding>) =
        rest.into_iter().partition(|one| !causes.is_empty() && one.is_consequence());
    let mut lines: Vec<String> = causes.iter().map(ToString::to_string).collect();
    lines.extend(consequences.iter().take(CONSEQUENCES).map(|one| format!("  {one}")));
    if let more @ 1.. = consequences.len().saturating_sub(CONSEQUENCES) {
        lines.push(format!("  and {more} more differences that follow from it; {ALL}"));
    }
    // What follows from the checks is less clear to a reader than the checks.
    let (derived, mut others): (Vec<&Finding>, Vec<&Finding>) =
        others.into_iter().partition(|one| matches!(one, Finding::Derived { .. }));
    others.extend(derived);
    let (mut kinds, mut more) = (Vec::<Discriminant<Finding>>::new(), 0);
    for one in &others {
        let kind = discriminant(*one);
        if kinds.iter().filter(|seen| **seen == kind).count() < OF_A_KIND {
            lines.push(one.to_string());
        } else {
            more += 1;
        }
        kinds.push(kind);
    }
    if more > 0 {
        lines.push(format!("and {more} more; {ALL}"));
    }
    ShownFindings { reasons: causes.len() + others.len(), lines }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(count: usize) -> Vec<Finding> {
        let one = |at: usize| Finding::Outcome {
            id: format!("A-{at}"),
            stream: "error".to_owned(),
            report: "pass".to_owned(),
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn a_cause_comes_first_and_its_consequences_are_counted() {
        let mut findings = outcomes(400);
        findings.insert(7, Finding::Relaxed("jobs".to_owned()));
        findings.push(Finding::Cut { after: 12, of: Some(900) });
        let shown = shown(&findings);
        assert_eq!(shown.reasons, 2);
        assert_eq!(shown.lines.len(), 6, "{:#?}", shown.lines);
        assert_eq!(shown.lines[0], "the stream of events was cut after event 12 of 900");
        assert!(shown.lines[1].starts_with("  check A-0 ended with 'error'"), "{:?}", shown.lines);
        assert!(shown.lines[4].starts_with("  and 397 more differences"), "{:?}", shown.lines);
        assert!(shown.lines[5].starts_with("relaxed: jobs"), "{:?}", shown.lines);
    }

    #[test]
    fn few_findings_are_all_shown_and_of_many_the_first() {
        let findings = [outcomes(20), vec![Finding::RepeatedCheck("A-1".to_owned())]].concat();
        let all: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(shown(&findings), ShownFindings { reasons: 21, lines: all });
        let many = shown(&outcomes(300));
        assert_eq!((many.reasons, many.lines.len()), (300, 21));
        assert!(many.lines[20].starts_with("and 280 more; "), "{}", many.lines[20]);
        assert_eq!(shown(&[]), ShownFindings { reasons: 0, lines: Vec::new() });
    }
}
