//! The accepted credentials: tokens by name. Tokens are compared in constant time and never shown.

use fake_cloud_driver::Credential;
use std::fmt;
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// The length of the shortest token that is removed from texts: a shorter one may be part of any word.
const HIDEABLE_BYTES: usize = 8;

/// A token that is never shown.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// A secret with this token.
    pub fn new(token: impl Into<String>) -> Secret {
        Secret(token.into())
    }

    /// Whether this token was presented. Takes the same time for any token of the same length.
    pub fn is(&self, presented: &str) -> bool {
        self.0.as_bytes().ct_eq(presented.as_bytes()).into()
    }

    /// The token itself, for its owner.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

/// The reason why a credential is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// It has no name.
    #[error("a credential without a name")]
    NoName,
    /// The token is not allowed in a header.
    #[error("the token of credential {0} is empty or holds something else than visible ASCII characters")]
    Unusable(String),
    /// Two names have the same token: the journal could not distinguish the callers.
    #[error("credential {0} has the token of credential {1}")]
    Shared(String, String),
}

/// The credentials the cloud accepts.
#[derive(Debug, Default)]
pub struct Credentials(Vec<(Arc<str>, Secret)>);

impl Credentials {
    /// Adds a credential, or gives its name a new token.
    pub fn put(&mut self, credential: Credential) -> Result<(), CredentialError> {
        let Credential { name, token } = credential;
        if name.is_empty() {
            return Err(CredentialError::NoName);
        }
        if token.is_empty() || !token.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(CredentialError::Unusable(name));
        }
        if let Some(other) = self.name_of(&token).filter(|other| **other != *name) {
            return Err(CredentialError::Shared(name, other.to_string()));
        }
        self.remove(&name);
        self.0.push((name.into(), Secret::new(token)));
        Ok(())
    }

    /// Removes a credential; returns whether there was one.
    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|(known, _)| **known != *name);
        self.0.len() < before
    }

    /// The name of the credential with this token.
    pub fn name_of(&self, token: &str) -> Option<Arc<str>> {
        self.0.iter().find(|(_, secret)| secret.is(token)).map(|(name, _)| name.clone())
    }

    /// Removes all tokens from a text.
    pub fn redact(&self, mut text: String) -> String {
        for (_, secret) in self.0.iter().filter(|(_, secret)| secret.0.len() >= HIDEABLE_BYTES) {
            if text.contains(&secret.0) {
                text = text.replace(&secret.0, "<redacted>");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credential(name: &str, token: &str) -> Credential {
        Credential { name: name.to_owned(), token: token.to_owned() }
    }

    #[test]
    fn tokens_have_names() {
        let mut credentials = Credentials::default();
        credentials.put(credential("a", "token-of-a")).expect("fine");
        credentials.put(credential("b", "token-of-b")).expect("fine");
        assert_eq!(credentials.name_of("token-of-b").as_deref(), Some("b"));
        assert_eq!(credentials.name_of("token-of-"), None);
        assert_eq!(credentials.name_of(""), None);
        credentials.put(credential("a", "another-token")).expect("a new token");
        assert_eq!(credentials.name_of("token-of-a"), None);
        assert!(credentials.remove("a") && !credentials.remove("a"));
    }

    #[test]
    fn unusable_credentials_are_refused() {
        let mut credentials = Credentials::default();
        credentials.put(credential("a", "token")).expect("fine");
        credentials.put(credential("a", "token")).expect("the same again");
        let refused = |result: Result<(), CredentialError>| result.expect_err("refused").to_string();
        assert_eq!(refused(credentials.put(credential("", "x"))), "a credential without a name");
        assert_eq!(
            refused(credentials.put(credential("b", "token"))),
            "credential b has the token of credential a"
        );
        for token in ["", "two words", "tab\t", "ümlaut", "new\nline"] {
            assert!(matches!(credentials.put(credential("b", token)), Err(CredentialError::Unusable(_))));
        }
    }

    #[test]
    fn no_token_is_shown() {
        let mut credentials = Credentials::default();
        credentials.put(credential("a", "s3cr3t-t0k3n")).expect("fine");
        assert!(!format!("{credentials:?}").contains("s3cr3t"));
        assert_eq!(credentials.redact("GET /?t=s3cr3t-t0k3n&x=1".to_owned()), "GET /?t=<redacted>&x=1");
    }
}
