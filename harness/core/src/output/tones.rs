//! Colours of words, and lines that fit into a terminal's window.

use super::harmless::{plain, with_colours};
use anstyle::{AnsiColor, Style};
use textwrap::{Options, WordSplitter, wrap};

/// How a word is shown where colours are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// As it is.
    #[default]
    Plain,
    /// A success.
    Good,
    /// A failure.
    Bad,
    /// Neither a success nor a failure of the CCM.
    Odd,
    /// A detail.
    Faint,
}

impl Tone {
    fn style(self) -> Style {
        match self {
            Tone::Plain => Style::new(),
            Tone::Good => AnsiColor::Green.on_default(),
            Tone::Bad => AnsiColor::Red.on_default().bold(),
            Tone::Odd => AnsiColor::Yellow.on_default(),
            Tone::Faint => Style::new().dimmed(),
        }
    }

    /// A text with this tone's colour. What it is written to removes the colour if it takes none.
    pub fn paint(self, text: &str) -> String {
        let style = self.style();
        format!("{style}{text}{style:#}")
    }
}

/// A text without its colours.
pub fn unstyled(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// A text that is safe to show, with its colours if they are wanted.
pub(super) fn styled(text: &str, takes_colours: bool) -> String {
    if takes_colours { with_colours(text).into_owned() } else { plain(&unstyled(text)).into_owned() }
}

/// Windows that are narrower than this get the text as it is.
const NARROWEST: usize = 40;

/// The program, as commands for the user begin.
const COMMAND: &str = "ccm-conformance ";

/// A text whose lines fit into a window of so many columns, if they can be broken at blanks. What continues a line is
/// indented: below the last column of a table, or below the text behind a label. A line that is a command stays one for a
/// shell into which it is pasted.
pub(super) fn wrapped(text: &str, columns: usize) -> String {
    if columns < NARROWEST {
        return text.to_owned();
    }
    let mut lines = Vec::new();
    for line in text.split('\n') {
        if textwrap::core::display_width(line) <= columns {
            lines.push(line.to_owned());
            continue;
        }
        let indent = " ".repeat(hanging(&unstyled(line), columns));
        if line.trim_start().starts_with(COMMAND) {
            lines.extend(wrapped_command(line, columns));
            continue;
        }
        let options = Options::new(columns)
            .subsequent_indent(&indent)
            .word_splitter(WordSplitter::NoHyphenation)
            .break_words(false);
        lines.extend(wrap(line, options).into_iter().map(|part| part.into_owned()));
    }
    lines.join("\n")
}

/// The lines of a command; all but the last end with a backslash. A comment behind it is moved before it.
fn wrapped_command(line: &str, columns: usize) -> Vec<String> {
    const CONTINUED: &str = " \\";
    let indent = line.len() - line.trim_start().len();
    if let Some((command, comment)) = line.split_once("  # ") {
        let start = format!("{}# ", " ".repeat(indent));
        let options = Options::new(columns).initial_indent(&start).subsequent_indent(&start);
        let comment = wrap(comment, options.word_splitter(WordSplitter::NoHyphenation)).into_iter();
        let command = wrapped_command(command.trim_end(), columns);
        return comment.map(|part| part.into_owned()).chain(command).collect();
    }
    let more = " ".repeat(indent + 2);
    let options = Options::new(columns - CONTINUED.len())
        .subsequent_indent(&more)
        .word_splitter(WordSplitter::NoHyphenation)
        .break_words(false);
    let parts = wrap(line, options);
    let last = parts.len() - 1;
    let shown = |(at, part): (usize, &std::borrow::Cow<'_, str>)| {
        if at == last { part.to_string() } else { format!("{part}{CONTINUED}") }
    };
    parts.iter().enumerate().map(shown).collect()
}

/// How far the continuation of a line is indented.
fn hanging(line: &str, columns: usize) -> usize {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let mut column = indent + 2;
    let (mut blanks, mut at) = (0, 0);
    for sign in line.chars().skip(indent) {
        if sign != ' ' && blanks >= 2 {
            column = indent + at;
        }
        blanks = if sign == ' ' { blanks + 1 } else { 0 };
        at += 1;
        if indent + at > columns / 2 {
            break;
        }
    }
    // The lines of a list of calls begin in the column of the first one, so what continues a call is behind it.
    if line.chars().nth(column) == Some('#') {
        column += 2;
    }
    column.min(columns / 2).max(indent.min(columns * 2 / 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_into_the_window_and_wrap_below_their_text() {
        let text = "short\nexpected:  one two three four five six seven eight nine ten\n  A-01    MUST    a reason \
                    of many words that does not fit into one line";
        let expected = "short\nexpected:  one two three four five six\n           seven eight nine ten\n  A-01    \
                        MUST    a reason of many words\n                  that does not fit into\n                  \
                        one line";
        assert_eq!(wrapped(text, 40), expected);
        assert_eq!(wrapped(text, 39), text, "so narrow a window is not worth the effort");
        let calls = "cloud:     #1 0.1s a: GET /v1/load-balancers -> 200";
        assert_eq!(wrapped(calls, 40), "cloud:     #1 0.1s a: GET\n             /v1/load-balancers -> 200");
        let log = format!("{}its log: no such flag", " ".repeat(22));
        assert_eq!(wrapped(&log, 40), format!("{}its log: no such\n{}flag", " ".repeat(22), " ".repeat(22)));
        let path = format!("wrote {}", "x".repeat(60));
        assert!(wrapped(&path, 40).contains(&"x".repeat(60)), "what has no blanks can still be copied");
        assert_eq!(wrapped("", 80), "");
    }

    #[test]
    fn a_comment_is_not_continued_by_a_backslash() {
        let line = "  ccm-conformance run --profile ./acme    # tests the reference CCM with this driver";
        let lines =
            ["  # tests the reference CCM with this", "  # driver", "  ccm-conformance run --profile ./acme"];
        assert_eq!(wrapped(line, 40), lines.join("\n"));
    }

    #[test]
    fn a_command_can_be_pasted_although_it_is_wrapped() {
        let line = "  ccm-conformance run --profile ./acme --cluster embedded --binary ./acme-ccm";
        let text = wrapped(line, 40);
        assert_eq!(
            text,
            "  ccm-conformance run --profile ./acme \\\n    --cluster embedded --binary \\\n    ./acme-ccm"
        );
        assert!(text.lines().all(|line| line.len() <= 40), "{text}");
        let joined: Vec<&str> = text.split(" \\\n").map(str::trim).collect();
        assert_eq!(joined.join(" "), line.trim());
    }

    #[test]
    fn colours_are_kept_where_they_are_wanted_and_foreign_sequences_never() {
        let text = format!("{}\u{1b}]0;title\u{7}", Tone::Good.paint("PASS"));
        let kept = styled(&text, true);
        assert!(kept.starts_with("\u{1b}[32mPASS\u{1b}[0m") && !kept.contains("\u{1b}]"), "{kept:?}");
        assert!(!styled(&text, false).contains('\u{1b}'), "{:?}", styled(&text, false));
        assert_eq!(Tone::Plain.paint("a"), "a");
    }
}
