//! The reference network proxy: an HTTP CONNECT server next to an API server, and agents that dial for it.
//!
//! The API server requests a tunnel by HTTP CONNECT, over TLS with certificates on both sides or over a Unix socket
//! (`k8s.io/apiserver` `pkg/server/egressselector`). Agents open some connections to the server that wait there: a
//! connection becomes one tunnel, and its agent opens another one. Server and agent exchange one line each: `AGENT name
//! number`, then `DIAL host:port`, then `OK` or `FAIL reason`, then the tunnel's data.

mod agent;
mod certificates;
mod command;
mod peer;
mod server;
mod tls;
mod variation;

#[cfg(test)]
mod tests;

pub use certificates::{AGENT_FILES, CLIENT_FILES, SERVER_FILES, write_certificates};
pub use command::{mutant_main, reference_main};
pub use peer::{GREETING, GROUP, PEER, peer_main};
pub use tls::{TunnelTls, connect};
pub use variation::{MUTANTS, VARIANTS};

use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

/// Maximum length of a line between server and agent, in bytes.
const LONGEST_LINE: usize = 512;

/// The connection of a tunnel.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Reads a line, and not one byte more.
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
