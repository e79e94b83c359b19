//! The arguments of `driver`.

use super::complete::profiles;
use super::examples::OPENAPI_EXAMPLES;
use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;
use std::path::{Path, PathBuf};

#[derive(Debug, Subcommand)]
pub(crate) enum DriverCommand {
    /// Test a driver against the protocol, and show which checks it lacks something for
    #[command(after_help = EXIT_CODES, override_usage = CHECK_USAGE)]
    Check(DriverOptions),
    /// Print the driver protocol as an OpenAPI document
    #[command(after_help = OPENAPI_EXAMPLES)]
    Openapi,
}

/// One line for each way to name a driver: in one line they are wider than a terminal.
const CHECK_USAGE: &str = "\
ccm-conformance driver check [OPTIONS] --token-file <FILE> <URL>
       ccm-conformance driver check [OPTIONS] --command <LINE>...
       ccm-conformance driver check [OPTIONS] --image <REFERENCE>
       ccm-conformance driver check [OPTIONS] --profile <NAME|PATH>";

const EXIT_CODES: &str = "\
Exit codes:
  0    every promise was kept
  1    one was broken
  2    wrong usage; nothing was started
  3    the driver does not start, does not answer, or does not speak the
       protocol

Example:
  ccm-conformance driver check --command python3 driver.py \\
    --listen '${DRIVER_LISTEN}' --token-file '${DRIVER_TOKEN_FILE}'";

/// Checks that what was typed is not the folder of a profile.
fn url(text: &str) -> Result<String, String> {
    let path = Path::new(text);
    if path.join("profile.yaml").is_file() {
        let here = if text.contains('/') { "" } else { "./" };
        return Err(format!("it is the folder of a profile; did you mean '--profile {here}{text}'?"));
    }
    if path.exists() {
        return Err("it is a path, not the URL of a driver; '--command' starts a program".to_owned());
    }
    Ok(text.to_owned())
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("which").required(true).args(["url", "command", "image", "profile"])))]
pub(crate) struct DriverOptions {
    /// URL of a running driver: http://HOST:PORT
    #[arg(value_name = "URL", requires = "token_file", value_parser = url)]
    pub(crate) url: Option<String>,
    /// File with its token
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "image"])]
    pub(crate) token_file: Option<PathBuf>,
    /// Driver to start: program and arguments, to the end of the line; ${DRIVER_LISTEN} is the address to
    /// listen on, ${DRIVER_TOKEN_FILE} the file with its token
    #[arg(long, value_name = "LINE", num_args = 1.., allow_hyphen_values = true)]
    pub(crate) command: Vec<String>,
    /// Image of a driver to start in a container, on this machine's own network
    #[arg(long, value_name = "REFERENCE")]
    pub(crate) image: Option<String>,
    /// Arguments for the entry point of the image, to the end of the line [default: --listen
    /// '${DRIVER_LISTEN}' --token-file '${DRIVER_TOKEN_FILE}']
    #[arg(long, value_name = "LINE", num_args = 1.., allow_hyphen_values = true, requires = "image")]
    pub(crate) arguments: Vec<String>,
    /// Profile with the driver to check, including its proxy and routes; counts the checks that apply to its CCM
    #[arg(long, value_name = "NAME|PATH", add = ArgValueCompleter::new(profiles))]
    pub(crate) profile: Option<String>,
    /// Put a recording proxy with these routes in front of the cloud, like 'cloud.proxy.routes' in a profile
    #[arg(long, value_name = "FILE", conflicts_with = "profile")]
    pub(crate) routes: Option<PathBuf>,
    /// URL of the cloud API behind that proxy [default: the driver's endpoint]
    #[arg(long, value_name = "URL", requires = "routes")]
    pub(crate) upstream: Option<String>,
}
