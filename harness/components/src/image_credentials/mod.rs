//! Image credential provider plugins of the kubelet (KEP-2133), as a kubelet sees them: how one is configured and run,
//! its responses, and which images its patterns match.
//!
//! Sources: kubernetes `pkg/credentialprovider/plugin` and `keyring.go`; `k8s.io/kubelet`
//! `pkg/apis/credentialprovider/v1` and `config/v1`. Independent of clusters and checks.

mod answer;
mod configuration;
mod executions;
mod go_duration;
mod json;
mod leftovers;
mod on_node;
mod patterns;
mod plugin;
mod recorder;
mod registry;
mod stand_in;

pub use answer::{Answer, CacheKeyType, Credential, Fault, request};
pub use configuration::{API_VERSIONS, Configuration, NEWEST, Provider, lint};
pub use executions::{Claims, ManifestRequest, PluginExecution, Sighting};
pub use go_duration::go_duration;
pub(crate) use leftovers::{MARK, ProcessGroupGuard};
pub use on_node::{NODE_FOLDER, NodeSetup, OnNode, REGISTRY_PORT, gives_tokens, version_for};
pub use patterns::{BadPattern, Pattern, foreign_to};
pub use plugin::{Ended, Execution, KUBELET_LIMIT, Plugin};
pub use recorder::{RECORDER, recorder_main};
pub use registry::{PUBLIC, REGISTRY, registry_main};
pub use stand_in::{Behaviour, StandIn};
