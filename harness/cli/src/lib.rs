//! The command line: it converts arguments to a plan, runs the stages in order, and determines the exit code.
//! It connects all other crates.

mod arguments;
mod bisect;
mod book;
mod bootstrap;
mod clean;
mod cluster;
mod command_line;
mod compare;
mod controls;
mod coverage;
mod dev;
mod doctor;
#[cfg(test)]
mod documents;
mod driver;
mod explain;
mod explore;
mod export;
mod image;
mod init;
mod judgeable;
mod keeper;
mod list;
mod merge;
mod plan;
mod planning;
mod private;
mod prove;
mod proxy;
mod reap;
mod repeat;
mod replay;
mod report_file;
mod run;
mod schema;
mod series;
mod shell;
mod sonobuoy;
mod submission;
mod test;
mod trend;
mod verify;
mod version;
mod versions;

pub use planning::{CLUSTER_VARIABLE, CONFIG_VARIABLE};

use arguments::{BootstrapCommand, Cli, ClusterCommand, Command, know};
use clap::CommandFactory;
use harness_clusters::images::set_own_program;
use harness_clusters::reaper;
use harness_core::output;
use harness_report::exit;
use harness_runner::use_limits;
use harness_testkit::Suite;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

/// A subcommand that is a program in its own right, with its own arguments and exit codes.
#[derive(Clone, Copy, Debug)]
pub struct SubProgram {
    /// The name of the subcommand.
    pub name: &'static str,
    /// Its description in the list of commands.
    pub about: &'static str,
    /// Whether the list of commands shows it.
    pub shown: bool,
    /// Runs it with its arguments, the command's name first.
    pub main: fn(Vec<OsString>) -> ExitCode,
}

/// `ccm-conformance`, with these programs as subcommands.
pub fn main(suites: &'static [Suite], programs: &[SubProgram]) -> ExitCode {
    let asked = std::env::args_os().nth(1);
    if let Some(program) = programs.iter().find(|program| asked.as_deref() == Some(program.name.as_ref())) {
        return (program.main)(std::env::args_os().skip(1).collect());
    }
    use_limits();
    start_logging();
    let listed = programs
        .iter()
        .map(|program| clap::Command::new(program.name).about(program.about).hide(!program.shown));
    // Once per process: clap needs it for the whole lifetime.
    let version: &'static str = version::long(suites).leak();
    let command = fitting(Cli::command()).version(version).subcommands(listed);
    know(suites);
    if shell::completes(&command) {
        return ExitCode::from(exit::CONFORMANT);
    }
    let cli = match command_line::parsed(command.clone(), std::env::args_os().collect()) {
        Ok(cli) => cli,
        Err(error) => {
            let asked_for = !error.use_stderr();
            // Help and version go to standard output, errors to standard error; a closed one is not a failure.
            if asked_for {
                let _ = error.print();
            } else {
                output::err_styled(error.render().ansi().to_string().trim_end());
                let typed: Vec<OsString> = std::env::args_os().skip(1).collect();
                sonobuoy::refuse(&typed, &error.to_string());
            }
            return ExitCode::from(if asked_for { exit::CONFORMANT } else { exit::USAGE });
        }
    };
    output::use_colours(cli.color.wanted());
    let code = obey(suites, cli.command, command);
    reaper::end();
    match output::broken().filter(|broken| !broken.unread) {
        Some(broken) => {
            output::err(&format!("error: {}", broken.why));
            ExitCode::from(exit::ENVIRONMENT)
        }
        None => code,
    }
}

/// The command, whose help fits the terminal; without any, it has the width that most have.
fn fitting(command: clap::Command) -> clap::Command {
    /// Width of help that is not shown on a terminal, in columns.
    const USUAL: usize = 80;
    let is_known =
        output::columns() > 0 || output::err_is_terminal() || std::env::var_os("COLUMNS").is_some();
    if is_known { command } else { command.term_width(USUAL) }
}

/// [`main`] with a vendor's own suites after those of the contract. Their checks run together with the
/// others, are reported separately, and have no effect on the verdict.
pub fn main_with(suites: &'static [Suite], private: &'static [Suite], programs: &[SubProgram]) -> ExitCode {
    match private::joined(suites, private) {
        Ok(all) => main(all, programs),
        Err(why) => {
            output::err(&format!("error: {why}"));
            ExitCode::from(exit::USAGE)
        }
    }
}

/// Carries out a command; `line` is the whole command line, for completions and manuals.
fn obey(suites: &'static [Suite], command: Command, line: clap::Command) -> ExitCode {
    match command {
        Command::Run(options) => run::run(suites, &options),
        Command::Dev(options) => dev::dev(suites, &options),
        Command::Plan(options) => plan::plan(suites, &options),
        Command::Init(options) => init::init(&options),
        Command::Doctor(options) => doctor::doctor(&options),
        Command::List(options) => list::list(suites, &options),
        Command::Explain(options) => explain::explain(suites, &options.ids),
        Command::Docs { page } => book::docs(page.as_deref()),
        Command::Coverage(options) => coverage::coverage(suites, options.output),
        Command::Compare(options) => compare::compare(&options),
        Command::Trend(options) => trend::trend(&options),
        Command::Bisect(options) => bisect::bisect(&options),
        Command::Export(options) => export::export(&options),
        Command::Merge(options) => merge::merge(&options),
        Command::Replay(options) => replay::replay(&options),
        Command::Verify(options) => verify::verify(&options),
        Command::Attest(options) => verify::attest(&options),
        Command::Submission(command) => submission::submission(&command),
        Command::Schema { file } => schema::print(&file),
        Command::Reap { run } => reap::reap(run),
        Command::Clean(options) => clean::clean(&options),
        Command::Bootstrap(BootstrapCommand::Model(command)) => bootstrap::run(&command),
        Command::Bootstrap(BootstrapCommand::Prove(options)) => prove::prove(&options),
        Command::Cluster(ClusterCommand::Embedded(options)) => cluster::embedded(&options),
        Command::Driver(command) => driver::driver(suites, &command),
        Command::Proxy(options) => proxy::proxy(&options),
        Command::Image(options) => image::image(&options),
        Command::Completions(options) => shell::completions(&options),
        Command::Man(options) => shell::man(&options, line),
        Command::Explore(options) => explore::explore(&options),
        Command::Controls(options) => controls::controls(suites, &options),
    }
}

/// `cargo test --test e2e`, and `cargo nextest run --test e2e`, of the package in this folder; `program` is
/// `ccm-conformance`, built together with the test.
pub fn test_main(suites: &'static [Suite], program: &Path, package: &Path) -> ExitCode {
    use_limits();
    start_logging();
    set_own_program(program);
    let code = test::main(suites, package);
    reaper::end();
    code
}

/// Writes logs to standard error if `RUST_LOG` is set.
fn start_logging() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("off"));
    let logger =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| output::Log).with_ansi(false);
    // A second start in the same process keeps the first logger.
    let _ = logger.try_init();
}
