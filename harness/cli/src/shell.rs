//! Completions for shells, and manual pages.

use super::arguments::{CompletionOptions, ManOptions};
use clap::Command;
use clap_complete::env::{CompleteEnv, Shells};
use harness_core::files;
use harness_core::output;
use harness_report::exit;
use std::ffi::OsString;
use std::process::ExitCode;

/// The variable by which a shell asks this program to complete a command line.
const ASKED: &str = "COMPLETE";

/// Prints the script by which a shell asks this program for completions, so that it knows checks, suites, profiles and
/// mutants of the program that is installed.
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

/// Writes a manual page for the program and for each of its commands.
pub(super) fn man(options: &ManOptions, command: Command) -> ExitCode {
    let folder = &options.out;
    let written = std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command, folder));
    match written {
        Ok(()) => ExitCode::from(exit::CONFORMANT),
        Err(error) => {
            output::err(&format!("error: --out {}: {}", folder.display(), files::why(&error)));
            ExitCode::from(exit::USAGE)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Cli;
    use clap::CommandFactory;
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
    fn every_shell_has_a_script() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            assert!(Shells::builtins().completer(&shell.to_string()).is_some(), "{shell}");
        }
    }

    #[test]
    fn every_page_of_a_command_with_examples_shows_them() {
        let folder = tempfile::tempdir().expect("a folder");
        clap_mangen::generate_to(Cli::command(), folder.path()).expect("a folder of ours");
        for command in ["run", "plan", "list", "compare", "controls", "cluster-embedded"] {
            let page = folder.path().join(format!("ccm-conformance-{command}.1"));
            let text = std::fs::read_to_string(&page).expect("a page");
            assert!(text.contains("Example"), "{command}");
        }
    }

    #[test]
    fn every_command_has_a_page() {
        let folder = tempfile::tempdir().expect("a folder");
        clap_mangen::generate_to(Cli::command(), folder.path()).expect("a folder of ours");
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let page = folder.path().join(format!("ccm-conformance-{}.1", command.get_name()));
            assert!(page.is_file(), "{}", page.display());
        }
    }
}
