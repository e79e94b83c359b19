//! The reference of a network proxy: an HTTP CONNECT server beside an API server, and agents that dial for it.
//!
//! The API server asks for a tunnel by HTTP CONNECT, over TLS with certificates on both sides or over a Unix socket
//! (`k8s.io/apiserver` `pkg/server/egressselector`). Agents connect to the server, each with some connections that wait:
//! a connection becomes one tunnel, and its agent opens another in its place. Between server and agent a line each:
//! `AGENT name number`, then `DIAL host:port`, then `OK` or `FAIL reason`, then what the tunnel carries.

mod agent;
mod certificates;
mod command;
mod odd;
mod peer;
mod server;
mod tls;

#[cfg(test)]
mod tests;

pub use certificates::{AGENT_FILES, CLIENT_FILES, SERVER_FILES, write_certificates};
pub use command::{mutant_main, reference_main};
pub use odd::{MUTANTS, STRANGERS};
pub use peer::{GREETING, GROUP, PEER, peer_main};
pub use tls::{TunnelTls, connect};

use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

/// The longest line between server and agent, bytes.
const LONGEST_LINE: usize = 512;

/// What a tunnel runs over.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Reads a line, and no byte more.
async fn line(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<String> {
    let mut text = Vec::new();
    loop {
        match stream.read_u8().await? {
            b'\n' => return Ok(String::from_utf8_lossy(&text).trim().to_owned()),
            _ if text.len() >= LONGEST_LINE => return Err(io::Error::other("a line is too long")),
            byte => text.push(byte),
        }
    }
}
