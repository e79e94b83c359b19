//! How the processes of a run reach the machines of an embedded cluster: a socket in the run's folder, one line of JSON
//! each way. The folder is its owner's alone, and so is the socket.

use crate::cluster::ClusterError;
use embedded_controllers::{ContainerSignal, NoSuch, Nodes, PodNetwork, Pods};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

/// How long an order may take; each is carried out at once.
const LIMIT: Duration = Duration::from_secs(10);

/// Something to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub(super) enum Order {
    /// To a machine.
    Machine {
        /// Its name.
        name: String,
        /// What.
        op: MachineOrder,
    },
    /// The pod network comes or goes, on all machines.
    PodNetwork {
        /// Whether there shall be one.
        present: bool,
    },
    /// To a container's process.
    Container {
        /// Its id, as the Pod's status has it.
        id: String,
        /// What.
        op: ContainerOrder,
    },
}

/// What is done to a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum MachineOrder {
    StartKubelet,
    StopKubelet,
    RestartKubelet,
    PowerOff,
    PowerOn,
}

/// What is done to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ContainerOrder {
    Kill,
    Terminate,
    Pause,
    Resume,
}

/// The listening end. Ends when dropped.
#[derive(Debug)]
pub(super) struct Control {
    task: JoinHandle<()>,
}

impl Drop for Control {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Control {
    pub(super) fn listen(
        socket: &Path,
        controllers: &embedded_controllers::Running,
    ) -> Result<Control, ClusterError> {
        let listener = UnixListener::bind(socket).map_err(ClusterError::file("listen at", socket))?;
        let (nodes, pods) = (controllers.nodes(), controllers.pods());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (nodes, pods) = (nodes.clone(), pods.clone());
                tokio::spawn(async move {
                    // Whoever breaks off gets no answer.
                    let _ = answer(stream, &nodes, &pods).await;
                });
            }
        });
        Ok(Control { task })
    }
}

async fn answer(stream: UnixStream, nodes: &Nodes, pods: &Pods) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let outcome: Result<(), String> = match serde_json::from_str::<Order>(&line) {
        Ok(order) => carry_out(order, nodes, pods).map_err(|error| error.to_string()),
        Err(error) => Err(format!("no order: {error}")),
    };
    let mut text = serde_json::to_string(&outcome)?;
    text.push('\n');
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await
}

fn carry_out(order: Order, nodes: &Nodes, pods: &Pods) -> Result<(), NoSuch> {
    match order {
        Order::Machine { name, op } => match op {
            MachineOrder::StartKubelet => nodes.start_kubelet(&name),
            MachineOrder::StopKubelet => nodes.stop_kubelet(&name),
            MachineOrder::RestartKubelet => nodes.restart_kubelet(&name),
            MachineOrder::PowerOff => nodes.stop(&name),
            MachineOrder::PowerOn => nodes.start(&name),
        },
        Order::PodNetwork { present } => {
            nodes.set_network(if present { PodNetwork::Independent } else { PodNetwork::None });
            Ok(())
        }
        Order::Container { id, op } => pods.signal_container(
            &id,
            match op {
                ContainerOrder::Kill => ContainerSignal::Kill,
                ContainerOrder::Terminate => ContainerSignal::Terminate,
                ContainerOrder::Pause => ContainerSignal::Pause,
                ContainerOrder::Resume => ContainerSignal::Resume,
            },
        ),
    }
}

/// Sends an order to the cluster behind `socket` and waits until it is carried out.
pub(super) async fn send(socket: &PathBuf, order: &Order) -> Result<(), ClusterError> {
    let said = async {
        let mut stream = BufReader::new(UnixStream::connect(socket).await?);
        let mut text = serde_json::to_string(order)?;
        text.push('\n');
        stream.write_all(text.as_bytes()).await?;
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        std::io::Result::Ok(line)
    };
    let line = match tokio::time::timeout(LIMIT, said).await {
        Ok(Ok(line)) => line,
        Ok(Err(error)) => {
            return Err(ClusterError::Gone {
                what: format!("the embedded cluster at {} ({error})", socket.display()),
            });
        }
        Err(_) => {
            return Err(ClusterError::TimedOut {
                what: format!("{order:?}"),
                limit: LIMIT,
                seen: "no answer from the embedded cluster".to_owned(),
            });
        }
    };
    match serde_json::from_str::<Result<(), String>>(&line) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(why)) => Err(ClusterError::Embedded { cause: why }),
        Err(_) => Err(ClusterError::Gone { what: "the embedded cluster".to_owned() }),
    }
}
