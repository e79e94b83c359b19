//! What was typed after `proxy`.

use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Runs until SIGTERM or SIGINT. The first line on standard output says where it listens.

Exit codes:
  0    it was told to end
  2    wrong usage, or something is wrong with the routes
  3    nobody answers at the upstream's URL, or not with a certificate that is accepted; an address is in use

Example: ccm-conformance proxy --listen 127.0.0.1:8080 --upstream https://api.example --routes routes.yaml --journal calls.jsonl";

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct ProxyOptions {
    /// Where it listens; port 0 takes any free one. May be repeated with a name before each: calls are journalled by the name
    /// of the port that they come in by.
    #[arg(long, value_name = "[NAME=]ADDRESS:PORT", required = true, value_parser = port)]
    pub(crate) listen: Vec<(Option<String>, SocketAddr)>,
    /// URL of the cloud, http or https.
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: String,
    /// Certificates in PEM by which the cloud is known, beside those that this machine trusts.
    #[arg(long, value_name = "FILE")]
    pub(crate) upstream_ca: Option<PathBuf>,
    /// What the calls of the cloud's API mean; `schema routes` says what it may hold. Without it every call is unknown.
    #[arg(long, value_name = "FILE")]
    pub(crate) routes: Option<PathBuf>,
    /// Where the journal goes, a line of JSON for each call that has ended; without it to standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,
    /// Speak TLS, and write the CA by which callers know the proxy to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_ca_out: Option<PathBuf>,
    /// A further name by which callers know it; may be repeated.
    #[arg(long, value_name = "NAME", requires = "tls_ca_out")]
    pub(crate) tls_name: Vec<String>,
    /// Where its driver API listens, by which faults and barriers are ordered and the journal is read.
    #[arg(long, value_name = "ADDRESS:PORT", requires = "driver_token_file")]
    pub(crate) driver_listen: Option<SocketAddr>,
    /// The file that holds the driver API's token.
    #[arg(long, value_name = "FILE", requires = "driver_listen")]
    pub(crate) driver_token_file: Option<PathBuf>,
}

fn port(text: &str) -> Result<(Option<String>, SocketAddr), String> {
    let (name, address) = match text.split_once('=') {
        Some((name, address)) if !name.is_empty() => (Some(name.to_owned()), address),
        Some(_) => return Err("the name before '=' is empty".to_owned()),
        None => (None, text),
    };
    let address =
        address.parse().map_err(|_| "not of the form [NAME=]ADDRESS:PORT, e.g. 127.0.0.1:8080".to_owned())?;
    Ok((name, address))
}
