//! What a wait reads: a read and a matcher behind one trait, so that there is only one implementation of waiting.

use super::{Matcher, Observation, Observed};
use futures::future::LocalBoxFuture;

/// Where a read gets its data.
///
/// ```
/// use harness_core::probe::{ReadError, ReadSource};
///
/// async fn read(reach: ReadSource, cached: usize) -> Result<usize, ReadError> {
///     match reach {
///         ReadSource::Cache => Ok(cached),
///         ReadSource::Origin => Err(ReadError::passing("the API server does not answer")),
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadSource {
    /// The cached copy: a watch's state, a mirror.
    Cache,
    /// The API server or the cloud itself.
    Origin,
}

/// A read that failed. A wait remembers it and continues, unless no later read can succeed.
///
/// ```
/// use harness_core::probe::ReadError;
///
/// fn read(text: &str) -> Result<usize, ReadError> {
///     text.parse().map_err(|_| ReadError::passing(format!("'{text}' is not a number")))
/// }
/// assert!(read("many").is_err_and(|error| !error.fatal));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct ReadError {
    /// What failed, with the cause.
    pub text: String,
    /// Whether a retry is pointless (401, 403).
    pub fatal: bool,
}

impl ReadError {
    /// A failure that may be temporary.
    pub fn passing(text: impl Into<String>) -> ReadError {
        ReadError { text: text.into(), fatal: false }
    }
}

impl From<kube::Error> for ReadError {
    /// The failure of a request to the API server: what is forbidden now stays forbidden.
    fn from(error: kube::Error) -> ReadError {
        let fatal = matches!(&error, kube::Error::Api(status) if matches!(status.code, 401 | 403));
        ReadError { text: crate::check::chain(&error), fatal }
    }
}

/// Reads something once.
pub trait SingleRead {
    /// Reads, stores the result, and matches it.
    fn look(&mut self, reach: ReadSource) -> LocalBoxFuture<'_, Result<Observation<()>, ReadError>>;

    /// The last result as text; `None` if there is none.
    fn shown(&self) -> Option<String>;
}

/// A read and its matcher; stores the last result and the matcher's value.
pub struct Reading<'m, R, O, T> {
    read: R,
    matcher: &'m Matcher<O, T>,
    last: Option<O>,
    /// The matcher's value.
    pub value: Option<T>,
}

impl<'m, R, O, T> Reading<'m, R, O, T>
where
    R: AsyncFnMut(ReadSource) -> Result<O, ReadError>,
    O: Observed + 'static,
    T: 'static,
{
    /// Combines a read and a matcher.
    pub fn new(read: R, matcher: &'m Matcher<O, T>) -> Reading<'m, R, O, T> {
        Reading { read, matcher, last: None, value: None }
    }
}

impl<R, O, T> SingleRead for Reading<'_, R, O, T>
where
    R: AsyncFnMut(ReadSource) -> Result<O, ReadError>,
    O: Observed + 'static,
    T: 'static,
{
    fn look(&mut self, reach: ReadSource) -> LocalBoxFuture<'_, Result<Observation<()>, ReadError>> {
        Box::pin(async move {
            let observation = (self.read)(reach).await?;
            let seen = match self.matcher.matches(&observation) {
                Observation::Matched(value) => {
                    self.value = Some(value);
                    Observation::Matched(())
                }
                Observation::Pending(why) => Observation::Pending(why),
                Observation::Impossible(why) => Observation::Impossible(why),
            };
            self.last = Some(observation);
            Ok(seen)
        })
    }

    fn shown(&self) -> Option<String> {
        self.last.as_ref().map(Observed::observed)
    }
}
