//! What a wait looks at: a read and a matcher, behind one trait, so that the code that waits is there once.

use super::{Matcher, Observed, Seen};
use futures::future::LocalBoxFuture;

/// Whom a read asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadSource {
    /// Whatever is at hand: a watch's copy, a mirror.
    Cache,
    /// The API server or the cloud itself.
    Origin,
}

/// A read that failed. Inside a wait it is remembered and reading goes on, unless no later read can succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct ReadError {
    /// What failed, with its cause.
    pub text: String,
    /// Whether trying again is pointless (401, 403).
    pub fatal: bool,
}

impl ReadError {
    /// A failure that may pass.
    pub fn passing(text: impl Into<String>) -> ReadError {
        ReadError { text: text.into(), fatal: false }
    }
}

impl From<kube::Error> for ReadError {
    /// Of a request to the API server: what it does not allow now it will not allow later.
    fn from(error: kube::Error) -> ReadError {
        let fatal = matches!(&error, kube::Error::Api(status) if matches!(status.code, 401 | 403));
        ReadError { text: crate::check::chain(&error), fatal }
    }
}

/// Looks at something once.
pub trait Look {
    /// Reads, keeps what was read, and matches it.
    fn look(&mut self, reach: ReadSource) -> LocalBoxFuture<'_, Result<Seen<()>, ReadError>>;

    /// What was read last, in words; `None` when nothing has been.
    fn shown(&self) -> Option<String>;
}

/// A read and its matcher; keeps the last observation and what the matcher yielded.
pub struct Reading<'m, R, O, T> {
    read: R,
    matcher: &'m Matcher<O, T>,
    last: Option<O>,
    /// What the matcher yielded.
    pub value: Option<T>,
}

impl<'m, R, O, T> Reading<'m, R, O, T>
where
    R: AsyncFnMut(ReadSource) -> Result<O, ReadError>,
    O: Observed + 'static,
    T: 'static,
{
    /// Of a read and a matcher.
    pub fn new(read: R, matcher: &'m Matcher<O, T>) -> Reading<'m, R, O, T> {
        Reading { read, matcher, last: None, value: None }
    }
}

impl<R, O, T> Look for Reading<'_, R, O, T>
where
    R: AsyncFnMut(ReadSource) -> Result<O, ReadError>,
    O: Observed + 'static,
    T: 'static,
{
    fn look(&mut self, reach: ReadSource) -> LocalBoxFuture<'_, Result<Seen<()>, ReadError>> {
        Box::pin(async move {
            let observation = (self.read)(reach).await?;
            let seen = match self.matcher.matches(&observation) {
                Seen::Yes(value) => {
                    self.value = Some(value);
                    Seen::Yes(())
                }
                Seen::NotYet(why) => Seen::NotYet(why),
                Seen::Never(why) => Seen::Never(why),
            };
            self.last = Some(observation);
            Ok(seen)
        })
    }

    fn shown(&self) -> Option<String> {
        self.last.as_ref().map(Observed::observed)
    }
}
