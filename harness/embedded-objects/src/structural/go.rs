//! Translates patterns of Go's `regexp` (the syntax of RE2) to those of the library used here.

/// The ASCII classes of Go: the character after the backslash, and its content within brackets.
const CLASSES: [(char, &str); 3] = [('d', "0-9"), ('w', "0-9A-Za-z_"), ('s', r"\t\n\f\r\x20")];

/// The same pattern for `regex`: `\d`, `\w`, `\s` and `\b` are ASCII only; within brackets there are neither
/// brackets nor set operations; text between `\Q` and `\E` is literal.
pub(super) fn translated(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern.chars().peekable();
    // Within brackets: how many of their characters were read.
    let mut within: Option<usize> = None;
    while let Some(char) = rest.next() {
        match (char, within) {
            ('\\', None) if rest.peek() == Some(&'Q') => {
                rest.next();
                quoted(&mut rest, &mut out);
            }
            ('\\', _) => escaped(rest.next(), within.is_some(), &mut out),
            ('[', None) => {
                out.push('[');
                out.extend(rest.next_if_eq(&'^'));
                // A bracket in the first position is literal.
                if rest.next_if_eq(&']').is_some() {
                    out.push_str(r"\]");
                }
                within = Some(0);
                continue;
            }
            (']', Some(_)) => {
                out.push(']');
                within = None;
                continue;
            }
            ('[', Some(_)) if rest.peek() == Some(&':') => out.push('['),
            // The end of a named class, which began two characters earlier.
            (':', Some(_)) if rest.peek() == Some(&']') && is_named(&out) => {
                rest.next();
                out.push_str(":]");
            }
            ('[' | '&' | '~', Some(_)) => out.extend(['\\', char]),
            ('-', Some(read)) if read > 0 && rest.peek() == Some(&'-') => out.push_str(r"\-"),
            (other, _) => out.push(other),
        }
        within = within.map(|read| read + 1);
    }
    out
}

/// Whether a named class has begun and not ended: `[:` and letters.
fn is_named(out: &str) -> bool {
    let name = out.trim_end_matches(|char: char| char.is_ascii_lowercase());
    name.ends_with("[:") || name.ends_with("[:^")
}

fn escaped(char: Option<char>, within: bool, out: &mut String) {
    let Some(char) = char else { return out.push('\\') };
    let class = CLASSES.iter().find(|(name, _)| *name == char.to_ascii_lowercase());
    match (class, char) {
        (Some((name, class)), _) => match (*name == char, within) {
            (true, true) => out.push_str(class),
            (true, false) => out.extend(["[", class, "]"]),
            (false, _) => out.extend(["[^", class, "]"]),
        },
        (None, 'b' | 'B') if !within => out.extend([r"(?-u:\", char.encode_utf8(&mut [0; 4]), ")"]),
        (None, other) => out.extend(['\\', other]),
    }
}

/// Translates literal text, up to `\E` or the end.
fn quoted(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
    while let Some(char) = rest.next() {
        if char == '\\' && rest.next_if_eq(&'E').is_some() {
            return;
        }
        // The library gives these two a meaning after a backslash.
        if char.is_ascii_punctuation() && !matches!(char, '<' | '>') {
            out.push('\\');
        }
        out.push(char);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Patterns;
    use super::*;

    /// Whether a text matches a pattern; `None` if the pattern is not valid.
    fn holds(pattern: &str, text: &str) -> Option<bool> {
        let patterns = Patterns::of(&json!({"pattern": pattern}));
        if let Some((_, _)) = patterns.unread().next() {
            return None;
        }
        patterns.matches(pattern, text, &mut 1_000_000)
    }

    /// The answers of Go's `regexp.MatchString` (1.27).
    const ANSWERS: &[(&str, &str, bool)] = &[
        (r"^\d+$", "12", true),
        (r"^\d+$", "\u{0661}\u{0662}", false),
        (r"^\D$", "\u{0661}", true),
        (r"^[\d.]+$", "1.2", true),
        (r"^[\d.]+$", "\u{0661}", false),
        (r"^[^\D]$", "\u{0661}", false),
        (r"^[\Dx]$", "\u{0661}", true),
        (r"^\w+$", "aZ_9", true),
        (r"^\w+$", "\u{e4}", false),
        (r"^[\w-]+$", "a-b", true),
        (r"^[\w-]+$", "\u{e4}", false),
        (r"^\W$", "\u{e4}", true),
        (r"^\s$", "\u{a0}", false),
        (r"^\s$", "\u{b}", false),
        (r"^\s$", "\t", true),
        (r"^[\s]$", " ", true),
        (r"^\S$", "\u{a0}", true),
        (r"^[\S]$", " ", false),
        (r"a\b", "a\u{e4}", true),
        (r"a\B", "a\u{e4}", false),
        (r"a\B", "ab", true),
        (r"^\B$", "", true),
        (r"^\p{L}+$", "\u{e4}", true),
        (r"^.$", "\u{e4}", true),
        (r"^[[:alpha:]]+$", "ab", true),
        (r"^[[:alpha:]]+$", "\u{e4}", false),
        (r"^[[:^alpha:]-]+$", "1-", true),
        (r"^[[]$", "[", true),
        (r"^[a[]+$", "a[", true),
        (r"^[]a]+$", "]a", true),
        (r"^[^]a]+$", "]", false),
        (r"^[a-z&&b]+$", "a&", true),
        (r"^[a~~b]+$", "~", true),
        (r"^[a:]+$", ":", true),
        (r"^[0-9.:]+$", "1:", true),
        (r"^\Qa.b\E+$", "a.bb", true),
        (r"^\Qa.b\E+$", "axb", false),
        (r"^\Q[", "[", true),
        (r"^\Q<b>\E$", "<b>", true),
        (r"^[\]\\]+$", "]\\", true),
        (r"^\\d$", "\\d", true),
        (r"^(?i)\x41$", "a", true),
    ];

    #[test]
    fn patterns_hold_for_what_go_says_they_hold_for() {
        for (pattern, text, expected) in ANSWERS {
            let translated = translated(pattern);
            assert_eq!(holds(pattern, text), Some(*expected), "{pattern} as {translated} for {text:?}");
        }
    }

    #[test]
    fn every_text_can_be_translated() {
        for text in ["", "\\", "[", "[^", "[]", "[[:", "[[:a", "\\Q", "\\Qa\\", "[\\", "[a--]", "[--a]"] {
            // Whether the pattern is valid does not matter here.
            let _ = holds(text, "a");
        }
    }
}
