//! A node's connection to the API server: a relay on loopback that can be interrupted.
//!
//! While a node is cut off, its connections stay open and no data passes, as when packets are dropped. Data
//! that was sent in that time arrives when the node is reconnected, as with TCP retransmission.

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use embedded_runtime::tasks::Tasks;

/// Starts a relay to the API server on the API server's own IP address, so that its certificate is valid.
/// Returns the relay's address.
pub(crate) fn start(tasks: &Tasks, server: SocketAddr, cut: watch::Receiver<bool>) -> io::Result<SocketAddr> {
    let listener = StdListener::bind((server.ip(), 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let listener = TcpListener::from_std(listener)?;
    let own = tasks.clone();
    tasks.spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let cut = cut.clone();
            own.spawn(async move {
                // The program itself handles a broken connection: it sees its end.
                let _ = relay(client, server, cut).await;
            });
        }
    });
    Ok(address)
}

async fn relay(client: TcpStream, server: SocketAddr, mut cut: watch::Receiver<bool>) -> io::Result<()> {
    open(&mut cut).await?;
    let upstream = TcpStream::connect(server).await?;
    client.set_nodelay(true)?;
    upstream.set_nodelay(true)?;
    let (client_read, client_write) = client.into_split();
    let (server_read, server_write) = upstream.into_split();
    tokio::try_join!(pump(client_read, server_write, cut.clone()), pump(server_read, client_write, cut))?;
    Ok(())
}

/// Waits until the node is not cut off.
async fn open(cut: &mut watch::Receiver<bool>) -> io::Result<()> {
    cut.wait_for(|cut| !cut).await.map(|_| ()).map_err(|_| io::Error::other("the node is gone"))
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut cut: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut buffer = vec![0_u8; 16 << 10];
    loop {
        let count = from.read(&mut buffer).await?;
        open(&mut cut).await?;
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..count]).await?;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn nothing_passes_while_the_node_is_cut_off() {
        let tasks = Tasks::default();
        let echo = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let server = echo.local_addr().expect("an address");
        tasks.spawn(async move {
            while let Ok((mut stream, _)) = echo.accept().await {
                let mut byte = [0_u8; 1];
                while stream.read_exact(&mut byte).await.is_ok() && stream.write_all(&byte).await.is_ok() {}
            }
        });
        let (cut, watched) = watch::channel(false);
        let address = start(&tasks, server, watched).expect("a relay");
        let mut stream = TcpStream::connect(address).await.expect("connected");
        let mut byte = [0_u8; 1];
        stream.write_all(b"a").await.expect("sent");
        stream.read_exact(&mut byte).await.expect("answered");
        cut.send_replace(true);
        stream.write_all(b"b").await.expect("sent into the void");
        let silent = tokio::time::timeout(Duration::from_millis(100), stream.read_exact(&mut byte)).await;
        assert!(silent.is_err(), "an answer came through the cut");
        cut.send_replace(false);
        stream.read_exact(&mut byte).await.expect("answered after the connection was restored");
        assert_eq!(&byte, b"b");
        tasks.stop(Duration::from_secs(1)).await;
    }
}
