//! Credentials on their way out: tokens of service accounts and keys of clients.

/// Is told every credential that the server makes for somebody. Whoever shows to others what clients print keeps these out
/// of it.
pub trait Issued: std::fmt::Debug + Send + Sync {
    /// A token, or a key and its certificate in PEM.
    fn issued(&self, credential: &str);
}
