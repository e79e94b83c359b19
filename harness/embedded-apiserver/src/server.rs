//! Starts and stops a server, and gives access to it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use embedded_objects::status::Status;
use embedded_semantics::alloc::Allocator;
use futures::future::BoxFuture;
use http::{Request, Response};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tower::Service;

use crate::http::{Body, Peer, handle, listener};
use crate::{bootstrap, verbs};
use embedded_state::Issued;
use embedded_state::Logs;
use embedded_state::Version;
use embedded_state::audit::Audit;
use embedded_state::auth::authority::{Authority, AuthorityError, Credential};
use embedded_state::auth::jwt::{Signer, SigningError};
use embedded_state::auth::user::User;
use embedded_state::store::Keep;
use embedded_state::{Api, Limits, Partition, RequestFaults};

/// The configuration of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// The loopback address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The Kubernetes version that is served.
    pub version: Version,
    /// The network of Service addresses; two of different families for a dual-stack cluster.
    pub service_networks: Vec<String>,
    /// How much history is kept for watches.
    pub keep: Keep,
    /// How much of the server each user may use at a time.
    pub limits: Limits,
}

impl Default for Config {
    /// A free port of 127.0.0.1, Kubernetes 1.36.2, Services in 10.96.0.0/16.
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            version: Version::default(),
            service_networks: vec!["10.96.0.0/16".into()],
            keep: Keep::default(),
            limits: Limits::default(),
        }
    }
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address is not a loopback address of this machine.
    #[error(
        "{0} is not a loopback address: the embedded API server listens on loopback only, use 127.0.0.1 or ::1"
    )]
    NotLoopback(SocketAddr),
    /// The address is in use, or not available.
    #[error("listening on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The Service network is not valid.
    #[error("the Service network: {0}")]
    Network(String),
    /// No certificate could be made.
    #[error(transparent)]
    Certificate(#[from] AuthorityError),
    /// No signing key could be made.
    #[error(transparent)]
    Signer(#[from] SigningError),
    /// The TLS library rejects the server's certificate.
    #[error("setting up TLS: {0}")]
    Tls(String),
    /// An object of every new cluster was rejected: a bug in this program.
    #[error("creating {what} of a new cluster")]
    Bootstrap {
        /// The object.
        what: String,
        /// The reason.
        #[source]
        source: Status,
    },
}

/// The API server.
#[derive(Clone, Copy, Debug)]
pub struct Server;

impl Server {
    /// Starts a server; when this returns, it answers.
    ///
    /// # Errors
    ///
    /// [`StartError`].
    pub async fn start(config: Config) -> Result<Running, StartError> {
        if !config.listen.ip().is_loopback() {
            return Err(StartError::NotLoopback(config.listen));
        }
        let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
        let networks: Vec<&str> = config.service_networks.iter().map(String::as_str).collect();
        let allocator = Allocator::new(&networks).map_err(StartError::Network)?;
        let authority = Arc::new(Authority::new(&provider)?);
        let failed = |source| StartError::Listen { address: config.listen, source };
        let socket = TcpListener::bind(config.listen).await.map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let tls = listener::tls(&authority, &provider).map_err(StartError::Tls)?;
        let (close, closing) = watch::channel(false);
        let api = Arc::new(Api::new(
            (config.keep, config.limits),
            allocator,
            authority,
            Signer::new()?,
            config.version,
            closing.clone(),
            address,
        ));
        bootstrap::run(&api, address.port())
            .map_err(|(what, source)| StartError::Bootstrap { what, source })?;
        let serving = tokio::spawn(listener::serve(socket, tls, Arc::clone(&api), closing));
        Ok(Running { api, address, close, serving })
    }
}

/// A running server. Dropping it stops it without waiting; [`Running::shutdown`] waits.
#[derive(Debug)]
pub struct Running {
    api: Arc<Api>,
    address: SocketAddr,
    close: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Running {
    /// The address that the server listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The certificate of the cluster's authority, as PEM.
    #[must_use]
    pub fn certificate_authority(&self) -> String {
        self.api.authority.certificate()
    }

    /// A client certificate for a user: the name, and the first of the groups.
    ///
    /// # Errors
    ///
    /// If the name is not allowed in a certificate.
    pub fn credential(&self, user: &User) -> Result<Credential, AuthorityError> {
        let credential = self.api.authority.client(user)?;
        self.api.tell_issued(&credential.key);
        self.api.tell_issued(&credential.certificate);
        Ok(credential)
    }

    /// A kubeconfig for the administrator. It contains a client certificate with its key, so it is a secret.
    ///
    /// # Errors
    ///
    /// If no certificate can be made.
    pub fn kubeconfig(&self) -> Result<String, AuthorityError> {
        self.kubeconfig_for(&User::admin())
    }

    /// A kubeconfig for a user. It contains a client certificate with its key, so it is a secret.
    ///
    /// # Errors
    ///
    /// If the name is not allowed in a certificate.
    pub fn kubeconfig_for(&self, user: &User) -> Result<String, AuthorityError> {
        let credential = self.credential(user)?;
        let text = |pem: String| STANDARD.encode(pem);
        // JSON is valid YAML, and quotes need no special care.
        let config = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "embedded",
            "clusters": [{"name": "embedded", "cluster": {
                "server": self.url(), "certificate-authority-data": text(self.certificate_authority()),
            }}],
            "contexts": [{"name": "embedded", "context": {"cluster": "embedded", "user": user.name}}],
            "users": [{"name": user.name, "user": {
                "client-certificate-data": text(credential.certificate), "client-key-data": text(credential.key),
            }}],
        });
        Ok(format!("{config:#}\n"))
    }

    /// A client in this process that acts as a user: no socket, no TLS, no credential.
    #[must_use]
    pub fn client(&self, user: User) -> kube::Client {
        let service = InProcess { api: Arc::clone(&self.api), user: Arc::new(user) };
        kube::Client::new(service, "default")
    }

    /// A token for a service account, bound to the account alone, valid for this many seconds.
    ///
    /// # Errors
    ///
    /// 404 if there is no such account.
    pub fn service_account_token(&self, namespace: &str, name: &str, seconds: i64) -> Result<String, Status> {
        verbs::token_for_account(&self.api, namespace, name, seconds)
    }

    /// Sets the source of container logs; without it there are no logs. Only the first call has an effect.
    pub fn serve_logs(&self, logs: Arc<dyn Logs>) {
        // The first source stays: two sources for the same containers would be a bug of the caller.
        let _ = self.api.logs.set(logs);
    }

    /// Sets a listener that is notified of each new credential. Only the first call has an effect.
    pub fn tell_issued(&self, issued: Arc<dyn Issued>) {
        let _ = self.api.issued.set(issued);
    }

    /// The log of all requests.
    #[must_use]
    pub fn audit(&self) -> Audit {
        self.api.audit.clone()
    }

    /// The revision of the latest write.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.api.store.revision()
    }

    /// Ends all watches of service accounts, as a proxy or a restart of a real server does. New watches wait
    /// until [`Running::expire_watches`]; lists are answered.
    pub fn interrupt_watches(&self) {
        self.api.interruption.interrupt();
    }

    /// Makes the server unreachable for these service accounts, and reachable again for all others: watches
    /// of service accounts end, and requests of the unreachable ones wait until a later partition admits
    /// them.
    pub fn part(&self, partition: Partition) {
        self.api.reach.set(partition);
        self.api.interruption.end();
    }

    /// Serves another Kubernetes version from now on, and ends all watches of service accounts, like a server that was
    /// replaced by a newer one.
    pub fn set_version(&self, version: Version) {
        self.api.set_version(version);
        self.api.interruption.end();
    }

    /// Faults of single requests of service accounts, which a test sets and clears.
    #[must_use]
    pub fn request_faults(&self) -> &RequestFaults {
        &self.api.request_faults
    }

    /// Makes watches, and lists with resource version 0, of service accounts show the state of now until
    /// [`Running::end_lag`], as a server whose watch cache is behind etcd. Other reads and all writes use the latest
    /// state.
    pub fn begin_lag(&self) {
        self.api.lag.begin(self.api.store.revision());
    }

    /// Lets watches and cached lists catch up: changes that were held back are delivered in order.
    pub fn end_lag(&self) {
        self.api.lag.end();
    }

    /// Discards the history of changes and allows watches again. A watch that continues from before a change
    /// of its kind is answered with 410, and so is, once, the second page of a list that a service account
    /// reads in pages.
    pub fn expire_watches(&self) {
        self.api.store.forget();
        self.api.interruption.release();
    }

    /// Stops the server: ends watches, finishes the current answers, and closes the socket.
    pub async fn shutdown(self) {
        self.close.send_replace(true);
        if let Err(error) = self.serving.await {
            tracing::warn!(%error, "the server's task ended badly");
        }
    }
}

/// The server as a service for clients of this process.
#[derive(Clone)]
struct InProcess {
    api: Arc<Api>,
    user: Arc<User>,
}

impl Service<Request<kube::client::Body>> for InProcess {
    type Response = Response<Body>;
    type Error = std::convert::Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        let (api, user) = (Arc::clone(&self.api), Arc::clone(&self.user));
        Box::pin(async move { Ok(handle(api, Peer::InProcess(user), request).await) })
    }
}
