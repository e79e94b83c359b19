//! Parses the command line. What is wrong with it is named as it was typed.

use super::arguments::Cli;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, FromArgMatches};
use harness_config::nearest;
use std::ffi::{OsStr, OsString};

/// The command of a line, whose first word is the program.
///
/// # Errors
/// It is not a command line of this program, or it asks for help or the version.
pub(super) fn parsed(command: Command, line: Vec<OsString>) -> Result<Cli, clap::Error> {
    let mut command = with_negative_numbers(command);
    let parsed = command.try_get_matches_from_mut(&line);
    let matches =
        parsed.map_err(|error| with_a_tip(of_a_renamed_option(in_our_words(error, &line)), &command))?;
    match empty_value(&command, &matches) {
        Some(option) => Err(is_empty(&option, &[])),
        None => Cli::from_arg_matches(&matches),
    }
}

/// The command, whose options take `-1` for a value rather than for an unknown option, so that the error is about the number.
fn with_negative_numbers(command: Command) -> Command {
    let takes = |option: clap::Arg| {
        let is_option = option.get_long().is_some() && option.get_action().takes_values();
        if is_option { option.allow_negative_numbers(true) } else { option }
    };
    command.mut_args(takes).mut_subcommands(with_negative_numbers)
}

/// The first option or argument with a value that was typed and is empty. No value of this program can be empty, and an
/// empty one is usually a variable of the shell that is not set.
fn empty_value(command: &Command, matches: &ArgMatches) -> Option<String> {
    // What follows `--` is for another command line.
    let options = command.get_arguments().filter(|one| !one.is_last_set() && one.get_action().takes_values());
    for option in options {
        let id = option.get_id().as_str();
        let is_typed = matches.value_source(id) == Some(ValueSource::CommandLine);
        // The line of another program may have empty words, but not an empty program.
        let counted = if option.is_allow_hyphen_values_set() { 1 } else { usize::MAX };
        let values = matches.get_raw(id).filter(|_| is_typed);
        if values.is_some_and(|values| values.take(counted).any(OsStr::is_empty)) {
            return Some(option.to_string());
        }
    }
    let (name, matches) = matches.subcommand()?;
    empty_value(command.find_subcommand(name)?, matches)
}

fn is_empty(option: &str, possible: &[String]) -> clap::Error {
    let possible = match possible {
        [] => String::new(),
        possible => format!("\n  [possible values: {}]", possible.join(", ")),
    };
    let text = format!("the value of '{option}' is empty{possible}\n\nFor more information, try '--help'.\n");
    clap::Error::raw(ErrorKind::InvalidValue, text)
}

/// The error of clap, which calls an empty value one that is absent, or repeats it between quotes.
fn in_our_words(error: clap::Error, line: &[OsString]) -> clap::Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let has_empty = line.iter().any(|word| {
        let word = word.to_string_lossy();
        word.is_empty() || word.ends_with(['=', ',']) || word.contains("=,") || word.contains(",,")
    });
    let possible = match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(possible)) => possible.as_slice(),
        _ => &[],
    };
    match (text(ContextKind::InvalidArg), text(ContextKind::InvalidValue)) {
        (Some(option), Some("")) if has_empty => is_empty(option, possible),
        _ => error,
    }
}

/// Options that had another name: the old name and the new one.
const RENAMED: [(&str, &str); 1] = [("--stranger", "--variant")];

/// The error of an option that has another name now.
fn of_a_renamed_option(mut error: clap::Error) -> clap::Error {
    let new = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(typed)) => RENAMED.iter().find(|(old, _)| typed.starts_with(old)),
        _ => None,
    };
    if let Some((_, new)) = new.filter(|_| error.kind() == ErrorKind::UnknownArgument) {
        error.insert(ContextKind::SuggestedArg, ContextValue::String((*new).to_owned()));
    }
    error
}

/// The error of an unknown command, with those that were perhaps meant: a command of a command, or one with a similar name.
fn with_a_tip(mut error: clap::Error, command: &Command) -> clap::Error {
    let unknown = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(unknown)) => unknown.clone(),
        _ => return error,
    };
    let shown = |one: &&Command| !one.is_hide_set() && one.get_name() != "help";
    let outer: Vec<&Command> = command.get_subcommands().filter(shown).collect();
    let inner =
        outer.iter().flat_map(|one| one.get_subcommands().filter(shown).map(move |inner| (one, inner)));
    let inner = inner.filter(|(_, inner)| inner.get_name() == unknown);
    let mut meant: Vec<String> =
        inner.map(|(outer, inner)| format!("{} {}", outer.get_name(), inner.get_name())).collect();
    if outer.iter().any(|one| one.get_name() == unknown) {
        meant.push(format!("ccm-conformance {unknown}"));
    }
    if meant.is_empty() && error.get(ContextKind::SuggestedSubcommand).is_none() {
        meant.extend(nearest(&unknown, outer.iter().map(|one| one.get_name())));
    }
    if !meant.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(meant));
    }
    error
}

/// The command that repeats a run, from the words after the program's name.
pub(super) fn reproduce(command: &[String]) -> String {
    let quoted = shlex::try_join(command.iter().map(String::as_str)).unwrap_or_else(|_| command.join(" "));
    format!("ccm-conformance {quoted}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

    /// What a command, or one of its options, needs next to the empty value.
    const NEEDED: &[(&str, &[&str])] = &[
        ("attest", &["report.yaml"]),
        ("bisect", &["--good=a", "--build=b", "--binary=c", "--check=d"]),
        ("bootstrap check", &["ccm.yaml"]),
        ("bootstrap fix", &["ccm.yaml"]),
        ("cluster embedded", &["--kubeconfig=kc"]),
        ("driver check [URL]", &["--token-file=f"]),
        ("driver check --arguments", &["--image=x"]),
        ("driver check --upstream", &["--image=x", "--routes=r.yaml"]),
        ("image", &["--out=x.tar"]),
        ("init", &["--manifests=x", "--helm=x", "--workload=x/x"]),
        ("dev", &["--build=x", "--shard=1/2"]),
        ("plan", &["--shard=1/2"]),
        ("proxy", &["--listen=127.0.0.1:0", "--upstream=http://localhost", "--tls-ca-out=x"]),
        ("run", &["--shard=1/2"]),
        ("submission pack", &["report.yaml", "--vendor=v", "--product=p", "--product-version=1"]),
    ];

    fn refusal(words: &[String]) -> String {
        let line = std::iter::once("ccm-conformance".into()).chain(words.iter().map(Into::into));
        parsed(Cli::command(), line.collect()).expect_err("an empty value").to_string()
    }

    /// Every option and argument of a command and its subcommands, each with an empty value.
    fn with_empty_values(command: &Command, words: &[String], found: &mut Vec<(String, Vec<String>)>) {
        let command_name = words.join(" ");
        for option in command.get_arguments().filter(|one| one.get_action().takes_values()) {
            let place = option.get_index().unwrap_or(1);
            let (name, empty) = match option.get_long() {
                Some(long) => (format!("--{long}"), vec![format!("--{long}=")]),
                // The arguments before it are not empty.
                None => (option.to_string(), [vec!["x".to_owned(); place - 1], vec![String::new()]].concat()),
            };
            let needed = NEEDED
                .iter()
                .find(|(of, _)| *of == format!("{command_name} {name}"))
                .or_else(|| NEEDED.iter().find(|(of, _)| *of == command_name));
            let is_other = |word: &&&str| match option.get_long() {
                Some(_) => word.split('=').next() != Some(name.as_str()),
                None => word.starts_with("--"),
            };
            let more = needed.iter().flat_map(|(_, needed)| needed.iter()).filter(is_other);
            let more: Vec<String> = more.map(|word| (*word).to_owned()).collect();
            if !option.is_last_set() {
                found.push((option.to_string(), [words, &empty, &more].concat()));
            }
        }
        for inner in command.get_subcommands().filter(|one| one.get_name() != "help") {
            with_empty_values(inner, &[words, &[inner.get_name().to_owned()]].concat(), found);
        }
    }

    #[test]
    fn an_empty_value_is_named_with_its_option() {
        let mut command = Cli::command();
        command.build();
        let mut found = Vec::new();
        with_empty_values(&command, &[], &mut found);
        assert!(found.len() > 120, "{}", found.len());
        let wrong: Vec<String> = found
            .into_iter()
            .filter_map(|(option, line)| {
                let said = refusal(&line);
                let expected = format!("error: the value of '{option}' is empty\n");
                (!said.starts_with(&expected)).then(|| format!("{line:?}: {said}"))
            })
            .collect();
        assert_eq!(wrong, [""; 0], "{}", wrong.join("\n"));
    }

    #[test]
    fn an_option_that_was_renamed_is_named() {
        for (old, new) in RENAMED {
            let said = refusal(&["controls".to_owned(), old.to_owned(), "S-REPEATS".to_owned()]);
            assert!(said.contains(&format!("a similar argument exists: '{new}'")), "{said}");
        }
    }

    #[test]
    fn a_command_that_was_perhaps_meant_is_named() {
        let of = |words: &[&str]| refusal(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert!(
            of(&["site"]).contains("a similar subcommand exists: 'submission site'"),
            "{}",
            of(&["site"])
        );
        let known = of(&["bootstrap", "explain"]);
        assert!(known.contains("a similar subcommand exists: 'ccm-conformance explain'"), "{known}");
        assert!(of(&["rnu"]).contains("exists: 'run'"), "{}", of(&["rnu"]));
        assert!(of(&["check"]).contains("'bootstrap check'"), "{}", of(&["check"]));
        assert!(!of(&["frobnicate"]).contains("similar"), "{}", of(&["frobnicate"]));
    }

    #[test]
    fn a_value_that_is_not_a_number_is_refused_in_words() {
        let said = |line: &str| {
            let words = shlex::split(line).expect("words").into_iter().map(OsString::from);
            let refused = parsed(Cli::command(), std::iter::once("x".into()).chain(words).collect());
            let text = refused.err().map(|error| error.to_string()).unwrap_or_default();
            text.lines().next().unwrap_or_default().to_owned()
        };
        for (line, value, option, range) in [
            ("plan --seed -1", "-1", "--seed <NUMBER>", "0 to 4294967295"),
            ("plan --seed=-1", "-1", "--seed <NUMBER>", "0 to 4294967295"),
            ("explore --seed -1", "-1", "--seed <NUMBER>", "0 on"),
            ("explore --random 100000000", "100000000", "--random <N>", "0 to 10000"),
            ("run --jobs x", "x", "--jobs <N>", "1 to 256"),
            ("run --jobs 0", "0", "--jobs <N>", "1 to 256"),
            ("run --repeat 1.5", "1.5", "--repeat <N>", "1 to 1000"),
            ("run --jobs 99999999999", "99999999999", "--jobs <N>", "1 to 256"),
            ("controls --side-by-side 0", "0", "--side-by-side <N>", "1 to 64"),
        ] {
            let why = format!("expected a whole number from {range}");
            assert_eq!(said(line), format!("error: invalid value '{value}' for '{option}': {why}"), "{line}");
        }
        assert_eq!(said("run --only -1"), "", "it is a pattern of ids like any other");
    }

    #[test]
    fn a_value_that_is_absent_is_not_called_empty() {
        let words = |line: &str| shlex::split(line).expect("words");
        assert!(refusal(&words("run --config")).contains("'--config <FILE>' but none was supplied"));
        for line in ["run --only A,,B", "run --only A,", "run --only ''", "run --only '' --suite x"] {
            let said = refusal(&words(line));
            assert!(said.starts_with("error: the value of '--only <ID>' is empty\n"), "{line}: {said}");
        }
        let said = refusal(&words("run --cluster ''"));
        assert!(said.contains("'--cluster <KIND>' is empty\n  [possible values: auto, kind, "), "{said}");
        // What follows is for another command line.
        let line = "ccm-conformance bisect --good a --build b --binary c --check d -- --provider-id ''";
        let line = words(line).into_iter().map(OsString::from).collect();
        assert!(parsed(Cli::command(), line).is_ok());
        assert!(Cli::try_parse_from(["ccm-conformance", "doctor"]).is_ok());
    }
}
