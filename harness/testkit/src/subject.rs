//! What a check makes promises about, and how a promise reads: `service.becomes(published(&lb)).await?`.

use super::CheckCx;
use harness_clouds::Entry;
use harness_core::check::{CheckError, SubjectName, Violation};
use harness_core::probe::{Matcher, Observed, Promise, ReadError, ReadSource, Reading, Seen, Span};
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

/// A thing that a check talks to: it knows how it is read, what it is called, and which calls to the cloud are about
/// it.
pub trait Subject {
    /// What a read of it yields.
    type Seen: Observed + 'static;

    /// The check that talks to it.
    fn cx(&self) -> &CheckCx;

    /// What failures call it.
    fn name(&self) -> SubjectName;

    /// It as it is now, from the copy at hand or from the origin itself.
    ///
    /// # Errors
    /// When whoever is asked does not answer, or the copy cannot be trusted.
    fn read(&self, reach: ReadSource) -> impl Future<Output = Result<Self::Seen, ReadError>>;

    /// Whether a call to the cloud is about it.
    fn concerns(&self, call: &Entry) -> bool;

    /// It comes to be as `matcher` says, within B-WATCH unless another limit is given; the wait yields what the
    /// matcher does.
    fn becomes<T: 'static>(&self, matcher: Matcher<Self::Seen, T>) -> Wait<'_, Self, T> {
        Wait { subject: self, matcher, when: String::new(), span: Span::Within(self.cx().limits().watch()) }
    }

    /// It is as `matcher` says, and stays so for the time that is enough to do wrong what is held back, unless another
    /// window is given. At the end of the window the origin itself is asked.
    fn keeps<T: 'static>(&self, matcher: Matcher<Self::Seen, T>) -> Wait<'_, Self, T> {
        Wait {
            subject: self,
            matcher,
            when: String::new(),
            span: Span::Throughout(self.cx().limits().settle()),
        }
    }

    /// It is as `matcher` says, by one read of the origin; yields what the matcher does.
    ///
    /// # Errors
    /// [`CheckError::Violation`] when it is not, [`CheckError::Error`] when it cannot be read.
    fn is<T: 'static>(&self, matcher: Matcher<Self::Seen, T>) -> impl Future<Output = Result<T, CheckError>> {
        async move {
            let seen = self.read(ReadSource::Origin).await?;
            self.has_shown(&seen, matcher)
        }
    }

    /// What was read of it before is as `matcher` says; yields what the matcher does.
    ///
    /// # Errors
    /// [`CheckError::Violation`] when it is not.
    fn has_shown<T: 'static>(
        &self,
        seen: &Self::Seen,
        matcher: Matcher<Self::Seen, T>,
    ) -> Result<T, CheckError> {
        match matcher.matches(seen) {
            Seen::Yes(value) => Ok(value),
            Seen::NotYet(why) | Seen::Never(why) => {
                let shown = seen.observed();
                let shown = if why.is_empty() { shown } else { format!("{shown} ({why})") };
                Err(self.breaks(&sentence(&self.name(), matcher.claim(), ""), matcher.expected(), &shown))
            }
        }
    }

    /// A promise about it that was broken, judged from what has happened already.
    fn breaks(&self, promise: &str, expected: &str, seen: &str) -> CheckError {
        CheckError::Violation(Box::new(Violation {
            subject: Some(self.name()),
            calls: self.cx().last_calls(&|call| self.concerns(call)),
            ..Violation::new(promise, expected, seen)
        }))
    }
}

/// A promise as a sentence: subject, claim, circumstances.
fn sentence(subject: &SubjectName, claim: &str, when: &str) -> String {
    let space = if when.is_empty() { "" } else { " " };
    format!("{} {} {claim}{space}{when}", subject.kind, subject.name)
}

/// A promise about a subject; waited for when awaited.
#[must_use = "a promise is waited for only when awaited"]
pub struct Wait<'a, S: Subject + ?Sized, T> {
    subject: &'a S,
    matcher: Matcher<S::Seen, T>,
    when: String,
    span: Span,
}

impl<S: Subject + ?Sized, T> Wait<'_, S, T> {
    /// Within this limit, or for this window.
    pub fn within(mut self, time: Duration) -> Self {
        self.span = match self.span {
            Span::Within(_) => Span::Within(time),
            Span::Throughout(_) => Span::Throughout(time),
        };
        self
    }

    /// Under which circumstances, for the sentence: `once the cloud reports it`.
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
            reading.value.ok_or_else(|| CheckError::Error(format!("'{}' was kept unseen", promise.text)))
        })
    }
}

/// Two things at one moment; the first gives both their name.
impl<A: Subject, B: Subject> Subject for (&A, &B) {
    type Seen = (A::Seen, B::Seen);

    fn cx(&self) -> &CheckCx {
        self.0.cx()
    }

    fn name(&self) -> SubjectName {
        self.0.name()
    }

    async fn read(&self, reach: ReadSource) -> Result<Self::Seen, ReadError> {
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
