//! Secrets that are recognised by their form, whatever their origin.

use std::ops::Range;

/// The beginning of a signed JSON token (RFC 7519): `{"alg":`, as it is encoded in a token; the same in base64 again, by
/// position; and in hexadecimal.
const TOKENS: [&str; 6] = [
    "eyJhbGciOi",
    "ZXlKaGJHY2lPa",
    "V5SmhiR2NpT2",
    "leUpoYkdjaU9p",
    "65794a68624763694f69",
    "65794A68624763694F69",
];
/// Minimum length of the rest.
const REST: usize = 40;
/// The beginning of a private key in PEM, between marks.
const KEY: &str = "PRIVATE KEY-----";
/// The mark.
const MARK: &str = "-----";

/// The positions of such texts.
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
        // The mark at the end is not a beginning.
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
