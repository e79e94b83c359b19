//! The state of an API server, which all requests share: the objects, access rights, and the clock.
//!
//! [`Api`] is the whole state. [`store`] has the objects and their history, [`auth`] the users and their
//! rights, and [`audit`] the log of requests. This crate knows nothing about HTTP.

pub mod audit;
pub mod auth;
mod clock;
mod collections;
mod definitions;
mod events;
mod interruption;
mod issued;
mod lag;
mod limits;
mod logs;
mod names;
mod objects;
pub mod policy;
pub mod query;
mod reach;
mod request_faults;
mod selection;
mod state;
pub mod store;
mod version;

pub use clock::{Clock, suffix, unique_id};
pub use collections::collection_of;
pub use definitions::{is_definition, set_condition};
pub use events::{from_stored, is_stored_form, is_stored_metadata, to_stored, with_type};
pub use interruption::Ending;
pub use issued::Issued;
pub use lag::{Lag, View};
pub use limits::{Exceeded, Limits, Share, Usage, Use};
pub use logs::{Container, Followed, LogLine, Logs};
pub use objects::Written;
pub use reach::Partition;
pub use request_faults::{Met, RequestEffect, RequestFault, RequestFaultState, RequestFaults, RequestMatch};
pub use selection::Selection;
pub use state::Api;
pub use version::Version;
