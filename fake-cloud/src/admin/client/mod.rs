//! Client of the admin API.

mod calls;
mod error;
mod http;

pub use calls::Client;
pub use error::ClientError;
