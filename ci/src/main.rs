//! The project's automation, for CI and for developers: `cargo xtask lint`, `tidy`, `coverage`, `book`, `site`,
//! `clients`, `page`, `picture`, `fuzz`, `hard`, `tally`, `release`, `rehearse`, `cold-build`, `conformance`, `controls`.

mod book;
mod clients;
mod cold_build;
mod fuzz;
mod hard;
mod lint;
mod page;
mod picture;
mod process;
mod python;
mod release;
mod run_figures;
mod site;
mod tally;
mod tidy;

use anyhow::Result;
use clap::{Parser, Subcommand};
use process::{root, run, say};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "xtask", version, about = "The project's automation")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run all checks that need no run: formatting, clippy, tidy, documentation, coverage, dependencies,
    /// shell scripts
    Lint(lint::Options),
    /// Check rules of the project that no other tool knows
    Tidy,
    /// Show which rows of the contract have checks; fails for a MUST without a check or a reason, or a
    /// binding check without a mutant
    Coverage,
    /// Build the book of the documents with mdbook, into `target/book`
    Book(book::Options),
    /// Build the web site, into `target/site`: the book, and a page for each submitted report
    Site(book::Options),
    /// Run the vendors' own clients, from the Python registry, against the fake cloud's dialects
    Clients {
        /// Dialects [default: all that have such a test]
        dialects: Vec<String>,
    },
    /// Test `report.html` in a real browser (Chromium)
    Page,
    /// Draw `docs/run.svg`, the picture of a run in a terminal, from a real run
    Picture,
    /// Send arbitrary input to everything that reads data of others, in parallel
    Fuzz {
        /// Duration in seconds
        #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 60)]
        seconds: u64,
        /// Seed of the inputs, to repeat a run [default: a different one each time]
        #[arg(long, value_name = "N", allow_negative_numbers = true)]
        seed: Option<u64>,
    },
    /// Measure what the harness and its machine have to withstand: kills, malformed inputs, secrets that a
    /// CCM prints, clouds that fail, hostile CCMs, unauthorised access
    Hard(hard::Options),
    /// Carry out full runs of the reference CCM and count how they end; it must pass each of them
    Tally(tally::Options),
    /// Write the assets of a release into one folder: static program, image, completions, manuals, schemas,
    /// manifests, chart, packages, bill of materials, checksums
    Release(release::Options),
    /// Rehearse a release on this machine: from a tag to assets that are published, verified and used, with
    /// stand-ins for GitHub and the registry
    Rehearse(release::rehearsal::Options),
    /// Measure the cost of a build from nothing: processor time by crate
    ColdBuild {
        /// Package, which is built with all its dependencies
        #[arg(long, value_name = "NAME", default_value = "ccm-conformance")]
        package: String,
        /// Cargo profile
        #[arg(long, value_name = "NAME", default_value = "release")]
        profile: String,
    },
    /// Run `ccm-conformance run` with the given arguments, built for release
    Conformance {
        /// Arguments of `ccm-conformance run`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run `ccm-conformance controls` with the given arguments, built for release
    Controls {
        /// Arguments of `ccm-conformance controls`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

fn main() -> ExitCode {
    if let Some(code) = cold_build::as_rustc() {
        return code;
    }
    let outcome = match Cli::parse().task {
        Task::Lint(options) => lint::lint(options, accepts),
        Task::Tidy => tidy::check(&root(), accepts),
        Task::Coverage => lint::coverage(),
        Task::Book(options) => book::build(&options),
        Task::Site(options) => site::build(&options),
        Task::Clients { dialects } => clients::check(&dialects),
        Task::Page => page::check(),
        Task::Picture => picture::draw(),
        Task::Fuzz { seconds, seed } => fuzz::run(seconds, seed),
        Task::Hard(options) => hard::measure(&options),
        Task::Tally(options) => tally::tally(&options),
        Task::Release(options) => release::release(&options),
        Task::Rehearse(options) => release::rehearsal::rehearse(&options),
        Task::ColdBuild { package, profile } => cold_build::measure(&package, &profile),
        Task::Conformance { arguments } => harness("run", &arguments),
        Task::Controls { arguments } => harness("controls", &arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// The faults in these arguments of `cargo xtask`.
fn accepts(words: &[&str]) -> Result<(), String> {
    match Cli::try_parse_from(std::iter::once(&"xtask").chain(words)) {
        Err(error) if error.use_stderr() => {
            Err(error.to_string().lines().next().unwrap_or_default().to_owned())
        }
        _ => Ok(()),
    }
}

fn harness(command: &str, arguments: &[String]) -> Result<()> {
    let mut all = vec!["run", "--locked", "--release", "--package", "ccm-conformance", "--", command];
    all.extend(arguments.iter().map(String::as_str));
    run("cargo", &all, &[])
}
