//! The redactor: knows all tokens, keys and certificates of a run, which must not appear in any output.
//!
//! A secret is recognised in the forms in which programs print it: plain, in base64 (at any position of the encoded data,
//! in either alphabet), in hexadecimal, in any case, escaped, with colours or line breaks in it; parts of it count too.
//! Anything with the form of a service account token or a private key is redacted, whatever its origin.
//!
//! ```
//! use harness_core::secrets;
//!
//! secrets::know("a-token-of-a-test");
//! assert_eq!(secrets::redact("Bearer a-token-of-a-test".to_owned()), "Bearer <redacted>");
//! // The plain form, or any other in which programs print it, such as base64.
//! assert!(secrets::stands_in("a-token-of-a-test", "token=a-token-of-a-test"));
//! ```

mod find;
mod shapes;
mod text;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use find::Forms;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{LazyLock, RwLock};
use text::Folded;

/// The replacement of a secret.
const REDACTED: &str = "<redacted>";
/// Shorter values are not secrets; they would be found everywhere.
const SHORTEST: usize = 8;

/// The redactor of this process.
static KNOWN: LazyLock<RwLock<Redactor>> = LazyLock::new(RwLock::default);

/// Registers a secret: a token, or keys and certificates in PEM.
pub fn know(secret: &str) {
    KNOWN.write().expect("no holder of this lock panics").know(secret);
}

/// Registers all credentials of this kubeconfig.
pub fn know_kubeconfig(text: &str) {
    const KEYS: [&str; 5] =
        ["client-key-data", "client-certificate-data", "certificate-authority-data", "token", "password"];
    for line in text.lines() {
        let Some((key, value)) = line.trim().trim_start_matches("- ").split_once(':') else { continue };
        let value = value.trim().trim_matches(['"', '\'']);
        if !KEYS.contains(&key.trim()) {
            continue;
        }
        match STANDARD.decode(value).ok().and_then(|bytes| String::from_utf8(bytes).ok()) {
            Some(pem) if pem.contains("-----BEGIN") => know(&pem),
            _ => know(value),
        }
    }
}

/// The text with every secret replaced.
pub fn redact(text: String) -> String {
    redacted(&text).unwrap_or(text)
}

/// The text with every secret replaced; `None` when there is none in it.
pub fn redacted(text: &str) -> Option<String> {
    match KNOWN.read().expect("no holder of this lock panics").clean(text) {
        Cow::Borrowed(_) => None,
        Cow::Owned(clean) => Some(clean),
    }
}

/// Whether a text contains a secret, in any form.
pub fn stands_in(secret: &str, text: &str) -> bool {
    let mut known = Redactor::default();
    known.know(secret);
    !known.forms.is_empty() && known.forms.find(&Folded::of(text)).into_iter().next().is_some()
}

/// Secrets, and the index for finding them.
#[derive(Debug, Default)]
struct Redactor {
    forms: Forms,
}

impl Redactor {
    fn know(&mut self, secret: &str) {
        let secret = secret.trim();
        if secret.contains("-----BEGIN") {
            // The common first and last lines of all keys and certificates are not secret.
            let blocks = secret.split("-----").filter(|part| part.len() > 64);
            blocks.for_each(|block| self.add(block.trim().as_bytes()));
            return;
        }
        let mut parts = secret.split('.');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            // The claims of a token are not secret; the signature makes it valid, and is the only part that is unique.
            (Some(header), Some(_), Some(signature), None) if header.starts_with("eyJ") => {
                self.add(signature.as_bytes());
            }
            _ => self.add(secret.as_bytes()),
        }
    }

    fn add(&mut self, secret: &[u8]) {
        if secret.len() < SHORTEST {
            return;
        }
        self.forms.add(secret);
        // There are three forms, by position in the encoded data: each without the characters that depend on its
        // neighbours.
        for before in 0..3_usize {
            let shifted: Vec<u8> = std::iter::repeat_n(0, before).chain(secret.iter().copied()).collect();
            let whole = shifted.len() / 3 * 3;
            let encoded = STANDARD.encode(&shifted[..whole]);
            let first = if before == 0 { 0 } else { 4 };
            self.forms.add(encoded.get(first..).unwrap_or_default().as_bytes());
        }
        let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        self.forms.add(hex.as_bytes());
    }

    fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut found: Vec<Range<usize>> = shapes::find(text);
        if !self.forms.is_empty() {
            let folded = Folded::of(text);
            found.extend(self.forms.find(&folded));
        }
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        for range in &mut found {
            range.start = text.floor_char_boundary(range.start);
            range.end = text.ceil_char_boundary(range.end);
        }
        found.sort_by_key(|range| range.start);
        let (mut clean, mut end) = (String::with_capacity(text.len()), 0);
        for range in found {
            if range.start >= end {
                clean.push_str(&text[end..range.start]);
                clean.push_str(REDACTED);
            }
            end = end.max(range.end);
        }
        clean.push_str(&text[end..]);
        Cow::Owned(clean)
    }
}

#[cfg(test)]
mod tests;
