//! The commands: a server, or an agent.

use super::agent::Agent;
use super::certificates::{AGENT_FILES, SERVER_FILES};
use super::odd::Odd;
use super::server::Server;
use super::tls::{TunnelTls, acceptor};
use fake_cloud::faults::pause;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{SignalKind, signal};

/// The variable that names a mutant or a stranger.
const MUTANT: &str = "REFERENCE_NETWORK_PROXY_MUTANT";
/// Exit code when an argument is unknown.
const USAGE: u8 = 2;
/// How long to keep off when no connection can be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
/// How many connections of an agent wait, unless it is told.
const WAITING: usize = 8;

const HELP: &str =
    "usage: server --listen tcp://ADDRESS:PORT|unix://PATH --agents ADDRESS:PORT --certificates FOLDER
       agent --server HOST:PORT --server-name NAME --name NAME --certificates FOLDER [--waiting NUMBER]";

/// The reference, with these arguments: the command's name, then what it is told.
pub fn reference_main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    main(arguments, Odd::default())
}

/// The same, broken or strange as the variable `REFERENCE_NETWORK_PROXY_MUTANT` says. A command of its own, so that nothing changes the
/// one that is judged.
pub fn mutant_main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    match std::env::var(MUTANT).map_or(Ok(Odd::default()), |id| Odd::of(&id)) {
        Ok(odd) => main(arguments, odd),
        Err(why) => say(&why, USAGE),
    }
}

fn say(why: &str, code: u8) -> ExitCode {
    let _ = writeln!(io::stderr(), "reference-network-proxy: {why}");
    ExitCode::from(code)
}

fn main(arguments: impl Iterator<Item = OsString>, odd: Odd) -> ExitCode {
    let words: Vec<String> = arguments.skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let told = match Told::read(&words) {
        Ok(told) => told,
        Err(why) => return say(&format!("{why}\n{HELP}"), USAGE),
    };
    let run = async {
        let mut term = signal(SignalKind::terminate())?;
        tokio::select! {
            ended = told.run(odd) => ended,
            _ = term.recv() => Ok(()),
        }
    };
    match tokio::runtime::Runtime::new().and_then(|runtime| runtime.block_on(run)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => say(&error.to_string(), 3),
    }
}

/// What it was told: the command, and its options.
struct Told {
    command: String,
    options: BTreeMap<String, Vec<String>>,
}

impl Told {
    fn read(words: &[String]) -> Result<Told, String> {
        let (command, rest) = words.split_first().ok_or("it is told nothing")?;
        let known: &[&str] = match command.as_str() {
            "server" => &["listen", "agents", "certificates"],
            "agent" => &["server", "server-name", "name", "certificates", "waiting"],
            other => return Err(format!("there is no command '{other}'")),
        };
        let mut options: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut rest = rest.iter();
        while let Some(word) = rest.next() {
            let name = word.strip_prefix("--").ok_or_else(|| format!("'{word}' is no option"))?;
            let (name, value) = match name.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None => (name, rest.next().ok_or_else(|| format!("--{name} has no value"))?.clone()),
            };
            if !known.contains(&name) {
                return Err(format!("there is no option --{name}"));
            }
            options.entry(name.to_owned()).or_default().push(value);
        }
        let told = Told { command: command.clone(), options };
        for name in known.iter().filter(|name| **name != "waiting") {
            told.one(name)?;
        }
        Ok(told)
    }

    fn one(&self, name: &str) -> Result<&str, String> {
        self.options.get(name).map(|all| all[0].as_str()).ok_or_else(|| format!("--{name} is missing"))
    }

    async fn run(&self, odd: Odd) -> io::Result<()> {
        let one = |name: &str| self.one(name).map_err(io::Error::other);
        let certificates = PathBuf::from(one("certificates")?);
        if self.command == "agent" {
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let waiting = self.options.get("waiting").and_then(|all| all[0].parse().ok()).unwrap_or(WAITING);
            let agent = Agent {
                server: one("server")?.to_owned(),
                server_name: one("server-name")?.to_owned(),
                name: one("name")?.to_owned(),
                number: u64::try_from(since.as_micros()).unwrap_or_default(),
                waiting,
                tls: TunnelTls::of(&certificates, AGENT_FILES)?,
                odd,
            };
            agent.run().await;
            return Ok(());
        }
        serve(&self.options["listen"], one("agents")?, &certificates, odd).await
    }
}

/// Serves API servers and agents until it is dropped.
pub(super) async fn serve(listen: &[String], agents: &str, certificates: &Path, odd: Odd) -> io::Result<()> {
    let server = Server::new(odd);
    let tls = acceptor(certificates, SERVER_FILES)?;
    let mut doors = Vec::new();
    for place in listen {
        doors.push(match (place.strip_prefix("unix://"), place.strip_prefix("tcp://")) {
            (Some(path), _) => {
                let _ = std::fs::remove_file(path);
                Door::Socket(bound(place, UnixListener::bind(path))?)
            }
            (_, Some(address)) => Door::Callers(bound(place, TcpListener::bind(address).await)?),
            _ => {
                return Err(io::Error::other(format!(
                    "--listen {place} begins with neither tcp:// nor unix://"
                )));
            }
        });
    }
    doors.push(Door::Agents(bound(agents, TcpListener::bind(agents).await)?));
    let mut all = tokio::task::JoinSet::new();
    for door in doors {
        all.spawn(door.serve(server.clone(), tls.clone()));
    }
    while all.join_next().await.is_some() {}
    Ok(())
}

fn bound<L>(place: &str, listener: io::Result<L>) -> io::Result<L> {
    listener.map_err(|error| io::Error::other(format!("cannot listen at {place}: {error}")))
}

/// Where connections come in.
enum Door {
    Socket(UnixListener),
    Callers(TcpListener),
    Agents(TcpListener),
}

impl Door {
    async fn serve(self, server: Arc<Server>, tls: tokio_rustls::TlsAcceptor) {
        loop {
            let accepted = match &self {
                Door::Socket(listener) => listener.accept().await.map(|(stream, _)| {
                    tokio::spawn(server.clone().caller(stream));
                }),
                Door::Callers(listener) => listener.accept().await.map(|(stream, _)| {
                    let (server, tls) = (server.clone(), tls.clone());
                    tokio::spawn(async move {
                        stream.set_nodelay(true)?;
                        server.caller(tls.accept(stream).await?).await
                    });
                }),
                Door::Agents(listener) => listener.accept().await.map(|(stream, _)| {
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
