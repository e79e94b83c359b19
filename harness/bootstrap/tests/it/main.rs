//! The tool from outside: verdicts, findings, output, fixes, and invalid input.

mod areas;
mod cases;
mod command;
mod fixes;
mod measured;
mod nonsense;
mod orders;
mod outside;
mod rows;
mod variants;

use std::path::PathBuf;

/// The folder of manifest variants.
fn variants() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/bootstrap")
}

/// Runs `bootstrap` with arguments and standard input.
fn bootstrap(arguments: &[&str], stdin: &str) -> (u8, String, String) {
    use clap::Parser;
    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        command: bootstrap::BootstrapCommand,
    }
    let line = match Line::try_parse_from(std::iter::once("bootstrap").chain(arguments.iter().copied())) {
        Ok(line) => line,
        Err(error) => return (2, String::new(), error.to_string()),
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = bootstrap::run(&line.command, &mut stdin.as_bytes(), &mut out, &mut err);
    (code, String::from_utf8_lossy(&out).into_owned(), String::from_utf8_lossy(&err).into_owned())
}

/// The same on a variant's manifest.
fn on_variant(command: &str, name: &str, options: &[&str]) -> (u8, String, String) {
    let path = variants().join(name).join("ccm.yaml");
    let path = path.display().to_string();
    bootstrap(&[&[command, path.as_str()], options].concat(), "")
}
