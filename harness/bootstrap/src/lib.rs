//! Finds boot deadlocks without a cluster: does a cluster boot with these manifests, and if not, what waits for what?
//!
//! The crate `bootstrap-manifests` reads the files and says what they mean. Here `model` follows every order of events,
//! `explain` describes the outcome, `lint` checks the contract's rows BOOT-LINT, `fix` fixes the manifests, and `output`
//! and `cli` print the results. Nothing here needs a cluster, a clock or a network.

mod cases;
mod changes;
mod check;
mod cli;
mod expect;
mod explain;
mod finding;
mod fix;
mod lint;
mod model;
mod output;

pub use bootstrap_manifests::cluster::{
    CloudEndpoint, Cluster, Cni, KubeProxy, PlannedMachine, Topology, Version, YesNo,
};
pub use bootstrap_manifests::known::Assumed;
pub use bootstrap_manifests::manifest::Source;
pub use bootstrap_manifests::workload::{Controllers, Effect, Taint, image_fault};
pub use cases::{Case, CaseLine, parse_cases};
pub use check::{BootCondition, Cell};
pub use cli::{BootstrapCommand, run};
/// Parses a quantity.
pub use embedded_objects::billionths;
pub use expect::{Expectation, expect, read_paths};
pub use explain::{Explanation, Graph, GraphEdge, GraphNode, Observed, ObservedNode, ObservedPod, Step};
pub use finding::{Finding, Level};
pub use model::{Eviction, Outcome};
