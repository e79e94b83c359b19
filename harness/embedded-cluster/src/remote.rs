//! Access to machines and Pods for other processes: a Unix socket, one line of JSON in each direction. Every
//! process that can open the socket can do everything, so it belongs in a folder that only its owner can
//! open.

use crate::audit::{AuditEntry, AuditQuery};
use crate::orders::{MachineOperation, Order, OutOfReach, WatchOperation};
use crate::version::KubernetesVersion;
use embedded_apiserver::{RequestFault, RequestFaultState, Running as Server};
use embedded_controllers::{ContainerSignal, Nodes, PodNetwork, Pods};
use serde::de::DeserializeOwned;
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

/// A cluster in another process, reached through its socket ([`crate::Cluster::serve`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    socket: PathBuf,
}

/// The reason why an order to a cluster in another process was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// Nothing answers at the socket: the cluster's process has ended, or was never started.
    #[error("the embedded cluster at {} is gone", socket.display())]
    Gone {
        /// The socket.
        socket: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The order was sent and not answered in time.
    #[error("the embedded cluster at {} did not answer within {limit:?}", socket.display())]
    Silent {
        /// The socket.
        socket: PathBuf,
        /// How long the client waited.
        limit: Duration,
    },
    /// The cluster has no such machine or container.
    #[error("{why}")]
    Refused {
        /// The message of the cluster.
        why: String,
    },
}

impl Remote {
    /// The cluster with this socket. No connection is made yet: the first order shows whether the cluster is there.
    #[must_use]
    pub fn new(socket: impl Into<PathBuf>) -> Remote {
        Remote { socket: socket.into() }
    }

    /// Carries out an operation on a machine; returns when it is done.
    ///
    /// # Errors
    /// The cluster is gone, or has no such machine.
    pub async fn machine(&self, name: &str, operation: MachineOperation) -> Result<(), RemoteError> {
        self.send(&Order::Machine { name: name.to_owned(), operation }).await
    }

    /// Replaces API server, scheduler and controllers by those of another version. The watches of service accounts end.
    ///
    /// # Errors
    /// The cluster is gone.
    pub async fn replace_control_plane(&self, version: KubernetesVersion) -> Result<(), RemoteError> {
        self.send(&Order::ReplaceControlPlane { version }).await
    }

    /// Replaces the kubelet of a machine by that of another version, which starts at once.
    ///
    /// # Errors
    /// The cluster is gone, or has no such machine.
    pub async fn replace_kubelet(&self, name: &str, version: KubernetesVersion) -> Result<(), RemoteError> {
        self.send(&Order::ReplaceKubelet { name: name.to_owned(), version }).await
    }

    /// Replaces the pod network of all machines.
    ///
    /// # Errors
    /// The cluster is gone.
    pub async fn set_network(&self, network: PodNetwork) -> Result<(), RemoteError> {
        self.send(&Order::PodNetwork { network }).await
    }

    /// Carries out an operation on the watches of service accounts.
    ///
    /// # Errors
    /// The cluster is gone.
    pub async fn watches(&self, operation: WatchOperation) -> Result<(), RemoteError> {
        self.send(&Order::Watches { operation }).await
    }

    /// Stops or resumes the assignment of pod ranges to new Nodes.
    ///
    /// # Errors
    /// The cluster is gone.
    pub async fn withhold_pod_cidrs(&self, withheld: bool) -> Result<(), RemoteError> {
        self.send(&Order::PodCidrs { withheld }).await
    }

    /// Sends a signal to the process of a container by its id, as in the Pod's status.
    ///
    /// # Errors
    /// The cluster is gone, or no such container runs.
    pub async fn signal_container(&self, id: &str, signal: ContainerSignal) -> Result<(), RemoteError> {
        self.send(&Order::Container { id: id.to_owned(), signal }).await
    }

    /// Makes the API server unreachable for these service accounts, and reachable again for all others.
    ///
    /// # Errors
    /// The cluster is gone.
    pub async fn part(&self, without: OutOfReach) -> Result<(), RemoteError> {
        self.send(&Order::CurrentPartition { without }).await
    }

    /// Reads the requests to the API server, as far as the audit log still has them.
    ///
    /// # Errors
    /// The cluster is gone.
    pub async fn audit(&self, query: AuditQuery) -> Result<Vec<AuditEntry>, RemoteError> {
        self.value(&Order::Audit { query }).await
    }

    /// Sets a fault of requests of service accounts, under an id that the caller chooses.
    ///
    /// # Errors
    /// The cluster is gone.
    pub async fn set_request_fault(&self, id: u64, fault: RequestFault) -> Result<(), RemoteError> {
        self.send(&Order::SetRequestFault { id, fault }).await
    }

    /// What a fault of requests has done so far; `None` if there is none with this id.
    ///
    /// # Errors
    /// The cluster is gone.
    pub async fn request_fault(&self, id: u64) -> Result<Option<RequestFaultState>, RemoteError> {
        self.value(&Order::RequestFaultState { id }).await
    }

    /// Removes a fault of requests; those that it holds continue.
    ///
    /// # Errors
    /// The cluster is gone.
    pub async fn clear_request_fault(&self, id: u64) -> Result<(), RemoteError> {
        self.send(&Order::ClearRequestFault { id }).await
    }

    async fn value<T: DeserializeOwned>(&self, order: &Order) -> Result<T, RemoteError> {
        let value = self.answer_to(order).await?;
        let gone = |error: serde_json::Error| RemoteError::Gone {
            socket: self.socket.clone(),
            source: error.into(),
        };
        serde_json::from_value(value).map_err(gone)
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

/// The listening end. Stops listening when dropped.
#[derive(Debug)]
pub struct Serving {
    task: JoinHandle<()>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Listens on this path, which must be free.
pub(crate) fn serve(socket: &Path, nodes: Nodes, pods: Pods, server: Weak<Server>) -> io::Result<Serving> {
    let listener = UnixListener::bind(socket)?;
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A server that is stopping answers no order.
            let Some(server) = server.upgrade() else { continue };
            let (nodes, pods) = (nodes.clone(), pods.clone());
            tokio::spawn(async move {
                // A client that disconnects gets no answer.
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
