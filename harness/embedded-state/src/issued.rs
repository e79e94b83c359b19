//! Notifications about new credentials: tokens of service accounts and keys of clients.

/// Is notified of every credential that the server issues. A program that shows the output of clients uses it
/// to remove these secrets.
pub trait Issued: std::fmt::Debug + Send + Sync {
    /// Called with a token, or with a key and its certificate in PEM.
    fn issued(&self, credential: &str);
}
