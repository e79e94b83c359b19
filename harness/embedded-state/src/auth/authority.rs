//! The cluster's certificate authority: it signs the certificates of the server and of users.

use std::net::IpAddr;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose, SanType,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::{RootCertStore, crypto::CryptoProvider};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::user::{AUTHENTICATED, User};

/// The lifetime of certificates, the same as with kubeadm.
const YEAR: std::time::Duration = std::time::Duration::from_secs(365 * 24 * 3600);

/// The errors of making certificates.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The library could not make a key or a certificate.
    #[error("making a certificate for {subject}")]
    Certificate {
        /// The subject of the certificate.
        subject: String,
        /// The cause.
        #[source]
        source: rcgen::Error,
    },
    /// The verifier of client certificates could not be created.
    #[error("setting up the check of client certificates: {0}")]
    Verifier(String),
}

/// A certificate and its private key, both as PEM.
#[derive(Clone)]
pub struct Credential {
    /// The certificate.
    pub certificate: String,
    /// The private key; never log it.
    pub key: String,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential").finish_non_exhaustive()
    }
}

/// The cluster's own certificate authority.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Authority {
    /// A new authority with a new key; `provider` does the cryptography.
    ///
    /// # Errors
    ///
    /// If the system provides no random numbers.
    pub fn new(provider: &Arc<CryptoProvider>) -> Result<Self, AuthorityError> {
        let named = |source| AuthorityError::Certificate { subject: "the authority".into(), source };
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "kubernetes");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        validity(&mut params, YEAR * 10);
        let key = KeyPair::generate().map_err(named)?;
        let issuer = CertifiedIssuer::self_signed(params, key).map_err(named)?;
        let mut roots = RootCertStore::empty();
        roots.add(issuer.der().clone()).map_err(|e| AuthorityError::Verifier(e.to_string()))?;
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
            .build()
            .map_err(|e| AuthorityError::Verifier(e.to_string()))?;
        Ok(Self { issuer, verifier })
    }

    /// The authority's certificate as PEM.
    #[must_use]
    pub fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// A certificate for the server with these names and addresses.
    ///
    /// # Errors
    ///
    /// If the library rejects a name.
    pub fn server(
        &self,
        names: &[&str],
        addresses: &[IpAddr],
    ) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), AuthorityError> {
        let named = |source| AuthorityError::Certificate { subject: "the server".into(), source };
        let mut params =
            CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
                .map_err(named)?;
        params.subject_alt_names.extend(addresses.iter().copied().map(SanType::IpAddress));
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        validity(&mut params, YEAR);
        let key = KeyPair::generate().map_err(named)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(named)?;
        Ok((certificate.der().clone(), PrivatePkcs8KeyDer::from(key.serialize_der()).into()))
    }

    /// A client certificate: the common name is the user, each organisation a group.
    ///
    /// # Errors
    ///
    /// If the library rejects a name.
    pub fn client(&self, user: &User) -> Result<Credential, AuthorityError> {
        let named = |source| AuthorityError::Certificate { subject: user.name.clone(), source };
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        // The library keeps one value of each type, so our certificates can contain only one organisation.
        if let Some(group) = user.groups.iter().find(|group| *group != AUTHENTICATED) {
            params.distinguished_name.push(DnType::OrganizationName, group.as_str());
        }
        params.distinguished_name.push(DnType::CommonName, user.name.as_str());
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        validity(&mut params, YEAR);
        let key = KeyPair::generate().map_err(named)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(named)?;
        Ok(Credential { certificate: certificate.pem(), key: key.serialize_pem() })
    }

    /// The verifier behind [`Authority::user`], for the signature checks of the handshake.
    #[must_use]
    pub fn verifier(&self) -> &Arc<dyn ClientCertVerifier> {
        &self.verifier
    }

    /// The user of the certificates from the handshake; `None` if this authority does not currently vouch for them.
    #[must_use]
    pub fn user(&self, chain: &[CertificateDer<'_>]) -> Option<User> {
        let (leaf, intermediates) = chain.split_first()?;
        self.verifier.verify_client_cert(leaf, intermediates, UnixTime::now()).ok()?;
        let (_, certificate) = X509Certificate::from_der(leaf).ok()?;
        let subject = certificate.subject();
        let name = subject.iter_common_name().next()?.as_str().ok()?;
        let groups: Vec<&str> = subject.iter_organization().filter_map(|one| one.as_str().ok()).collect();
        Some(User::authenticated(name, &groups))
    }
}

/// Sets the validity to start an hour ago, so that a client whose clock is slow accepts the certificate.
fn validity(params: &mut CertificateParams, length: std::time::Duration) {
    let now = std::time::SystemTime::now();
    params.not_before = (now - std::time::Duration::from_secs(3600)).into();
    params.not_after = (now + length).into();
}
