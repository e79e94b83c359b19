//! HTTP CONNECT as an API server uses it, and a peer for the other end of a tunnel.

use harness_core::files;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// Maximum size of the head of an answer, in bytes.
const LONGEST_HEAD: usize = 16 << 10;

/// A connection to a server.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// The result of a CONNECT.
pub enum Asked {
    /// Status 200.
    Tunnel(Tunnel),
    /// Another status, after this time.
    Refused(u16, Duration),
    /// The connection ended without an answer, or could not be opened.
    Ended(String, Duration),
    /// No answer in all that time.
    Silent(Duration),
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Asked::Tunnel(tunnel) => write!(f, "an answer 200 after {:.1} s", tunnel.took.as_secs_f64()),
            Asked::Refused(status, took) => write!(f, "an answer {status} after {:.1} s", took.as_secs_f64()),
            Asked::Ended(why, took) => write!(f, "no answer, but {why} after {:.1} s", took.as_secs_f64()),
            Asked::Silent(limit) => write!(f, "nothing in {} s", limit.as_secs()),
        }
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A tunnel after status 200.
pub struct Tunnel {
    /// The head of the answer.
    pub head: String,
    /// How long the answer took.
    pub took: Duration,
    behind: Vec<u8>,
    stream: Box<dyn Stream>,
}

impl fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tunnel").field("head", &self.head).finish_non_exhaustive()
    }
}

impl Tunnel {
    /// The data after the head, for a peer that sends nothing, until there was none for that long.
    pub async fn unasked(&mut self, quiet: Duration) -> Vec<u8> {
        let mut part = [0; 1024];
        while let Ok(Ok(length @ 1..)) = timeout(quiet, self.stream.read(&mut part)).await {
            self.behind.extend_from_slice(&part[..length]);
        }
        std::mem::take(&mut self.behind)
    }

    /// Sends data to a peer that echoes it, and reads the same amount back.
    ///
    /// # Errors
    /// What was received instead, as text.
    pub async fn echoed(self, content: &[u8], limit: Duration) -> Result<(), String> {
        let (mut from, mut to) = tokio::io::split(self.stream);
        let mut back = self.behind;
        let all = async {
            let send = async {
                to.write_all(content).await?;
                to.flush().await
            };
            let read = async {
                let mut part = vec![0; 64 << 10];
                while back.len() < content.len() {
                    match from.read(&mut part).await? {
                        0 => break,
                        length => back.extend_from_slice(&part[..length]),
                    }
                }
                Ok(())
            };
            tokio::try_join!(send, read).map(drop)
        };
        let ended: Result<io::Result<()>, _> = timeout(limit, all).await;
        if back == content {
            return Ok(());
        }
        let same = back.iter().zip(content).take_while(|(one, other)| one == other).count();
        let how = match ended {
            Ok(Ok(())) => "then the end".to_owned(),
            Ok(Err(error)) => files::why(&error),
            Err(_) => format!("then nothing in {} s", limit.as_secs()),
        };
        Err(format!("{} of {} bytes, the first {same} of them right; {how}", back.len(), content.len()))
    }
}

/// Requests a tunnel on a connection that is being opened, which may take as long as the answer.
pub(super) async fn ask<S: Stream + 'static>(
    connecting: impl Future<Output = io::Result<S>>,
    target: &str,
    limit: Duration,
) -> Asked {
    let began = Instant::now();
    let mut stream = match timeout(limit, connecting).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Asked::Ended(files::why(&error), began.elapsed()),
        Err(_) => return Asked::Silent(limit),
    };
    let began = Instant::now();
    let asked = async {
        stream.write_all(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").as_bytes()).await?;
        stream.flush().await?;
        let (mut read, mut part) = (Vec::new(), [0; 1024]);
        loop {
            let length = stream.read(&mut part).await?;
            read.extend_from_slice(&part[..length]);
            if let Some(at) = read.windows(4).position(|four| four == b"\r\n\r\n") {
                let behind = read.split_off(at + 4);
                return Ok((String::from_utf8_lossy(&read).into_owned(), behind, stream));
            }
            if length == 0 || read.len() > LONGEST_HEAD {
                return Err(io::Error::other("the connection ended before the head of an answer"));
            }
        }
    };
    let answered: Result<io::Result<_>, _> = timeout(limit, asked).await;
    let took = began.elapsed();
    match answered {
        Err(_) => Asked::Silent(limit),
        Ok(Err(error)) => Asked::Ended(files::why(&error), took),
        Ok(Ok((head, behind, stream))) => {
            let status =
                head.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1)?.trim().parse().ok());
            match status {
                Some(200) => Asked::Tunnel(Tunnel { head, took, behind, stream: Box::new(stream) }),
                Some(status) => Asked::Refused(status, took),
                None => Asked::Ended(format!("'{}' for an answer", head.trim()), took),
            }
        }
    }
}

/// A peer that echoes everything it receives, and sends nothing by itself.
#[derive(Debug)]
pub struct Echo {
    address: SocketAddr,
    task: AbortHandle,
}

impl Echo {
    /// Starts one at a port of this machine.
    ///
    /// # Errors
    /// There is no port.
    pub async fn new() -> io::Result<Echo> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let serving = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = stream.split();
                    let _ = copy(&mut from, &mut to).await;
                });
            }
        });
        Ok(Echo { address, task: serving.abort_handle() })
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.task.abort();
    }
}
