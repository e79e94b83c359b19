//! The proxy's ports: HTTP/1.1 and HTTP/2, with TLS or without.

use crate::call::{self, Caller};
use crate::shared::Shared;
use fake_cloud::faults::pause;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// How long to keep off when no connection can be accepted, e.g. for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
/// How long a caller may take until it has said who it is.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// A port, and whose calls come in by it.
pub(crate) struct Door {
    pub(crate) listener: TcpListener,
    pub(crate) caller: Caller,
    pub(crate) tls: Option<TlsAcceptor>,
}

/// Serves connections until it is dropped, and all connections with it.
pub(crate) async fn serve(door: Door, shared: Arc<Shared>) {
    let Door { listener, caller, tls } = door;
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    connections.spawn(connection(stream, peer, tls.clone(), caller.clone(), shared.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    pause(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<TlsAcceptor>,
    caller: Caller,
    shared: Arc<Shared>,
) {
    // Without it small answers wait for acknowledgements; that it cannot be set is no reason not to serve.
    let _ = stream.set_nodelay(true);
    let peer = peer.ip().to_canonical();
    let Some(tls) = tls else { return speak(stream, peer, caller, shared).await };
    match tokio::time::timeout(HANDSHAKE_LIMIT, tls.accept(stream)).await {
        Ok(Ok(stream)) => speak(stream, peer, caller, shared).await,
        Ok(Err(error)) => shared.tell_once(format!(
            "a caller from {peer} and the proxy cannot agree on TLS: {error}; a caller has to trust the run's CA (${{CLOUD_CA}})"
        )),
        Err(_) => tracing::debug!(%peer, "TLS handshake took too long"),
    }
}

async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: IpAddr,
    caller: Caller,
    shared: Arc<Shared>,
) {
    let service = service_fn(move |request: http::Request<Incoming>| {
        call::answer(shared.clone(), caller.clone(), peer, request)
    });
    let builder = auto::Builder::new(TokioExecutor::new());
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, %peer, "connection ended");
    }
}
