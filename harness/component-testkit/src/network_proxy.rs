//! The network proxy under test, and what can be judged of it without a cluster.

use bootstrap::{Cluster, Cni, Source, Topology, expect};
use harness_clusters::images::own_program;
use harness_components::network_proxy::{Asked, Bench, Echo, Programs, Tunnel, faults};
use harness_config::{NetworkProxy as Written, PROGRAM};
use harness_core::check::{CheckError, SubjectName, Verdict, Violation};
use harness_core::files;
use harness_core::probe::{ReadError, pause, poll};
use harness_testkit::CheckCx;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// How long a dial may take that an API server gives up after 30 s (`k8s.io/apiserver` `pkg/server/egressselector`); its
/// answer comes a little later.
///
/// ```
/// # use harness_component_testkit::prelude::*; async fn check(cx: &CheckCx, peer: &Peer<'_>) -> Verdict {
/// if let Err(astray) = peer.tried(Way::Logs).await? {
///     cx.record("fails_in_time", astray.took <= DIAL_LIMIT);
/// }
/// # Ok(()) }
/// ```
pub const DIAL_LIMIT: Duration = Duration::from_secs(30 + 3);
/// How long a server may take to register an agent that has connected.
const KNOWN: Duration = Duration::from_secs(3);
/// Interval between two tries.
const AGAIN: Duration = Duration::from_millis(200);
/// Rows of the lint for all workloads that must run before Nodes are initialised, not only for CCMs.
const ROWS: &[&str] = &[
    "BOOT-LINT-01",
    "BOOT-LINT-02",
    "BOOT-LINT-03",
    "BOOT-LINT-05",
    "BOOT-LINT-06",
    "BOOT-LINT-14",
    "BOOT-LINT-15",
];

/// The network proxy under test.
///
/// ```
/// # use harness_component_testkit::prelude::*;
/// async fn agents_can_boot(cx: &CheckCx) -> Verdict {
///     NetworkProxy::of(cx)?.agents_can_boot()
/// }
/// ```
#[derive(Debug)]
pub struct NetworkProxy<'a> {
    pub(super) cx: &'a CheckCx,
    pub(super) written: &'a Written,
}

/// Its server and agents as processes, for one check.
///
/// ```
/// # use harness_component_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let proxy = NetworkProxy::of(cx)?;
/// let mut processes = proxy.as_processes().await?;
/// processes.start_agent("first")?;
/// processes.tunnel_within("an agent carries tunnels", DIAL_LIMIT).await?;
/// processes.kill_agent("first").await
/// # }
/// ```
#[derive(Debug)]
pub struct ProxyProcesses<'a> {
    proxy: &'a NetworkProxy<'a>,
    bench: Bench,
    echo: Echo,
}

impl<'a> NetworkProxy<'a> {
    /// The network proxy under test.
    ///
    /// # Errors
    /// The profile names none.
    pub fn of(cx: &'a CheckCx) -> Result<NetworkProxy<'a>, CheckError> {
        let written = cx.session().plan().profile.network_proxy.as_ref();
        let written =
            written.ok_or_else(|| CheckError::Error("the profile names no network proxy".to_owned()))?;
        Ok(NetworkProxy { cx, written })
    }

    /// A violation by the proxy.
    pub fn violation(&self, promise: &str, expected: &str, seen: impl Into<String>) -> CheckError {
        let name = self.cx.session().plan().profile.name.clone();
        let subject = Some(SubjectName { kind: "network proxy", name, uid: None });
        CheckError::Violation(Box::new(Violation { subject, ..Violation::new(promise, expected, seen) }))
    }

    /// Verifies that the API server's configuration breaks no row.
    ///
    /// # Errors
    /// What breaks one; or the file cannot be read.
    pub fn configuration_follows(&self, row: &str) -> Verdict {
        let file = &self.written.egress;
        let text = files::read(file)?;
        let faults = faults(&text, file);
        let said: Vec<String> = faults.into_iter().filter(|one| one.row == row).map(|one| one.what).collect();
        if said.is_empty() {
            return Ok(());
        }
        let promise = format!("an API server can start with {} and use it", file.display());
        Err(self.violation(
            &promise,
            "an EgressSelectorConfiguration of apiserver.k8s.io/v1beta1",
            said.join("; "),
        ))
    }

    /// Verifies that the agents' manifests have no findings in the lint rows for workloads that run before Nodes are
    /// initialised.
    ///
    /// # Errors
    /// Each finding; not observable without manifests.
    pub fn agents_can_boot(&self) -> Verdict {
        if self.written.manifests.is_empty() {
            return Err(CheckError::NotObservable(
                "networkProxy.manifests of the profile names none".to_owned(),
            ));
        }
        let source =
            |path: &std::path::PathBuf| Ok(Source::new(&path.display().to_string(), &files::read(path)?));
        let sources: std::io::Result<Vec<Source>> = self.written.manifests.iter().map(source).collect();
        let cluster = Cluster::new(Topology::ControlPlaneAndWorker, Cni::WaitsForAddresses);
        let said = expect(sources?, &[cluster], &[], Some(&self.written.agent_workload))
            .map_err(CheckError::Error)?;
        let of_us = said.findings.iter().filter(|finding| ROWS.contains(&finding.id));
        let broken: Vec<String> =
            of_us.map(|finding| format!("{} {}: {}", finding.at(), finding.id, finding.what)).collect();
        if broken.is_empty() {
            return Ok(());
        }
        let promise = "agents run on Nodes that are not initialised and have no pod network";
        Err(self.violation(promise, "manifests without BOOT-LINT findings", broken.join("; ")))
    }

    /// Starts a server as a process, without agents.
    ///
    /// # Errors
    /// Not observable if the profile names no program; a violation if it does not listen.
    pub async fn as_processes(&'a self) -> Result<ProxyProcesses<'a>, CheckError> {
        let Written { program, server, agent, environment, .. } = self.written;
        if program.is_empty() {
            let why =
                "networkProxy.program of the profile does not name a program that runs next to the harness";
            return Err(CheckError::NotObservable(why.to_owned()));
        }
        let (own, folder) = (own_program()?.display().to_string(), self.cx.session().plan().profile.folder());
        let mut first: Vec<String> = program.iter().map(|part| part.replace(PROGRAM, &own)).collect();
        if first[0].contains('/') && Path::new(&first[0]).is_relative() {
            first[0] = std::path::absolute(folder.join(&first[0]))?.display().to_string();
        }
        let line = |more: &Vec<String>| first.iter().chain(more).cloned().collect();
        let programs =
            Programs { server: line(server), agent: line(agent), environment: environment.clone() };
        let folder = self.cx.session().dir().path().join(self.cx.prefix());
        let mut bench = Bench::new(programs, &folder)?;
        let started = async { Ok(bench.start_server().await) };
        if let Err(error) = self.cx.session().unless_interrupted(started).await? {
            return Err(self.violation(
                "its server starts",
                "a server that takes TLS connections",
                files::why(&error),
            ));
        }
        Ok(ProxyProcesses { proxy: self, bench, echo: Echo::new().await? })
    }
}

impl ProxyProcesses<'_> {
    /// Starts an agent with that name.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start_agent(&mut self, name: &str) -> Verdict {
        self.bench
            .start_agent(name)
            .map_err(|error| self.broken("its agents start", "a process", &files::why(&error)))
    }

    /// Kills the agent with that name.
    ///
    /// # Errors
    /// It cannot be killed.
    pub async fn kill_agent(&mut self, name: &str) -> Verdict {
        Ok(self.bench.kill(name).await?)
    }

    /// Freezes the agent with that name.
    ///
    /// # Errors
    /// It does not run any more.
    pub fn freeze_agent(&self, name: &str) -> Verdict {
        self.bench
            .freeze(name)
            .map_err(|error| self.broken("its agents run", "a process", &files::why(&error)))
    }

    /// Waits until the server has registered the agent with that name: a moment after it has connected, or the full time
    /// if its connections cannot be observed. Returns whether they were observed.
    ///
    /// # Errors
    /// The run is interrupted.
    pub async fn agent_connects(&self, name: &str, limit: Duration) -> Result<bool, CheckError> {
        let connected =
            async |_: &mut String| Ok::<_, ReadError>(self.bench.is_connected(name).then_some(()));
        let what = format!("agent {name} is connected");
        let waited = async {
            let seen = poll(&what, limit, AGAIN, connected).await.is_ok();
            pause(KNOWN).await;
            Ok(seen)
        };
        self.proxy.cx.session().unless_interrupted(waited).await
    }

    /// The address of a peer that echoes everything it receives.
    pub fn peer(&self) -> SocketAddr {
        self.echo.address()
    }

    /// Requests a tunnel from the server.
    ///
    /// # Errors
    /// The run is interrupted.
    pub async fn asked(&self, target: SocketAddr, limit: Duration) -> Result<Asked, CheckError> {
        let asked = async { Ok(self.bench.asked(target, limit).await) };
        self.proxy.cx.session().unless_interrupted(asked).await
    }

    /// Opens a tunnel to the peer with one request.
    ///
    /// # Errors
    /// Any other answer is a violation.
    pub async fn tunnel(&self, promise: &str) -> Result<Tunnel, CheckError> {
        match self.asked(self.peer(), DIAL_LIMIT).await? {
            Asked::Tunnel(tunnel) => Ok(tunnel),
            other => Err(self.broken(promise, "an answer 200", &other.to_string())),
        }
    }

    /// Opens a tunnel to the peer within this time, with as many requests as needed.
    ///
    /// # Errors
    /// There is no tunnel in time.
    pub async fn tunnel_within(&self, promise: &str, limit: Duration) -> Result<Tunnel, CheckError> {
        let tunnel = async |seen: &mut String| match self.bench.asked(self.peer(), DIAL_LIMIT).await {
            Asked::Tunnel(tunnel) => Ok::<_, ReadError>(Some(tunnel)),
            other => {
                *seen = other.to_string();
                Ok(None)
            }
        };
        let waited = async { Ok(poll("the tunnel is established", limit, AGAIN, tunnel).await) };
        let waited = self.proxy.cx.session().unless_interrupted(waited).await?;
        waited.map_err(|error| self.broken(promise, "an answer 200", &error.text))
    }

    /// A violation, with the output of its processes.
    pub fn broken(&self, promise: &str, expected: &str, seen: &str) -> CheckError {
        self.proxy.violation(promise, expected, format!("{seen}; {}", self.bench.said()))
    }
}
