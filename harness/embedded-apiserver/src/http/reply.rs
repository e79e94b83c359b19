//! The answer of a verb, and its conversion to an HTTP response.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use embedded_objects::kinds::Kind;
use embedded_objects::status::{self, Status};
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

use super::accept::{Encoding, Form, Shape};
use super::{encode, gzip, partial, rows};
use embedded_state::store::Record;
use embedded_state::{Written, from_stored, is_stored_form, is_stored_metadata, with_type};

/// The body of every response.
pub(crate) type Body = UnsyncBoxBody<Bytes, std::convert::Infallible>;

/// The media type of an answer that is not an object.
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";

/// The answer of a verb.
#[derive(Debug)]
pub(crate) struct Reply {
    /// The HTTP status.
    pub code: u16,
    /// The content of the answer.
    pub content: Content,
    /// Texts for the `Warning` header.
    pub warnings: Vec<String>,
}

/// The content of an answer.
pub(crate) enum Content {
    /// One stored object.
    Record(&'static Kind, Arc<Record>),
    /// One whole object.
    Object(Value),
    /// Stored objects and the list's own metadata.
    List(&'static Kind, Vec<Arc<Record>>, Value),
    /// Something that is not an object, with its media type.
    Text(&'static str, Bytes),
    /// A stream, with its media type.
    Stream(String, Body),
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Record(..) => "Record",
            Self::Object(_) => "Object",
            Self::List(..) => "List",
            Self::Text(..) => "Text",
            Self::Stream(..) => "Stream",
        })
    }
}

/// The result of a verb.
pub(crate) type Outcome = Result<Reply, Status>;

impl Reply {
    /// 200 with an object.
    #[must_use]
    pub(crate) fn object(value: Value) -> Self {
        Self { code: 200, content: Content::Object(value), warnings: Vec::new() }
    }

    /// 200 with a stored object.
    #[must_use]
    pub(crate) fn record(kind: &'static Kind, record: Arc<Record>) -> Self {
        Self { code: 200, content: Content::Record(kind, record), warnings: Vec::new() }
    }

    /// 200 with the object that was written, or that would have been.
    #[must_use]
    pub(crate) fn written(kind: &'static Kind, written: Written) -> Self {
        match written {
            Written::Stored(record) => Self::record(kind, record),
            Written::Pretended(value) => Self::object(with_type(kind, value)),
        }
    }

    /// 200 with plain text.
    #[must_use]
    pub(crate) fn text(text: impl Into<Bytes>) -> Self {
        let content = Content::Text(TEXT, text.into());
        Self { code: 200, content, warnings: Vec::new() }
    }

    /// The same with another HTTP status.
    #[must_use]
    pub(crate) fn with_code(mut self, code: u16) -> Self {
        self.code = code;
        self
    }

    /// The stored size of a list's objects, in bytes; 0 for any other answer.
    #[must_use]
    pub(crate) fn stored_bytes(&self) -> usize {
        match &self.content {
            Content::List(_, records, _) => records.iter().map(|record| record.json().len()).sum(),
            _ => 0,
        }
    }

    /// Converts the answer to a response in the negotiated form.
    #[must_use]
    pub(crate) fn into_response(self, form: Form) -> Response<Body> {
        let mut compressed = false;
        let (media_type, body) = match self.content {
            Content::Stream(media_type, body) => (media_type, body),
            Content::Text(media_type, text) => (media_type.to_owned(), full(text)),
            content => match encoded(content, form) {
                Ok((encoding, bytes)) => {
                    let small = form.gzip.then(|| gzip::compressed(&bytes)).flatten();
                    compressed = small.is_some();
                    (encoding.media_type().to_owned(), full(small.unwrap_or(bytes)))
                }
                Err(status) => return refusal(&status, Form::PLAIN),
            },
        };
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        if let Ok(value) = HeaderValue::from_str(&media_type) {
            headers.insert(header::CONTENT_TYPE, value);
        }
        if compressed {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        for warning in self.warnings {
            let text = warning.replace('\\', "\\\\").replace('"', "\\\"");
            if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{text}\"")) {
                headers.append(header::WARNING, value);
            }
        }
        response
    }
}

/// The response for an error.
#[must_use]
pub(crate) fn refusal(status: &Status, form: Form) -> Response<Body> {
    let form = Form { shape: Shape::Object, ..form };
    let (encoding, bytes) = encode::object(&status.body(), form)
        .map_or_else(|_| (Encoding::Json, status.body().to_string().into()), |bytes| (form.encoding, bytes));
    let mut response = Response::new(full(bytes));
    // A Status without a code reports a success.
    *response.status_mut() = StatusCode::from_u16(status.code).unwrap_or(StatusCode::OK);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(encoding.media_type()));
    if let Some(seconds) = status.details["retryAfterSeconds"].as_u64() {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// A body with all its bytes.
#[must_use]
pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed_unsync()
}

fn encoded(content: Content, form: Form) -> Result<(Encoding, Bytes), Status> {
    let bytes = match (content, form.shape) {
        (Content::Record(kind, record), Shape::Object) => encode::record(kind, &record, form)?,
        (Content::Record(kind, record), shape) => encode::object(
            &reshape(Some(kind), from_stored(kind, record.value()), Form { shape, ..form }),
            form,
        )?,
        (Content::Object(value), shape) => {
            let kind = embedded_objects::kinds::of(&value);
            encode::object(&reshape(kind, value, Form { shape, ..form }), form)?
        }
        (Content::List(kind, records, metadata), Shape::Object)
            if form.encoding == Encoding::Json && !form.pretty =>
        {
            json_list(kind, &records, &metadata)
        }
        (Content::List(kind, records, metadata), Shape::Object)
            if form.encoding == Encoding::Protobuf && is_stored_form(kind) =>
        {
            encode::protobuf_list(kind, &records, &metadata)?
        }
        (Content::List(kind, records, metadata), Shape::Table)
            if form.encoding == Encoding::Json && !form.pretty && is_stored_metadata(kind) =>
        {
            rows::list(kind, records.iter().map(Arc::as_ref), &metadata, form.include)
        }
        (Content::List(kind, records, metadata), shape) => {
            if shape == Shape::MetadataList {
                let items = records.iter().map(Arc::as_ref);
                if let Some(bytes) = partial::list(kind, items, &metadata, form)? {
                    return Ok((form.encoding, bytes));
                }
            }
            let items: Vec<Value> = records.iter().map(|record| from_stored(kind, record.value())).collect();
            encode::object(&list(kind, items, metadata, Form { shape, ..form }), form)?
        }
        (Content::Text(..) | Content::Stream(..), _) => Bytes::new(),
    };
    Ok((form.encoding, bytes))
}

/// A list, composed of the stored texts of its items.
fn json_list(kind: &'static Kind, records: &[Arc<Record>], metadata: &Value) -> Bytes {
    let head = format!(
        r#"{{"kind":"{}","apiVersion":"{}","metadata":{metadata},"items":["#,
        kind.list_kind,
        kind.api_version()
    );
    let length: usize = records.iter().map(|record| record.json().len() + 1).sum();
    let mut bytes = BytesMut::with_capacity(head.len() + length + 4);
    bytes.extend_from_slice(head.as_bytes());
    for (at, record) in records.iter().enumerate() {
        if at > 0 {
            bytes.extend_from_slice(b",");
        }
        // Custom resources have their kind in lists, too.
        let item =
            if kind.custom.is_some() { encode::json(kind, record) } else { encode::bare(kind, record) };
        bytes.extend_from_slice(&item);
    }
    bytes.extend_from_slice(b"]}\n");
    bytes.freeze()
}

fn list(kind: &'static Kind, items: Vec<Value>, metadata: Value, form: Form) -> Value {
    let shape = form.shape;
    match shape {
        Shape::Object | Shape::Metadata => {
            let items: Vec<Value> = match shape {
                Shape::Metadata => items.iter().map(untyped_metadata).collect(),
                _ if kind.custom.is_some() => items,
                _ => items.into_iter().map(untyped).collect(),
            };
            json!({
                "kind": kind.list_kind, "apiVersion": kind.api_version(), "metadata": metadata, "items": items,
            })
        }
        Shape::MetadataList => json!({
            "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
            "items": items.iter().map(typed_metadata).collect::<Vec<_>>(),
        }),
        Shape::Table => encode::table(kind, &items, &metadata, form.include),
    }
}

/// Converts one object to the shape that the client wants.
pub(crate) fn reshape(kind: Option<&'static Kind>, object: Value, form: Form) -> Value {
    let is_status = object["kind"] == "Status" && object["apiVersion"] == "v1";
    match (form.shape, kind) {
        (Shape::Table, Some(kind)) if !is_status => {
            let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
            encode::table(kind, std::slice::from_ref(&object), &metadata, form.include)
        }
        (Shape::Metadata | Shape::MetadataList, _) if !is_status => typed_metadata(&object),
        (_, Some(kind)) if object["kind"].is_null() => with_type(kind, object),
        _ => object,
    }
}

/// Removes the kind from an item of a list: the list itself has it.
fn untyped(mut item: Value) -> Value {
    if let Some(members) = item.as_object_mut() {
        members.remove("kind");
        members.remove("apiVersion");
    }
    item
}

fn untyped_metadata(object: &Value) -> Value {
    json!({"metadata": object["metadata"]})
}

fn typed_metadata(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

/// The answer if the client accepts nothing that the server has.
#[must_use]
pub(crate) fn not_acceptable() -> Status {
    status::not_acceptable(&Encoding::ALL.map(Encoding::media_type))
}
