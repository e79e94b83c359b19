//! `driver`, and what it is asked.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum DriverCommand {
    /// Does a driver what it says it can? Tries every promise of the protocol, and says which checks it lacks something for.
    #[command(after_help = EXIT_CODES)]
    Check(DriverOptions),
    /// Print the driver protocol as an OpenAPI document.
    Openapi,
}

const EXIT_CODES: &str = "\
Exit codes:
  0    every promise was kept
  1    one was broken
  2    wrong usage; nothing was started
  3    the driver does not start or does not answer, or what it answers is not a driver's

Example: ccm-conformance driver check --command python3 driver.py --listen '${DRIVER_LISTEN}' --token-file '${DRIVER_TOKEN_FILE}'";

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("which").required(true).args(["url", "command", "image", "profile"])))]
pub(crate) struct DriverOptions {
    /// Where a driver listens that runs already: http://HOST:PORT.
    #[arg(value_name = "URL", requires = "token_file")]
    pub(crate) url: Option<String>,
    /// The file that holds its token.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "image"])]
    pub(crate) token_file: Option<PathBuf>,
    /// A driver to start: program and arguments, to the end of the line. ${DRIVER_LISTEN} is where it is to listen,
    /// ${DRIVER_TOKEN_FILE} the file that holds its token.
    #[arg(long, value_name = "LINE", num_args = 1.., allow_hyphen_values = true)]
    pub(crate) command: Vec<String>,
    /// A driver to start in a container of this image, on this machine's own network.
    #[arg(long, value_name = "REFERENCE")]
    pub(crate) image: Option<String>,
    /// What the image's entry point is told, to the end of the line; without it --listen '${DRIVER_LISTEN}' --token-file
    /// '${DRIVER_TOKEN_FILE}'.
    #[arg(long, value_name = "LINE", num_args = 1.., allow_hyphen_values = true, requires = "image")]
    pub(crate) arguments: Vec<String>,
    /// The profile whose driver to check, with its proxy and routes; counts the checks that apply to its CCM.
    #[arg(long, value_name = "DIR")]
    pub(crate) profile: Option<String>,
    /// Put a recording proxy with these routes in front of the cloud, as 'cloud.proxy.routes' in a profile does.
    #[arg(long, value_name = "FILE", conflicts_with = "profile")]
    pub(crate) routes: Option<PathBuf>,
    /// URL of the cloud API behind that proxy [default: the driver's endpoint]
    #[arg(long, value_name = "URL", requires = "routes")]
    pub(crate) upstream: Option<String>,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum InitCommand {
    /// Write a driver to begin with: a small simulator that passes `driver check`, and a profile that runs against it.
    Cloud(InitCloudOptions),
}

/// What a driver can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Language {
    /// Python 3.10 or later and its standard library, nothing else.
    Python,
    /// Rust: a project of its own, with axum, tokio and serde_json.
    Rust,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct InitCloudOptions {
    /// The cloud's name; the folder is called so.
    pub(crate) name: String,
    /// What the driver is written in.
    #[arg(long, value_enum, default_value = "python")]
    pub(crate) driver: Language,
    /// The folder to write, which is not there yet; without it the cloud's name.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}
