//! Records and disturbs calls to a cloud: credentials ([`credentials`]), the request log ([`journal`]),
//! [`faults`] and [`barriers`], and the part of the driver API for these ([`recorded`]).
//!
//! The fake cloud uses it, and so does a proxy in front of another cloud.

pub mod barriers;
pub mod credentials;
pub mod faults;
pub mod journal;
pub mod recorded;
mod used_ids;
