//! Removes credentials and signatures from the lines of calls in the journal.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::percent_decode_str;

/// Minimum length of a token that is masked in a text: a shorter one may be part of any word.
const HIDEABLE_BYTES: usize = 8;
const MASK: &str = "<redacted>";

/// Parts of the names of parameters whose values are secrets.
const SECRET: [&str; 12] = [
    "signature",
    "token",
    "secret",
    "password",
    "passwd",
    "credential",
    "accesskey",
    "access_key",
    "access-key",
    "apikey",
    "api_key",
    "api-key",
];
/// Complete names of such parameters.
const SECRET_NAMES: [&str; 5] = ["sig", "key", "auth", "authorization", "policy"];

/// A target, with the values of secret parameters masked.
pub(crate) fn target(path: &str, query: Option<&str>) -> String {
    let Some(query) = query else { return path.to_owned() };
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, value)) if !value.is_empty() && is_secret(name) => format!("{name}={MASK}"),
        _ => pair.to_owned(),
    });
    format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"))
}

fn is_secret(name: &str) -> bool {
    let name = percent_decode_str(name).decode_utf8_lossy().to_ascii_lowercase();
    SECRET.iter().any(|part| name.contains(part)) || SECRET_NAMES.contains(&name.as_str())
}

/// A text without the caller's credential.
pub(crate) fn without(mut text: String, headers: &http::HeaderMap) -> String {
    for (name, value) in headers {
        let name = name.as_str();
        if name != "authorization" && name != "cookie" && !is_secret(name) {
            continue;
        }
        let Ok(value) = value.to_str() else { continue };
        let decoded =
            value.strip_prefix("Basic ").and_then(|encoded| BASE64_STANDARD.decode(encoded.trim()).ok());
        let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
        for part in value.split([' ', ',', ';']).chain(decoded.split(':')) {
            let part =
                part.rsplit_once('=').filter(|(_, value)| !value.is_empty()).map_or(part, |(_, value)| value);
            if part.len() >= HIDEABLE_BYTES && text.contains(part) {
                text = text.replace(part, MASK);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderValue};

    #[test]
    fn signatures_and_tokens_are_masked() {
        assert_eq!(
            target("/", Some("Action=X&X-Amz-Signature=abc&X-Amz-Credential=AKIA&sig=1&name=key")),
            "/?Action=X&X-Amz-Signature=<redacted>&X-Amz-Credential=<redacted>&sig=<redacted>&name=key"
        );
        assert_eq!(target("/a", None), "/a");
        assert_eq!(target("/", Some("X%2DAmz%2DSignature=abc")), "/?X%2DAmz%2DSignature=<redacted>");
        let mut basic = HeaderMap::new();
        basic.insert("authorization", HeaderValue::from_static("Basic dXNlci1vZi1hOnBhc3N3b3JkLW9mLWE="));
        let text = without("GET /user-of-a/password-of-a".to_owned(), &basic);
        assert_eq!(text, "GET /<redacted>/<redacted>");
        let mut headers = HeaderMap::new();
        headers.insert("authorization", HeaderValue::from_static("Bearer token-of-a"));
        headers.insert("x-auth-token", HeaderValue::from_static("gAAAAA12345"));
        headers.insert("accept", HeaderValue::from_static("application/json"));
        let text = without("GET /v1/token-of-a/gAAAAA12345/application/json".to_owned(), &headers);
        assert_eq!(text, "GET /v1/<redacted>/<redacted>/application/json");
    }
}
