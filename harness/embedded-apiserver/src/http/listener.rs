//! The TLS listener on a loopback address, with HTTP/1.1 and HTTP/2.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::client::danger::HandshakeSignatureValid;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::{self, DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme};

use super::closing::closed;
use super::disturbed::is_cut_off;
use super::handle::handle;
use super::peer::{Connection, Peer};
use super::reply::Body;
use embedded_state::Api;
use embedded_state::auth::authority::Authority;

/// How long a client may take for its handshake.
const PATIENCE: Duration = Duration::from_secs(10);

/// The largest buffer of a connection, or of one HTTP/2 stream, in bytes. More data is written only after the
/// client has taken some, and the head of a request may not be longer.
const BUFFER: usize = 64 << 10;

/// How long a stopping server waits for its last answers: each of them takes only moments.
const LAST: Duration = Duration::from_millis(500);

/// The first address of the service range, which every cluster gives to the `kubernetes` service.
const SERVICE_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);

/// The TLS configuration of the server, with a certificate of the authority.
///
/// # Errors
///
/// The message of the library that rejects it.
pub(crate) fn tls(
    authority: &Arc<Authority>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<ServerConfig>, String> {
    let names = [
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "localhost",
    ];
    let addresses =
        [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST), IpAddr::V4(SERVICE_ADDRESS)];
    let (certificate, key) = authority.server(&names, &addresses).map_err(|e| format!("{e}: {:?}", e))?;
    let asks = AsksOnly(Arc::clone(authority.verifier()));
    let mut config = ServerConfig::builder_with_provider(Arc::clone(provider))
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .with_client_cert_verifier(Arc::new(asks))
        .with_single_cert(vec![certificate], key)
        .map_err(|e| e.to_string())?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Serves until `closing` is true; then finishes the current answers and ends.
pub(crate) async fn serve(
    listener: TcpListener,
    config: Arc<ServerConfig>,
    api: Arc<Api>,
    closing: watch::Receiver<bool>,
) {
    let acceptor = TlsAcceptor::from(config);
    let mut connections = JoinSet::new();
    let mut closing_now = closing.clone();
    loop {
        let accepted = tokio::select! {
            () = closed(&mut closing_now) => break,
            accepted = listener.accept() => accepted,
            // Removes ended connections, so that the set does not grow for ever.
            Some(_) = connections.join_next() => continue,
        };
        match accepted {
            Ok((_, peer)) if connections.len() >= api.usage.limits().all_connections => {
                tracing::debug!(%peer, "closed: there are as many connections as there may be");
            }
            Ok((stream, peer)) => {
                let connection =
                    connection(stream, peer, acceptor.clone(), Arc::clone(&api), closing.clone());
                connections.spawn(connection);
            }
            // Most likely there are no file descriptors left: wait for a connection to end instead of spinning.
            Err(error) => {
                tracing::warn!(%error, "accepting a connection");
                connections.join_next().await;
            }
        }
    }
    drop(listener);
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(LAST, all).await.is_err() {
        connections.shutdown().await;
    }
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    acceptor: TlsAcceptor,
    api: Arc<Api>,
    mut closing: watch::Receiver<bool>,
) {
    // Small answers are sent at once: a client waits for each answer before its next request.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%peer, %error, "setting TCP_NODELAY");
    }
    let stream = match tokio::time::timeout(PATIENCE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%peer, %error, "TLS handshake"),
        Err(_) => return tracing::debug!(%peer, "TLS handshake took too long"),
    };
    let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let connection = Arc::new(Connection::new(certificates.iter().map(|c| c.clone().into_owned()).collect()));
    let caller = Peer::Network(Arc::clone(&connection));
    let service = hyper::service::service_fn(move |request: http::Request<Incoming>| {
        let (api, caller) = (Arc::clone(&api), caller.clone());
        async move {
            let response = handle(api, caller, request).await;
            if is_cut_off(&response) { Err(CutOff) } else { Ok::<http::Response<Body>, CutOff>(response) }
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(PATIENCE * 18).max_buf_size(BUFFER);
    builder
        .http2()
        .timer(TokioTimer::new())
        // A client that disappeared is detected within a minute.
        .keep_alive_interval(Some(PATIENCE * 3))
        .keep_alive_timeout(PATIENCE * 3)
        .max_send_buf_size(BUFFER)
        .max_concurrent_streams(1000);
    let serving = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(serving);
    let unauthenticated = async {
        if tokio::time::timeout(PATIENCE * 3, connection.known()).await.is_ok() {
            std::future::pending::<()>().await;
        }
    };
    let ended = tokio::select! {
        result = &mut serving => Some(result),
        () = closed(&mut closing) => None,
        () = connection.refused() => None,
        () = unauthenticated => return tracing::debug!(%peer, "closed: no request that could be answered"),
    };
    let result = match ended {
        Some(result) => result,
        None => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%peer, %error, "connection");
    }
}

/// A response that is not sent: the stream of its request is reset, or the connection ends if it has only one stream.
#[derive(Debug, thiserror::Error)]
#[error("the request was cut off by a fault")]
struct CutOff;

/// Requests a client certificate and verifies that the client has its key, but admits everyone.
///
/// A real API server answers an untrusted certificate with 401, not with a failed handshake. Therefore the
/// authority is checked for each request.
#[derive(Debug)]
struct AsksOnly(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for AsksOnly {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _leaf: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
