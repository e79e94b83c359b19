//! What all requests share: the objects, who may do what, and the clock.

mod clock;
mod collections;
mod definitions;
mod events;
mod interruption;
mod limits;
mod names;
mod objects;
mod reach;
mod selection;
mod state;

pub(crate) use clock::{Clock, suffix, unique_id};
pub(crate) use collections::collection_of;
pub(crate) use definitions::{is_definition, set_condition};
pub(crate) use events::{from_stored, is_stored_form, is_stored_metadata, to_stored, with_type};
pub(crate) use interruption::Ending;
pub use limits::Limits;
pub(crate) use limits::{Exceeded, Share, Usage, Use};
pub(crate) use objects::Written;
pub use reach::Partition;
pub(crate) use selection::Selection;
pub(crate) use state::Api;
