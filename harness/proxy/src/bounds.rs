//! Limits for clients, so that none blocks the others.

use crate::upstream::Body;
use fake_cloud_recording::faults::pause;
use http_body_util::BodyExt as _;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// The limits for clients of a proxy. Answers have no time limit, because of long polls and streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// How long a connection may be idle: before the head of the first request, and between requests.
    pub request: Duration,
    /// How long sending a body may take if a rule has to read it.
    pub body: Duration,
    /// How long a streamed body may pause.
    pub pause: Duration,
    /// Maximum number of connections per port.
    pub connections: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            // Longer than clients keep idle connections (Go's do so for 90 s), so that clients close them.
            request: Duration::from_secs(120),
            body: Duration::from_secs(60),
            pause: Duration::from_secs(60),
            connections: 512,
        }
    }
}

/// The activity of one connection.
#[derive(Debug)]
struct Pulse {
    calls: usize,
    /// Since when there is no call.
    since: Instant,
    /// Whether anything has arrived since then.
    came: bool,
}

/// Tracks whether a connection has a call in progress.
#[derive(Clone, Debug)]
pub(crate) struct Watch(Arc<Mutex<Pulse>>);

impl Watch {
    pub(crate) fn new() -> Watch {
        Watch(Arc::new(Mutex::new(Pulse { calls: 0, since: Instant::now(), came: false })))
    }

    fn pulse(&self) -> MutexGuard<'_, Pulse> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call has arrived; it is in progress until the answer is dropped.
    pub(crate) fn begin(&self) -> OneCall {
        self.pulse().calls += 1;
        OneCall(self.clone())
    }

    /// Returns when there was no call for this long; with whether one had begun to arrive.
    pub(crate) async fn silent_for(&self, limit: Duration) -> bool {
        loop {
            let left = {
                let pulse = self.pulse();
                if pulse.calls > 0 { limit } else { limit.saturating_sub(pulse.since.elapsed()) }
            };
            if left.is_zero() {
                return self.pulse().came;
            }
            pause(left).await;
        }
    }

    /// The stream, tracked by this.
    pub(crate) fn over<S>(&self, stream: S) -> Watched<S> {
        Watched { stream, watch: self.clone() }
    }
}

/// A call in progress.
pub(crate) struct OneCall(Watch);

impl OneCall {
    /// It stays in progress until its whole answer is sent.
    pub(crate) fn until_the_end_of(self, body: Body) -> Body {
        let held = move |frame| {
            let _ = &self;
            frame
        };
        body.map_frame(held).boxed()
    }
}

impl Drop for OneCall {
    fn drop(&mut self) {
        let mut pulse = self.0.pulse();
        pulse.calls -= 1;
        if pulse.calls == 0 {
            (pulse.since, pulse.came) = (Instant::now(), false);
        }
    }
}

/// A stream that records whether anything arrives.
pub(crate) struct Watched<S> {
    stream: S,
    watch: Watch,
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.watch.pulse().came = true;
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
