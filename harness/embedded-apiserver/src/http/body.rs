//! The body of a request: read within limits, then parsed.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use embedded_objects::fields::{self, Body as Parsed, Mode};
use embedded_objects::kinds::Kind;
use embedded_objects::status::{self, Status};
use embedded_objects::wire;
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::Value;
use serde_saphyr::options::DuplicateKeyPolicy;

use super::accept::Encoding;
use embedded_state::Share;
use embedded_state::query::{Query, go_duration};

/// The largest accepted body, in bytes.
pub(crate) const LIMIT: usize = 3 << 20;

/// How many bytes of a body that is too large are still read, and for how long, so that its sender sees the answer.
const MOST_DRAINED: usize = 256 << 20;
const DRAINING: Duration = Duration::from_secs(10);

/// How long a request, including its body, may take if it does not set a shorter time.
const PATIENCE: Duration = Duration::from_secs(60);

/// Reads a whole body.
///
/// # Errors
///
/// 413 if it is too large, 400 if the client breaks off or requests an invalid timeout, 504 if it takes too
/// long, 429 if the user has too many requests in progress.
pub(super) async fn read<B>(
    body: B,
    method: &Method,
    query: &Query,
    mut share: Option<&mut Share>,
) -> Result<Bytes, Status>
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
                    // Otherwise a client that is still sending would see a broken connection instead of the answer.
                    drain(body, data.remaining()).await;
                    return Err(status::too_large(LIMIT));
                }
                let length = bytes.len() + data.remaining();
                if share.as_mut().is_some_and(|share| share.hold(length).is_err()) {
                    drain(body, data.remaining()).await;
                    return Err(status::too_many_requests("too many requests, please try again later", 1));
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

/// Reads the rest of a body and discards it, within limits.
async fn drain<B>(mut body: std::pin::Pin<&mut B>, already: usize)
where
    B: http_body::Body,
    B::Data: Send,
{
    let mut forgotten = already;
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            forgotten += frame.data_ref().map_or(0, bytes::Buf::remaining);
            if forgotten > MOST_DRAINED {
                return;
            }
        }
    };
    // A client that takes longer sees the connection break.
    let _ = tokio::time::timeout(DRAINING, reading).await;
}

/// Parses a body as an object of a served kind, according to its content type.
///
/// # Errors
///
/// As for [`parse`].
pub(crate) fn of_kind(bytes: &Bytes, content_type: &str, kind: &Kind, mode: Mode) -> Result<Parsed, Status> {
    match encoding(content_type)? {
        Encoding::Json => fields::read(kind, text(bytes)?, mode),
        Encoding::Yaml => fields::read(kind, &yaml(bytes, kind.kind)?.to_string(), mode),
        Encoding::Protobuf if kind.in_protobuf() => wire::read(kind, bytes),
        Encoding::Protobuf => {
            Err(status::unsupported_media_type(&[Encoding::Json, Encoding::Yaml].map(Encoding::media_type)))
        }
    }
}

/// Parses a body as an object of a kind that is not served itself, according to its content type.
///
/// # Errors
///
/// 415 for another content type; 400 if it cannot be read, is something else, or has unknown fields.
pub(crate) fn parse(
    bytes: &Bytes,
    content_type: &str,
    (group, version, kind): (&str, &str, &str),
    mode: Mode,
) -> Result<Parsed, Status> {
    match encoding(content_type)? {
        Encoding::Json => fields::read_as(group, version, kind, text(bytes)?, mode),
        Encoding::Yaml => fields::read_as(group, version, kind, &yaml(bytes, kind)?.to_string(), mode),
        Encoding::Protobuf => wire::read_as(group, version, kind, bytes),
    }
}

/// Parses the body of a server-side apply, which is YAML and therefore may be JSON. Unknown fields are not
/// checked here: applying them fails.
///
/// # Errors
///
/// 400 if it cannot be read or, in strict mode, has a duplicate key.
pub(crate) fn applied(bytes: &Bytes, mode: Mode) -> Result<Parsed, Status> {
    let text = text(bytes)?;
    let mut last_wins = limits();
    last_wins.duplicate_keys = DuplicateKeyPolicy::LastWins;
    let object: Value = serde_saphyr::from_str_with_options(text, last_wins)
        .map_err(|why| status::bad_request(format!("error decoding YAML: {why}")))?;
    if !object.is_object() {
        return Err(status::bad_request("error decoding YAML: an apply patch is an object"));
    }
    let twice = match mode {
        Mode::Ignore => None,
        _ => serde_saphyr::from_str_with_options::<Value>(text, limits()).err().map(|why| repeated(&why)),
    };
    match (mode, twice) {
        (Mode::Strict, Some(why)) => Err(status::bad_request(format!("error strict decoding YAML: {why}"))),
        (_, why) => Ok(Parsed { object, warnings: why.into_iter().collect() }),
    }
}

/// The position of a duplicate key, in the words of Go's YAML parser.
fn repeated(why: &serde_saphyr::Error) -> String {
    let head = "error converting YAML to JSON: yaml: unmarshal errors:";
    match why.without_snippet() {
        serde_saphyr::Error::DuplicateMappingKey { key, location } => {
            let key = key.as_deref().unwrap_or_default();
            format!("{head}\n  line {}: key {key:?} already set in map", location.line())
        }
        other => format!("{head}\n  {other}"),
    }
}

/// Parses a body as options such as `DeleteOptions`, which clients send in any version.
///
/// # Errors
///
/// 415 for another content type; 400 if it cannot be read or is something else.
pub(crate) fn options(bytes: &Bytes, content_type: &str, kind: &str) -> Result<Value, Status> {
    let read = match encoding(content_type)? {
        Encoding::Json => fields::read_options(kind, text(bytes)?, Mode::Ignore),
        Encoding::Yaml => fields::read_options(kind, &yaml(bytes, kind)?.to_string(), Mode::Ignore),
        Encoding::Protobuf => wire::read_options(kind, bytes),
    };
    read.map(|body| body.object)
}

fn encoding(content_type: &str) -> Result<Encoding, Status> {
    Encoding::of_content(content_type)
        .ok_or_else(|| status::unsupported_media_type(&Encoding::ALL.map(Encoding::media_type)))
}

fn text(bytes: &Bytes) -> Result<&str, Status> {
    std::str::from_utf8(bytes).map_err(|why| status::bad_request(why.to_string()))
}

/// Limits for the expansion of aliases: otherwise a few lines that refer to one another expand to terabytes.
fn limits() -> serde_saphyr::Options {
    serde_saphyr::options! {
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 100_000 },
    }
}

fn yaml(bytes: &Bytes, kind: &str) -> Result<Value, Status> {
    serde_saphyr::from_str_with_options(text(bytes)?, limits()).map_err(|why| {
        status::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; yaml parse error: {why}"
        ))
    })
}
