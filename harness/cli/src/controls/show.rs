//! `controls --list`: what there is to judge.

use super::super::arguments::ControlOptions;
use super::list::{Adversary, Mutant, Variant, adversaries, mutants, variants};
use harness_core::ledger::Share;

/// What `controls --list` prints: what was chosen, or everything; a line for each, with what it is and who must notice.
///
/// # Errors
/// A choice that is not in the list.
pub(super) fn shown(options: &ControlOptions) -> Result<String, String> {
    let share = options.share.unwrap_or(Share::WHOLE);
    let (mutant, variant, adversary) = (&options.mutant, &options.variant, &options.adversary);
    let all = mutant.is_empty() && variant.is_empty() && adversary.is_empty();
    let mut text = String::new();
    let mut add = |kind: &str, lines: Vec<(String, String)>| {
        let width = lines.iter().map(|(id, _)| id.len()).max().unwrap_or(0);
        text.push_str(&format!("{kind}: {}\n", lines.len()));
        lines.iter().for_each(|(id, what)| text.push_str(&format!("  {id:<width$}  {what}\n")));
    };
    if all || !mutant.is_empty() {
        let line = |one: Mutant| (one.mutant, format!("{}; noticed by {}", one.what, one.checks.join(", ")));
        add("mutants", mutants(mutant, share)?.into_iter().map(line).collect());
    }
    if all || !variant.is_empty() {
        let line = |one: Variant| (one.variant, one.what);
        add("conforming variants", variants(variant, share)?.into_iter().map(line).collect());
    }
    if all || !adversary.is_empty() {
        let line = |one: Adversary| (one.adversary, one.what);
        add("adversaries", adversaries(adversary, share)?.into_iter().map(line).collect());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_mutant(id: &str) -> ControlOptions {
        let mut options = ControlOptions::default();
        options.mutant.push(id.to_owned());
        options
    }

    #[test]
    fn the_list_shows_what_was_chosen_or_everything() {
        let all = shown(&ControlOptions::default()).expect("a list");
        for head in ["mutants: ", "conforming variants: ", "adversaries: "] {
            assert!(all.contains(head), "{head}");
        }
        let one = of_mutant("M-NI-01");
        let text = shown(&one).expect("a list");
        assert!(
            text.starts_with(
                "mutants: 1\n  M-NI-01  removes all taints of a node that it initialises; noticed by "
            ),
            "{text}"
        );
        let none = of_mutant("M-NI-0");
        assert!(shown(&none).expect_err("there is none").contains("did you mean 'M-NI-0"));
    }
}
