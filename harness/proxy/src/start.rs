//! Starts and stops a proxy.

use crate::answers::ErrorForms;
use crate::bounds::Bounds;
use crate::driver_api;
use crate::listen::{self, ListeningPort};
use crate::rewrite::Rewrites;
use crate::shared::{Behind, Ended, OnMessage, Shared};
use crate::table::Table;
use crate::upstream::{Upstream, UpstreamError};
use certificates::{Authority, CertificateError};
use fake_cloud_recording::credentials::Secret;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// The name of the CA.
const CA: &str = "ccm-conformance proxy";

/// A port to open.
#[derive(Clone, Debug)]
pub struct Port {
    /// The caller that uses it, by its name in the journal; `None` for all callers.
    pub caller: Option<String>,
    /// Its address; port 0 uses any free one.
    pub listen: SocketAddr,
}

/// A driver of the cloud behind the proxy, and the address of the proxy's own driver API.
#[derive(Clone)]
pub struct DriverConfig {
    /// The driver's address; `None` if there is none.
    pub behind: Option<(String, String)>,
    /// The address of the proxy's driver API; port 0 uses any free one.
    pub listen: SocketAddr,
    /// Its token.
    pub token: String,
}

/// The configuration of a proxy.
#[derive(Clone)]
pub struct Config {
    /// Its ports; at least one.
    pub ports: Vec<Port>,
    /// URL of the cloud.
    pub upstream: String,
    /// CA certificates for the cloud, in addition to those that this machine trusts.
    pub upstream_ca: Option<PathBuf>,
    /// The meaning of calls.
    pub table: Table,
    /// How the cloud's API refuses calls.
    pub errors: ErrorForms,
    /// Which URLs in answers lead to the proxy instead.
    pub rewrites: Rewrites,
    /// Its names and addresses for clients, if it uses TLS.
    pub tls: Option<Vec<String>>,
    /// Its driver API, if it has one.
    pub driver: Option<DriverConfig>,
    /// The limits for clients.
    pub bounds: Bounds,
    /// The observer of calls that have ended.
    pub ended: Option<Ended>,
    /// The receiver of messages for the user.
    pub on_message: OnMessage,
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("ports", &self.ports)
            .field("upstream", &self.upstream)
            .finish_non_exhaustive()
    }
}

/// Why a proxy does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The cloud.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// Its certificate.
    #[error(transparent)]
    Authority(#[from] CertificateError),
    /// It cannot listen on an address.
    #[error("the proxy cannot listen on {address}: {}", system_errors::why_not_listening(cause))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        cause: std::io::Error,
    },
}

/// A proxy that runs until it is shut down or dropped.
#[must_use = "the proxy stops when this is dropped"]
pub struct Running {
    ports: Vec<(Option<String>, String)>,
    driver: Option<SocketAddr>,
    ca: Option<String>,
    tasks: Vec<JoinHandle<()>>,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("ports", &self.ports).finish_non_exhaustive()
    }
}

impl Running {
    /// Starts a proxy on the current runtime. When this returns, the proxy answers, and an HTTP server has answered at
    /// the cloud's URL.
    ///
    /// # Errors
    /// The cloud cannot be reached or is not trusted; an address is in use.
    pub async fn start(config: Config) -> Result<Running, StartError> {
        let Config {
            ports,
            upstream,
            upstream_ca,
            table,
            errors,
            rewrites,
            tls,
            driver,
            bounds,
            ended,
            on_message,
        } = config;
        let upstream = Upstream::new(&upstream, upstream_ca.as_deref())?;
        upstream.greet().await?;
        let authority = tls.as_ref().map(|_| Authority::new(CA)).transpose()?;
        let acceptor = match (&authority, &tls) {
            (Some(authority), Some(names)) => Some(authority.acceptor(names, &["h2", "http/1.1"])?),
            _ => None,
        };
        let scheme = if tls.is_some() { "https" } else { "http" };
        let (mut doors, mut open) = (Vec::new(), Vec::new());
        for Port { caller, listen } in ports {
            let listener = bind(listen).await?;
            let address = listener.local_addr().unwrap_or(listen);
            open.push((caller.clone(), format!("{scheme}://{address}")));
            doors.push(ListeningPort { listener, caller: caller.map(Arc::from), tls: acceptor.clone() });
        }
        let endpoint = open.first().map(|(_, url)| url.clone()).unwrap_or_default();
        let behind = match driver.as_ref().and_then(|driver| driver.behind.as_ref()) {
            Some((url, token)) => {
                Some(Behind { api: Upstream::new(url, None)?, token: Secret::new(token.clone()) })
            }
            None => None,
        };
        let token = Secret::new(driver.as_ref().map(|driver| driver.token.clone()).unwrap_or_default());
        let shared = Arc::new(Shared {
            table,
            errors,
            rewrites,
            upstream,
            behind,
            token,
            scheme,
            endpoint,
            bounds,
            ended,
            on_message,
            arrivals: Notify::new(),
            started: Instant::now(),
            state: Mutex::default(),
        });
        let mut tasks: Vec<JoinHandle<()>> =
            doors.into_iter().map(|door| tokio::spawn(listen::serve(door, shared.clone()))).collect();
        // Declared before the last step that can fail, so that everything ends with it.
        let mut running =
            Running { ports: open, driver: None, ca: authority.map(|ca| ca.pem()), tasks: Vec::new() };
        running.tasks.append(&mut tasks);
        if let Some(driver) = driver {
            let listener = bind(driver.listen).await?;
            running.driver = Some(listener.local_addr().unwrap_or(driver.listen));
            running.tasks.push(tokio::spawn(driver_api::serve(listener, driver_api::router(shared))));
        }
        Ok(running)
    }

    /// Each port: the caller that uses it, and its URL.
    pub fn ports(&self) -> &[(Option<String>, String)] {
        &self.ports
    }

    /// The address of the driver API.
    pub fn driver_addr(&self) -> Option<SocketAddr> {
        self.driver
    }

    /// The CA with which clients verify the proxy, in PEM; `None` without TLS.
    pub fn ca(&self) -> Option<&str> {
        self.ca.as_deref()
    }

    /// Stops at once: all ports are closed and so are all connections.
    pub async fn shutdown(mut self) {
        for task in &mut self.tasks {
            task.abort();
            // It was stopped, so the result does not matter.
            let _ = task.await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(address).await.map_err(|cause| StartError::Listen { address, cause })
}

/// Any free port of the loopback address.
pub fn any_port(caller: Option<String>) -> Port {
    Port { caller, listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)) }
}
