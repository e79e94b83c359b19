//! The subjects of a check's claims, and how a claim is written: `service.becomes(published(&lb)).await?`.

use super::CheckCx;
use harness_clouds::Entry;
use harness_core::check::{CheckError, SubjectName, Violation};
use harness_core::probe::{Matcher, Observation, Observed, Promise, ReadError, ReadSource, Reading, Span};
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

/// Something that a check examines: it defines how it is read, its name, and which calls to the cloud are about it.
///
/// ```
/// # use harness_testkit::prelude::*;
/// /// How many Nodes there are.
/// struct NodeCount<'a>(&'a CheckCx);
///
/// impl Subject for NodeCount<'_> {
///     type Snapshot = usize;
///     fn cx(&self) -> &CheckCx { self.0 }
///     fn name(&self) -> SubjectName { SubjectName { kind: "Nodes", name: "of the cluster".to_owned(), uid: None } }
///     async fn read(&self, _: ReadSource) -> Result<usize, ReadError> { Ok(self.0.all_nodes()?.len()) }
///     fn concerns(&self, _: &Entry) -> bool { false }
/// }
///
/// async fn has_nodes(cx: &CheckCx) -> Verdict {
///     NodeCount(cx).keeps(holds("is not empty", |count: &usize| *count > 0)).await
/// }
/// ```
pub trait Subject {
    /// The result of a read.
    type Snapshot: Observed + 'static;

    /// The check that uses it.
    fn cx(&self) -> &CheckCx;

    /// Its name in failures.
    fn name(&self) -> SubjectName;

    /// Its current state, from the cached copy or from the origin.
    ///
    /// # Errors
    /// When the origin does not answer, or the copy cannot be trusted.
    fn read(&self, reach: ReadSource) -> impl Future<Output = Result<Self::Snapshot, ReadError>>;

    /// Whether a call to the cloud is about it.
    fn concerns(&self, call: &Entry) -> bool;

    /// The limit within which a change of it is visible, unless a claim gives another one: B-WATCH.
    fn usual_limit(&self) -> Duration {
        self.cx().limits().watch()
    }

    /// Claims that it becomes what `matcher` says, within its usual limit unless another one is given; waiting returns the
    /// matcher's value.
    fn becomes<T: 'static>(&self, matcher: Matcher<Self::Snapshot, T>) -> Wait<'_, Self, T> {
        Wait { subject: self, matcher, when: String::new(), span: Span::Within(self.usual_limit()) }
    }

    /// Claims that it is what `matcher` says and stays so, for the default time in which a violation would show, unless
    /// another window is given. At the end of the window the origin itself is read.
    fn keeps<T: 'static>(&self, matcher: Matcher<Self::Snapshot, T>) -> Wait<'_, Self, T> {
        Wait {
            subject: self,
            matcher,
            when: String::new(),
            span: Span::Throughout(self.cx().limits().settle()),
        }
    }

    /// Claims that it is what `matcher` says, by one read of the origin; returns the matcher's value.
    ///
    /// # Errors
    /// [`CheckError::Violation`] when it is not, [`CheckError::Error`] when it cannot be read.
    fn is<T: 'static>(
        &self,
        matcher: Matcher<Self::Snapshot, T>,
    ) -> impl Future<Output = Result<T, CheckError>> {
        async move {
            let seen = self.read(ReadSource::Origin).await?;
            self.has_shown(&seen, matcher)
        }
    }

    /// Claims that an earlier read of it is what `matcher` says; returns the matcher's value.
    ///
    /// # Errors
    /// [`CheckError::Violation`] when it is not.
    fn has_shown<T: 'static>(
        &self,
        seen: &Self::Snapshot,
        matcher: Matcher<Self::Snapshot, T>,
    ) -> Result<T, CheckError> {
        match matcher.matches(seen) {
            Observation::Matched(value) => Ok(value),
            Observation::Pending(why) | Observation::Impossible(why) => {
                let shown = seen.observed();
                let shown = if why.is_empty() { shown } else { format!("{shown} ({why})") };
                Err(self.breaks(&sentence(&self.name(), matcher.claim(), ""), matcher.expected(), &shown))
            }
        }
    }

    /// A violation, judged from what has already happened.
    fn breaks(&self, promise: &str, expected: &str, seen: &str) -> CheckError {
        CheckError::Violation(Box::new(Violation {
            subject: Some(self.name()),
            calls: self.cx().last_calls(&|call| self.concerns(call)),
            ..Violation::new(promise, expected, seen)
        }))
    }
}

/// A claim as a sentence: subject, claim, circumstances.
fn sentence(subject: &SubjectName, claim: &str, when: &str) -> String {
    let space = if when.is_empty() { "" } else { " " };
    format!("{} {} {claim}{space}{when}", subject.kind, subject.name)
}

/// A claim about a subject; awaiting it waits for it.
#[must_use = "a promise is checked only when awaited"]
pub struct Wait<'a, S: Subject + ?Sized, T> {
    subject: &'a S,
    matcher: Matcher<S::Snapshot, T>,
    when: String,
    span: Span,
}

impl<S: Subject + ?Sized, T> Wait<'_, S, T> {
    /// Sets the limit or the window.
    pub fn within(mut self, time: Duration) -> Self {
        self.span = match self.span {
            Span::Within(_) => Span::Within(time),
            Span::Throughout(_) => Span::Throughout(time),
        };
        self
    }

    /// Sets the circumstances, for the sentence: `once the cloud reports it`.
    pub fn when(mut self, circumstances: impl Into<String>) -> Self {
        self.when = circumstances.into();
        self
    }
}

impl<'a, S: Subject + ?Sized, T: 'static> IntoFuture for Wait<'a, S, T> {
    type Output = Result<T, CheckError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<T, CheckError>> + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Wait { subject, matcher, when, span } = self;
            let name = subject.name();
            let promise = Promise {
                text: sentence(&name, matcher.claim(), &when),
                subject: Some(name),
                expected: matcher.expected().to_owned(),
                span,
            };
            let mut reading = Reading::new(async |reach| subject.read(reach).await, &matcher);
            subject.cx().wait(&promise, &mut reading, &|call| subject.concerns(call)).await?;
            reading.value.ok_or_else(|| {
                CheckError::Error(format!("'{}' was fulfilled without an observed value", promise.text))
            })
        })
    }
}

/// Two subjects at one moment; the first gives its name to both.
impl<A: Subject, B: Subject> Subject for (&A, &B) {
    type Snapshot = (A::Snapshot, B::Snapshot);

    fn cx(&self) -> &CheckCx {
        self.0.cx()
    }

    fn name(&self) -> SubjectName {
        self.0.name()
    }

    async fn read(&self, reach: ReadSource) -> Result<Self::Snapshot, ReadError> {
        Ok((self.0.read(reach).await?, self.1.read(reach).await?))
    }

    fn concerns(&self, call: &Entry) -> bool {
        self.0.concerns(call) || self.1.concerns(call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_reads_as_a_sentence() {
        let name = SubjectName { kind: "Service", name: "ns/web".into(), uid: Some("u".into()) };
        assert_eq!(sentence(&name, "is gone", ""), "Service ns/web is gone");
        assert_eq!(sentence(&name, "is gone", "in time"), "Service ns/web is gone in time");
    }
}
