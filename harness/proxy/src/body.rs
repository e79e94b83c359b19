//! Bodies: passed on as they come, and read where a rule has to see them.

use crate::upstream::Body;
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use futures::stream;
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use hyper::body::{Frame, Incoming};

/// How much of a body rules look at, bytes; a longer one is passed on unread.
pub(crate) const SEEN_LIMIT: usize = 1 << 20;

/// A call's body.
pub(crate) struct Inbound {
    /// What rules see of it; nothing of one that is too long.
    pub(crate) seen: Bytes,
    /// What is passed on.
    pub(crate) sent: Option<Body>,
    /// Whether it has not broken off while it was read.
    pub(crate) is_whole: bool,
}

/// Takes a call's body; reads it where it is `wanted`.
pub(crate) async fn inbound(incoming: Incoming, wanted: bool) -> Inbound {
    if !wanted {
        return Inbound { seen: Bytes::new(), sent: Some(incoming.boxed()), is_whole: true };
    }
    match collected(incoming).await {
        Ok((seen, sent)) => Inbound { seen, sent: Some(sent), is_whole: true },
        Err(_) => Inbound { seen: Bytes::new(), sent: None, is_whole: false },
    }
}

/// Reads a body; nothing is seen of one that is too long, which is passed on as it comes from there on.
pub(crate) async fn collected(mut incoming: Incoming) -> Result<(Bytes, Body), hyper::Error> {
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

/// A body that is there as a whole.
pub(crate) fn full(body: Bytes) -> Body {
    Full::new(body).map_err(|never| match never {}).boxed()
}
