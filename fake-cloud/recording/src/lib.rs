//! What records calls to a cloud and disturbs them: who may call ([`credentials`]), the request log ([`journal`]), [`faults`]
//! and [`barriers`], and the part of the driver API that is about these ([`recorded`]).
//!
//! The fake cloud is made with it, and so is a proxy in front of another cloud.

pub mod barriers;
pub mod credentials;
pub mod faults;
pub mod journal;
pub mod recorded;
mod used_ids;
