//! The errors between a test and a driver.

/// The reason why a call of the driver API failed. No variant ever contains a token.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address or the token cannot be used for HTTP.
    #[error("cannot use {address} as a driver's address: {why}")]
    Unusable {
        /// The given address.
        address: String,
        /// The fault.
        why: String,
    },
    /// No connection, or it broke, or the answer took too long.
    #[error("{operation}: no answer from the driver at {address}")]
    Unreachable {
        /// The call, as `METHOD /path`.
        operation: String,
        /// The driver API's address.
        address: String,
        /// The cause.
        #[source]
        source: reqwest::Error,
    },
    /// The driver answered with an error.
    #[error("{operation}: the driver at {address} answered {status}: {message}")]
    Refused {
        /// The call, as `METHOD /path`.
        operation: String,
        /// The driver API's address.
        address: String,
        /// HTTP status.
        status: u16,
        /// The driver's message, or the body as it came.
        message: String,
    },
    /// The answer is too large, or endless.
    #[error("{operation}: the answer of the driver at {address} is larger than {} MiB", limit_bytes >> 20)]
    TooLarge {
        /// The call, as `METHOD /path`.
        operation: String,
        /// The driver API's address.
        address: String,
        /// How many bytes of an answer are read.
        limit_bytes: usize,
    },
    /// The answer is not one of the driver API: another program listens there, or another version.
    #[error("{operation}: the answer of {address} is not the driver protocol's: {body}")]
    Malformed {
        /// The call, as `METHOD /path`.
        operation: String,
        /// The driver API's address.
        address: String,
        /// The beginning of the body.
        body: String,
        /// The fault in it.
        #[source]
        source: serde_json::Error,
    },
}

impl ClientError {
    /// Whether the driver reported that the object does not exist.
    pub fn is_not_found(&self) -> bool {
        self.status() == Some(404)
    }

    /// The HTTP status of the answer, if there was one.
    pub fn status(&self) -> Option<u16> {
        match self {
            ClientError::Refused { status, .. } => Some(*status),
            ClientError::Unusable { .. }
            | ClientError::Unreachable { .. }
            | ClientError::TooLarge { .. }
            | ClientError::Malformed { .. } => None,
        }
    }
}
