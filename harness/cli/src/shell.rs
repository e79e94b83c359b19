//! Completions for shells, and manual pages.

use super::arguments::{CompletionOptions, ManOptions};
use clap::Command;
use clap_complete::env::{CompleteEnv, Shells};
use harness_core::files;
use harness_core::output;
use harness_report::exit;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// The variable with which a shell requests completions of a command line.
const ASKED: &str = "COMPLETE";

/// Prints the script with which a shell requests completions from the installed program, including its checks, suites,
/// profiles and mutants.
pub(super) fn completions(options: &CompletionOptions) -> ExitCode {
    let (name, mut text) = ("ccm-conformance", Vec::new());
    let shells = Shells::builtins();
    let written = match shells.completer(&options.shell.to_string()) {
        Some(shell) => shell.write_registration(ASKED, name, name, name, &mut text),
        None => Err(std::io::Error::other("there are no completions for this shell")),
    };
    match written {
        Ok(()) => {
            output::out(&String::from_utf8_lossy(&text));
            ExitCode::from(exit::CONFORMANT)
        }
        Err(error) => {
            output::err(&format!("error: {}: {error}", options.shell));
            ExitCode::from(exit::USAGE)
        }
    }
}

/// Answers a shell that asks for completions; whether one did.
pub(super) fn completes(command: &Command) -> bool {
    let line: Vec<OsString> = std::env::args_os().collect();
    let here = std::env::current_dir().ok();
    match CompleteEnv::with_factory(|| command.clone()).var(ASKED).try_complete(line, here.as_deref()) {
        Ok(was_asked) => was_asked,
        Err(error) => {
            // The line that is typed shows it.
            let _ = error.print();
            true
        }
    }
}

/// Writes the pages. What follows the options in a command's help keeps its lines: a program for manual pages would fill
/// them.
fn pages(command: Command, folder: &Path) -> std::io::Result<()> {
    let name = command.get_name().to_owned();
    clap_mangen::generate_to(command, folder)?;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if file.starts_with(&name) && file.ends_with(".1") {
            let text = std::fs::read_to_string(&path)?;
            std::fs::write(&path, with_lines(&text))?;
        }
    }
    Ok(())
}

/// A page whose section with examples and exit codes has a name, and lines of its own.
fn with_lines(page: &str) -> String {
    const EXTRA: &str = "\n.SH EXTRA\n";
    let Some((before, rest)) = page.split_once(EXTRA) else { return page.to_owned() };
    let (extra, after) = match rest.find("\n.SH ") {
        Some(at) => rest.split_at(at),
        None => (rest.trim_end(), "\n"),
    };
    let section = if extra.contains("Exit codes:") { "EXAMPLES AND EXIT CODES" } else { "EXAMPLES" };
    format!("{before}\n.SH \"{section}\"\n.nf\n{extra}\n.fi{after}")
}

/// Writes a manual page for the program and for each of its commands.
pub(super) fn man(options: &ManOptions, command: Command) -> ExitCode {
    let (folder, name) = (&options.out, command.get_name().to_owned());
    if folder.exists() && !folder.is_dir() {
        output::err(&format!("error: --out {}: is a file; name a folder", folder.display()));
        return ExitCode::from(exit::USAGE);
    }
    let written = std::fs::create_dir_all(folder).and_then(|()| pages(command, folder));
    match written {
        Ok(()) => {
            output::err(&format!(
                "wrote the manual pages to {0}; read them with 'man -l {0}/{1}.1'",
                folder.display(),
                name
            ));
            ExitCode::from(exit::CONFORMANT)
        }
        Err(error) => {
            output::err(&format!("error: --out {}: {}", folder.display(), files::why_not_written(&error)));
            ExitCode::from(exit::USAGE)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Cli;
    use clap::{CommandFactory, Parser};
    use clap_complete::Shell;
    use clap_complete::engine::complete;
    use harness_core::check::Party;
    use harness_testkit::{Check, Suite};

    const CHECK: Check = Check::own("SHELL-01", "a claim", "a source", |_| Box::pin(async { Ok(()) }));
    const SUITES: &[Suite] =
        &[Suite { name: "of-shells", proves: "it", judges: Party::Ccm, tables: &[&[CHECK]] }];

    /// What a shell is offered for the last of these words.
    fn offered(words: &[&str]) -> Vec<String> {
        let line = std::iter::once("ccm-conformance").chain(words.iter().copied());
        let line: Vec<OsString> = line.map(OsString::from).collect();
        let last = line.len() - 1;
        let found = complete(&mut Cli::command(), line, last, None).expect("candidates");
        found.iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn shells_are_offered_what_the_program_knows_by_name() {
        crate::arguments::know(SUITES);
        let commands = offered(&["pl"]);
        assert_eq!(commands, ["plan"]);
        assert_eq!(offered(&["run", "--only", "SHELL-0"]), ["SHELL-01"]);
        assert_eq!(offered(&["run", "--suite", "of-"]), ["of-shells"]);
        assert_eq!(offered(&["run", "--profile", "reference-h"]), ["reference-hosted"]);
        assert_eq!(offered(&["run", "--cluster", "em"]), ["embedded"]);
        assert!(offered(&["controls", "--mutant", "M-NI-0"]).contains(&"M-NI-01".to_owned()));
        assert_eq!(offered(&["explain", "SHELL"]), ["SHELL-01"]);
    }

    #[test]
    fn shells_are_offered_paths_wherever_one_can_be_given() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("acme-ccm"), "").expect("a file");
        let begun = folder.path().join("acm").display().to_string();
        let whole = folder.path().join("acme-ccm").display().to_string();
        for option in ["--profile", "--binary", "--config", "--topology", "--kubeconfig"] {
            assert_eq!(offered(&["run", option, &begun]), [whole.as_str()], "{option}");
        }
        assert_eq!(offered(&["driver", "check", "--profile", &begun]), [whole.as_str()]);
        std::fs::create_dir(folder.path().join("results")).expect("a folder");
        let results = folder.path().join("res").display().to_string();
        assert_eq!(offered(&["run", "--out", &results]).len(), 1);
    }

    #[test]
    fn every_shell_has_a_script() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            assert!(Shells::builtins().completer(&shell.to_string()).is_some(), "{shell}");
        }
    }

    /// Every command that can be typed, with its words.
    fn leaves(command: &Command, words: &[String], found: &mut Vec<(Vec<String>, Command)>) {
        let shown = command.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help");
        let inner: Vec<&Command> = shown.collect();
        if inner.is_empty() || !command.is_subcommand_required_set() {
            found.push((words.to_vec(), command.clone()));
        }
        for one in inner {
            leaves(one, &[words, &[one.get_name().to_owned()]].concat(), found);
        }
    }

    #[test]
    fn every_command_has_examples_that_it_accepts_and_its_page_shows_them() {
        let folder = tempfile::tempdir().expect("a folder");
        clap_mangen::generate_to(Cli::command(), folder.path()).expect("a folder of ours");
        let mut found = Vec::new();
        leaves(&Cli::command(), &["ccm-conformance".to_owned()], &mut found);
        assert!(found.len() > 25, "{found:?}");
        for (words, command) in found {
            let name = words.join(" ");
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let (_, examples) = help.split_once("Example").unwrap_or_else(|| panic!("{name} has no example"));
            let parts: Vec<&str> = examples.split("\\\n").map(str::trim_start).collect();
            let joined = parts.join(" ");
            let typed: Vec<&str> = joined
                .lines()
                .filter_map(|line| line.split_once("ccm-conformance "))
                .map(|(_, rest)| rest)
                .collect();
            assert!(!typed.is_empty(), "{name}: {examples}");
            for line in typed {
                // Without what the shell does with the output, and without a comment.
                let line = line.split([')', '>', '|', '&']).next().unwrap_or_default();
                let line = line.split("    ").next().unwrap_or_default();
                let parsed = Cli::try_parse_from(
                    std::iter::once("ccm-conformance".to_owned()).chain(shlex::split(line).expect("words")),
                );
                if let Err(error) = parsed {
                    panic!("{name}: {line}: {error}");
                }
            }
            let page = folder.path().join(format!("{}.1", words.join("-")));
            // Lines are not wrapped: a command that is copied has to stay one.
            for line in help.lines() {
                assert!(line.chars().count() <= 80, "{name}: more than 80 columns: {line}");
            }
            let text =
                std::fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
            assert!(text.contains("Example"), "{name}");
        }
    }

    #[test]
    fn exit_codes_keep_their_lines_in_a_page() {
        let folder = tempfile::tempdir().expect("a folder");
        pages(Cli::command(), folder.path()).expect("a folder of ours");
        let page = folder.path().join("ccm-conformance-bisect.1");
        let text = std::fs::read_to_string(page).expect("a page");
        let (_, section) = text.split_once("\n.SH \"EXAMPLES AND EXIT CODES\"\n.nf\n").expect("a section");
        assert!(section.contains("\n.fi"), "{section}");
        assert!(!text.contains(".SH EXTRA"), "{text}");
    }

    #[test]
    fn every_command_has_a_page() {
        let folder = tempfile::tempdir().expect("a folder");
        pages(Cli::command(), folder.path()).expect("a folder of ours");
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let page = folder.path().join(format!("ccm-conformance-{}.1", command.get_name()));
            assert!(page.is_file(), "{}", page.display());
        }
    }
}
