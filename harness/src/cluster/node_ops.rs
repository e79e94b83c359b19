//! What suites do to machines: kubelets, whole machines, connections, and processes of containers.

use super::error::ClusterError;
use super::exec::{ExecOutput, Stdin, exec, exec_ok};
use super::kind::{KindCluster, machine};
use super::network;
use super::record::{API_SERVER_PORT, Machine};
use bollard::query_parameters::{KillContainerOptionsBuilder, LogsOptionsBuilder};
use futures::StreamExt;
use futures::future::try_join_all;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

/// How long a short operation on a machine may take.
const LIMIT: Duration = Duration::from_secs(60);
/// How long a machine may take from power-on to its services.
const BOOT_LIMIT: Duration = Duration::from_secs(120);
/// How long loading an image into a machine may take.
const LOAD_LIMIT: Duration = Duration::from_secs(300);

/// What a machine is cut off from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Everything at this address, e.g. the cloud's API.
    Cloud(IpAddr),
    /// The API server on this machine, port 6443; what else the machine offers stays within reach.
    ApiServer(IpAddr),
}

/// What is done to a kubelet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KubeletOp {
    Start,
    Stop,
    Restart,
}

/// What is done to the processes of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskOp<'a> {
    Kill { signal: &'a str },
    Pause,
    Resume,
}

impl KindCluster {
    pub(super) async fn load_image(&self, archive: &Path) -> Result<(), ClusterError> {
        // Without '--all-platforms': Docker saves only this machine's.
        let load = ["ctr", "--namespace", "k8s.io", "images", "import", "-"];
        let loads = self
            .kind
            .machines
            .iter()
            .map(|m| exec_ok(&self.engine, m, &load, Stdin::File(archive), LOAD_LIMIT));
        try_join_all(loads).await.map(drop)
    }

    pub(super) async fn exec(
        &self,
        machine: &Machine,
        argv: &[&str],
        limit: Duration,
    ) -> Result<ExecOutput, ClusterError> {
        exec(&self.engine, machine, argv, Stdin::Empty, limit).await
    }

    pub(super) async fn kubelet(&self, machine: &Machine, op: KubeletOp) -> Result<(), ClusterError> {
        let verb = match op {
            KubeletOp::Start => "start",
            KubeletOp::Stop => "stop",
            KubeletOp::Restart => "restart",
        };
        self.do_in(machine, &["systemctl", verb, "kubelet.service"]).await
    }

    pub(super) async fn task(&self, machine: &Machine, id: &str, op: TaskOp<'_>) -> Result<(), ClusterError> {
        let id = id.strip_prefix("containerd://").unwrap_or(id);
        let mut command = vec!["ctr", "--namespace", "k8s.io", "tasks"];
        match op {
            TaskOp::Kill { signal } => command.extend(["kill", "--signal", signal, id]),
            TaskOp::Pause => command.extend(["pause", id]),
            TaskOp::Resume => command.extend(["resume", id]),
        }
        self.do_in(machine, &command).await
    }

    pub(super) async fn pause(&self, machine: &Machine) -> Result<(), ClusterError> {
        let call = self.engine.docker().pause_container(&machine.container_id);
        Ok(self.engine.call("pause machine", &machine.name, LIMIT, call).await?)
    }

    pub(super) async fn unpause(&self, machine: &Machine) -> Result<(), ClusterError> {
        let call = self.engine.docker().unpause_container(&machine.container_id);
        Ok(self.engine.call("unpause machine", &machine.name, LIMIT, call).await?)
    }

    /// Takes the power away: nothing on the machine gets a chance to say goodbye.
    pub(super) async fn stop(&self, machine: &Machine) -> Result<(), ClusterError> {
        let options = KillContainerOptionsBuilder::new().signal("SIGKILL").build();
        let docker = self.engine.docker();
        let call = docker.kill_container(&machine.container_id, Some(options));
        self.engine.call("stop machine", &machine.name, LIMIT, call).await?;
        let mut end = docker.wait_container(&machine.container_id, None);
        // A killed machine ends with a status of its own, which the library reports as an error.
        let call = async { end.next().await.map(drop).map_or(Ok(()), Ok) };
        Ok(self.engine.call("see the end of machine", &machine.name, LIMIT, call).await?)
    }

    /// Gives the power back and waits until the machine's services have been started.
    pub(super) async fn start(&self, stopped: &Machine) -> Result<Machine, ClusterError> {
        let docker = self.engine.docker();
        let (id, name) = (stopped.container_id.as_str(), stopped.name.as_str());
        network::reserve(&self.engine, &self.kind.network, stopped).await?;
        self.engine.call("start machine", name, LIMIT, docker.start_container(id, None)).await?;
        let found =
            self.engine.call("inspect container", name, LIMIT, docker.inspect_container(id, None)).await?;
        let since = found.state.as_ref().and_then(|state| state.started_at.as_deref()).and_then(unix_seconds);
        let Some(machine) = machine(found, &self.kind.network) else {
            return Err(ClusterError::Gone {
                what: format!("machine {name} as a part of network {}", self.kind.network),
            });
        };
        let options = LogsOptionsBuilder::new()
            .follow(true)
            .stdout(true)
            .stderr(true)
            .since(since.unwrap_or(0))
            .build();
        let mut log = docker.logs(id, Some(options));
        let up = async {
            let mut last = String::new();
            while let Some(Ok(piece)) = log.next().await {
                let line = String::from_utf8_lossy(&piece.into_bytes()).into_owned();
                if line.contains("Multi-User System") {
                    return Ok(());
                }
                last = line;
            }
            Err(last)
        };
        let seen = match tokio::time::timeout(BOOT_LIMIT, up).await {
            Ok(Ok(())) => return Ok(machine),
            Ok(Err(last)) => format!("it ended, its last words: {}", last.trim()),
            Err(_) => "it still boots".to_owned(),
        };
        Err(ClusterError::TimedOut { what: format!("the start of machine {name}"), limit: BOOT_LIMIT, seen })
    }

    pub(super) async fn cut(&self, machine: &Machine, target: Target) -> Result<(), ClusterError> {
        self.filter(machine, target, r#"$iptables -C $chain "$@" 2> /dev/null || $iptables -I $chain "$@""#)
            .await
    }

    pub(super) async fn mend(&self, machine: &Machine, target: Target) -> Result<(), ClusterError> {
        self.filter(machine, target, r#"while $iptables -D $chain "$@" 2> /dev/null; do :; done"#).await
    }

    /// Applies `rule` to both ways packets leave a machine: its own and those of Pods on its pod network.
    async fn filter(&self, machine: &Machine, target: Target, rule: &str) -> Result<(), ClusterError> {
        let (ip, port) = match target {
            Target::Cloud(ip) => (ip, None),
            Target::ApiServer(ip) => (ip, Some(API_SERVER_PORT.to_string())),
        };
        let program = if ip.is_ipv6() { "ip6tables" } else { "iptables" };
        let script = format!(
            "command -v {program} > /dev/null || exit 127\niptables='{program} -w 10'\nset -e\n\
             for chain in OUTPUT FORWARD; do {rule}; done"
        );
        let ip = ip.to_string();
        let mut command = vec!["sh", "-c", &script, "sh", "-d", &ip];
        if let Some(port) = &port {
            command.extend(["-p", "tcp", "--dport", port]);
        }
        command.extend(["-j", "DROP"]);
        match self.do_in(machine, &command).await {
            Err(ClusterError::Command { status: 127, .. }) => Err(ClusterError::NotObservable {
                what: format!("cutting machine {} off", machine.name),
                why: format!("the node image has no {program}"),
            }),
            other => other,
        }
    }

    pub(super) async fn do_in(&self, machine: &Machine, argv: &[&str]) -> Result<(), ClusterError> {
        exec_ok(&self.engine, machine, argv, Stdin::Empty, LIMIT).await.map(drop)
    }
}

/// Seconds since 1970 of a time as Docker writes it.
fn unix_seconds(text: &str) -> Option<i32> {
    let at: jiff::Timestamp = text.parse().ok()?;
    i32::try_from(at.as_second()).ok()
}
