//! Client of the driver API.

mod calls;
mod error;
mod http;

pub use calls::Client;
pub use error::ClientError;
