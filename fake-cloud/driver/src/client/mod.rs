//! Client of the driver API.

mod calls;
mod error;
mod http;

pub use calls::{Client, fresh_id};
pub use error::ClientError;
