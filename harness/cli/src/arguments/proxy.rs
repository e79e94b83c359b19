//! The arguments of `proxy`.

use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Runs until SIGTERM or SIGINT. The first line on standard output names the
addresses on which it listens.

Exit codes:
  0    it was stopped by a signal
  2    wrong usage, or an error in the routes
  3    the upstream does not answer, or has no accepted certificate; an address
       is in use

Example:
  ccm-conformance proxy --listen 127.0.0.1:8080 --routes routes.yaml \\
    --upstream https://api.example --journal calls.jsonl";

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct ProxyOptions {
    /// Address to listen on; port 0 takes any free one; may be repeated as NAME=ADDRESS:PORT, and the journal
    /// then names each call's port
    #[arg(long, value_name = "[NAME=]ADDRESS:PORT", required = true, value_parser = port)]
    pub(crate) listen: Vec<(Option<String>, SocketAddr)>,
    /// URL of the cloud, http or https
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: String,
    /// PEM certificates to verify the cloud, in addition to those that this machine trusts
    #[arg(long, value_name = "FILE")]
    pub(crate) upstream_ca: Option<PathBuf>,
    /// File with the meaning of the API's calls (see `schema routes`); without it every call is unknown
    #[arg(long, value_name = "FILE")]
    pub(crate) routes: Option<PathBuf>,
    /// File for the journal, one JSON line for each completed call [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,
    /// Use TLS, and write the CA that callers have to trust to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_ca_out: Option<PathBuf>,
    /// Additional host name that callers use; may be repeated
    #[arg(long, value_name = "NAME", requires = "tls_ca_out")]
    pub(crate) tls_name: Vec<String>,
    /// Address of its driver API, which activates faults and barriers and serves the journal
    #[arg(long, value_name = "ADDRESS:PORT", requires = "driver_token_file")]
    pub(crate) driver_listen: Option<SocketAddr>,
    /// File with the driver API's token
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
