//! The command line: arguments to a plan, the stages in order, the exit code. Knows everything, decides nothing.

mod arguments;
mod bootstrap;
mod clean;
mod cluster;
mod compare;
mod controls;
mod keeper;
mod list;
mod prove;
mod replay;
mod run;
mod schema;
mod test;

use crate::cx::Suite;
use crate::report::exit;
use arguments::{BootstrapCommand, Cli, ClusterCommand, Command};
use clap::Parser;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

/// Environment variable naming the run file for `cargo test --test e2e`.
pub const CONFIG_VARIABLE: &str = "CCM_CONFORMANCE_CONFIG";

/// Environment variable that chooses the cluster where no option or run file does: `auto`, `kind`, `embedded` or
/// `existing`.
pub const CLUSTER_VARIABLE: &str = "CCM_CONFORMANCE_CLUSTER";

/// `ccm-conformance`.
pub fn main(suites: &'static [Suite]) -> ExitCode {
    start_logging();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let asked_for = !error.use_stderr();
            // Help and version go to standard output, mistakes to standard error; a closed one is no reason to fail.
            let _ = error.print();
            return ExitCode::from(if asked_for { exit::CONFORMANT } else { exit::USAGE });
        }
    };
    match cli.command {
        Command::Run(options) => run::run(suites, &options),
        Command::Plan(options) => run::plan(suites, &options),
        Command::List(options) => list::list(suites, options.output),
        Command::Explain(options) => list::explain(suites, &options.id),
        Command::Compare(options) => compare::compare(&options),
        Command::Replay(options) => replay::replay(&options),
        Command::Schema { file } => schema::print(&file),
        Command::Clean => clean::clean(),
        Command::Bootstrap(BootstrapCommand::Model(command)) => bootstrap::run(&command),
        Command::Bootstrap(BootstrapCommand::Prove(options)) => prove::prove(&options),
        Command::Cluster(ClusterCommand::Embedded(options)) => cluster::embedded(&options),
        Command::Controls(options) => controls::controls(suites, &options),
    }
}

/// `cargo test --test e2e`, and `cargo nextest run --test e2e`.
pub fn test_main(suites: &'static [Suite]) -> ExitCode {
    start_logging();
    test::main(suites)
}

/// Logs go to standard error when `RUST_LOG` asks for them.
fn start_logging() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("off"));
    let logger = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second start in one process keeps the first.
    let _ = logger.try_init();
}
