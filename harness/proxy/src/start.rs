//! Starting and stopping a proxy.

use crate::answers::ErrorForms;
use crate::authority::{Authority, AuthorityError};
use crate::bounds::Bounds;
use crate::driver_api;
use crate::listen::{self, Door};
use crate::rewrite::Rewrites;
use crate::shared::{Behind, Ended, Shared, Told};
use crate::table::Table;
use crate::upstream::{Upstream, UpstreamError};
use fake_cloud_recording::credentials::Secret;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// A port to open.
#[derive(Clone, Debug)]
pub struct Port {
    /// Whose calls come in by it, as the journal calls them; `None` for anybody's.
    pub caller: Option<String>,
    /// Where; port 0 takes any free one.
    pub listen: SocketAddr,
}

/// A driver of the cloud behind the proxy, and where the proxy's own driver API listens.
#[derive(Clone)]
pub struct DriverConfig {
    /// Where the driver listens; `None` where there is none.
    pub behind: Option<(String, String)>,
    /// Where the proxy's driver API listens; port 0 takes any free one.
    pub listen: SocketAddr,
    /// Its token.
    pub token: String,
}

/// What a proxy is started with.
#[derive(Clone)]
pub struct Config {
    /// Its ports, one at least.
    pub ports: Vec<Port>,
    /// URL of the cloud.
    pub upstream: String,
    /// Certificates by which the cloud is known, beside those that this machine trusts.
    pub upstream_ca: Option<PathBuf>,
    /// What calls mean.
    pub table: Table,
    /// How the cloud's API refuses.
    pub errors: ErrorForms,
    /// Which URLs in answers lead to the proxy instead.
    pub rewrites: Rewrites,
    /// Names and addresses by which callers know it, where it speaks TLS.
    pub tls: Option<Vec<String>>,
    /// Its driver API, where it has one.
    pub driver: Option<DriverConfig>,
    /// What callers may take.
    pub bounds: Bounds,
    /// Hears of each call that has ended.
    pub ended: Option<Ended>,
    /// Hears of what a person should know.
    pub told: Told,
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
    Authority(#[from] AuthorityError),
    /// An address cannot be listened on.
    #[error("the proxy cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
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
    /// Starts a proxy on the current runtime. When this returns it answers, and somebody who speaks HTTP has answered at the
    /// cloud's URL.
    ///
    /// # Errors
    /// The cloud is not there, or not who it says; an address is taken.
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
            told,
        } = config;
        let upstream = Upstream::new(&upstream, upstream_ca.as_deref())?;
        upstream.greet().await?;
        let authority = tls.as_ref().map(|_| Authority::new()).transpose()?;
        let acceptor = match (&authority, &tls) {
            (Some(authority), Some(names)) => Some(authority.acceptor(names)?),
            _ => None,
        };
        let scheme = if tls.is_some() { "https" } else { "http" };
        let (mut doors, mut open) = (Vec::new(), Vec::new());
        for Port { caller, listen } in ports {
            let listener = bind(listen).await?;
            let address = listener.local_addr().unwrap_or(listen);
            open.push((caller.clone(), format!("{scheme}://{address}")));
            doors.push(Door { listener, caller: caller.map(Arc::from), tls: acceptor.clone() });
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
            told,
            arrivals: Notify::new(),
            started: Instant::now(),
            state: Mutex::default(),
        });
        let mut tasks: Vec<JoinHandle<()>> =
            doors.into_iter().map(|door| tokio::spawn(listen::serve(door, shared.clone()))).collect();
        // Declared before the last thing that can fail, so that what was begun ends with it.
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

    /// Each port: whose calls come in by it, and its URL.
    pub fn ports(&self) -> &[(Option<String>, String)] {
        &self.ports
    }

    /// Where the driver API listens.
    pub fn driver_addr(&self) -> Option<SocketAddr> {
        self.driver
    }

    /// The CA by which callers know the proxy, in PEM; `None` without TLS.
    pub fn ca(&self) -> Option<&str> {
        self.ca.as_deref()
    }

    /// Stops at once: all ports are closed and so are all connections.
    pub async fn shutdown(mut self) {
        for task in &mut self.tasks {
            task.abort();
            // It was told to stop, so that it has not ended by itself is no news.
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
    TcpListener::bind(address).await.map_err(|source| StartError::Listen { address, source })
}

/// Any free port of the loopback address.
pub fn any_port(caller: Option<String>) -> Port {
    Port { caller, listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)) }
}
