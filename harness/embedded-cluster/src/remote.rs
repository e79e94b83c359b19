//! How other processes reach machines and Pods: a Unix socket, one line of JSON each way. Whoever may open the socket
//! may do everything, so it belongs into a folder that is its owner's alone.

use crate::audit::{AuditEntry, AuditQuery};
use crate::orders::{MachineOperation, Order, OutOfReach, WatchOperation};
use embedded_apiserver::Running as Server;
use embedded_controllers::{ContainerSignal, Nodes, PodNetwork, Pods};
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Weak;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

/// How long an order may take; each is carried out at once.
const LIMIT: Duration = Duration::from_secs(10);

/// A cluster of another process, by its socket ([`crate::Cluster::serve`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    socket: PathBuf,
}

/// Why an order to a cluster of another process was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// Nobody answers at the socket: the cluster's process has ended, or never was.
    #[error("the embedded cluster at {} is gone", socket.display())]
    Gone {
        /// The socket.
        socket: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The order was taken and not answered in time.
    #[error("the embedded cluster at {} did not answer within {limit:?}", socket.display())]
    Silent {
        /// The socket.
        socket: PathBuf,
        /// How long was waited.
        limit: Duration,
    },
    /// The cluster has no such machine or container.
    #[error("{why}")]
    Refused {
        /// As the cluster says it.
        why: String,
    },
}

impl Remote {
    /// The cluster that serves this socket. Asks nobody: the first order shows whether it is there.
    #[must_use]
    pub fn new(socket: impl Into<PathBuf>) -> Remote {
        Remote { socket: socket.into() }
    }

    /// Does something to a machine; returns once it is done.
    ///
    /// # Errors
    /// The cluster is gone, or has no such machine.
    pub async fn machine(&self, name: &str, operation: MachineOperation) -> Result<(), RemoteError> {
        self.send(&Order::Machine { name: name.to_owned(), operation }).await
    }

    /// Replaces the pod network of all machines.
    ///
    /// # Errors
    /// The cluster is gone.
    pub async fn set_network(&self, network: PodNetwork) -> Result<(), RemoteError> {
        self.send(&Order::PodNetwork { network }).await
    }

    /// Does something to the watches of service accounts.
    ///
    /// # Errors
    /// The cluster is gone.
    pub async fn watches(&self, operation: WatchOperation) -> Result<(), RemoteError> {
        self.send(&Order::Watches { operation }).await
    }

    /// Gives new Nodes no pod ranges from now on, or gives them again.
    ///
    /// # Errors
    /// The cluster is gone.
    pub async fn withhold_pod_cidrs(&self, withheld: bool) -> Result<(), RemoteError> {
        self.send(&Order::PodCidrs { withheld }).await
    }

    /// Sends a signal to the process of a container by its id, as the Pod's status has it.
    ///
    /// # Errors
    /// The cluster is gone, or no such container runs.
    pub async fn signal_container(&self, id: &str, signal: ContainerSignal) -> Result<(), RemoteError> {
        self.send(&Order::Container { id: id.to_owned(), signal }).await
    }

    /// Puts service accounts out of the API server's reach, and all others back within it.
    ///
    /// # Errors
    /// The cluster is gone.
    pub async fn part(&self, without: OutOfReach) -> Result<(), RemoteError> {
        self.send(&Order::Reach { without }).await
    }

    /// What was asked of the API server, as far as it remembers it.
    ///
    /// # Errors
    /// The cluster is gone.
    pub async fn audit(&self, query: AuditQuery) -> Result<Vec<AuditEntry>, RemoteError> {
        let told = self.answer_to(&Order::Audit { query }).await?;
        let gone = |error: serde_json::Error| RemoteError::Gone {
            socket: self.socket.clone(),
            source: error.into(),
        };
        serde_json::from_value(told).map_err(gone)
    }

    async fn send(&self, order: &Order) -> Result<(), RemoteError> {
        self.answer_to(order).await.map(drop)
    }

    async fn answer_to(&self, order: &Order) -> Result<Value, RemoteError> {
        let gone = |source| RemoteError::Gone { socket: self.socket.clone(), source };
        let said = tokio::time::timeout(LIMIT, self.ask(order)).await;
        let silent = |_| RemoteError::Silent { socket: self.socket.clone(), limit: LIMIT };
        let line = said.map_err(silent)?.map_err(gone)?;
        let answer: Result<Value, String> =
            serde_json::from_str(&line).map_err(|error| gone(error.into()))?;
        answer.map_err(|why| RemoteError::Refused { why })
    }

    async fn ask(&self, order: &Order) -> io::Result<String> {
        let mut stream = BufReader::new(UnixStream::connect(&self.socket).await?);
        let mut text = serde_json::to_string(order)?;
        text.push('\n');
        stream.write_all(text.as_bytes()).await?;
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        Ok(line)
    }
}

/// The listening end. Ends when dropped.
#[derive(Debug)]
pub struct Serving {
    task: JoinHandle<()>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Listens at this path, which must be free.
pub(crate) fn serve(socket: &Path, nodes: Nodes, pods: Pods, server: Weak<Server>) -> io::Result<Serving> {
    let listener = UnixListener::bind(socket)?;
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A server that is going answers nobody.
            let Some(server) = server.upgrade() else { continue };
            let (nodes, pods) = (nodes.clone(), pods.clone());
            tokio::spawn(async move {
                // Whoever breaks off gets no answer.
                let _ = answer(stream, &nodes, &pods, &server).await;
            });
        }
    });
    Ok(Serving { task })
}

async fn answer(stream: UnixStream, nodes: &Nodes, pods: &Pods, server: &Server) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let outcome: Result<Value, String> = match serde_json::from_str::<Order>(&line) {
        Ok(order) => order.carry_out(nodes, pods, server).map_err(|error| error.to_string()),
        Err(error) => Err(format!("no order: {error}")),
    };
    let mut text = serde_json::to_string(&outcome)?;
    text.push('\n');
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await
}
