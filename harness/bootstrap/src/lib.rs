//! Finds boot deadlocks without a cluster: does a cluster boot with these manifests, and if not, what waits for what?
//!
//! `manifest` reads the files, `workload` and `known` interpret them, `cluster` describes the cluster to which they are
//! applied, `model` follows every order of events, `explain` describes the outcome, `lint` checks the contract's rows
//! BOOT-LINT, `fix` fixes the manifests, and `output` and `cli` print the results. Nothing here needs a cluster, a clock
//! or a network.

mod accept;
mod aliases;
mod cases;
mod changes;
mod check;
mod cli;
mod cluster;
mod dns;
mod expect;
mod explain;
mod finding;
mod fix;
mod known;
mod lint;
mod manifest;
mod model;
mod output;
mod workload;

pub use cases::{Case, CaseLine, parse_cases};
pub use check::{BootCondition, Cell};
pub use cli::{BootstrapCommand, run};
pub use cluster::{CloudEndpoint, Cluster, Cni, KubeProxy, PlannedMachine, Topology, Version, YesNo};
/// Parses a quantity.
pub use embedded_objects::billionths;
pub use expect::{Expectation, expect, read_paths};
pub use explain::{Explanation, Graph, GraphEdge, GraphNode, Observed, ObservedNode, ObservedPod, Step};
pub use finding::{Finding, Level};
pub use known::Assumed;
pub use manifest::Source;
pub use model::{Eviction, Outcome};
pub use workload::{Effect, Taint};
