//! What can go wrong between a test and a driver.

/// Why the driver API did not do what it was asked. No variant ever holds a token.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address or the token cannot be used for HTTP.
    #[error("cannot use {address} as a driver's address: {why}")]
    Unusable {
        /// The address as given.
        address: String,
        /// What is wrong with it.
        why: String,
    },
    /// No connection, or it broke, or the answer took too long.
    #[error("{operation}: no answer from the driver at {address}")]
    Unreachable {
        /// What was asked, as `METHOD /path`.
        operation: String,
        /// The driver API's address.
        address: String,
        /// Why not.
        #[source]
        source: reqwest::Error,
    },
    /// The driver answered with an error.
    #[error("{operation}: the driver at {address} answered {status}: {message}")]
    Refused {
        /// What was asked, as `METHOD /path`.
        operation: String,
        /// The driver API's address.
        address: String,
        /// HTTP status.
        status: u16,
        /// Its words, or the body as it came.
        message: String,
    },
    /// The answer has no end, or one that is too far away.
    #[error("{operation}: the answer of the driver at {address} is larger than {} MiB", limit_bytes >> 20)]
    TooLarge {
        /// What was asked, as `METHOD /path`.
        operation: String,
        /// The driver API's address.
        address: String,
        /// What is read of an answer, bytes.
        limit_bytes: usize,
    },
    /// The answer is not the driver API's: something else listens there, or another version.
    #[error("{operation}: the answer of {address} is not the driver protocol's: {body}")]
    Malformed {
        /// What was asked, as `METHOD /path`.
        operation: String,
        /// The driver API's address.
        address: String,
        /// The beginning of the body.
        body: String,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
}

impl ClientError {
    /// Whether the driver said that the object does not exist.
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
