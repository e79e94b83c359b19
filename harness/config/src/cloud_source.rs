//! Where the cloud of a CCM comes from, as its profile means it.

use super::route_file::Routes;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// The placeholder for where a driver is to listen.
pub const DRIVER_LISTEN: &str = "${DRIVER_LISTEN}";
/// The placeholder for the file that holds a driver's token.
pub const DRIVER_TOKEN_FILE: &str = "${DRIVER_TOKEN_FILE}";

/// Where the cloud of a CCM comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloudSource {
    /// The fake cloud in this dialect.
    Dialect(String),
    /// A driver that runs already.
    DriverAt {
        /// Where it listens.
        url: String,
        /// The file that holds its token.
        token_file: PathBuf,
    },
    /// A driver that is started and ended with each cloud of the run.
    DriverCommand {
        /// The program and its arguments; they may hold `${DRIVER_LISTEN}` and `${DRIVER_TOKEN_FILE}`.
        line: Vec<String>,
        /// The folder in which it runs.
        folder: PathBuf,
    },
    /// A driver in a container, which is started and removed with each cloud of the run.
    DriverImage {
        /// The image.
        image: String,
        /// What its entry point is told; it may hold `${DRIVER_LISTEN}` and `${DRIVER_TOKEN_FILE}`.
        arguments: Vec<String>,
    },
    /// A real cloud, seen by one of these drivers.
    Real {
        /// The driver.
        driver: Box<CloudSource>,
        /// Where the CCM's credentials come from, by placeholder.
        credentials: BTreeMap<String, CredentialFrom>,
    },
    /// One of these behind a recording proxy.
    Proxied {
        /// The cloud.
        behind: Box<CloudSource>,
        /// The proxy.
        proxy: Proxying,
    },
}

/// Where a credential comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialFrom {
    /// This variable of the harness's environment.
    Variable(String),
    /// This file.
    File(PathBuf),
}

/// A recording proxy before a cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxying {
    /// What the calls of the cloud's API mean.
    pub routes: Routes,
    /// URL of the cloud's API; `None` where its driver says it.
    pub upstream: Option<String>,
    /// Certificates by which the cloud is known, beside those that this machine trusts.
    pub upstream_ca: Option<PathBuf>,
    /// Whether the CCM speaks TLS to it.
    pub tls: bool,
    /// Whether the CCM reaches it through the variable `HTTP_PROXY`.
    pub http_proxy: bool,
}

impl CloudSource {
    /// The fake cloud's dialect, where it is the fake cloud.
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

    /// Where the credentials of a real cloud's CCM come from; `None` where the cloud is made for the run.
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

    /// The image of its driver, where that is a container wherever the cluster is.
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

/// What an image's entry point is told where a profile says nothing else.
pub fn usual_arguments() -> Vec<String> {
    ["--listen", DRIVER_LISTEN, "--token-file", DRIVER_TOKEN_FILE].map(str::to_owned).to_vec()
}
