//! The body of a request: read within bounds, then understood.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use embedded_semantics::status::{self, Status};
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::Value;

use super::accept::Encoding;
use super::query::{Query, go_duration};

/// The largest body that is taken, in bytes.
pub const LIMIT: usize = 3 << 20;

/// How long a request may take, its body included, where it does not say less.
const PATIENCE: Duration = Duration::from_secs(60);

/// Reads a body whole.
///
/// # Errors
///
/// 413 where it is too large, 400 where the client breaks off or asks for a time that is none, 504 where it dawdles.
pub(super) async fn read<B>(body: B, method: &Method, query: &Query) -> Result<Bytes, Status>
where
    B: http_body::Body + Send,
    B::Data: Send,
    B::Error: std::fmt::Display,
{
    if matches!(*method, Method::GET | Method::HEAD) {
        return Ok(Bytes::new());
    }
    let patience = match query.text("timeout") {
        None => PATIENCE,
        Some(text) => {
            let asked = go_duration(text).ok_or_else(|| {
                let why = format!("time: invalid duration {text:?}");
                status::bad_request(format!("invalid timeout specified in the request URL - {why}"))
            })?;
            if asked.is_zero() { PATIENCE } else { asked.min(PATIENCE) }
        }
    };
    let reading = async {
        let mut body = std::pin::pin!(body);
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|why| status::bad_request(format!("reading the body: {why}")))?;
            if let Ok(data) = frame.into_data() {
                use bytes::Buf as _;
                let mut data = data;
                if bytes.len() + data.remaining() > LIMIT {
                    return Err(status::too_large(LIMIT));
                }
                while data.has_remaining() {
                    let chunk = data.chunk().len();
                    bytes.extend_from_slice(data.chunk());
                    data.advance(chunk);
                }
            }
        }
        Ok(bytes.freeze())
    };
    tokio::time::timeout(patience, reading)
        .await
        .unwrap_or_else(|_| Err(status::timeout("request did not complete within the allotted timeout", 0)))
}

/// A body as an object.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The object.
    pub value: Value,
    /// How it was written.
    pub encoding: Encoding,
}

/// Understands a body as an object by its content type; `wanted` is the kind that belongs there.
///
/// # Errors
///
/// 415 for another content type, 400 for what cannot be read.
pub fn parse(bytes: &Bytes, content_type: &str, wanted: &str) -> Result<Parsed, Status> {
    let encoding = Encoding::of_content(content_type)
        .filter(|encoding| *encoding != Encoding::Protobuf)
        .ok_or_else(|| status::unsupported_media_type(&Encoding::ALL.map(Encoding::media_type)))?;
    let unrecognized = |why: String| {
        let summary = summary(bytes);
        status::bad_request(format!(
            "the object provided is unrecognized (must be of type {wanted}): {why} ({summary})"
        ))
    };
    let value = match encoding {
        Encoding::Json => serde_json::from_slice(bytes)
            .map_err(|error| unrecognized(format!("couldn't get version/kind; json parse error: {}", go_json(&error, bytes))))?,
        Encoding::Yaml | Encoding::Protobuf => {
            let text = std::str::from_utf8(bytes).map_err(|error| unrecognized(error.to_string()))?;
            serde_saphyr::from_str(text)
                .map_err(|error| unrecognized(format!("couldn't get version/kind; yaml parse error: {error}")))?
        }
    };
    Ok(Parsed { value, encoding })
}

/// The beginning of a body, as messages show it.
fn summary(bytes: &Bytes) -> String {
    const SHOWN: usize = 30;
    let shown = String::from_utf8_lossy(bytes.get(..bytes.len().min(SHOWN)).unwrap_or_default()).into_owned();
    // A body that is no text is shown as hexadecimal digits.
    let text = if shown.chars().any(|c| c == '\u{fffd}' || (c.is_control() && !c.is_whitespace())) {
        bytes.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect()
    } else {
        shown
    };
    if bytes.len() > SHOWN { format!("{text} ...") } else { text }
}

/// The sentence in which Go's JSON reader tells the same fault.
fn go_json(error: &serde_json::Error, bytes: &Bytes) -> String {
    let at = position(bytes, error.line(), error.column());
    let found = bytes.get(at).copied();
    let text = error.to_string();
    let Some(found) = found.filter(|_| !error.is_eof()) else { return "unexpected end of JSON input".into() };
    let place = if text.starts_with("key must be a string") {
        "looking for beginning of object key string"
    } else if text.starts_with("expected `:`") {
        "after object key"
    } else if text.starts_with("expected `,` or `}`") {
        "after object key:value pair"
    } else if text.starts_with("expected `,` or `]`") {
        "after array element"
    } else if text.starts_with("trailing characters") {
        "after top-level value"
    } else if text.starts_with("invalid escape") {
        "in string escape code"
    } else if text.starts_with("control character") {
        "in string literal"
    } else {
        "looking for beginning of value"
    };
    let shown = match found {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        byte => format!("{:?}", char::from(byte)),
    };
    format!("invalid character {shown} {place}")
}

/// The offset of a line and column, both counted from one.
fn position(bytes: &Bytes, line: usize, column: usize) -> usize {
    let mut start = 0;
    for _ in 1..line {
        match bytes.get(start..).and_then(|rest| rest.iter().position(|byte| *byte == b'\n')) {
            Some(end) => start += end + 1,
            None => break,
        }
    }
    start + column.saturating_sub(1)
}
