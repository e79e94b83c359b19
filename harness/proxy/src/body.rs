//! Bodies of calls: passed on as a stream, and read if a rule needs them.

use crate::bounds::Bounds;
use crate::upstream::{Body, BoxError};
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use futures::stream;
use http_body::Body as _;
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::timeout;

/// How much of a body rules can use, in bytes; a longer one is passed on unread.
pub(crate) const SEEN_LIMIT: usize = 1 << 20;

/// The client took too long to send the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client took too long to send the body")]
struct Late;

/// A call's body.
pub(crate) struct Inbound {
    /// The part that rules use; empty if the body is too long.
    pub(crate) seen: Bytes,
    /// The stream to pass on; `None` if it broke off or was late while it was read.
    pub(crate) sent: Option<Body>,
    /// Whether its client takes too long, now or while it is passed on.
    pub(crate) late: Arc<AtomicBool>,
}

/// Takes a call's body; reads it if it is `wanted`.
pub(crate) async fn inbound(incoming: Incoming, wanted: bool, bounds: &Bounds) -> Inbound {
    let late = Arc::new(AtomicBool::new(false));
    if incoming.is_end_stream() {
        return Inbound { seen: Bytes::new(), sent: Some(full(Bytes::new())), late };
    }
    let body = paced(incoming, bounds.pause, late.clone());
    if !wanted {
        return Inbound { seen: Bytes::new(), sent: Some(body), late };
    }
    match timeout(bounds.body, collected(body)).await {
        Ok(Ok((seen, sent))) => Inbound { seen, sent: Some(sent), late },
        Ok(Err(_)) => Inbound { seen: Bytes::new(), sent: None, late },
        Err(_) => {
            late.store(true, Ordering::Relaxed);
            Inbound { seen: Bytes::new(), sent: None, late }
        }
    }
}

/// The same body, which ends with an error when the next piece takes longer than this.
fn paced(incoming: Incoming, pause: Duration, late: Arc<AtomicBool>) -> Body {
    let begin = Some((BodyStream::new(incoming), late));
    let pieces = stream::unfold(begin, move |body| async move {
        let (mut frames, late) = body?;
        match timeout(pause, frames.next()).await {
            Ok(Some(Ok(frame))) => Some((Ok(frame), Some((frames, late)))),
            Ok(Some(Err(broken))) => Some((Err(BoxError::from(broken)), None)),
            Ok(None) => None,
            Err(_) => {
                late.store(true, Ordering::Relaxed);
                Some((Err(Late.into()), None))
            }
        }
    });
    BodyExt::boxed(StreamBody::new(pieces))
}

/// Reads a body; one that is too long is not used, and the rest is passed on as a stream.
pub(crate) async fn collected(mut incoming: Body) -> Result<(Bytes, Body), BoxError> {
    let mut read = BytesMut::new();
    let mut trailers = None;
    while let Some(frame) = incoming.frame().await {
        match frame?.into_data() {
            Ok(data) => read.extend_from_slice(&data),
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
        if read.len() > SEEN_LIMIT {
            let begun = stream::iter([Ok(Frame::data(read.freeze()))]);
            let body = StreamBody::new(begun.chain(BodyStream::new(incoming)));
            return Ok((Bytes::new(), BodyExt::boxed(body)));
        }
    }
    let read = read.freeze();
    let body = match trailers {
        None => full(read.clone()),
        Some(trailers) => {
            let frames = [Ok(Frame::data(read.clone())), Ok(Frame::trailers(trailers))];
            BodyExt::boxed(StreamBody::new(stream::iter(frames)))
        }
    };
    Ok((read, body))
}

/// A complete body.
pub(crate) fn full(body: Bytes) -> Body {
    Full::new(body).map_err(|never| match never {}).boxed()
}
