//! Operations on machines of kind: kubelets, whole machines, connections, and processes of containers.

use super::access::KindMachines;
use super::api_reach::{an_outage, duration, is_distinguishable, replacing, rules};
use super::exec::{Stdin, exec_ok};
use super::machines::machine;
use crate::error::ClusterError;
use crate::frozen::thaw;
use crate::network;
use crate::operation::{ApiReach, ContainerOp, KubeletOp, LinkOp, Operation, PowerOp, SetupOp, Target};
use crate::record::{API_SERVER_PORT, Machine};
use bollard::query_parameters::{KillContainerOptionsBuilder, LogsOptionsBuilder};
use futures::StreamExt;
use futures::future::try_join_all;
use harness_core::check::chain;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

/// Time limit for a short operation on a machine.
const LIMIT: Duration = Duration::from_secs(60);
/// How long a machine may take from power-on until its services run.
const BOOT_LIMIT: Duration = Duration::from_secs(120);
/// How long a killed machine may take to end. It ends when the kernel has ended all of its processes, those that wait for the
/// disk, too.
const END_LIMIT: Duration = Duration::from_secs(180);
/// Waits until no runc works on the machine, and lets none start. With cgroups v1 the kernel does not end the processes of a
/// frozen cgroup, and runc freezes one for a moment when it changes it: a machine that is killed in that moment never ends.
const SETTLE: &str = "[ -d /sys/fs/cgroup/freezer ] || exit 0; pkill -STOP -x kubelet; pkill -STOP -x containerd; \
                      for i in $(seq 100); do pgrep -x runc > /dev/null || exit 0; sleep 0.05; done";
/// What Docker answers if a killed container has not ended after 10 s (moby daemon/kill.go).
const ENDS_LATE: &str = "did not receive an exit event";
/// How long loading an image into a machine may take.
const LOAD_LIMIT: Duration = Duration::from_secs(300);

impl KindMachines {
    pub(super) async fn carry_out(&self, operation: Operation<'_>) -> Result<(), ClusterError> {
        match operation {
            Operation::Kubelet { machine, op } => self.kubelet(machine, op).await,
            Operation::ImageCredentials { machine, setup, op: SetupOp::Install } => {
                self.install(machine, setup).await
            }
            Operation::ImageCredentials { machine, setup, op: SetupOp::Remove } => {
                self.uninstall(machine, setup).await
            }
            Operation::DirectWay { to, op } => self.set_direct_way(to, op).await,
            Operation::Power { machine, op: PowerOp::Off } => self.power_off(machine).await,
            Operation::Power { machine, op: PowerOp::On } => self.power_on(machine).await,
            Operation::Link { machine, to, op: LinkOp::Cut } => self.cut(machine, to).await,
            Operation::Link { machine, to, op: LinkOp::Restore } => self.restore(machine, to).await,
            Operation::Container { machine, id, op } => self.container(machine, id, op).await,
            Operation::Watches(op) => self.set_watches(op).await,
            Operation::PodNetwork(wanted) => self.set_pod_network(wanted).await,
            Operation::ApiServer(reach) => self.set_api_reach(reach).await,
            Operation::Upgrade { part, minor } => self.upgrade(part, minor).await,
            Operation::PodCidrs { withheld } => self.withhold_pod_cidrs(withheld).await,
        }
    }

    pub(super) async fn load_image(&self, archive: &Path) -> Result<(), ClusterError> {
        // Without '--all-platforms': Docker saves only the image of this machine's platform.
        let load = ["ctr", "--namespace", "k8s.io", "images", "import", "-"];
        let loads =
            self.machines.iter().map(|m| exec_ok(&self.engine, m, &load, Stdin::File(archive), LOAD_LIMIT));
        try_join_all(loads).await.map(drop)
    }

    async fn kubelet(&self, machine: &Machine, op: KubeletOp) -> Result<(), ClusterError> {
        let verb = match op {
            KubeletOp::Start => "start",
            KubeletOp::Stop => "stop",
            KubeletOp::Restart => "restart",
        };
        self.do_in(machine, &["systemctl", verb, "kubelet.service"]).await
    }

    async fn container(&self, machine: &Machine, id: &str, op: ContainerOp) -> Result<(), ClusterError> {
        let id = id.strip_prefix("containerd://").unwrap_or(id);
        let mut command = vec!["ctr", "--namespace", "k8s.io", "tasks"];
        match op {
            ContainerOp::Kill => command.extend(["kill", "--signal", "SIGKILL", id]),
            ContainerOp::Terminate => command.extend(["kill", "--signal", "SIGTERM", id]),
            ContainerOp::Freeze => command.extend(["pause", id]),
            ContainerOp::Thaw => command.extend(["resume", id]),
        }
        self.do_in(machine, &command).await
    }

    /// Switches it off: nothing on the machine gets a chance to shut down.
    async fn power_off(&self, machine: &Machine) -> Result<(), ClusterError> {
        self.note_switched_off(machine, true).map_err(ClusterError::file("note in", &self.folder))?;
        if let Err(error) = self.do_in(machine, &["sh", "-c", SETTLE]).await {
            tracing::debug!(machine = machine.name, error = chain(&error), "could not wait for runc");
        }
        let options = KillContainerOptionsBuilder::new().signal("SIGKILL").build();
        let docker = self.engine.docker();
        let call = docker.kill_container(&machine.container_id, Some(options));
        match self.engine.call("stop machine", &machine.name, LIMIT, call).await {
            // The signal is on its way: on a busy machine the process takes longer to end than Docker waits for it, and a
            // frozen one does not end.
            Err(error) if chain(&error).contains(ENDS_LATE) => drop(thaw(&machine.container_id)),
            other => other?,
        }
        let mut end = docker.wait_container(&machine.container_id, None);
        // A killed machine ends with a special status, which the library reports as an error.
        let call = async { end.next().await.map(drop).map_or(Ok(()), Ok) };
        Ok(self.engine.call("wait for the end of machine", &machine.name, END_LIMIT, call).await?)
    }

    /// Switches it on and waits until the machine's services have been started.
    async fn power_on(&self, stopped: &Machine) -> Result<(), ClusterError> {
        let docker = self.engine.docker();
        let (id, name) = (stopped.container_id.as_str(), stopped.name.as_str());
        network::reserve(&self.engine, &self.kind.network, stopped).await?;
        self.engine.call("start machine", name, LIMIT, docker.start_container(id, None)).await?;
        self.note_switched_off(stopped, false).map_err(ClusterError::file("note in", &self.folder))?;
        let found =
            self.engine.call("inspect container", name, LIMIT, docker.inspect_container(id, None)).await?;
        let since = found.state.as_ref().and_then(|state| state.started_at.as_deref()).and_then(unix_seconds);
        if machine(found, &self.kind.network).is_none() {
            return Err(ClusterError::Gone {
                what: format!("machine {name} as a part of network {}", self.kind.network),
            });
        }
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
            Ok(Ok(())) => return Ok(()),
            Ok(Err(last)) => format!("it ended, its last output: {}", last.trim()),
            Err(_) => "it is still booting".to_owned(),
        };
        Err(ClusterError::TimedOut { what: format!("the start of machine {name}"), limit: BOOT_LIMIT, seen })
    }

    async fn cut(&self, machine: &Machine, target: Target) -> Result<(), ClusterError> {
        self.filter(machine, target, r#"$iptables -C $chain "$@" 2> /dev/null || $iptables -I $chain "$@""#)
            .await
    }

    async fn restore(&self, machine: &Machine, target: Target) -> Result<(), ClusterError> {
        self.filter(machine, target, r#"while $iptables -D $chain "$@" 2> /dev/null; do :; done"#).await
    }

    /// Applies `rule` to both ways on which packets leave a machine: its own and those of Pods on its pod network.
    async fn filter(&self, machine: &Machine, target: Target, rule: &str) -> Result<(), ClusterError> {
        let port = API_SERVER_PORT.to_string();
        let (ip, which) = match target {
            // Requests to the machine from there are still answered: a cloud that is a process has the address of this
            // host.
            Target::Cloud(ip) => (ip, ["-m", "conntrack", "--ctdir", "ORIGINAL"]),
            Target::ApiServer(ip) => (ip, ["-p", "tcp", "--dport", &port]),
        };
        let program = if ip.is_ipv6() { "ip6tables" } else { "iptables" };
        let script = format!(
            "command -v {program} > /dev/null || exit 127\niptables='{program} -w 10'\nset -e\n\
             for chain in OUTPUT FORWARD; do {rule}; done"
        );
        let ip = ip.to_string();
        let mut command = vec!["sh", "-c", &script, "sh", "-d", &ip];
        command.extend(which);
        command.extend(["-j", "DROP"]);
        match self.do_in(machine, &command).await {
            Err(ClusterError::Command { status: 127, .. }) => Err(ClusterError::NotObservable {
                what: format!("cutting machine {} off", machine.name),
                why: format!("the node image has no {program}"),
            }),
            other => other,
        }
    }

    /// Makes all machines allow those clients, and refuse the others with a reset, on existing connections too.
    pub(super) async fn set_api_reach(&self, reach: ApiReach<'_>) -> Result<(), ClusterError> {
        if let ApiReach::AllBut(pods) = reach
            && let Some(pod) = pods.iter().find(|pod| !is_distinguishable(pod))
        {
            return Err(ClusterError::NotObservable {
                what: Operation::ApiServer(reach).to_string(),
                why: format!("packets of Pod {} cannot be distinguished from those of its machine", pod.name),
            });
        }
        self.with_rules(reach, &replacing(), "", LIMIT).await.map(drop)
    }

    /// Refuses all clients for that long. Each machine counts the time itself, so that it does not depend on how fast
    /// commands get there. Returns how long it was from the first machine that refused to the last one that no longer did.
    pub(super) async fn api_outage(&self, lasts: Duration) -> Result<Duration, ClusterError> {
        let seconds = lasts.as_secs_f64().to_string();
        let outputs = self.with_rules(ApiReach::None, &an_outage(), &seconds, lasts + LIMIT).await?;
        duration(&outputs).ok_or_else(|| ClusterError::Gone {
            what: format!("the time of an outage of the API server ('{}')", outputs.join("', '")),
        })
    }

    /// Runs a script on all machines for each family of their addresses, with these rules as its standard input, and
    /// returns the outputs.
    async fn with_rules(
        &self,
        reach: ApiReach<'_>,
        script: &str,
        argument: &str,
        limit: Duration,
    ) -> Result<Vec<String>, ClusterError> {
        let port = API_SERVER_PORT.to_string();
        let mut all = Vec::new();
        for machine in &self.machines {
            let of_v4 = machine.ipv4.map(|ip| ("iptables", ip.to_string(), rules(reach, IpAddr::is_ipv4)));
            let of_v6 = machine.ipv6.map(|ip| ("ip6tables", ip.to_string(), rules(reach, IpAddr::is_ipv6)));
            all.extend([of_v4, of_v6].into_iter().flatten().map(async |(program, address, rules)| {
                let command = ["sh", "-c", script, "sh", program, &port, &address, argument];
                let output = exec_ok(&self.engine, machine, &command, Stdin::Text(&rules), limit).await?;
                Ok(output.stdout)
            }));
        }
        try_join_all(all).await
    }

    async fn do_in(&self, machine: &Machine, argv: &[&str]) -> Result<(), ClusterError> {
        exec_ok(&self.engine, machine, argv, Stdin::Empty, LIMIT).await.map(drop)
    }
}

/// Converts a time in Docker's format to seconds since 1970.
fn unix_seconds(text: &str) -> Option<i32> {
    let at: jiff::Timestamp = text.parse().ok()?;
    i32::try_from(at.as_second()).ok()
}
