//! The project's automation. CI calls it, and so can anybody: `cargo xtask lint`, `tidy`,
//! `coverage`, `book`, `site`, `clients`, `page`, `fuzz`, `hard`, `release`, `cold-build`, `conformance`, `controls`.

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
mod site;
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
    /// Check everything that needs no run: formatting, clippy, tidy, documentation, coverage, dependencies, shell scripts.
    Lint(lint::Options),
    /// Rules of the project that no other tool knows.
    Tidy,
    /// Which rows of the contract the checks judge; fails where a MUST has neither check nor reason, or a check that binds
    /// no mutant that it has to notice.
    Coverage,
    /// The book of the documents, by mdbook, into `target/book`.
    Book(book::Options),
    /// The web site, into `target/site`: the book, and a page for each submitted report.
    Site(book::Options),
    /// The vendors' own clients, from the Python registry, against the fake cloud's dialects.
    Clients {
        /// Dialects; without any, all that have such a test.
        dialects: Vec<String>,
    },
    /// `report.html` in a real browser (Chromium).
    Page,
    /// `docs/run.svg`, the picture of a run in a terminal, from a real run.
    Picture,
    /// Arbitrary input for everything that reads what others wrote, side by side.
    Fuzz {
        /// How long, in seconds.
        #[arg(long, value_name = "N", default_value_t = 60)]
        seconds: u64,
        /// Seed of the inputs, to repeat a run; without it each run has its own.
        #[arg(long, value_name = "N")]
        seed: Option<u64>,
    },
    /// What the harness and its machine have to bear, in figures: kills, malformed inputs, secrets that a CCM prints, clouds
    /// that fail, hostile CCMs, strangers at every door.
    Hard(hard::Options),
    /// Write the assets of a release into one folder: static program, image, completions, manuals, schemas, manifests, bill of
    /// materials, checksums.
    Release(release::Options),
    /// What a build from nothing costs: processor time by crate.
    ColdBuild {
        /// The package; all it needs is built, too.
        #[arg(long, value_name = "NAME", default_value = "ccm-conformance")]
        package: String,
        /// Cargo's profile.
        #[arg(long, value_name = "NAME", default_value = "release")]
        profile: String,
    },
    /// `ccm-conformance run` with the given arguments, built for release.
    Conformance {
        /// Arguments of `ccm-conformance run`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// `ccm-conformance controls` with the given arguments, built for release.
    Controls {
        /// Arguments of `ccm-conformance controls`.
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
        Task::Release(options) => release::release(&options),
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

/// What is wrong with these arguments of `cargo xtask`.
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
