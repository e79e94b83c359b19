//! Command line, environment and files of the command. Tokens come from files or the environment, because
//! every user of the machine can read a command line.

use crate::server::{Config, Unknown};
use clap::{Parser, Subcommand};
use fake_cloud_dialects as dialects;
use fake_cloud_driver::Credential;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::{env, fmt, fs, io};

const DRIVER_TOKEN: &str = "FAKE_CLOUD_DRIVER_TOKEN";
const CREDENTIALS: &str = "FAKE_CLOUD_CREDENTIALS";

/// A cloud in memory, for testing cloud controller managers
#[derive(Debug, Parser)]
#[command(name = "fake-cloud", version, about)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the cloud until SIGTERM or SIGINT; prints one line of JSON when it is ready
    Serve(Serve),
    /// Do nothing until SIGTERM or SIGINT
    Idle,
}

#[derive(clap::Args, Debug)]
pub(crate) struct Serve {
    /// Dialect: the API that it speaks
    #[arg(long, default_value = "native", value_parser = dialect_names())]
    pub(crate) dialect: String,
    /// Address of the cloud API; port 0 takes any free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Address of the driver API; port 0 takes any free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8081")]
    driver_listen: SocketAddr,
    /// Address of the metadata service, in dialects that have one; port 0 takes any free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8082")]
    metadata_listen: SocketAddr,
    /// File with the driver API's token [default: the variable FAKE_CLOUD_DRIVER_TOKEN]
    #[arg(long, value_name = "FILE")]
    driver_token_file: Option<PathBuf>,
    /// File with credentials, one NAME=TOKEN per line; the variable FAKE_CLOUD_CREDENTIALS (lines or commas)
    /// and the driver API can add more
    #[arg(long, value_name = "FILE")]
    credentials_file: Option<PathBuf>,
    /// A credential, for experiments: every user of the machine can read it; may be repeated
    #[arg(long = "credential", value_name = "NAME=TOKEN")]
    credentials: Vec<Given>,
    /// Carry out the known part of calls that the dialect does not fully know, instead of rejecting them with 501
    #[arg(long)]
    lenient: bool,
}

fn dialect_names() -> clap::builder::PossibleValuesParser {
    let names =
        dialects::ALL.iter().map(|kind| clap::builder::PossibleValue::new(kind.name).help(kind.title));
    clap::builder::PossibleValuesParser::new(names)
}

/// The fault in the command line, the environment or the files that it names. Never contains a token.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Usage {
    /// The driver token was not set.
    #[error("no driver token: name a file with --driver-token-file or set {DRIVER_TOKEN}")]
    NoDriverToken,
    /// A file cannot be read.
    #[error("cannot read {path}")]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A variable of the environment is not valid text.
    #[error("{0} is not valid Unicode")]
    Variable(&'static str),
    /// A credential does not have the right form.
    #[error("{place}: not of the form NAME=TOKEN")]
    Credential {
        /// The place of the credential.
        place: String,
    },
}

/// A credential as it was given, valid or not; never shown.
#[derive(Clone)]
struct Given(String);

impl From<&str> for Given {
    fn from(text: &str) -> Given {
        Given(text.to_owned())
    }
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

impl Serve {
    /// The configuration of the cloud.
    pub(crate) fn config(self) -> Result<Config, Usage> {
        let driver_token = match &self.driver_token_file {
            Some(path) => read(path)?.trim().to_owned(),
            None => variable(DRIVER_TOKEN)?.ok_or(Usage::NoDriverToken)?,
        };
        let given: Vec<&str> = self.credentials.iter().map(|Given(text)| text.as_str()).collect();
        let mut credentials =
            parse_lines(&given.join("\n"), |number| format!("--credential number {number}"))?;
        if let Some(path) = &self.credentials_file {
            let place = |line: usize| format!("{}, line {line}", path.display());
            credentials.extend(parse_lines(&read(path)?, place)?);
        }
        if let Some(text) = variable(CREDENTIALS)? {
            let place = |entry: usize| format!("{CREDENTIALS}, entry {entry}");
            credentials.extend(parse_lines(&text.replace(',', "\n"), place)?);
        }
        Ok(Config {
            dialect: self.dialect,
            listen: self.listen,
            driver_listen: self.driver_listen,
            metadata_listen: self.metadata_listen,
            driver_token: Some(driver_token),
            credentials,
            unknown: if self.lenient { Unknown::PassedOver } else { Unknown::Refused },
        })
    }
}

fn read(path: &Path) -> Result<String, Usage> {
    fs::read_to_string(path).map_err(|source| Usage::File { path: path.to_owned(), source })
}

fn variable(name: &'static str) -> Result<Option<String>, Usage> {
    match env::var(name) {
        Ok(text) => Ok(Some(text)),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => Err(Usage::Variable(name)),
    }
}

/// Skips empty lines and lines that begin with #.
fn parse_lines(text: &str, place: impl Fn(usize) -> String) -> Result<Vec<Credential>, Usage> {
    let lines = text.lines().zip(1..).map(|(line, number)| (line.trim(), number));
    lines
        .filter(|(line, _)| !line.is_empty() && !line.starts_with('#'))
        .map(|(line, number)| parse(line).ok_or_else(|| Usage::Credential { place: place(number) }))
        .collect()
}

fn parse(text: &str) -> Option<Credential> {
    let (name, token) = text.split_once('=')?;
    (!name.is_empty() && !token.is_empty())
        .then(|| Credential { name: name.to_owned(), token: token.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn credentials_are_one_in_a_line() {
        let place = |line: usize| format!("file, line {line}");
        let parsed = parse_lines("# replicas\n\n a=token-a \nb=x=y\n", place).expect("fine");
        let pairs: Vec<(&str, &str)> = parsed.iter().map(|c| (c.name.as_str(), c.token.as_str())).collect();
        assert_eq!(pairs, [("a", "token-a"), ("b", "x=y")]);
        let refused = parse_lines("a=token-a\ns3cr3t\n", place).expect_err("no name");
        assert_eq!(refused.to_string(), "file, line 2: not of the form NAME=TOKEN");
    }
}
