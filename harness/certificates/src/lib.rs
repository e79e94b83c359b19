//! A CA that exists only in this process, and certificates for the servers and clients of a run.

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls_pki_types::PrivatePkcs8KeyDer;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio_rustls::TlsAcceptor;

/// The lifetime of certificates.
const LIFE: Duration = Duration::from_secs(30 * 24 * 3600);
/// How long before its creation a certificate is valid, so that a client whose clock is behind trusts it too.
const BEFORE: Duration = Duration::from_secs(3600);

/// A certificate could not be created.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// An error of the library, for example for an invalid name.
    #[error("cannot create a certificate for {names}")]
    Create {
        /// The names.
        names: String,
        /// The cause.
        #[source]
        source: rcgen::Error,
    },
    /// It cannot be used for TLS.
    #[error("the certificate cannot be used")]
    Use(#[from] rustls::Error),
}

/// A CA. Its key never leaves the process.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Authority {
    /// Creates a CA of this name with a key of its own.
    ///
    /// # Errors
    /// The certificate cannot be created.
    pub fn new(name: &str) -> Result<Authority, CertificateError> {
        let failed = |source| CertificateError::Create { names: name.to_owned(), source };
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        validity(&mut params);
        let key = KeyPair::generate().map_err(failed)?;
        Ok(Authority(CertifiedIssuer::self_signed(params, key).map_err(failed)?))
    }

    /// Its certificate in PEM.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for these names and addresses, for a server or a client, and its key, in PEM.
    ///
    /// # Errors
    /// A name is not valid, or the certificate cannot be created.
    pub fn pair(&self, names: &[String]) -> Result<(String, String), CertificateError> {
        let usages = [ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let (certificate, key) = self.issue(names, &usages)?;
        Ok((certificate.pem(), key.serialize_pem()))
    }

    /// The TLS side of a server with these names and addresses that speaks these protocols, the preferred one first.
    ///
    /// # Errors
    /// A name is not valid, or the certificate cannot be created or used.
    pub fn acceptor(&self, names: &[String], protocols: &[&str]) -> Result<TlsAcceptor, CertificateError> {
        let (certificate, key) = self.issue(names, &[ExtendedKeyUsagePurpose::ServerAuth])?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
            )?;
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    fn issue(
        &self,
        names: &[String],
        usages: &[ExtendedKeyUsagePurpose],
    ) -> Result<(Certificate, KeyPair), CertificateError> {
        let failed = |source| CertificateError::Create { names: names.join(", "), source };
        let mut params = CertificateParams::new(names.to_vec()).map_err(failed)?;
        params.distinguished_name.push(DnType::CommonName, names.first().cloned().unwrap_or_default());
        params.extended_key_usages = usages.to_vec();
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        validity(&mut params);
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.signed_by(&key, &self.0).map_err(failed)?;
        Ok((certificate, key))
    }
}

fn validity(params: &mut CertificateParams) {
    let now = SystemTime::now();
    params.not_before = (now - BEFORE).into();
    params.not_after = (now + LIFE).into();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_certificate_can_have_is_named() {
        let authority = Authority::new("test CA").expect("a CA");
        assert!(authority.pem().starts_with("-----BEGIN CERTIFICATE-----"));
        let wrong = ["cloud.test".to_owned(), "über.test".to_owned()];
        let error = authority.pair(&wrong).expect_err("not ASCII");
        assert_eq!(error.to_string(), "cannot create a certificate for cloud.test, über.test");
        assert!(authority.acceptor(&wrong[..1], &["http/1.1"]).is_ok());
    }
}
