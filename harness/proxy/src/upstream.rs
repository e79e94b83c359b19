//! The cloud behind the proxy: how it is reached, and why it cannot be.

use base64::Engine as _;
use bytes::Bytes;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Request, Response, Uri};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long connecting may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// How long the cloud may take for its first answer.
const FIRST_ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Why a body ends early.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;
/// The body of a request to the cloud, or of its answer.
pub(crate) type Body = BoxBody<Bytes, BoxError>;

/// The cloud gives no answer, or an invalid one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    /// Not the URL of a cloud.
    #[error("invalid URL '{0}': expected http://HOST[:PORT][/PATH] or https://.., without user and password")]
    Url(String),
    /// A file of certificates cannot be used.
    #[error("the certificates in {file} cannot be used: {why}")]
    Certificates {
        /// The file.
        file: PathBuf,
        /// The cause.
        why: String,
    },
    /// The trusted certificates of this machine cannot be read.
    #[error("cannot read the trusted certificates of this machine: {0}")]
    Trusted(String),
    /// No server at the address.
    #[error("the cloud at {url} cannot be reached: {why}")]
    Absent {
        /// The cloud.
        url: String,
        /// The cause.
        why: String,
    },
    /// The server does not answer.
    #[error("the cloud at {url} did not answer within {} s", .limit.as_secs_f64())]
    Slow {
        /// The cloud.
        url: String,
        /// The time limit.
        limit: Duration,
    },
    /// Its certificate is not trusted.
    #[error(
        "the certificate of the cloud at {url} is not accepted: {why}; if it has its own CA, pass it as the upstream's \
         CA"
    )]
    Certificate {
        /// The cloud.
        url: String,
        /// The cause.
        why: String,
    },
    /// It does not speak HTTP.
    #[error("the answer of the cloud at {url} is not HTTP: {why}")]
    Nonsense {
        /// The cloud.
        url: String,
        /// The received data.
        why: String,
    },
    /// The connection broke before the end.
    #[error("the cloud at {url} closed the connection: {why}")]
    Broken {
        /// The cloud.
        url: String,
        /// The cause.
        why: String,
    },
}

/// The cloud.
#[derive(Clone)]
pub(crate) struct Upstream {
    client: Client<HttpsConnector<HttpConnector>, Body>,
    scheme: Scheme,
    authority: Authority,
    /// The prefix of all paths; without a slash at its end.
    prefix: String,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("url", &self.url()).finish_non_exhaustive()
    }
}

impl Upstream {
    /// The cloud at this URL. Its certificate must be from a CA that this machine trusts, or from one in `ca`.
    pub(crate) fn new(url: &str, ca: Option<&Path>) -> Result<Upstream, UpstreamError> {
        // A password in it must not be shown.
        let shown = url.rsplit_once('@').map_or(url, |(_, rest)| rest);
        let unusable = || UpstreamError::Url(shown.to_owned());
        let uri: Uri = url.parse().map_err(|_| unusable())?;
        let parts = uri.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else { return Err(unusable()) };
        if scheme != Scheme::HTTP && scheme != Scheme::HTTPS || authority.as_str().contains('@') {
            return Err(unusable());
        }
        let prefix = parts.path_and_query.unwrap_or_else(|| PathAndQuery::from_static("/"));
        if prefix.query().is_some() {
            return Err(unusable());
        }
        let tls = tls(&scheme, ca)?;
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.enforce_http(false);
        connector.set_connect_timeout(Some(CONNECT_LIMIT));
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(connector);
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .build(connector);
        Ok(Upstream { client, scheme, authority, prefix: prefix.path().trim_end_matches('/').to_owned() })
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        format!("{}://{}{}", self.scheme, self.authority, self.prefix)
    }

    /// The part after its URL in an address that an answer contains, by the whole URL or by a path on the same host;
    /// `None` if the address is elsewhere.
    pub(crate) fn below<'a>(&self, location: &'a str) -> Option<&'a str> {
        let has_path = !self.prefix.is_empty() && !location.starts_with("//");
        let by_path = || location.strip_prefix(&self.prefix).filter(|_| has_path);
        let rest = location.strip_prefix(&self.url()).or_else(by_path)?;
        (rest.is_empty() || rest.starts_with(['/', '?', '#'])).then_some(rest)
    }

    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The URL in the cloud for a path of the proxy.
    pub(crate) fn uri(&self, target: &Uri) -> Result<Uri, http::Error> {
        let target = target.path_and_query().map_or("/", PathAndQuery::as_str);
        let target = if target == "*" { "/" } else { target };
        Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(format!("{}{target}", self.prefix))
            .build()
    }

    /// Passes a call on.
    pub(crate) async fn call(&self, request: Request<Body>) -> Result<Response<Incoming>, UpstreamError> {
        self.client.request(request).await.map_err(|error| self.explain(&error))
    }

    /// Checks that an HTTP server answers, with any answer.
    pub(crate) async fn greet(&self) -> Result<(), UpstreamError> {
        let target = Uri::from_static("/");
        let request = Request::get(self.uri(&target).map_err(|_| UpstreamError::Url(self.url()))?)
            .header("user-agent", "ccm-conformance-proxy")
            .body(Empty::new().map_err(|never| match never {}).boxed());
        let request = request.map_err(|_| UpstreamError::Url(self.url()))?;
        match tokio::time::timeout(FIRST_ANSWER_LIMIT, self.call(request)).await {
            Ok(answer) => answer.map(drop),
            Err(_) => Err(UpstreamError::Slow { url: self.url(), limit: FIRST_ANSWER_LIMIT }),
        }
    }

    fn explain(&self, error: &(dyn Error + 'static)) -> UpstreamError {
        let (url, mut cause, mut last) = (self.url(), Some(error), String::new());
        let mut is_connect = false;
        while let Some(one) = cause {
            if let Some(client) = one.downcast_ref::<hyper_util::client::legacy::Error>() {
                is_connect = client.is_connect();
            }
            if let Some(http) = one.downcast_ref::<hyper::Error>()
                && http.is_parse()
            {
                return UpstreamError::Nonsense { url, why: http.to_string() };
            }
            let io = one.downcast_ref::<std::io::Error>();
            match tls_error(one) {
                Some(rustls::Error::InvalidCertificate(why)) => {
                    return UpstreamError::Certificate { url, why: why.to_string() };
                }
                Some(other) => return UpstreamError::Nonsense { url, why: other.to_string() },
                None => {}
            }
            if io.is_some_and(|io| io.kind() == std::io::ErrorKind::TimedOut) && is_connect {
                return UpstreamError::Slow { url, limit: CONNECT_LIMIT };
            }
            last = io.map_or_else(|| system_errors::plain(&one.to_string()), system_errors::why);
            cause = one.source();
        }
        match is_connect {
            true => UpstreamError::Absent { url, why: last },
            false => UpstreamError::Broken { url, why: last },
        }
    }
}

/// The TLS error, which is inside an I/O error that does not name it as its source.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let found = error.downcast_ref::<rustls::Error>();
    found.or_else(|| tls_error(error.downcast_ref::<std::io::Error>()?.get_ref()?))
}

/// The certificates that this machine trusts, in PEM; empty if there are none.
pub fn trusted_here() -> String {
    let found = rustls_native_certs::load_native_certs().certs;
    found.iter().fold(String::new(), |mut text, certificate| {
        let encoded = base64::engine::general_purpose::STANDARD.encode(certificate);
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        // Lines of 64 characters, as in RFC 7468.
        for line in encoded.as_bytes().chunks(64) {
            text.push_str(&String::from_utf8_lossy(line));
            text.push('\n');
        }
        text.push_str("-----END CERTIFICATE-----\n");
        text
    })
}

fn tls(scheme: &Scheme, ca: Option<&Path>) -> Result<ClientConfig, UpstreamError> {
    let mut roots = RootCertStore::empty();
    if let Some(file) = ca {
        let failed = |why: String| UpstreamError::Certificates { file: file.to_owned(), why };
        let text = std::fs::read(file).map_err(|error| failed(system_errors::why(&error)))?;
        for certificate in CertificateDer::pem_slice_iter(&text) {
            let certificate = certificate.map_err(|error| failed(error.to_string()))?;
            roots.add(certificate).map_err(|error| failed(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(failed("it contains none".to_owned()));
        }
    }
    if *scheme == Scheme::HTTPS {
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            let why = found.errors.first().map_or("there are none".to_owned(), ToString::to_string);
            return Err(UpstreamError::Trusted(why));
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| UpstreamError::Trusted(error.to_string()))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_below_the_cloud_is_recognised_by_url_and_by_path() {
        let below = |cloud: &str, location: &str| {
            let upstream = Upstream::new(cloud, None).expect("an upstream");
            upstream.below(location).map(str::to_owned)
        };
        let cloud = "http://127.0.0.1:1/v2";
        assert_eq!(below(cloud, "http://127.0.0.1:1/v2/x?y=1").as_deref(), Some("/x?y=1"));
        assert_eq!(below(cloud, "/v2/x").as_deref(), Some("/x"));
        for elsewhere in ["/v20/x", "/x", "//v2/x", "http://127.0.0.1:1/x", "http://127.0.0.1:10/v2/x"] {
            assert_eq!(below(cloud, elsewhere), None, "{elsewhere}");
        }
        // It is already the client's own.
        assert_eq!(below("http://127.0.0.1:1", "/x"), None);
    }
}
