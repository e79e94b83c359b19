//! Completions for shells, and manual pages.

use super::arguments::{CompletionOptions, ManOptions};
use clap::Command;
use harness_core::check::chain;
use harness_core::output;
use harness_report::exit;
use std::process::ExitCode;

/// Prints the completions of a shell.
pub(super) fn completions(options: &CompletionOptions, mut command: Command) -> ExitCode {
    let mut text = Vec::new();
    let name = command.get_name().to_owned();
    clap_complete::generate(options.shell, &mut command, name, &mut text);
    output::out(&String::from_utf8_lossy(&text));
    ExitCode::from(exit::CONFORMANT)
}

/// Writes a manual page for the program and for each of its commands.
pub(super) fn man(options: &ManOptions, command: Command) -> ExitCode {
    let folder = &options.out;
    let written = std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command, folder));
    match written {
        Ok(()) => ExitCode::from(exit::CONFORMANT),
        Err(error) => {
            output::err(&format!("error: manual pages in {}: {}", folder.display(), chain(&error)));
            ExitCode::from(exit::USAGE)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::arguments::Cli;
    use clap::CommandFactory;
    use clap_complete::Shell;

    #[test]
    fn every_shell_learns_every_command() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "ccm-conformance", &mut text);
            let text = String::from_utf8(text).expect("a script is text");
            for command in Cli::command().get_subcommands() {
                assert!(text.contains(command.get_name()), "{shell}: {}", command.get_name());
            }
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
