//! The requested cluster of a run.

use super::enums::{BackendKind, NodeIp, ProviderId};
use super::paths::looks_like_path;
use super::problem::did_you_mean;
use harness_core::files;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The requested cluster of a run. The harness may still have to choose its backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedCluster {
    backend: Option<BackendKind>,
    desired: DesiredCluster,
}

impl WantedCluster {
    /// A cluster that the harness creates; `None` leaves the choice of the backend to the harness.
    pub(super) fn own(backend: Option<BackendKind>, own: OwnCluster) -> WantedCluster {
        WantedCluster { backend, desired: DesiredCluster::Own(own) }
    }

    /// An existing cluster.
    pub(super) fn existing(existing: ExistingCluster) -> WantedCluster {
        WantedCluster { backend: Some(BackendKind::Existing), desired: DesiredCluster::Existing(existing) }
    }

    /// No cluster.
    pub fn absent() -> WantedCluster {
        WantedCluster { backend: Some(BackendKind::Absent), desired: DesiredCluster::Absent }
    }

    /// The same cluster, with kind as its backend if the harness creates it; `topology` replaces its machines.
    #[must_use]
    pub(super) fn of_kind(mut self, topology: Option<Topology>) -> WantedCluster {
        if let DesiredCluster::Own(own) = &mut self.desired {
            self.backend = Some(BackendKind::Kind);
            own.topology = topology.unwrap_or_else(|| own.topology.clone());
        }
        self
    }

    /// The same cluster, with a control plane and two workers if the harness creates it.
    #[must_use]
    pub(super) fn on_three_nodes(mut self) -> WantedCluster {
        if let DesiredCluster::Own(own) = &mut self.desired {
            own.topology = Topology::ThreeNode;
        }
        self
    }

    /// The requested backend; `None` if the choice is left to the harness.
    pub fn backend(&self) -> Option<BackendKind> {
        self.backend
    }

    /// The requested properties of the cluster.
    pub fn desired(&self) -> &DesiredCluster {
        &self.desired
    }

    /// The same cluster with a definite backend: the requested one, or else `otherwise`.
    #[must_use]
    pub fn settled(self, otherwise: BackendKind) -> SettledCluster {
        SettledCluster { backend: self.backend.unwrap_or(otherwise), desired: self.desired }
    }
}

/// The cluster of a run, with a definite backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledCluster {
    backend: BackendKind,
    desired: DesiredCluster,
}

impl SettledCluster {
    /// Changes the requested properties if the harness creates the cluster.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut OwnCluster)) -> SettledCluster {
        if let DesiredCluster::Own(own) = &mut self.desired {
            change(own);
        }
        self
    }

    /// Its backend.
    pub fn backend(&self) -> BackendKind {
        self.backend
    }

    /// The requested properties of the cluster.
    pub fn desired(&self) -> &DesiredCluster {
        &self.desired
    }
}

/// The requested properties of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DesiredCluster {
    /// A cluster that the harness creates.
    Own(OwnCluster),
    /// An existing cluster.
    Existing(ExistingCluster),
    /// No cluster.
    Absent,
}

impl DesiredCluster {
    /// The properties of a cluster that the harness creates; `None` for any other.
    pub fn own(&self) -> Option<&OwnCluster> {
        match self {
            DesiredCluster::Own(own) => Some(own),
            DesiredCluster::Existing(_) | DesiredCluster::Absent => None,
        }
    }
}

/// A cluster that the harness creates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnCluster {
    /// Its nodes and network.
    pub topology: Topology,
    /// Its Kubernetes version.
    pub kubernetes: Kubernetes,
    /// The `spec.providerID` that kubelets set.
    pub provider_id: ProviderId,
    /// Whether kubelets announce a node IP.
    pub node_ip: NodeIp,
    /// The source of the kubelets' serving certificates.
    pub serving: ServingCertificates,
    /// Determines when a simulated cluster acts; `None` leaves it to the run.
    pub seed: Option<u32>,
}

/// The source of the kubelets' serving certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServingCertificates {
    /// Kubelets sign their own.
    SelfSigned,
    /// Kubelets request them from the cluster (`serverTLSBootstrap: true`), and their logs cannot be read
    /// before these requests are approved.
    Requested,
}

/// An existing cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExistingCluster {
    /// Its kubeconfig; `None` for the default of kubectl.
    pub kubeconfig: Option<PathBuf>,
    /// Whether to accept it although it appears to be in use.
    pub allow_foreign: bool,
}

/// Nodes and network of a cluster that the harness creates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// One node.
    Single,
    /// A control plane and two workers.
    ThreeNode,
    /// One node and no pod network.
    NoCni,
    /// A control plane and a worker with both IP families.
    DualStack,
    /// A kind configuration file.
    File(PathBuf),
}

impl Topology {
    const NAMED: &[(&str, Topology)] = &[
        ("single", Topology::Single),
        ("three-node", Topology::ThreeNode),
        ("no-cni", Topology::NoCni),
        ("dual-stack", Topology::DualStack),
    ];

    /// The names that can be given instead of a file.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Topology::NAMED.iter().map(|(name, _)| *name)
    }

    /// Its name for reports: as in the run file, or the file name without its extension.
    pub fn name(&self) -> String {
        let named = Topology::NAMED.iter().find(|(_, topology)| topology == self);
        match (named, self) {
            (Some((name, _)), _) => (*name).to_owned(),
            (None, Topology::File(file)) => {
                file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
            }
            (None, _) => unreachable!("every topology but a file is in the table"),
        }
    }

    pub(super) fn resolve(text: &str) -> Result<Topology, String> {
        if looks_like_path(text) {
            let file = PathBuf::from(text);
            if file.is_dir() {
                return Err(format!("{text} is a folder"));
            }
            return if file.is_file() {
                Ok(Topology::File(file))
            } else {
                Err(format!("there is no such file: {text}"))
            };
        }
        if let Some((_, topology)) = Topology::NAMED.iter().find(|(name, _)| *name == text) {
            return Ok(topology.clone());
        }
        let file = files::built_in(&format!("kind-configs/{text}.yaml"));
        if files::is_file(&file) {
            return Ok(Topology::File(file));
        }
        let built_in = files::list(&files::built_in("kind-configs")).unwrap_or_default();
        let mut names: Vec<&str> = Topology::names().collect();
        for name in built_in.iter().filter_map(|file| file.file_stem()?.to_str()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let near = did_you_mean(text, &names);
        Err(format!("'{text}' is none of {}, nor a path with a '/'{near}", names.join(", ")))
    }
}

/// The Kubernetes version of a cluster that the harness creates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kubernetes {
    /// The newest that is available on this machine.
    Newest,
    /// A version; without a patch, the newest patch release that is available on this machine.
    Version {
        /// 36 for 1.36.
        minor: u32,
        /// 1 for 1.36.1.
        patch: Option<u32>,
    },
    /// A node image.
    Image(String),
}

impl fmt::Display for Kubernetes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kubernetes::Newest => f.write_str("newest"),
            Kubernetes::Version { minor, patch: None } => write!(f, "1.{minor}"),
            Kubernetes::Version { minor, patch: Some(patch) } => write!(f, "1.{minor}.{patch}"),
            Kubernetes::Image(image) => f.write_str(image),
        }
    }
}

impl FromStr for Kubernetes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            String::from(
                "neither a version such as 1.36 or 1.36.1 nor a node image such as kindest/node:v1.36.1",
            )
        };
        if text.is_empty() || text.contains(char::is_whitespace) {
            return Err(wrong());
        }
        if text.contains(['/', ':', '@']) {
            return Ok(Kubernetes::Image(text.to_owned()));
        }
        let numbers: Option<Vec<u32>> =
            text.strip_prefix('v').unwrap_or(text).split('.').map(|number| number.parse().ok()).collect();
        let (minor, patch) = match numbers.as_deref() {
            Some([1, minor]) => (*minor, None),
            Some([1, minor, patch]) => (*minor, Some(*patch)),
            Some([_, _] | [_, _, _]) => {
                return Err(String::from(
                    "no release of Kubernetes; their versions begin with '1.', such as 1.36",
                ));
            }
            _ => return Err(wrong()),
        };
        if minor < 20 {
            return Err(String::from("older than 1.20, the oldest Kubernetes that is supported"));
        }
        Ok(Kubernetes::Version { minor, patch })
    }
}
