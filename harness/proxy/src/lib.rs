//! A recording proxy: it runs between a CCM and any HTTP cloud, and provides journal, faults and barriers for clouds
//! without them.
//!
//! Rules ([`Rule`], [`Table`]) define what a call means: its operation, the names of its object, its owner. Calls arrive
//! at ports, one for each replica of a CCM, so that the journal distinguishes replicas without their credentials. Its
//! driver API is that of the driver behind it with journal, faults and barriers added, so that clients of a driver can
//! use a proxy instead.

mod answers;
mod body;
mod bounds;
mod call;
mod driver_api;
mod listen;
mod mask;
mod name_index;
mod pattern;
mod rewrite;
mod shared;
mod source;
mod start;
mod table;
pub mod tunnel;
mod upstream;
mod xpath;

pub use answers::{ErrorForm, ErrorForms};
pub use bounds::Bounds;
pub use pattern::RuleError;
pub use rewrite::Rewrites;
pub use shared::{Ended, OnMessage};
pub use source::{Source, SourceText};
pub use start::{Config, DriverConfig, Port, Running, StartError, any_port};
pub use table::{Overlap, Rule, Table};
pub use upstream::{UpstreamError, trusted_here};
