//! Secrets that are known by their shape: whoever made them.

use std::ops::Range;

/// What a signed token of JSON (RFC 7519) begins with: `{"alg":`, as it is encoded in a token; the same in base64 again, by
/// where it stands; and in hexadecimal.
const TOKENS: [&str; 6] = [
    "eyJhbGciOi",
    "ZXlKaGJHY2lPa",
    "V5SmhiR2NpT2",
    "leUpoYkdjaU9p",
    "65794a68624763694f69",
    "65794A68624763694F69",
];
/// The least that follows.
const REST: usize = 40;
/// What a private key in PEM begins with, between marks.
const KEY: &str = "PRIVATE KEY-----";
/// The mark.
const MARK: &str = "-----";

/// Where in a text what looks like one stands.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for token in TOKENS {
        for (at, _) in text.match_indices(token) {
            let bytes = text.as_bytes();
            let length = bytes[at..].iter().take_while(|byte| of_token(**byte)).count();
            let before = bytes[..at].iter().rev().take_while(|byte| of_token(**byte)).count();
            if length >= REST {
                found.push(at - before..at + length);
            }
        }
    }
    for (at, _) in text.match_indices(KEY) {
        let begin = at + KEY.len();
        // The end's mark is no beginning.
        let is_begin = text[..at].rfind(MARK).is_some_and(|mark| text[mark..at].starts_with("-----BEGIN"));
        let length = text[begin..].find(MARK).unwrap_or(text.len() - begin);
        if is_begin && length >= REST {
            found.push(begin..begin + length);
        }
    }
    found
}

fn of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'+' | b'/' | b'=')
}
