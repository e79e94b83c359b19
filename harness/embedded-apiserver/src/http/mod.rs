//! HTTP: from bytes to a [`call::Call`] that a verb answers, and back.

pub(crate) mod accept;
mod authenticate;
pub(crate) mod body;
pub(crate) mod call;
mod closing;
mod disturbed;
pub(crate) mod encode;
mod gzip;
mod handle;
mod held;
pub(crate) mod listener;
pub(crate) mod partial;
mod peer;
pub(crate) mod reply;
mod rows;
mod slices;
pub(crate) mod target;

pub(crate) use authenticate::by_token;
pub(crate) use closing::closed;
pub(crate) use handle::handle;
pub(crate) use peer::Peer;
pub(crate) use reply::Body;
