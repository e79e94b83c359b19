//! Continue tokens of paged lists.
//!
//! The form is the API server's: base64url of
//! `{"v":"meta.k8s.io/v1","rv":REVISION,"start":"NAMESPACE/NAME\u0000"}`.

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use serde::{Deserialize, Serialize};

use super::record::Key;

/// As lenient as Go's decoder: bits after the last whole byte may have any value.
const BASE64: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

/// The position of the next page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continue {
    /// The revision of all pages; `None` to continue with the newest state (`rv: -1`).
    pub revision: Option<u64>,
    /// The last object of the previous page.
    pub after: Key,
}

/// The reason why a token cannot be used, in the API server's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContinueError {
    /// Not base64, or not the JSON of a token.
    #[error("continue key is not valid: {0}")]
    Invalid(String),
    /// A token without a revision.
    #[error("continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)")]
    NoRevision,
    /// A token without a start.
    #[error("continue key is not valid: encoded start key empty (version meta.k8s.io/v1)")]
    NoStart,
    /// A token of another form.
    #[error("continue key is not valid: server does not recognize this encoded version {0}")]
    Version(String),
}

#[derive(Debug, Serialize, Deserialize)]
struct Token {
    #[serde(default)]
    v: String,
    #[serde(default)]
    rv: i64,
    #[serde(default)]
    start: String,
}

impl Continue {
    /// Encodes the token for clients; `namespaced` says whether the kind's keys have two parts.
    #[must_use]
    pub fn encode(&self, namespace: Option<&str>) -> String {
        // Keys are relative to the list: for a list of one namespace they do not contain the namespace.
        let start = match namespace {
            None if !self.after.namespace().is_empty() => {
                format!("{}/{}\0", self.after.namespace(), self.after.name())
            }
            _ => format!("{}\0", self.after.name()),
        };
        let rv = self.revision.and_then(|revision| i64::try_from(revision).ok()).unwrap_or(-1);
        let token = Token { v: "meta.k8s.io/v1".into(), rv, start };
        BASE64.encode(serde_json::to_vec(&token).unwrap_or_default())
    }

    /// Decodes a token; `namespace` is the namespace of the list, `None` for all.
    ///
    /// # Errors
    ///
    /// The fault of the token, in the API server's words.
    pub fn decode(token: &str, namespace: Option<&str>, namespaced: bool) -> Result<Self, ContinueError> {
        let data = BASE64.decode(token).map_err(|_| {
            let at = token.bytes().position(|b| !(b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
            ContinueError::Invalid(format!("illegal base64 data at input byte {}", at.unwrap_or(token.len())))
        })?;
        let token: Token = serde_json::from_slice(&data).map_err(|_| {
            // Go names the first byte that cannot begin a value; all other faults have the same message here.
            let first = data.iter().find(|b| !b.is_ascii_whitespace()).copied();
            match first {
                Some(b'{') => ContinueError::Invalid("unexpected end of JSON input".into()),
                Some(byte) => ContinueError::Invalid(format!(
                    "invalid character {} looking for beginning of value",
                    quoted(byte)
                )),
                None => ContinueError::Invalid("unexpected end of JSON input".into()),
            }
        })?;
        if token.v != "meta.k8s.io/v1" {
            return Err(ContinueError::Version(token.v));
        }
        if token.rv == 0 {
            return Err(ContinueError::NoRevision);
        }
        if token.start.is_empty() {
            return Err(ContinueError::NoStart);
        }
        let start = token.start.trim_end_matches('\0').trim_start_matches('/');
        if start.split('/').any(|part| part == ".." || part == ".") {
            return Err(ContinueError::Invalid(token.start));
        }
        let after = match (namespace, namespaced, start.split_once('/')) {
            (Some(namespace), _, _) => Key::new(namespace, start),
            (None, true, Some((namespace, name))) => Key::new(namespace, name),
            (None, ..) => Key::new("", start),
        };
        Ok(Self { revision: u64::try_from(token.rv).ok(), after })
    }
}

/// A byte as Go's JSON decoder shows it.
fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".into(),
        b'"' => "'\"'".into(),
        byte => format!("{:?}", char::from(byte)),
    }
}
