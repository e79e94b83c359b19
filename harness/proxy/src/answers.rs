//! Answers for calls that a fault refuses, in the format of the vendor's API.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};

/// The format of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorForm {
    /// The status it is for; `None` for all others.
    pub status: Option<u16>,
    /// Its media type.
    pub content_type: String,
    /// Its body, in which `${STATUS}` is replaced by the status.
    pub body: String,
}

/// The formats of refusals: the one for a status, otherwise the one for all others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorForms(pub Vec<ErrorForm>);

impl ErrorForms {
    /// The refusal with this status.
    pub(crate) fn refusal(&self, status: u16, retry_after_s: Option<u64>) -> Response<Bytes> {
        let form = self.0.iter().find(|form| form.status == Some(status));
        let form = form.or_else(|| self.0.iter().find(|form| form.status.is_none()));
        let (kind, body) = match form {
            Some(form) => (form.content_type.as_str(), form.body.replace("${STATUS}", &status.to_string())),
            None => ("text/plain", "as the test has ordered".to_owned()),
        };
        let mut answer = plain(status, kind, body);
        if let Some(seconds) = retry_after_s {
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        answer
    }

    /// A 200 with a malformed body.
    pub(crate) fn malformed(&self) -> Response<Bytes> {
        let kind = self.0.first().map_or("application/json", |form| form.content_type.as_str());
        let body = if kind.contains("xml") { "<truncated>" } else { "{\"truncated\": " };
        plain(200, kind, body.to_owned())
    }
}

/// The proxy's own answer.
pub(crate) fn plain(status: u16, kind: &str, body: String) -> Response<Bytes> {
    let mut answer = Response::new(Bytes::from(body));
    *answer.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Ok(kind) = HeaderValue::from_str(kind) {
        answer.headers_mut().insert(CONTENT_TYPE, kind);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_speaks_as_the_vendor_does() {
        let form =
            |status, body: &str| ErrorForm { status, content_type: "text/xml".into(), body: body.into() };
        let forms = ErrorForms(vec![form(None, "<S>${STATUS}</S>"), form(Some(404), "<Gone/>")]);
        assert_eq!(forms.refusal(404, None).body(), "<Gone/>");
        let limited = forms.refusal(429, Some(7));
        assert_eq!(
            (limited.body().as_ref(), &limited.headers()[RETRY_AFTER]),
            (&b"<S>429</S>"[..], &HeaderValue::from(7))
        );
        assert_eq!(ErrorForms::default().refusal(503, None).status(), 503);
        assert!(forms.malformed().body().starts_with(b"<"));
    }
}
