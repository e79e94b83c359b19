//! What to test, where and with which limits: the files of the user ([`RunFile`], `ProfileFile`) are
//! converted to their meaning ([`RunPlan`], [`Profile`]).
//!
//! All problems of a run are reported together, each with its file, line and key. Reading files is the only
//! I/O here; nothing in this crate knows Docker, a cluster or the environment's variables.

#[macro_use]
mod backends;
pub mod contract;

mod annotation_effects;
mod annotation_reading;
mod capabilities;
mod cloud_reading;
mod cloud_source;
mod cluster;
mod cluster_reading;
mod csi_migration;
mod duration;
mod enums;
mod executable;
mod flags;
mod formats;
mod image_credentials;
mod limits;
mod network_proxy;
mod old_release;
mod old_release_reading;
mod own_program;
mod paths;
mod plan;
mod problem;
mod profile;
mod profile_file;
mod profile_reading;
mod promises;
mod route_file;
mod run_file;
pub mod schema;
mod schema_check;
mod section_keys;
mod sections;
mod select;
mod settings;
#[cfg(test)]
mod tests;
pub mod yaml;

pub use annotation_effects::AnnotationEffect;
pub use capabilities::Capabilities;
pub use cloud_source::{CloudSource, CredentialFrom, Proxying};
pub use cloud_source::{DRIVER_LISTEN, DRIVER_TOKEN_FILE, usual_arguments};
pub use cluster::{
    DesiredCluster, ExistingCluster, Kubernetes, OwnCluster, ServingCertificates, SettledCluster, Topology,
    WantedCluster,
};
pub use csi_migration::CsiMigration;
pub use duration::{BadDuration, HumanDuration};
pub use enums::{
    API_VERSION, AddressType, BackendChoice, BackendKind, Budget, CcmCommand, CsiDriver, Deployment,
    Instances, Keep, NodeIp, Ownership, ProfileKind, Protocol, ProviderId, RouteTrigger, Targets, Timing,
};
pub use fake_cloud_dialects::NAMES as DIALECTS;
pub use flags::{FAST_FLAGS, LeaseTiming};
pub use formats::CLOUD_TOKEN;
pub use formats::OWN_PLACEHOLDERS;
pub use formats::{image_reference as check_image_reference, name as check_name};
pub use image_credentials::{ImageCredentials, PROGRAM, PluginProgram};
pub use limits::Limits;
pub use network_proxy::NetworkProxy;
pub use old_release::{OldRelease, UpgradeKeys};
pub use plan::{Completeness, Given, RunPlan, Source, plan};
pub use problem::{CLUSTER_VARIABLE, Origin, Problem, Problems};
pub use problem::{did_you_mean, nearest};
pub use profile::{Build, Framework, Image, NULL_PROFILE, Profile, ProviderIdFormat, REFERENCE_PROFILE};
pub use profile_file::{Deviation, Lease, Location, Workload};
pub use promises::{PROMISES, Promise, declared_not_judged};
pub use route_file::Routes;
pub use run_file::{ClusterKeys, LimitKeys, OutputKeys, RunFile, SelectKeys};
pub use sections::{SECTIONS, Section};
pub use select::{
    Candidate, Choice, LONG_S, Offer, Selection, is_asked_for, known, select, unknown_deviations,
};
pub use settings::{BACKEND, CLUSTERS, SEED, SELECT, SHARD, TEST_FILTER, untrue_limits};

/// The JSON Schema of a profile.
pub fn profile_schema() -> serde_json::Value {
    profile_reading::SCHEMA.clone()
}

/// The JSON Schema of a routes file.
pub fn routes_schema() -> serde_json::Value {
    route_file::SCHEMA.clone()
}

/// The JSON Schema of a run file.
pub fn run_schema() -> serde_json::Value {
    run_file::SCHEMA.clone()
}
