//! The cloud API's connections.

use super::call::{self, BODY_LIMIT_BYTES, Body, Closed, Service};
use super::state::Shared;
use super::tls::Begun;
use fake_cloud_kit::{Answer, Request};
use fake_cloud_recording::faults::pause;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Response, header};
use hyper_util::rt::TokioIo;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// How many bytes of a body that is too large are read and discarded, so that the caller gets to read the answer.
const DISCARDED_LIMIT_BYTES: usize = 64 << 20;
/// How many connections a service of the cloud may have at once: each uses memory for data that its caller
/// does not read.
const MOST_CONNECTIONS: usize = 512;
/// The pause when no connection can be accepted, e.g. because there are no file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// The largest buffer of a connection in bytes; the head of a request may not be longer.
const BUFFER: usize = 64 << 10;

/// Serves the connections of one of the cloud's services. All end when this future is dropped.
pub(super) async fn serve(listener: TcpListener, service: Service, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((_, peer)) if connections.len() >= MOST_CONNECTIONS => {
                    tracing::warn!(%peer, "a connection was closed: there are {MOST_CONNECTIONS}, as many as there may be");
                }
                Ok((stream, peer)) => {
                    connections.spawn(connection(stream, peer, service, shared.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    pause(ACCEPT_PAUSE).await;
                }
            },
        }
    }
}

async fn connection(stream: TcpStream, peer: SocketAddr, service: Service, shared: Arc<Shared>) {
    // Without it small answers wait for acknowledgements; if it cannot be set, the service still works.
    let _ = stream.set_nodelay(true);
    let peer = peer.ip().to_canonical();
    let begun = match (&shared.tls, service) {
        (Some(tls), Service::Api) => tls.begin(stream).await,
        (None, _) | (_, Service::Metadata) => Ok(Begun::Plain(stream)),
    };
    match begun {
        Ok(Begun::Plain(stream)) => speak(stream, peer, service, shared).await,
        Ok(Begun::Encrypted(stream)) => speak(stream, peer, service, shared).await,
        Ok(Begun::Ended) => {}
        Err(error) => {
            tracing::warn!(%error, %peer, "a connection to a host of the dialect failed; clients must trust the cloud's CA");
        }
    }
}

async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: IpAddr,
    service: Service,
    shared: Arc<Shared>,
) {
    let answers = service_fn(move |request| answer(shared.clone(), service, peer, request));
    if let Err(error) =
        http1::Builder::new().max_buf_size(BUFFER).serve_connection(TokioIo::new(stream), answers).await
    {
        tracing::debug!(%error, %peer, "connection ended");
    }
}

async fn answer(
    shared: Arc<Shared>,
    service: Service,
    peer: IpAddr,
    request: hyper::Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Closed> {
    let (head, incoming) = request.into_parts();
    let (body, state) = read(incoming).await;
    let request = Request { method: head.method, uri: head.uri, headers: head.headers, body };
    call::answer(shared, service, peer, request, state).await.map(response)
}

/// Reads a body to its end, unless it is too large.
async fn read(mut incoming: Incoming) -> (Bytes, Body) {
    let mut read: Vec<u8> = Vec::new();
    let mut discarded_bytes = 0;
    while let Some(frame) = incoming.frame().await {
        let Ok(frame) = frame else { return (Bytes::new(), Body::BrokenOff) };
        let Some(data) = frame.data_ref() else { continue };
        if discarded_bytes == 0 && read.len() + data.len() <= BODY_LIMIT_BYTES {
            read.extend_from_slice(data);
            continue;
        }
        discarded_bytes += data.len();
        if discarded_bytes > DISCARDED_LIMIT_BYTES {
            break;
        }
    }
    match discarded_bytes {
        0 => (read.into(), Body::Complete),
        _ => (Bytes::new(), Body::TooLong),
    }
}

fn response(answer: Answer) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(answer.body));
    *response.status_mut() = answer.status;
    for (name, value) in answer.headers {
        response.headers_mut().append(name, value);
    }
    response.headers_mut().entry(header::SERVER).or_insert(header::HeaderValue::from_static("fake-cloud"));
    response
}
