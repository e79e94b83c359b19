//! Answers of dialects: HTTP without connections.

use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

/// An answer of a dialect.
#[derive(Clone, Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: StatusCode,
    /// The headers except length and date.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body.
    pub body: Bytes,
    /// The id of the object that was created.
    pub created: Option<String>,
}

impl Answer {
    /// An answer without a body.
    pub fn empty(status: u16) -> Answer {
        Answer { status: code(status), headers: Vec::new(), body: Bytes::new(), created: None }
    }

    /// An answer with a JSON body.
    pub fn json(status: u16, body: &impl Serialize) -> Answer {
        match serde_json::to_string(body) {
            Ok(text) => Answer::json_text(status, text),
            // All our answers can be written as JSON; if one could not, that would be our bug and not the caller's.
            Err(error) => Answer { body: error.to_string().into(), ..Answer::empty(500) },
        }
    }

    /// An answer with a body that is already JSON.
    pub fn json_text(status: u16, text: String) -> Answer {
        Answer::text(status, "application/json", text)
    }

    /// An answer with a text body of this media type.
    pub fn text(status: u16, media_type: &'static str, text: String) -> Answer {
        let headers = vec![(CONTENT_TYPE, HeaderValue::from_static(media_type))];
        Answer { headers, body: text.into(), ..Answer::empty(status) }
    }

    /// An answer with an object under its key: `{"droplet": {...}}`.
    pub fn one(status: u16, key: &str, value: &impl Serialize) -> Answer {
        Answer::json(status, &Under { key, value })
    }

    /// An answer with a list under its key, and the other fields of a page.
    pub fn page<T: Serialize>(key: &str, items: &[T], besides: &impl Serialize) -> Answer {
        Answer::json(200, &Page { items: Under { key, value: items }, besides })
    }

    /// The same with a header.
    pub fn with(mut self, name: HeaderName, value: impl Into<HeaderValue>) -> Answer {
        self.headers.push((name, value.into()));
        self
    }

    /// The same with the number of seconds after which the caller may retry.
    pub fn retry_after(self, seconds: Option<u64>) -> Answer {
        match seconds {
            Some(seconds) => self.with(RETRY_AFTER, seconds),
            None => self,
        }
    }

    /// The same with the rate limit: how many calls the caller may make, how many are left, and when the
    /// limit is reset, in Unix seconds.
    pub fn rate_limited(mut self, limit: u64, left: u64, reset_s: i64) -> Answer {
        self.headers.reserve(4);
        self.with(LIMIT, limit).with(REMAINING, left).with(RESET, reset_s)
    }

    /// The same, with the id of the object that was created.
    pub fn creating(mut self, id: &str) -> Answer {
        self.created = Some(id.to_owned());
        self
    }
}

fn code(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// A value under a key that is not known before it is written.
struct Under<'a, T: ?Sized> {
    key: &'a str,
    value: &'a T,
}

impl<T: Serialize + ?Sized> Serialize for Under<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(self.key, self.value)?;
        map.end()
    }
}

#[derive(Serialize)]
struct Page<'a, T: Serialize, B: Serialize> {
    #[serde(flatten)]
    items: Under<'a, [T]>,
    #[serde(flatten)]
    besides: &'a B,
}
