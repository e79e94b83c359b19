//! The CA of a run, with which clients verify the proxy.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls_pki_types::PrivatePkcs8KeyDer;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio_rustls::TlsAcceptor;

/// The lifetime of its certificates.
const LIFE: Duration = Duration::from_secs(30 * 24 * 3600);

/// A certificate could not be created.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// An error of the library, e.g. for an invalid name.
    #[error("cannot create a certificate for {names}")]
    Certificate {
        /// The names.
        names: String,
        /// The cause.
        #[source]
        source: rcgen::Error,
    },
    /// It cannot be used for TLS.
    #[error("the certificate cannot be used")]
    Tls(#[from] rustls::Error),
}

/// A CA.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Authority {
    /// Creates a CA with its own key.
    pub(crate) fn new() -> Result<Authority, AuthorityError> {
        let failed = |source| AuthorityError::Certificate { names: "the CA".to_owned(), source };
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "ccm-conformance proxy");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        validity(&mut params);
        let key = KeyPair::generate().map_err(failed)?;
        Ok(Authority(CertifiedIssuer::self_signed(params, key).map_err(failed)?))
    }

    /// Its certificate in PEM.
    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for these names and addresses, for a server or a client, and its key, in PEM.
    pub(crate) fn pair(&self, names: &[String]) -> Result<(String, String), AuthorityError> {
        let failed = |source| AuthorityError::Certificate { names: names.join(", "), source };
        let mut params = CertificateParams::new(names.to_vec()).map_err(failed)?;
        params.distinguished_name.push(DnType::CommonName, names.first().cloned().unwrap_or_default());
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        validity(&mut params);
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.signed_by(&key, &self.0).map_err(failed)?;
        Ok((certificate.pem(), key.serialize_pem()))
    }

    /// A TLS acceptor for these names and addresses.
    pub(crate) fn acceptor(&self, names: &[String]) -> Result<TlsAcceptor, AuthorityError> {
        let failed = |source| AuthorityError::Certificate { names: names.join(", "), source };
        let mut params = CertificateParams::new(names.to_vec()).map_err(failed)?;
        params.distinguished_name.push(DnType::CommonName, "ccm-conformance proxy");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        validity(&mut params);
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.signed_by(&key, &self.0).map_err(failed)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
            )?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// Valid from an hour ago, so that a client whose clock is behind trusts it too.
fn validity(params: &mut CertificateParams) {
    let now = SystemTime::now();
    params.not_before = (now - Duration::from_secs(3600)).into();
    params.not_after = (now + LIFE).into();
}
