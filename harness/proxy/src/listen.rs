//! The proxy's ports: HTTP/1.1 and HTTP/2, with TLS or without.

use crate::bounds::Watch;
use crate::call::{self, Caller, Closed};
use crate::shared::Shared;
use fake_cloud_recording::faults::pause;
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

/// How long to wait when connections cannot be accepted, e.g. because file descriptors ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
/// How long a client may take for the TLS handshake.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// Maximum number of concurrent calls of an HTTP/2 connection.
const STREAMS: u32 = 250;

/// Maximum buffer of a connection or an HTTP/2 stream, in bytes; also the limit for a head.
const BUFFER: usize = 64 << 10;

/// A port, and the caller that uses it.
pub(crate) struct ListeningPort {
    pub(crate) listener: TcpListener,
    pub(crate) caller: Caller,
    pub(crate) tls: Option<TlsAcceptor>,
}

/// Serves connections until it is dropped, together with all of them.
pub(crate) async fn serve(door: ListeningPort, shared: Arc<Shared>) {
    let ListeningPort { listener, caller, tls } = door;
    let mut connections = JoinSet::new();
    let most = shared.bounds.connections;
    loop {
        tokio::select! {
            biased;
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                // Finished ones are removed at once, so that the set contains only open ones.
                Ok((_, peer)) if connections.len() >= most => shared.tell_once(format!(
                    "the proxy's port{} has {most} connections, the maximum; further ones, such as one from {}, are \
                     closed",
                    caller.as_deref().map(|caller| format!(" for {caller}")).unwrap_or_default(),
                    peer.ip().to_canonical()
                )),
                Ok((stream, peer)) => {
                    connections.spawn(connection(stream, peer, tls.clone(), caller.clone(), shared.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    pause(ACCEPT_PAUSE).await;
                }
            },
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
    // Without it small answers wait for acknowledgements; if it cannot be set, serving still works.
    let _ = stream.set_nodelay(true);
    let peer = peer.ip().to_canonical();
    let Some(tls) = tls else { return speak(stream, peer, caller, shared).await };
    match tokio::time::timeout(HANDSHAKE_LIMIT, tls.accept(stream)).await {
        Ok(Ok(stream)) => speak(stream, peer, caller, shared).await,
        Ok(Err(error)) => shared.tell_once(format!(
            "the TLS handshake with a client from {peer} failed: {error}; clients must trust the run's CA \
             (${{CLOUD_CA}})"
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
    let watch = Watch::new();
    let stream = TokioIo::new(watch.over(stream));
    let (limit, reporter, seen) = (shared.bounds.request, shared.clone(), watch.clone());
    let service = service_fn(move |request: http::Request<Incoming>| {
        let (one, answered) = (seen.begin(), call::answer(shared.clone(), caller.clone(), peer, request));
        async move { Ok::<_, Closed>(answered.await?.map(|body| one.until_the_end_of(body))) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().max_buf_size(BUFFER);
    builder.http2().max_concurrent_streams(STREAMS).max_send_buf_size(BUFFER);
    let served = builder.serve_connection(stream, service);
    tokio::select! {
        ended = served => if let Err(error) = ended {
            tracing::debug!(%error, %peer, "connection ended");
        },
        begun = watch.silent_for(limit) => match begun {
            true => reporter.tell_once(format!(
                "a client from {peer} took more than {} s to send the head of a request: its connection was \
                 closed",
                limit.as_secs_f64()
            )),
            false => tracing::debug!(%peer, ?limit, "an idle connection was closed"),
        }
    }
}
