//! Makes foreign text (of a CCM, a driver, the cluster) safe to show on terminals, and in the output of a workflow step,
//! where a runner executes certain lines as commands.

use std::borrow::Cow;
use std::sync::OnceLock;

/// Whether a runner that executes workflow commands reads this process's output: that of GitHub Actions or a compatible
/// one, or of Azure Pipelines.
pub(super) fn is_in_a_workflow() -> bool {
    static IS: OnceLock<bool> = OnceLock::new();
    *IS.get_or_init(|| {
        let says = |name: &str| std::env::var(name).is_ok_and(|value| value.eq_ignore_ascii_case("true"));
        says("GITHUB_ACTIONS") || says("TF_BUILD")
    })
}

/// Whether a character controls a terminal, or reorders the characters next to it: control characters except line breaks
/// and tabs, line and paragraph separators, and bidirectional controls.
pub fn is_obeyed(sign: char) -> bool {
    match sign {
        '\n' | '\t' => false,
        '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        _ => sign.is_control(),
    }
}

/// Foreign text that is safe for a terminal: control characters are escaped, in the syntax of JSON and YAML, so that
/// documents in these formats keep their meaning.
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            // The end of a line as some systems write it does not move back over text.
            '\r' if signs.peek() == Some(&'\n') => shown.push('\r'),
            '\r' => shown.push_str("\\r"),
            sign if is_obeyed(sign) => shown.push_str(&format!("\\u{:04x}", u32::from(sign))),
            sign => shown.push(sign),
        }
    }
    Cow::Owned(shown)
}

/// Like [`plain`], but keeps sequences that only set colours.
pub(super) fn with_colours(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        shown.push_str(&plain(&rest[..at]));
        let length = colour(&rest[at..]);
        shown.push_str(&rest[at..at + length]);
        rest = &rest[at + length..];
        if length == 0 {
            shown.push_str("\\u001b");
            rest = &rest[1..];
        }
    }
    shown.push_str(&plain(rest));
    Cow::Owned(shown)
}

/// The length of the colour sequence at the beginning of a text; 0 if there is none.
fn colour(text: &str) -> usize {
    let Some(parameters) = text.strip_prefix("\u{1b}[") else { return 0 };
    let length = parameters.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b';').count();
    if parameters[length..].starts_with('m') { length + 3 } else { 0 }
}

/// Text without workflow commands. `::command::` is recognised at the beginning of a line, after spaces; `##[command]`
/// and `##vso[command]` are recognised anywhere. A space is inserted to break them. Source: ActionCommand.cs of
/// actions/runner, and "Logging commands" of Azure Pipelines.
pub(super) fn without_commands(text: &str) -> Cow<'_, str> {
    if !text.contains("::") && !text.contains("##") {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for line in text.split_inclusive('\n') {
        let command = line.trim_start();
        let blanks = line.len() - command.len();
        // Anything else stays unchanged, such as an IPv6 address.
        let rest = match command.strip_prefix("::") {
            Some(rest) if rest.contains("::") => {
                safe.push_str(&line[..blanks]);
                safe.push_str(": :");
                rest
            }
            _ => line,
        };
        let mut before = '\0';
        for (at, sign) in rest.char_indices() {
            if before == '#' && sign == '#' && begins_command(&rest[at + 1..]) {
                safe.push(' ');
            }
            safe.push(sign);
            before = sign;
        }
    }
    Cow::Owned(safe)
}

/// Whether the text after `##` makes it a command: a bracket, possibly after a word.
fn begins_command(rest: &str) -> bool {
    rest.trim_start_matches(|sign: char| sign.is_ascii_alphanumeric()).starts_with('[')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_sequences_do_not_reach_a_terminal() {
        assert_eq!(plain("a\n\tb é"), "a\n\tb é");
        assert_eq!(plain("a\u{1b}]0;title\u{7}b\r\u{9b}2J"), "a\\u001b]0;title\\u0007b\\r\\u009b2J");
        assert_eq!(plain("a\u{202e}b\u{2066}c\u{200f}\u{2028}"), "a\\u202eb\\u2066c\\u200f\\u2028");
        let json = serde_json::json!({"a": "x\u{202e}y\u{9b}"}).to_string();
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&plain(&json)).expect("JSON")["a"],
            "x\u{202e}y\u{9b}"
        );
    }

    #[test]
    fn colours_stay_where_they_may() {
        let coloured = "\u{1b}[1;31mred\u{1b}[0m \u{1b}[mplain";
        assert_eq!(with_colours(coloured), coloured);
        assert_eq!(with_colours("\u{1b}[2Jx\u{1b}[31"), "\\u001b[2Jx\\u001b[31");
        assert_eq!(with_colours("\u{1b}]0;t\u{7}\u{202e}"), "\\u001b]0;t\\u0007\\u202e");
    }

    #[test]
    fn workflow_commands_do_not_reach_a_runner() {
        for (text, safe) in [
            ("::stop-commands::x", ": :stop-commands::x"),
            (
                "a\n  ::add-mask::a\n::set-output name=x::y\n",
                "a\n  : :add-mask::a\n: :set-output name=x::y\n",
            ),
            ("\u{a0}\t::warning::", "\u{a0}\t: :warning::"),
            ("a ##[group]b ##[endgroup]", "a # #[group]b # #[endgroup]"),
            ("###[error]", "## #[error]"),
            ("##vso[task.setvariable]", "# #vso[task.setvariable]"),
            ("## a heading\n## [a link]", "## a heading\n## [a link]"),
            ("::1 and fd00::1/64", ": :1 and fd00::1/64"),
            ("::1\na::b::c", "::1\na::b::c"),
        ] {
            assert_eq!(without_commands(text), safe);
            assert_eq!(without_commands(safe), safe, "what is safe stays as it is");
        }
    }
}
