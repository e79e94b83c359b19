//! The agent: it opens connections to the server that wait there until each becomes a tunnel.

use super::tls::{TunnelTls, connect};
use super::variation::Variation;
use super::{Stream, line};
use fake_cloud_recording::faults::pause;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// How long a dial may take; the server waits a little longer.
const DIAL_LIMIT: Duration = Duration::from_secs(4);
/// Delay before it connects again to a server that was unavailable.
const AGAIN: Duration = Duration::from_millis(250);
/// How long connecting to the server may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// The port of kubelets.
const KUBELET: &str = ":10250";
/// How long conforming variants wait before they connect for the first time.
const LATE: &[(&str, Duration)] =
    &[("S-NP-02", Duration::from_secs(12)), ("S-NP-04", Duration::from_secs(5))];

/// An agent.
#[derive(Clone, Debug)]
pub(super) struct Agent {
    /// The server's address.
    pub(super) server: String,
    /// The name in the server's certificate.
    pub(super) server_name: String,
    /// Its own name.
    pub(super) name: String,
    /// What distinguishes this process from an earlier one with the same name.
    pub(super) number: u64,
    /// The number of its waiting connections.
    pub(super) waiting: usize,
    /// Its certificates.
    pub(super) tls: TunnelTls,
    /// Its bug.
    pub(super) odd: Variation,
}

impl Agent {
    /// Runs until it is dropped.
    pub(super) async fn run(self) {
        for (_, late) in LATE.iter().filter(|(id, _)| self.odd.is(id)) {
            pause(*late).await;
        }
        let places = Arc::new(Semaphore::new(self.waiting));
        while let Ok(place) = places.clone().acquire_owned().await {
            match timeout(CONNECT_LIMIT, self.wait_at_server()).await {
                Ok(Ok(stream)) => {
                    let agent = self.clone();
                    tokio::spawn(async move {
                        let mut stream = stream;
                        let Ok(asked) = line(&mut stream).await else { return };
                        // Its slot is free from now on.
                        drop(place);
                        if let Err(error) = agent.tunnel(stream, &asked).await {
                            tracing::debug!(%error, asked, "a tunnel ended");
                        }
                    });
                }
                failed => {
                    let why = failed.map_or_else(
                        |_| "no answer".to_owned(),
                        |it| it.err().map(|e| system_errors::why(&e)).unwrap_or_default(),
                    );
                    tracing::info!(server = self.server, why, "the server cannot be reached");
                    pause(AGAIN).await;
                }
            }
        }
    }

    async fn wait_at_server(&self) -> io::Result<impl Stream + use<>> {
        let mut stream = connect(&self.tls, &self.server, &self.server_name).await?;
        stream.write_all(format!("AGENT {} {}\n", self.name, self.number).as_bytes()).await?;
        stream.flush().await?;
        Ok(stream)
    }

    async fn tunnel(&self, mut server: impl Stream, asked: &str) -> io::Result<()> {
        let target = asked.strip_prefix("DIAL ").ok_or_else(|| io::Error::other("the request is unknown"))?;
        let refused =
            (self.odd.is("M-NP-03") && !target.ends_with(KUBELET)).then(|| "not a kubelet".to_owned());
        let dialled = match refused {
            Some(why) => Err(why),
            None => match timeout(DIAL_LIMIT, TcpStream::connect(target)).await {
                Ok(Ok(peer)) => Ok(peer),
                Ok(Err(error)) => Err(system_errors::why(&error)),
                Err(_) => Err(format!("no answer in {} s", DIAL_LIMIT.as_secs())),
            },
        };
        match dialled {
            Ok(mut peer) => {
                peer.set_nodelay(true)?;
                server.write_all(b"OK\n").await?;
                server.flush().await?;
                copy_bidirectional(&mut server, &mut peer).await.map(drop)
            }
            Err(_) if self.odd.is("M-NP-07e") => self.odd.ends(),
            Err(why) => {
                server.write_all(format!("FAIL {}\n", why.replace('\n', " ")).as_bytes()).await?;
                server.shutdown().await
            }
        }
    }
}
