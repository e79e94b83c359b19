//! A server and its agents as processes of this machine, with certificates made for them.

use super::probe::{Asked, ask};
use crate::probe::{ReadError, poll};
use recording_proxy::tunnel::{CLIENT_FILES, TunnelTls, connect, write_certificates};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};

/// The name in the server's certificate.
const NAME: &str = "localhost";
/// How long a server may take until it listens.
const START_LIMIT: Duration = Duration::from_secs(20);
/// Between two looks.
const AGAIN: Duration = Duration::from_millis(50);
/// What is shown of a log, bytes.
const SHOWN: usize = 300;

/// How server and agents are started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    /// The server, and its arguments.
    pub server: Vec<String>,
    /// An agent, and its arguments.
    pub agent: Vec<String>,
    /// Their variables.
    pub environment: BTreeMap<String, String>,
}

/// A server and its agents; they end with it.
#[derive(Debug)]
pub struct Bench {
    programs: Programs,
    folder: PathBuf,
    callers: SocketAddr,
    agents: SocketAddr,
    tls: TunnelTls,
    running: BTreeMap<String, Child>,
}

fn free_port() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

impl Bench {
    /// Certificates and ports; nothing runs yet.
    ///
    /// # Errors
    /// Files cannot be written, or there is no port.
    pub fn new(programs: Programs, folder: &Path) -> io::Result<Bench> {
        let certificates = folder.join("certificates");
        write_certificates(&certificates, &[NAME.to_owned(), Ipv4Addr::LOCALHOST.to_string()])?;
        Ok(Bench {
            programs,
            folder: folder.to_owned(),
            callers: free_port()?,
            agents: free_port()?,
            tls: TunnelTls::of(&certificates, CLIENT_FILES)?,
            running: BTreeMap::new(),
        })
    }

    /// Starts the server, and waits until it listens.
    ///
    /// # Errors
    /// It cannot be started, or does not listen in time.
    pub async fn start_server(&mut self) -> io::Result<()> {
        self.start("server", &self.programs.server.clone())?;
        let (tls, address) = (&self.tls, self.callers.to_string());
        let listens = async |seen: &mut String| match connect(tls, &address, NAME).await {
            Ok(_) => Ok(Some(())),
            Err(error) => {
                *seen = error.to_string();
                Ok::<_, ReadError>(None)
            }
        };
        let what = format!("the server takes TLS connections at {address}");
        let waited = poll(&what, START_LIMIT, AGAIN, listens).await;
        waited.map_err(|error| io::Error::other(format!("{}; {}", error.text, self.said())))
    }

    /// Starts an agent of that name.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start_agent(&mut self, name: &str) -> io::Result<()> {
        self.start(name, &self.programs.agent.clone())
    }

    fn start(&mut self, name: &str, line: &[String]) -> io::Result<()> {
        let certificates = self.folder.join("certificates").display().to_string();
        let filled = |word: &String| {
            let word = word.replace("${CALLERS}", &self.callers.to_string());
            let word = word.replace("${AGENTS}", &self.agents.to_string());
            word.replace("${CERTIFICATES}", &certificates).replace("${NAME}", name)
        };
        let line: Vec<String> = line.iter().map(filled).collect();
        let (program, arguments) =
            line.split_first().ok_or_else(|| io::Error::other("there is no program"))?;
        let log = File::options().create(true).append(true).open(self.log(name))?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir("/").env_clear().envs(&self.programs.environment);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).kill_on_drop(true);
        let child = command.spawn().map_err(|error| io::Error::other(format!("{program}: {error}")))?;
        self.running.insert(name.to_owned(), child);
        Ok(())
    }

    fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.log"))
    }

    /// Kills one, and waits for its end.
    ///
    /// # Errors
    /// It cannot be killed.
    pub async fn kill(&mut self, name: &str) -> io::Result<()> {
        match self.running.remove(name) {
            Some(mut child) => child.kill().await,
            None => Ok(()),
        }
    }

    /// Has one stand still.
    ///
    /// # Errors
    /// It cannot be stopped.
    pub fn freeze(&self, name: &str) -> io::Result<()> {
        let id =
            self.running.get(name).and_then(Child::id).and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let id = id.ok_or_else(|| io::Error::other(format!("{name} does not run")))?;
        Ok(kill_process(id, Signal::STOP)?)
    }

    /// Asks the server for a tunnel.
    pub async fn asked(&self, target: SocketAddr, limit: Duration) -> Asked {
        ask(connect(&self.tls, &self.callers.to_string(), NAME), &target.to_string(), limit).await
    }

    /// How many connections agents have to the server.
    ///
    /// # Errors
    /// This machine does not say.
    pub fn connections(&self) -> io::Result<usize> {
        let port = format!(":{:04X}", self.agents.port());
        let established = |line: &&str| {
            let mut words = line.split_ascii_whitespace().skip(1);
            words.next().is_some_and(|local| local.ends_with(&port)) && words.nth(1) == Some("01")
        };
        Ok(std::fs::read_to_string("/proc/net/tcp")?.lines().filter(established).count())
    }

    /// The last words of each that was started.
    pub fn said(&self) -> String {
        let logs = std::fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|file| file.path());
        let mut said: Vec<String> = Vec::new();
        for file in logs.filter(|file| file.extension().is_some_and(|end| end == "log")) {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let from = text.trim().len().saturating_sub(SHOWN);
            let end = &text.trim()[text.trim().ceil_char_boundary(from)..];
            if !end.is_empty() {
                said.push(format!("{name} said: {end}"));
            }
        }
        if said.is_empty() { "neither server nor agents said anything".to_owned() } else { said.join("; ") }
    }
}
