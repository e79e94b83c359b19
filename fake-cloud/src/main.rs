//! `fake-cloud`: serves the fake cloud, or idles.

use clap::{Parser, Subcommand};
use fake_cloud::admin::Credential;
use fake_cloud::{Config, Server};
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

/// A cloud made of memory.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the cloud API and the admin API until SIGTERM or SIGINT.
    Serve(Serve),
    /// Do nothing until SIGTERM or SIGINT: a container that only has to run.
    Idle,
}

#[derive(clap::Args)]
struct Serve {
    /// Dialect of the cloud API.
    #[arg(long, default_value = "native")]
    dialect: String,
    /// Where the cloud API listens; port 0 for any.
    #[arg(long, default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Where the admin API listens; port 0 for any.
    #[arg(long, default_value = "127.0.0.1:8081")]
    admin_listen: SocketAddr,
    /// File with the admin token; without it the environment's FAKE_CLOUD_ADMIN_TOKEN.
    #[arg(long)]
    admin_token_file: Option<PathBuf>,
    /// File with credentials of the cloud API, a line `NAME=TOKEN` each. More come through the admin API.
    #[arg(long)]
    credentials_file: Option<PathBuf>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    // One thread: a fake cloud spends its time waiting, and a test machine has better use for its cores.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("no runtime: {error}")),
    };
    let outcome = runtime.block_on(async {
        match cli.command {
            Command::Serve(serve) => run(serve).await,
            Command::Idle => {
                ended().await;
                Ok(())
            }
        }
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => fail(&message),
    }
}

fn fail(message: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "fake-cloud: {message}");
    ExitCode::FAILURE
}

async fn run(serve: Serve) -> Result<(), String> {
    let config = Config {
        dialect: serve.dialect,
        listen: serve.listen,
        admin_listen: serve.admin_listen,
        admin_token: admin_token(serve.admin_token_file)?,
        credentials: credentials(serve.credentials_file)?,
    };
    let running = Server::start(config).await.map_err(|error| match std::error::Error::source(&error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    })?;
    let ready = serde_json::json!({
        "ready": true, "cloud": running.cloud_addr.to_string(), "admin": running.admin_addr.to_string(),
    });
    writeln!(std::io::stdout(), "{ready}").map_err(|error| format!("writing the ready line: {error}"))?;
    ended().await;
    running.shutdown().await;
    Ok(())
}

fn admin_token(file: Option<PathBuf>) -> Result<String, String> {
    match file {
        Some(path) => std::fs::read_to_string(&path)
            .map(|text| text.trim().to_owned())
            .map_err(|error| format!("admin token file {}: {error}", path.display())),
        None => std::env::var("FAKE_CLOUD_ADMIN_TOKEN")
            .map_err(|_| "no admin token: give --admin-token-file or set FAKE_CLOUD_ADMIN_TOKEN".to_owned()),
    }
}

fn credentials(file: Option<PathBuf>) -> Result<Vec<Credential>, String> {
    let Some(path) = file else { return Ok(Vec::new()) };
    let text = std::fs::read_to_string(&path).map_err(|error| format!("credentials file {}: {error}", path.display()))?;
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    lines
        .map(|(line, number)| match line.trim().split_once('=') {
            Some((name, token)) if !name.is_empty() && !token.is_empty() => {
                Ok(Credential { name: name.to_owned(), token: token.to_owned() })
            }
            // The line may be a token: it is not shown.
            _ => Err(format!("credentials file {}, line {number}: not NAME=TOKEN", path.display())),
        })
        .collect()
}

async fn ended() {
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
