//! TLS for dialects whose clients call the vendor's own host names.
//!
//! Such a client reaches the cloud as its HTTPS proxy: it sends `CONNECT HOST:443`, and the cloud answers as that
//! host itself, with a certificate of its own CA. It never opens a connection to anything, and refuses hosts that
//! do not belong to the dialect. The key of the CA exists only in this process.

use certificates::{Authority, CertificateError};
use fake_cloud_kit::DialectInfo;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How long a client may take for the request to connect and the TLS handshake.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
/// The beginning of a request to connect.
const CONNECT: &[u8] = b"CONNECT ";
/// The largest head of a request to connect, in bytes.
const HEAD_LIMIT_BYTES: usize = 8 << 10;
/// How many hosts have a certificate at the same time; beyond that, all are made again.
const MOST_HOSTS: usize = 64;

/// The CA of a cloud, and the hosts for which it answers.
pub(crate) struct Tls {
    authority: Authority,
    hosts: &'static [&'static str],
    acceptors: Mutex<BTreeMap<String, TlsAcceptor>>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

impl Tls {
    /// A new CA for the hosts of a dialect; `None` if it has none.
    pub(crate) fn of(info: &DialectInfo) -> Result<Option<Tls>, CertificateError> {
        if info.hosts.is_empty() {
            return Ok(None);
        }
        let authority = Authority::new("ccm-conformance fake cloud")?;
        Ok(Some(Tls { authority, hosts: info.hosts, acceptors: Mutex::default() }))
    }

    /// The certificate of the CA, in PEM.
    pub(crate) fn ca(&self) -> String {
        self.authority.pem()
    }

    /// Serves a request to connect, if the connection begins with one; otherwise nothing of it has been read.
    pub(super) async fn begin(&self, stream: TcpStream) -> io::Result<Begun> {
        let mut first = [0; CONNECT.len()];
        if stream.peek(&mut first).await? == 0 || first[0] != CONNECT[0] {
            return Ok(Begun::Plain(stream));
        }
        match tokio::time::timeout(HANDSHAKE_LIMIT, self.connect(stream)).await {
            Ok(begun) => begun,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    async fn connect(&self, mut stream: TcpStream) -> io::Result<Begun> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() >= HEAD_LIMIT_BYTES {
                return refuse(stream, "431 Request Header Fields Too Large", "the head is too long").await;
            }
            head.push(stream.read_u8().await?);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let mut line = head.lines().next().unwrap_or_default().split(' ');
        let (Some("CONNECT"), Some(target)) = (line.next(), line.next()) else {
            return refuse(stream, "400 Bad Request", "not a request to connect").await;
        };
        let host = target.rsplit_once(':').map_or(target, |(host, _)| host).to_ascii_lowercase();
        if !answers_for(self.hosts, &host) {
            let why = "the fake cloud answers only for the hosts of its dialect and connects to nothing";
            return refuse(stream, "403 Forbidden", why).await;
        }
        let acceptor = self.acceptor(&host).map_err(io::Error::other)?;
        stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
        Ok(Begun::Encrypted(Box::new(acceptor.accept(stream).await?)))
    }

    /// The acceptor with a certificate for this host.
    fn acceptor(&self, host: &str) -> Result<TlsAcceptor, CertificateError> {
        let mut acceptors = self.acceptors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(acceptor) = acceptors.get(host) {
            return Ok(acceptor.clone());
        }
        let acceptor = self.authority.acceptor(&[host.to_owned()], &["http/1.1"])?;
        if acceptors.len() >= MOST_HOSTS {
            acceptors.clear();
        }
        acceptors.insert(host.to_owned(), acceptor.clone());
        Ok(acceptor)
    }
}

/// A connection whose first bytes are known.
pub(super) enum Begun {
    /// Plain HTTP.
    Plain(TcpStream),
    /// TLS, after a request to connect.
    Encrypted(Box<TlsStream<TcpStream>>),
    /// It was refused and is over.
    Ended,
}

async fn refuse(mut stream: TcpStream, status: &str, why: &str) -> io::Result<Begun> {
    let length = why.len();
    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{why}");
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    Ok(Begun::Ended)
}

/// Whether a host is one of these; one that begins with a dot stands for all hosts below it.
fn answers_for(hosts: &[&str], host: &str) -> bool {
    hosts.iter().any(|known| match known.strip_prefix('.') {
        Some(_) => host.len() > known.len() && host.ends_with(known),
        None => host == *known,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_answers_only_for_the_hosts_of_its_dialect() {
        let hosts = &["management.azure.com", ".management.azure.com"];
        for (host, known) in [
            ("management.azure.com", true),
            ("eastus.management.azure.com", true),
            (".management.azure.com", false),
            ("evilmanagement.azure.com", false),
            ("azure.com", false),
            ("", false),
        ] {
            assert_eq!(answers_for(hosts, host), known, "{host}");
        }
    }
}
