//! TLS with certificates on both sides.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// A client's TLS configuration.
#[derive(Clone)]
pub struct TunnelTls(TlsConnector);

impl std::fmt::Debug for TunnelTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TunnelTls").finish_non_exhaustive()
    }
}

impl TunnelTls {
    /// Reads these files: CA, certificate, key.
    ///
    /// # Errors
    /// A file does not exist, or does not contain what it should.
    pub fn of(folder: &Path, files: [&str; 3]) -> io::Result<TunnelTls> {
        let (roots, chain, key) = read(folder, files)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_root_certificates(roots).with_client_auth_cert(chain, key));
        Ok(TunnelTls(TlsConnector::from(Arc::new(config.map_err(io::Error::other)?))))
    }
}

/// Connects to a server, whose certificate must have that name.
///
/// # Errors
/// The server cannot be reached, or is not trusted.
pub async fn connect(tls: &TunnelTls, address: &str, name: &str) -> io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    tls.0.connect(name, stream).await
}

/// An acceptor for clients with a certificate of the CA.
pub(super) fn acceptor(folder: &Path, files: [&str; 3]) -> io::Result<TlsAcceptor> {
    let (roots, chain, key) = read(folder, files)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_client_cert_verifier(verifier.map_err(io::Error::other)?)
        .with_single_cert(chain, key)
        .map_err(io::Error::other)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// An acceptor for all clients.
pub(super) fn acceptor_for_all(folder: &Path, files: [&str; 3]) -> io::Result<TlsAcceptor> {
    let (_, chain, key) = read(folder, files)?;
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(io::Error::other)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

type Files = (RootCertStore, Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn read(folder: &Path, [ca, certificate, key]: [&str; 3]) -> io::Result<Files> {
    let failed =
        |file: &str, why: String| io::Error::other(format!("{}: {why}", folder.join(file).display()));
    let certificates = |file: &str| {
        let all =
            CertificateDer::pem_file_iter(folder.join(file)).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        all.map_err(|error| failed(file, error.to_string()))
    };
    let mut roots = RootCertStore::empty();
    for one in certificates(ca)? {
        roots.add(one).map_err(|error| failed(ca, error.to_string()))?;
    }
    let chain = certificates(certificate)?;
    let key =
        PrivateKeyDer::from_pem_file(folder.join(key)).map_err(|error| failed(key, error.to_string()))?;
    Ok((roots, chain, key))
}
