//! Starts and stops a cloud.

use super::call::Service;
use super::listen;
use super::state::{Places, Shared};
use super::tls::Tls;
use super::unknown::Unknown;
use crate::driver_api;
use certificates::CertificateError;
use fake_cloud_dialects::{self as dialects, NAMES};
use fake_cloud_driver::Credential;
use fake_cloud_recording::credentials::{CredentialError, Credentials, Secret};
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The configuration of a cloud.
#[derive(Clone)]
pub struct Config {
    /// The name of its dialect.
    pub dialect: String,
    /// The address of the cloud API; port 0 takes any free one.
    pub listen: SocketAddr,
    /// The address of the driver API; port 0 takes any free one.
    pub driver_listen: SocketAddr,
    /// The address of the metadata service, in dialects that have one; port 0 takes any free one.
    pub metadata_listen: SocketAddr,
    /// The token of the driver API; `None` makes a random one.
    pub driver_token: Option<String>,
    /// The credentials that are accepted from the start.
    pub credentials: Vec<Credential>,
    /// What happens to calls that the dialect does not know.
    pub unknown: Unknown,
}

impl Config {
    /// The configuration of a cloud inside this process: free ports on the loopback address, a random driver
    /// token, no credentials.
    pub fn local(dialect: &str) -> Config {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Config {
            dialect: dialect.to_owned(),
            listen: any,
            driver_listen: any,
            metadata_listen: any,
            driver_token: None,
            credentials: Vec::new(),
            unknown: Unknown::Refused,
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("dialect", &self.dialect)
            .field("listen", &self.listen)
            .field("driver_listen", &self.driver_listen)
            .field("metadata_listen", &self.metadata_listen)
            .field("credentials", &self.credentials)
            .field("unknown", &self.unknown)
            .finish_non_exhaustive()
    }
}

/// The reason why a cloud does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The dialect does not exist.
    #[error("dialect {name} is not known; there are: {known}")]
    Dialect {
        /// The requested name.
        name: String,
        /// The existing names.
        known: String,
    },
    /// The cloud cannot listen on an address.
    #[error("cannot listen on {address} for the {api} API: {way_out}")]
    Listen {
        /// The requested address.
        address: SocketAddr,
        /// `cloud`, `driver` or `metadata`.
        api: &'static str,
        /// The remedy.
        way_out: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The driver token is not allowed in a header.
    #[error("the driver token is empty or holds something else than visible ASCII characters")]
    DriverToken,
    /// A credential is not accepted.
    #[error("a credential cannot be used")]
    Credential(#[from] CredentialError),
    /// The cloud cannot make its CA.
    #[error("the cloud cannot use TLS")]
    Tls(#[from] CertificateError),
    /// The system provides no random numbers.
    #[error("the system gives no random numbers for an driver token")]
    Random,
}

/// Starts clouds.
#[derive(Clone, Copy, Debug)]
pub struct Server;

impl Server {
    /// Starts a cloud on the current runtime. When this returns, both APIs answer.
    ///
    /// # Errors
    /// When the dialect is not known, an address is in use or a token is invalid.
    pub async fn start(config: Config) -> Result<Running, StartError> {
        let Config { dialect, listen, driver_listen, metadata_listen, driver_token, credentials, unknown } =
            config;
        let Some(info) = dialects::find(&dialect) else {
            return Err(StartError::Dialect { name: dialect, known: NAMES.join(", ") });
        };
        let driver_token = match driver_token {
            Some(token) => token,
            None => random_token()?,
        };
        if driver_token.is_empty() || !driver_token.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(StartError::DriverToken);
        }
        let mut accepted = Credentials::default();
        for credential in credentials {
            accepted.put(credential)?;
        }
        let cloud_listener = bind(listen, "cloud", "--listen").await?;
        let driver_listener = bind(driver_listen, "driver", "--driver-listen").await?;
        let metadata_listener = match info.metadata {
            true => Some(bind(metadata_listen, "metadata", "--metadata-listen").await?),
            false => None,
        };
        let local = |listener: &TcpListener, wanted| listener.local_addr().unwrap_or(wanted);
        let places = Places {
            cloud: local(&cloud_listener, listen),
            driver: local(&driver_listener, driver_listen),
            metadata: metadata_listener.as_ref().map(|listener| local(listener, metadata_listen)),
        };
        let tls = Tls::of(info)?;
        let shared = Arc::new(Shared::new(info, unknown, Secret::new(driver_token), places, tls, accepted));
        let router = driver_api::router(shared.clone());
        let mut tasks = vec![
            tokio::spawn(listen::serve(cloud_listener, Service::Api, shared.clone())),
            tokio::spawn(driver_api::serve(driver_listener, router)),
        ];
        tasks.extend(
            metadata_listener
                .map(|listener| tokio::spawn(listen::serve(listener, Service::Metadata, shared.clone()))),
        );
        Ok(Running { shared, tasks })
    }
}

/// A cloud that runs until it is shut down or dropped.
#[must_use = "the cloud stops when this is dropped"]
pub struct Running {
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
}

impl Running {
    /// The actual address of the cloud API.
    pub fn cloud_addr(&self) -> SocketAddr {
        self.shared.places.cloud
    }

    /// The actual address of the driver API.
    pub fn driver_addr(&self) -> SocketAddr {
        self.shared.places.driver
    }

    /// The actual address of the metadata service; `None` if the dialect has none.
    pub fn metadata_addr(&self) -> Option<SocketAddr> {
        self.shared.places.metadata
    }

    /// The certificate of its CA, in PEM, if the dialect answers for hosts of its vendor.
    pub fn ca(&self) -> Option<String> {
        self.shared.tls.as_ref().map(Tls::ca)
    }

    /// Token of the driver API.
    pub fn driver_token(&self) -> &str {
        self.shared.driver_token.reveal()
    }

    /// Stops at once: closes both ports and all connections.
    pub async fn shutdown(mut self) {
        for task in &mut self.tasks {
            task.abort();
            // It was stopped, so an error about that is expected.
            let _ = task.await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("dialect", &self.shared.info.name)
            .field("places", &self.shared.places)
            .finish_non_exhaustive()
    }
}

async fn bind(address: SocketAddr, api: &'static str, flag: &str) -> Result<TcpListener, StartError> {
    TcpListener::bind(address).await.map_err(|source| {
        let way_out = match source.kind() {
            io::ErrorKind::AddrInUse => {
                format!("it is in use; choose another with {flag}, or port 0 for any free one")
            }
            io::ErrorKind::AddrNotAvailable => {
                format!("this machine has no such address; choose another with {flag}")
            }
            io::ErrorKind::PermissionDenied => format!("not allowed; choose a port from 1024 with {flag}"),
            _ => format!("choose another with {flag}"),
        };
        StartError::Listen { address, api, way_out, source }
    })
}

fn random_token() -> Result<String, StartError> {
    let mut bytes = [0_u8; 24];
    getrandom::fill(&mut bytes).map_err(|_| StartError::Random)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
