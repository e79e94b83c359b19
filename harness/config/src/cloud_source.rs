//! The source of a CCM's cloud.

use super::route_file::Routes;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// The placeholder for the address that a driver has to listen on.
pub const DRIVER_LISTEN: &str = "${DRIVER_LISTEN}";
/// The placeholder for the file with a driver's token.
pub const DRIVER_TOKEN_FILE: &str = "${DRIVER_TOKEN_FILE}";

/// The source of a CCM's cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloudSource {
    /// The fake cloud in this dialect.
    Dialect(String),
    /// A driver that is already running.
    DriverAt {
        /// Its URL.
        url: String,
        /// The file with its token.
        token_file: PathBuf,
    },
    /// A driver that is started and ended with each cloud of the run.
    DriverCommand {
        /// The program and its arguments; they may contain `${DRIVER_LISTEN}` and `${DRIVER_TOKEN_FILE}`.
        line: Vec<String>,
        /// Its working folder.
        folder: PathBuf,
    },
    /// A driver in a container, which is started and removed with each cloud of the run.
    DriverImage {
        /// The image.
        image: String,
        /// The arguments for its entry point; they may contain `${DRIVER_LISTEN}` and `${DRIVER_TOKEN_FILE}`.
        arguments: Vec<String>,
    },
    /// A real cloud, read through one of these drivers.
    Real {
        /// The driver.
        driver: Box<CloudSource>,
        /// The sources of the CCM's credentials, by placeholder.
        credentials: BTreeMap<String, CredentialFrom>,
    },
    /// One of these clouds behind a recording proxy.
    Proxied {
        /// The cloud.
        behind: Box<CloudSource>,
        /// The proxy.
        proxy: Proxying,
    },
}

/// The source of a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialFrom {
    /// This variable of the harness's environment.
    Variable(String),
    /// This file.
    File(PathBuf),
}

/// A recording proxy in front of a cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxying {
    /// The meaning of the calls of the cloud's API.
    pub routes: Routes,
    /// URL of the cloud's API; `None` if its driver reports it.
    pub upstream: Option<String>,
    /// Certificates to verify the cloud, in addition to those that this machine trusts.
    pub upstream_ca: Option<PathBuf>,
    /// Whether the CCM uses TLS to connect to the proxy.
    pub tls: bool,
    /// Whether the CCM reaches the proxy through the variable `HTTP_PROXY`.
    pub http_proxy: bool,
}

impl CloudSource {
    /// The dialect, if this is the fake cloud.
    pub fn dialect(&self) -> Option<&str> {
        match self {
            CloudSource::Dialect(name) => Some(name),
            CloudSource::DriverAt { .. }
            | CloudSource::DriverCommand { .. }
            | CloudSource::DriverImage { .. }
            | CloudSource::Real { .. } => None,
            CloudSource::Proxied { behind, .. } => behind.dialect(),
        }
    }

    /// Whether each cluster of a run can have a cloud of its own.
    pub fn is_many(&self) -> bool {
        match self {
            CloudSource::DriverAt { .. } | CloudSource::Real { .. } => false,
            CloudSource::Dialect(_) | CloudSource::DriverCommand { .. } | CloudSource::DriverImage { .. } => {
                true
            }
            CloudSource::Proxied { behind, .. } => behind.is_many(),
        }
    }

    /// The sources of the credentials for a real cloud; `None` if the cloud is created for the run.
    pub fn real(&self) -> Option<&BTreeMap<String, CredentialFrom>> {
        match self {
            CloudSource::Real { credentials, .. } => Some(credentials),
            CloudSource::Proxied { behind, .. } => behind.real(),
            CloudSource::Dialect(_)
            | CloudSource::DriverAt { .. }
            | CloudSource::DriverCommand { .. }
            | CloudSource::DriverImage { .. } => None,
        }
    }

    /// The image of its driver, if the driver runs in a container whatever the cluster.
    pub fn driver_image(&self) -> Option<&str> {
        match self {
            CloudSource::DriverImage { image, .. } => Some(image),
            CloudSource::Real { driver, .. } => driver.driver_image(),
            CloudSource::Proxied { behind, .. } => behind.driver_image(),
            CloudSource::Dialect(_) | CloudSource::DriverAt { .. } | CloudSource::DriverCommand { .. } => {
                None
            }
        }
    }
}

impl fmt::Display for CloudSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CloudSource::Dialect(name) => f.write_str(name),
            CloudSource::DriverAt { url, .. } => write!(f, "driver at {url}"),
            CloudSource::DriverCommand { line, .. } => write!(f, "driver '{}'", line.join(" ")),
            CloudSource::DriverImage { image, .. } => write!(f, "driver in image {image}"),
            CloudSource::Real { driver, .. } => write!(f, "real cloud behind {driver}"),
            CloudSource::Proxied { behind, .. } => write!(f, "{behind} behind a proxy"),
        }
    }
}

/// The default arguments for an image's entry point.
pub fn usual_arguments() -> Vec<String> {
    ["--listen", DRIVER_LISTEN, "--token-file", DRIVER_TOKEN_FILE].map(str::to_owned).to_vec()
}
