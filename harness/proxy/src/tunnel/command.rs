//! The commands: a server, or an agent.

use super::agent::Agent;
use super::certificates::{AGENT_FILES, SERVER_FILES};
use super::server::Server;
use super::tls::{TunnelTls, acceptor};
use super::variation::Variation;
use clap::{Parser, Subcommand};
use fake_cloud_recording::faults::pause;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{SignalKind, signal};

/// The variable that selects a mutant or a conforming variant.
const MUTANT: &str = "REFERENCE_NETWORK_PROXY_MUTANT";
/// Exit code for an unknown argument.
const USAGE: u8 = 2;
/// How long to wait when connections cannot be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// The network proxy that passes every check.
#[derive(Debug, Parser)]
#[command(name = "reference-network-proxy", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, PartialEq, Eq, Subcommand)]
enum Command {
    /// Serve API servers, and the agents that dial for them
    Server {
        /// Address for API servers that request tunnels; repeatable
        #[arg(long, value_name = "tcp://ADDRESS:PORT|unix://PATH", required = true)]
        listen: Vec<String>,
        /// Address for agents
        #[arg(long, value_name = "ADDRESS:PORT")]
        agents: String,
        /// Folder with the server's certificate and key, and the CA certificate
        #[arg(long, value_name = "FOLDER")]
        certificates: PathBuf,
    },
    /// Dial for a server
    Agent {
        /// The server's address for agents
        #[arg(long, value_name = "HOST:PORT")]
        server: String,
        /// The name in the server's certificate
        #[arg(long, value_name = "NAME")]
        server_name: String,
        /// The agent's own name
        #[arg(long, value_name = "NAME")]
        name: String,
        /// Folder with the agent's certificate and key, and the CA certificate
        #[arg(long, value_name = "FOLDER")]
        certificates: PathBuf,
        /// Number of connections that wait at the server for a tunnel
        #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, default_value_t = 8)]
        waiting: usize,
    },
}

/// Runs the reference with these arguments: the command's name, then its arguments.
pub fn reference_main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    main(arguments, Variation::default())
}

/// The same with the mutant or variant of the variable `REFERENCE_NETWORK_PROXY_MUTANT`. It is a separate command, so
/// that nothing changes the one that is judged.
pub fn mutant_main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    match std::env::var(MUTANT).map_or(Ok(Variation::default()), |id| Variation::of(&id)) {
        Ok(odd) => main(arguments, odd),
        Err(why) => say(&why, USAGE),
    }
}

fn say(why: &str, code: u8) -> ExitCode {
    let _ = writeln!(io::stderr(), "reference-network-proxy: {why}");
    ExitCode::from(code)
}

fn main(arguments: impl Iterator<Item = OsString>, odd: Variation) -> ExitCode {
    let command = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments.command,
        Err(error) => {
            // Help and version go to standard output, errors to standard error; a closed one is not an error.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS };
        }
    };
    let run = async {
        let mut term = signal(SignalKind::terminate())?;
        tokio::select! {
            ended = command.run(odd) => ended,
            _ = term.recv() => Ok(()),
        }
    };
    match tokio::runtime::Runtime::new().and_then(|runtime| runtime.block_on(run)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => say(&system_errors::why(&error), 3),
    }
}

impl Command {
    async fn run(self, odd: Variation) -> io::Result<()> {
        match self {
            Command::Server { listen, agents, certificates } => {
                serve(&listen, &agents, &certificates, odd).await
            }
            Command::Agent { server, server_name, name, certificates, waiting } => {
                let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                let agent = Agent {
                    server,
                    server_name,
                    name,
                    number: u64::try_from(since.as_micros()).unwrap_or_default(),
                    waiting,
                    tls: TunnelTls::of(&certificates, AGENT_FILES)?,
                    odd,
                };
                agent.run().await;
                Ok(())
            }
        }
    }
}

/// Serves API servers and agents until it is dropped.
pub(super) async fn serve(
    listen: &[String],
    agents: &str,
    certificates: &Path,
    odd: Variation,
) -> io::Result<()> {
    let server = Server::new(odd);
    let tls = acceptor(certificates, SERVER_FILES)?;
    let mut doors = Vec::new();
    for place in listen {
        doors.push(match (place.strip_prefix("unix://"), place.strip_prefix("tcp://")) {
            (Some(path), _) => {
                let _ = std::fs::remove_file(path);
                TunnelListener::Socket(bound(place, UnixListener::bind(path))?)
            }
            (_, Some(address)) => TunnelListener::Callers(bound(place, TcpListener::bind(address).await)?),
            _ => {
                return Err(io::Error::other(format!("--listen {place} must begin with tcp:// or unix://")));
            }
        });
    }
    doors.push(TunnelListener::Agents(bound(agents, TcpListener::bind(agents).await)?));
    let mut all = tokio::task::JoinSet::new();
    for door in doors {
        all.spawn(door.serve(server.clone(), tls.clone()));
    }
    while all.join_next().await.is_some() {}
    Ok(())
}

fn bound<L>(place: &str, listener: io::Result<L>) -> io::Result<L> {
    let failed = |error| format!("cannot listen on {place}: {}", system_errors::why_not_listening(&error));
    listener.map_err(|error| io::Error::other(failed(error)))
}

/// The listener for connections.
enum TunnelListener {
    Socket(UnixListener),
    Callers(TcpListener),
    Agents(TcpListener),
}

impl TunnelListener {
    async fn serve(self, server: Arc<Server>, tls: tokio_rustls::TlsAcceptor) {
        loop {
            let accepted = match &self {
                TunnelListener::Socket(listener) => listener.accept().await.map(|(stream, _)| {
                    tokio::spawn(server.clone().caller(stream));
                }),
                TunnelListener::Callers(listener) => listener.accept().await.map(|(stream, _)| {
                    let (server, tls) = (server.clone(), tls.clone());
                    tokio::spawn(async move {
                        stream.set_nodelay(true)?;
                        server.caller(tls.accept(stream).await?).await
                    });
                }),
                TunnelListener::Agents(listener) => listener.accept().await.map(|(stream, _)| {
                    let (server, tls) = (server.clone(), tls.clone());
                    tokio::spawn(async move {
                        stream.set_nodelay(true)?;
                        server.agent(tls.accept(stream).await?).await
                    });
                }),
            };
            if accepted.is_err() {
                pause(ACCEPT_PAUSE).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Command, clap::Error> {
        Arguments::try_parse_from(line.split(' ')).map(|arguments| arguments.command)
    }

    #[test]
    fn both_ways_of_writing_an_option_are_read() {
        let expected = Command::Server {
            listen: vec!["tcp://127.0.0.1:1".to_owned(), "unix:///s".to_owned()],
            agents: "0.0.0.0:2".to_owned(),
            certificates: "/c".into(),
        };
        for line in [
            "proxy server --listen=tcp://127.0.0.1:1 --listen=unix:///s --agents=0.0.0.0:2 --certificates=/c",
            "proxy server --listen tcp://127.0.0.1:1 --listen unix:///s --agents 0.0.0.0:2 --certificates /c",
        ] {
            assert_eq!(read(line).expect("sound"), expected);
        }
        let agent =
            read("proxy agent --server=a:1 --server-name=b --name=c --certificates=/c").expect("sound");
        assert!(matches!(agent, Command::Agent { waiting: 8, .. }), "{agent:?}");
    }

    #[test]
    fn missing_and_unknown_arguments_are_refused() {
        for wrong in [
            "proxy",
            "proxy serve",
            "proxy server --agents=0.0.0.0:2 --certificates=/c",
            "proxy agent --server=a:1 --server-name=b --name=c",
            "proxy agent --server=a:1 --server-name=b --name=c --certificates=/c --waiting=some",
            "proxy agent --server=a:1 --server-name=b --name=c --certificates=/c --agents=a:1",
        ] {
            let error = read(wrong).expect_err(wrong);
            assert!(error.use_stderr(), "{wrong}");
        }
    }
}
