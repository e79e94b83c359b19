//! Answers that count as memory in use until the client has them, and the rejection of too many.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;

use super::reply::{Body, TEXT, full};
use embedded_state::Share;

/// After how many seconds a client may try again.
const RETRY_AFTER: u64 = 1;

/// How many bytes of a body a connection takes at a time. The connection keeps them until the client has
/// them; with a body in one piece, this memory could not be accounted for.
const PIECE: usize = 32 << 10;

/// A body, and the share that is in use until it is sent.
struct Held {
    body: Body,
    /// The rest of what the body has produced.
    rest: Bytes,
    _share: Share,
}

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.rest.is_empty() {
            match std::task::ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                None => return Poll::Ready(None),
            }
        }
        let length = self.rest.len().min(PIECE);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}

/// A response whose body holds the share until it is sent; a rejection if its bytes are too many.
pub(super) fn held(response: Response<Body>, share: Option<Share>) -> Response<Body> {
    let Some(mut share) = share else { return response };
    // A stream has no size: its bytes are counted as they come.
    let bytes = usize::try_from(response.body().size_hint().exact().unwrap_or(0)).unwrap_or(usize::MAX);
    if share.hold(bytes).is_err() {
        return too_many();
    }
    response.map(|body| Held { body, rest: Bytes::new(), _share: share }.boxed_unsync())
}

/// The answer of a real server's priority and fairness, word for word.
pub(super) fn too_many() -> Response<Body> {
    let mut response = Response::new(full("Too many requests, please try again later.\n"));
    *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(TEXT));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER));
    response
}
