//! The CCM under test: profile to rendered manifests to Pods to a known leader.
//!
//! It does not repair or judge anything.

mod arguments;
mod bounds;
mod cannot_run;
mod deal;
mod deploy;
mod ends;
mod handle;
mod hosting;
mod kubeconfig;
mod leading;
mod logs;
mod manifests;
mod metadata;
mod mounts;
mod release;
mod render;
mod side;
mod trial;
mod trust;

pub use arguments::Flag;
pub(crate) use cannot_run::none_can_run;
pub use cannot_run::{crash_loops, lacks_configuration, unrecoverable};
pub use deploy::Applier;
pub use deploy::{CcmError, FIELD_MANAGER, SEARCHED, last_lines, pods_gone, pods_of, shown_end};
pub(crate) use ends::statuses_of;
pub use ends::{ProgramEnd, Starts, ends_of};
pub use handle::{Ccm, Form, LeaseKey};
pub use hosting::{Hosting, TOKEN_ID};
pub use kubeconfig::{KUBECONFIG, ServerAddress};
pub use logs::{LOG_BYTES, LogEnd, containers_of, log_beginning, log_end};
pub use manifests::{ManifestError, Manifests, ObjectKey, WorkloadHint, fingerprint, key_of, pod_spec};
pub use manifests::{mentions, substitute};
pub use metadata::Metadata;
pub(crate) use mounts::unstated_mounts;
pub use release::Release;
pub use render::rank;
pub use render::{REPLICA_LABEL, RenderContext, Rendered, Replica, TOKEN, as_shipped, replicas};
pub use side::Side;
