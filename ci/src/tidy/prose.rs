//! Prose that is hard to read: words that this project no longer uses, sentences and paragraphs that are too long. The style page is
//! `.github/CONTRIBUTING.md`.

use std::collections::BTreeMap;

/// Words that documents no longer use, each with what to write.
const RETIRED: &[(&str, &str)] = &[
    ("anew", "again"),
    ("at hand", "available"),
    ("beside", "next to, besides or alongside"),
    ("dawdles", "is slow"),
    ("nobody", "the thing that does not do it"),
    ("oftener", "more often"),
    ("whoever", "the thing that does it"),
];
/// Longest paragraph, lines of up to 130 characters.
const LONGEST_PARAGRAPH: usize = 8;
/// Characters of such a line.
const LINE: usize = 130;

/// Checks the documents; those that are generated show what their sources say, and are checked too.
pub(super) fn check(texts: &BTreeMap<String, String>, findings: &mut Vec<String>) {
    for (path, text) in texts {
        let mut paragraph = (0, 0);
        let mut in_block = false;
        for (line, number) in text.lines().zip(1..) {
            if line.trim_start().starts_with("```") {
                in_block = !in_block;
            }
            let is_prose = !in_block && !line.trim_start().starts_with(['|', '#', '<', '`']);
            if !is_prose || line.trim().is_empty() {
                paragraph = (0, 0);
                continue;
            }
            findings.extend(retired(line).map(|(word, instead)| {
                format!("{path}:{number}: '{word}' is a retired word: write {instead}")
            }));
            let first = if paragraph.1 == 0 || is_item(line) { number } else { paragraph.0 };
            let lines = if first == number { 0 } else { paragraph.1 };
            paragraph = (first, lines + line.chars().count().div_ceil(LINE));
            if paragraph.1 > LONGEST_PARAGRAPH && lines <= LONGEST_PARAGRAPH {
                findings.push(format!(
                    "{path}:{first}: a paragraph of more than {LONGEST_PARAGRAPH} lines of {LINE} characters: divide it"
                ));
            }
        }
    }
}

/// The retired words of a line, outside of code.
fn retired(line: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join(" ").to_lowercase();
    let words: Vec<&str> =
        prose.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let spaced = format!(" {} ", words.join(" "));
    RETIRED.iter().copied().filter(move |(word, _)| spaced.contains(&format!(" {word} ")))
}

/// Whether a line begins an item of a list.
fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with("- ")
        || line.starts_with("* ")
        || (digits.len() < line.len() && digits.starts_with(". "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let mut findings = Vec::new();
        check(&BTreeMap::from([("a.md".to_owned(), text.to_owned())]), &mut findings);
        findings
    }

    #[test]
    fn retired_words_are_found_in_prose_and_not_in_code() {
        assert_eq!(
            found("It runs.\nNobody `anew` asks.\n"),
            ["a.md:2: 'nobody' is a retired word: write the thing that does not do it"]
        );
        assert!(found("```\nwhoever\n```\n| beside |\n# Anew\n").is_empty());
        assert!(found("The renewal is at handover.\n").is_empty());
    }

    #[test]
    fn long_paragraphs_are_found_and_lists_are_not() {
        let line = "w ".repeat(60);
        assert!(found(&format!("{line}\n").repeat(8)).is_empty());
        let findings = found(&format!("{line}\n").repeat(9));
        assert_eq!(findings.len(), 1);
        assert!(findings[0].starts_with("a.md:1: a paragraph of more than 8 lines"), "{findings:?}");
        assert!(found(&format!("- {line}\n").repeat(20)).is_empty());
    }
}
