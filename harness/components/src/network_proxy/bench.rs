//! A server and its agents as processes on this machine, with certificates created for them.

use super::probe::{Asked, ask};
use super::sockets::is_connected_to;
use crate::image_credentials::{MARK, ProcessGroupGuard};
use harness_core::files;
use harness_core::probe::{ReadError, poll};
use recording_proxy::tunnel::{CLIENT_FILES, TunnelTls, connect, write_certificates};
use rustix::process::Pid;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use tokio::process::{Child, Command};

/// The name in the server's certificate.
const NAME: &str = "localhost";
/// How long a server may take until it listens.
const START_LIMIT: Duration = Duration::from_secs(20);
/// Interval between two looks.
const AGAIN: Duration = Duration::from_millis(50);
/// Ports that the system does not assign automatically.
const PORTS: Range<u16> = 20_000..30_000;
/// Distance between the first ports of two processes that were started one after the other.
const BETWEEN: u32 = 31;
/// How many ports were tried.
static PORT: AtomicU32 = AtomicU32::new(0);
/// How much of a log is shown, in bytes.
const SHOWN: usize = 300;

/// The commands of server and agents.
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
    running: BTreeMap<String, Running>,
}

/// One process, with everything that it has started.
#[derive(Debug)]
struct Running {
    child: Child,
    guard: ProcessGroupGuard,
}

/// A number that is unique in this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A free port. A port that the system assigned could be assigned again until the server listens on it.
fn free_port() -> io::Result<SocketAddr> {
    let many = u32::from(PORTS.end - PORTS.start);
    for _ in 0..many {
        let own = std::process::id().wrapping_mul(BETWEEN);
        let next = own.wrapping_add(PORT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(next % many).unwrap_or_default() + PORTS.start;
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            return listener.local_addr();
        }
    }
    Err(io::Error::other(format!("none of the ports {} to {} is free", PORTS.start, PORTS.end - 1)))
}

impl Bench {
    /// Creates certificates and chooses ports; nothing runs yet.
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
                *seen = files::why(&error);
                Ok::<_, ReadError>(None)
            }
        };
        let what = format!("the server takes TLS connections at {address}");
        let waited = poll(&what, START_LIMIT, AGAIN, listens).await;
        waited.map_err(|error| io::Error::other(format!("{}; {}", error.text, self.said())))
    }

    /// Starts an agent with that name.
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
        let mark = format!("proxy-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        command.args(arguments).current_dir("/").process_group(0).kill_on_drop(true);
        command.env_clear().envs(&self.programs.environment).env(MARK, &mark);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = command
            .spawn()
            .map_err(|error| io::Error::other(format!("{program}: {}", files::why_not_started(&error))))?;
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        self.running.insert(name.to_owned(), Running { child, guard: ProcessGroupGuard { group, mark } });
        Ok(())
    }

    fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.log"))
    }

    /// Kills a process with everything that it has started, and waits for its end.
    ///
    /// # Errors
    /// It cannot be killed.
    pub async fn kill(&mut self, name: &str) -> io::Result<()> {
        match self.running.remove(name) {
            Some(Running { mut child, guard }) => {
                drop(guard);
                child.wait().await.map(drop)
            }
            None => Ok(()),
        }
    }

    /// Freezes a process with everything that it has started.
    ///
    /// # Errors
    /// It does not run any more.
    pub fn freeze(&self, name: &str) -> io::Result<()> {
        match self.running.get(name).is_some_and(|one| one.guard.freeze()) {
            true => Ok(()),
            false => Err(io::Error::other(format!("{name} does not run"))),
        }
    }

    /// Requests a tunnel from the server.
    pub async fn asked(&self, target: SocketAddr, limit: Duration) -> Asked {
        ask(connect(&self.tls, &self.callers.to_string(), NAME), &target.to_string(), limit).await
    }

    /// Whether an agent has a connection to the server; also `false` if this machine does not report it.
    pub fn is_connected(&self, agent: &str) -> bool {
        let processes = self.running.get(agent).map(|one| one.guard.processes()).unwrap_or_default();
        processes.into_iter().any(|process| is_connected_to(self.agents.port(), process))
    }

    /// The last output of each process.
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
        if said.is_empty() {
            "neither the server nor an agent wrote anything".to_owned()
        } else {
            said.join("; ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The states of the processes of an agent.
    fn states(bench: &Bench, name: &str) -> Vec<char> {
        let processes = bench.running[name].guard.processes();
        let stat = |one: Pid| std::fs::read_to_string(format!("/proc/{}/stat", one.as_raw_nonzero())).ok();
        let state = |stat: String| stat.rsplit_once(") ")?.1.chars().next();
        processes.into_iter().filter_map(stat).filter_map(state).collect()
    }

    async fn become_so(what: &str, fact: impl Fn() -> bool) {
        let read = async |_: &mut String| Ok(fact().then_some(()));
        poll(what, START_LIMIT, AGAIN, read).await.expect("it does");
    }

    #[tokio::test]
    async fn processes_of_an_agent_are_frozen_and_end_with_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let agent = ["/bin/sh", "-c", "/bin/sleep 60; :"].map(str::to_owned).to_vec();
        let programs = Programs { server: Vec::new(), agent, environment: BTreeMap::new() };
        let mut bench = Bench::new(programs, folder.path()).expect("a bench");
        bench.start_agent("a").expect("it starts");
        become_so("the shell has started another", || states(&bench, "a").len() == 2).await;
        assert!(!bench.is_connected("a"));
        bench.freeze("a").expect("it runs");
        become_so("both stand still", || states(&bench, "a") == ['T', 'T']).await;
        let mark = bench.running["a"].guard.mark.clone();
        bench.kill("a").await.expect("it ends");
        let left = ProcessGroupGuard { group: None, mark };
        become_so("both are gone", || left.processes().is_empty()).await;
        assert!(bench.freeze("a").is_err());
    }
}
