//! What to test, where and with which limits: what was written ([`RunFile`], [`ProfileFile`]) becomes what it means
//! ([`RunPlan`], [`Profile`]).
//!
//! Every problem of a run is reported at once, each with its file, line and key. Reading files is all the I/O there
//! is here; nothing in this module knows Docker, a cluster or the environment's variables.

mod capabilities;
mod cluster;
mod duration;
mod flags;
mod limits;
mod plan;
mod problem;
mod profile;
mod profile_file;
mod profile_reading;
mod run_file;
mod schema;
mod select;
#[cfg(test)]
mod tests;
mod words;
pub mod yaml;

pub use capabilities::Capabilities;
pub use cluster::{
    DesiredCluster, ExistingCluster, Kubernetes, OwnCluster, SettledCluster, Topology, WantedCluster,
};
pub use duration::{BadDuration, HumanDuration};
pub use flags::{FAST_FLAGS, LeaseTiming, STATUS_FREQUENCY_DEFAULT, STATUS_FREQUENCY_FAST};
pub use limits::Limits;
pub use plan::{Completeness, RunPlan, Source, plan};
pub(crate) use problem::did_you_mean;
pub use problem::{Origin, Problem, Problems};
pub use profile::{
    Build, Deviation, Framework, Image, Lease, Location, NULL_PROFILE, Profile, ProviderIdFormat,
    REFERENCE_PROFILE, Workload, workspace,
};
pub use profile_file::{OWN_PLACEHOLDERS, ProfileFile};
pub use run_file::{ClusterKeys, LimitKeys, OutputKeys, RunFile, SelectKeys};
pub use select::{Candidate, Choice, LONG_S, Offer, Selection, select, unknown_deviations};
pub use words::{
    BackendChoice, BackendKind, Budget, Deployment, Instances, Keep, NodeIp, Ownership, Protocol, ProviderId,
    Timing,
};

/// The version every file of the harness carries as `apiVersion`.
pub const API_VERSION: &str = "ccm-conformance/v1";
