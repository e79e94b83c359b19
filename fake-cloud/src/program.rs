//! The command: `fake-cloud serve` is the cloud, `fake-cloud idle` does nothing until it is stopped.

use crate::cli::{Cli, Command, Usage};
use crate::server::{Server, StartError};
use clap::Parser;
use std::error::Error;
use std::ffi::OsString;
use std::process::ExitCode;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit code for invalid arguments.
const EXIT_USAGE: u8 = 2;
/// The exit code if the system does not let it run, e.g. because an address is in use.
const EXIT_ENVIRONMENT: u8 = 3;

/// The reason why the program ends other than by a signal.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Usage(#[from] Usage),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("cannot {what}")]
    System {
        what: &'static str,
        #[source]
        source: std::io::Error,
    },
}

impl Failure {
    fn system(what: &'static str) -> impl FnOnce(std::io::Error) -> Failure {
        move |source| Failure::System { what, source }
    }

    fn exit_code(&self) -> u8 {
        match self {
            Failure::Usage(_) => EXIT_USAGE,
            Failure::Start(StartError::Listen { .. } | StartError::Tls(_) | StartError::Random)
            | Failure::System { .. } => EXIT_ENVIRONMENT,
            Failure::Start(
                StartError::Dialect { .. } | StartError::DriverToken | StartError::Credential(_),
            ) => EXIT_USAGE,
        }
    }
}

/// Runs the command with these arguments, beginning with its name, until it ends or is stopped.
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let asked_for = !error.use_stderr();
            // Help and version go to standard output, errors to standard error; a closed one is not a failure.
            let _ = error.print();
            return if asked_for { ExitCode::SUCCESS } else { ExitCode::from(EXIT_USAGE) };
        }
    };
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            complain(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Runs the cloud. One thread is enough: a cloud in memory has nothing to wait for.
fn run(cli: Cli) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::system("start the runtime"))?;
    runtime.block_on(async {
        let mut stop = Stop::listen()?;
        match cli.command {
            Command::Idle => {}
            Command::Serve(serve) => {
                log_to_stderr();
                let dialect = serve.dialect.clone();
                let running = Server::start(serve.config()?).await?;
                let mut line = serde_json::json!({
                    "ready": true,
                    "dialect": dialect,
                    "cloud": running.cloud_addr(),
                    "driver": running.driver_addr(),
                });
                if let Some(metadata) = running.metadata_addr() {
                    line["metadata"] = serde_json::json!(metadata);
                }
                if let Some(ca) = running.ca() {
                    line["ca"] = serde_json::json!(ca);
                }
                announce(&line)?;
                stop.requested().await;
                running.shutdown().await;
                return Ok(());
            }
        }
        stop.requested().await;
        Ok(())
    })
}

/// SIGTERM and SIGINT.
struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    /// From here on the signals do not end the program. As process 1 of a container they would not either.
    fn listen() -> Result<Stop, Failure> {
        let listen = |kind| signal(kind).map_err(Failure::system("listen for signals"));
        Ok(Stop { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    async fn requested(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

fn log_to_stderr() {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::builder().with_env_var("FAKE_CLOUD_LOG").try_from_env();
    let filter = filter.unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
}

/// Prints the line that the caller waits for.
fn announce(line: &serde_json::Value) -> Result<(), Failure> {
    use std::io::Write;
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}")
        .and_then(|()| stdout.flush())
        .map_err(Failure::system("write to standard output"))
}

#[expect(clippy::print_stderr, reason = "the last words of a program")]
fn complain(failure: &Failure) {
    let mut text = format!("error: {failure}");
    let mut source = failure.source();
    while let Some(cause) = source {
        let words = match cause.downcast_ref() {
            Some(error) => system_errors::why(error),
            None => cause.to_string(),
        };
        text.push_str(&format!(": {words}"));
        source = cause.source();
    }
    eprintln!("{text}");
}
