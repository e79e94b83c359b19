//! Prose that is hard to read, in documents and in code: words that this project no longer uses, paragraphs that are too long.
//! The style page is `.github/CONTRIBUTING.md`.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::BTreeMap;

/// Words that this project does not use any more, each with its replacement.
const RETIRED: &[(&str, &str)] = &[
    ("anew", "again"),
    ("at hand", "available"),
    ("beside", "next to, besides or alongside"),
    ("dawdles", "is slow"),
    ("nobody", "the thing that does not do it"),
    ("oftener", "more often"),
    ("somebody", "the person or program that does it"),
    ("told", "reported, printed, configured or distinguished"),
    ("whoever", "the thing that does it"),
];
/// Folders whose messages contain no debug output (`{:?}`): users read them.
const SHOWN_TO_USERS: &[&str] = &[
    "fake-cloud/",
    "harness/bootstrap/",
    "harness/bootstrap-manifests/",
    "harness/cli/",
    "harness/clouds/",
    "harness/clusters/",
    "harness/components/",
    "harness/config/",
    "harness/core/",
    "harness/objects/",
    "harness/processes/",
    "harness/proof/",
    "harness/proxy/",
    "harness/report/",
    "harness/runner/",
    "harness/session/",
    "harness/testkit/",
    "suites/",
];
/// Longest paragraph, lines of up to 130 characters.
const LONGEST_PARAGRAPH: usize = 8;
/// The number of characters in such a line.
const LINE: usize = 130;

/// Checks the documents. Generated documents contain the text of their sources, and are checked too.
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

/// Checks a Rust file: its names, comments and messages for retired words, and its messages for debug output if it is in
/// [`SHOWN_TO_USERS`].
pub(super) fn check_code(path: &str, text: &str, findings: &mut Vec<String>) {
    let is_in = |folders: &[&str]| folders.iter().any(|folder| path.starts_with(folder));
    let is_product = path.contains("/src/") && !path.contains("/tests/") && !path.ends_with("/tests.rs");
    if is_product && is_in(SHOWN_TO_USERS) {
        // A file that cannot be parsed is reported by the compiler.
        literals(text.parse().unwrap_or_default(), &mut |number, message| {
            if shows_debug_output(message) {
                findings.push(format!(
                    "{path}:{number}: a text with Rust's debug output ('{{:?}}'): print the value in plain words, a Duration \
                     by as_secs_f64()"
                ));
            }
        });
    }
    // This file contains the words.
    if path != "ci/src/tidy/prose.rs" {
        check_words(path, text, findings);
    }
}

/// Checks the comments of a file and the names of its functions, and its string literals except those of tests.
fn check_words(path: &str, text: &str, findings: &mut Vec<String>) {
    for (line, number) in text.lines().zip(1..) {
        let comment = line.trim_start().strip_prefix("//");
        let name = line.split_once("fn ").and_then(|(_, rest)| rest.split(['(', '<']).next());
        if let Some(prose) = comment.or(name) {
            findings.extend(retired(prose).map(|(word, instead)| {
                format!("{path}:{number}: '{word}' is a retired word: write {instead}")
            }));
        }
    }
    if !path.contains("/tests/") && !path.ends_with("/tests.rs") {
        literals(text.parse().unwrap_or_default(), &mut |number, message| {
            if !message.contains(' ') {
                return;
            }
            findings.extend(retired(message).map(|(word, instead)| {
                format!("{path}:{number}: '{word}' in a message is a retired word: write {instead}")
            }));
            if denies(message) {
                findings
                    .push(format!("{path}:{number}: a message with 'is no': write 'is not a' or 'invalid'"));
            }
        });
    }
}

/// Calls `found` for each string literal, except those of attributes other than error messages, and of tests.
fn literals(tokens: TokenStream, found: &mut impl FnMut(usize, &str)) {
    let mut tokens = tokens.into_iter().peekable();
    let mut is_test = false;
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(sign) if sign.as_char() == '#' => {
                tokens.next_if(|next| matches!(next, TokenTree::Punct(sign) if sign.as_char() == '!'));
                if let Some(TokenTree::Group(attribute)) =
                    tokens.next_if(|next| matches!(next, TokenTree::Group(_)))
                {
                    is_test |= attribute.stream().to_string().replace(' ', "") == "cfg(test)";
                    // Error messages are in attributes, comments are not messages.
                    if attribute.stream().to_string().starts_with("error") {
                        literals(attribute.stream(), found);
                    }
                }
            }
            TokenTree::Punct(sign) if sign.as_char() == ';' => is_test = false,
            TokenTree::Group(group) => {
                if !is_test {
                    literals(group.stream(), found);
                }
                is_test &= group.delimiter() != Delimiter::Brace;
            }
            TokenTree::Literal(literal) => {
                let shown = literal.to_string();
                let is_text = shown.starts_with('"') || shown.starts_with("r\"") || shown.starts_with("r#");
                if is_text && !is_test {
                    found(literal.span().start().line, &shown);
                }
            }
            TokenTree::Punct(_) | TokenTree::Ident(_) => {}
        }
    }
}

/// Whether a format string has a placeholder for debug output, such as `{:?}`, `{name:#?}` or `{time:.1?}`.
fn shows_debug_output(text: &str) -> bool {
    let placeholders = text.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    let is_debug = |inner: &str| {
        let format = inner.split_once(':').map(|(_, format)| format);
        format.is_some_and(|format| format.ends_with('?') && !format.contains(char::is_whitespace))
    };
    placeholders.map(|(inner, _)| inner).any(is_debug)
}

/// Whether a text says 'is no ...', apart from 'there is no' and 'is no longer'.
fn denies(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let says = |at: usize| {
        matches!(words[at], "is" | "are")
            && words.get(at + 1) == Some(&"no")
            && !words.get(at + 2).is_some_and(|next| next.starts_with("longer") || next.starts_with("more"))
            && !(at > 0 && words[at - 1].to_lowercase().ends_with("there"))
    };
    (0..words.len()).any(says)
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
    fn debug_output_is_found_in_what_users_read() {
        let found = |path: &str, text: &str| {
            let mut findings = Vec::new();
            check_code(path, text, &mut findings);
            findings
        };
        for text in ["{:?}", "after {took:.1?}", "{a} and {b:#?}", "{0:?}"] {
            let code = format!("fn f() {{ g(\"{text}\") }}");
            assert_eq!(found("suites/nodes/src/a.rs", &code).len(), 1, "{text}");
            let error = format!("#[error(\"{text}\")] struct E;");
            assert_eq!(found("harness/cli/src/a.rs", &error).len(), 1, "{text}");
            let test = format!("#[cfg(test)] mod tests {{ fn f() {{ g(\"{text}\") }} }}");
            assert!(found("suites/nodes/src/a.rs", &test).is_empty(), "{text}");
            assert!(found("harness/embedded-state/src/a.rs", &code).is_empty(), "{text}");
            assert!(found("suites/tests/a.rs", &code).is_empty(), "{text}");
        }
        let plain = r#"fn f() { g("{a}: {b:.1} s", r"[{](:?)[}]", "{who: 'is it?'}") }"#;
        assert!(found("suites/nodes/src/a.rs", plain).is_empty());
    }

    #[test]
    fn retired_words_are_found_in_comments_and_messages() {
        let found = |path: &str, text: &str| {
            let mut findings = Vec::new();
            check_code(path, text, &mut findings);
            findings
        };
        let text = "//! Nobody `anew` asks.\n#[error(\"it is no file\")]\nstruct Error;\nfn f() { g(\"asked anew\"); }\n\
                    // It beside.\nconst A: &str = \"anew\";\nconst B: &str = \"there is no file, it is no longer there\";\n\
                    #[cfg(test)]\nmod tests { const C: &str = \"nobody asks\"; }\nconst D: &str = \"whoever\\n asks\";\n";
        let all = found("harness/core/src/a.rs", text);
        let lines: Vec<&str> = all.iter().filter_map(|one| one.split(':').nth(1)).collect();
        assert_eq!(lines, ["1", "5", "2", "4", "10"], "{all:?}");
        assert!(found("harness/core/src/tests.rs", "const A: &str = \"nobody asks\";").is_empty());
    }

    #[test]
    fn retired_words_are_found_in_names_of_functions() {
        for (code, count) in [
            ("async fn an_error_is_told() {}", 1),
            ("fn somebody<T>(nobody: T) {}", 1),
            ("fn an_old_told_file_threshold() { let untold = 1; }", 1),
            ("fn a_folder_has_a_threshold() {}", 0),
        ] {
            let mut findings = Vec::new();
            check_code("suites/tests/a.rs", code, &mut findings);
            assert_eq!(findings.len(), count, "{code}: {findings:?}");
        }
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
