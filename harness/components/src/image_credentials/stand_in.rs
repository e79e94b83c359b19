//! A replacement of a plugin's cloud that fails.

use harness_core::probe::pause;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// How a cloud fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Nothing listens.
    Refuses,
    /// Connections are accepted but get no answer.
    IsSilent,
    /// All calls get this HTTP status.
    Answers(u16),
}

/// Longer than any plugin waits.
const NEVER: Duration = Duration::from_secs(600);

/// A cloud that fails, until it is dropped.
#[derive(Debug)]
pub struct StandIn {
    url: String,
    task: Option<JoinHandle<()>>,
    connections: Arc<AtomicUsize>,
}

impl Drop for StandIn {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl StandIn {
    /// Starts it.
    ///
    /// # Errors
    /// There is no free port on loopback.
    pub async fn begin(behaviour: Behaviour) -> io::Result<StandIn> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let connections = Arc::default();
        let served = |status| tokio::spawn(serve(listener, status, Arc::clone(&connections)));
        let task = match behaviour {
            Behaviour::Refuses => None,
            Behaviour::IsSilent => Some(served(None)),
            Behaviour::Answers(status) => Some(served(Some(status))),
        };
        Ok(StandIn { url, task, connections })
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Whether a client has connected to it; `None` if nothing listens, so that it is unknown.
    pub fn was_asked(&self) -> Option<bool> {
        self.task.as_ref().map(|_| self.connections.load(Ordering::Relaxed) > 0)
    }
}

async fn serve(listener: TcpListener, status: Option<u16>, connections: Arc<AtomicUsize>) {
    let mut answers = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.fetch_add(1, Ordering::Relaxed);
        answers.spawn(answer(stream, status));
        while answers.try_join_next().is_some() {}
    }
}

async fn answer(mut stream: TcpStream, status: Option<u16>) {
    let Some(status) = status else { return pause(NEVER).await };
    let (mut request, mut part) = (Vec::new(), [0; 1024]);
    while !request.windows(4).any(|signs| signs == b"\r\n\r\n") {
        match stream.read(&mut part).await {
            Ok(length) if length > 0 => request.extend_from_slice(&part[..length]),
            Ok(_) | Err(_) => return,
        }
    }
    let answer = format!(
        "HTTP/1.1 {status} Fails\r\nContent-Type: text/plain\r\nContent-Length: 6\r\nConnection: close\r\n\r\nfails\n"
    );
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_cloud_fails_as_configured() {
        let get = async |cloud: &StandIn| {
            let client =
                reqwest::Client::builder().timeout(Duration::from_millis(500)).build().expect("a client");
            client.get(format!("{}/v3/token", cloud.url())).send().await
        };
        let _ = rustls::crypto::ring::default_provider().install_default();
        let failing = StandIn::begin(Behaviour::Answers(503)).await.expect("a port");
        assert_eq!(failing.was_asked(), Some(false));
        assert_eq!(get(&failing).await.expect("an answer").status(), 503);
        assert_eq!(failing.was_asked(), Some(true));
        let silent = StandIn::begin(Behaviour::IsSilent).await.expect("a port");
        assert!(get(&silent).await.expect_err("no answer").is_timeout());
        assert_eq!(silent.was_asked(), Some(true));
        let absent = StandIn::begin(Behaviour::Refuses).await.expect("a port");
        assert!(get(&absent).await.expect_err("nothing listens there").is_connect());
        assert_eq!(absent.was_asked(), None);
    }
}
