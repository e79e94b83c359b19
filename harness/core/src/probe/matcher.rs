//! Matchers: pure values that describe what they expect and whether an observation fulfils it.

/// A matcher's result for an observation.
///
/// ```
/// use harness_core::probe::{Observation, matcher};
///
/// let shrinks = matcher("shrinks to three", |count: &usize| match *count {
///     3 => Observation::Matched(()),
///     more if more > 3 => Observation::Pending(format!("{more}")),
///     _ => Observation::Impossible("it only shrinks".to_owned()),
/// });
/// assert_eq!(shrinks.matches(&5), Observation::Pending("5".to_owned()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observation<T> {
    /// The claim is fulfilled.
    Matched(T),
    /// Not yet, and why.
    Pending(String),
    /// It can never be fulfilled: the wait ends at once.
    Impossible(String),
}

impl Observation<()> {
    /// `Matched` if it holds, otherwise `Pending` without a reason.
    pub fn when(holds: bool) -> Observation<()> {
        if holds { Observation::Matched(()) } else { Observation::Pending(String::new()) }
    }
}

/// Describes what it expects, and matches observations of type `O`, returning a `T`.
///
/// ```
/// use harness_core::probe::{Matcher, Observation, holds};
///
/// fn at_most(limit: usize) -> Matcher<usize> {
///     holds("stays small", move |count: &usize| *count <= limit).expecting(format!("at most {limit}"))
/// }
/// assert_eq!(at_most(3).matches(&2), Observation::Matched(()));
/// ```
pub struct Matcher<O, T = ()> {
    claim: String,
    expected: Option<String>,
    verdict: Verdict<O, T>,
}

type Verdict<O, T> = Box<dyn Fn(&O) -> Observation<T>>;

impl<O: 'static, T: 'static> Matcher<O, T> {
    /// Its claim about its subject, to be read after the subject's name: `is initialised`.
    pub fn claim(&self) -> &str {
        &self.claim
    }

    /// The text for 'expected': what exactly fulfils the claim.
    pub fn expected(&self) -> &str {
        self.expected.as_deref().unwrap_or(&self.claim)
    }

    /// Its result for one observation.
    pub fn matches(&self, observation: &O) -> Observation<T> {
        (self.verdict)(observation)
    }

    /// Sets the text for 'expected', if the claim does not say what exactly fulfils it.
    #[must_use]
    pub fn expecting(mut self, expected: impl Into<String>) -> Matcher<O, T> {
        self.expected = Some(expected.into());
        self
    }

    /// The same matcher without its value.
    pub fn only(self) -> Matcher<O> {
        let verdict = self.verdict;
        Matcher {
            claim: self.claim,
            expected: self.expected,
            verdict: Box::new(move |observation| match verdict(observation) {
                Observation::Matched(_) => Observation::Matched(()),
                Observation::Pending(why) => Observation::Pending(why),
                Observation::Impossible(why) => Observation::Impossible(why),
            }),
        }
    }
}

/// Creates a matcher from its claim and a function.
///
/// ```
/// use harness_core::probe::{Observation, matcher};
///
/// // In a check: `let port = subject.becomes(has_a_port).await?;`.
/// let has_a_port = matcher("has a port", |ports: &Vec<u16>| match ports.first() {
///     Some(port) => Observation::Matched(*port),
///     None => Observation::Pending("no port".to_owned()),
/// });
/// assert_eq!(has_a_port.matches(&vec![80, 443]), Observation::Matched(80));
/// ```
pub fn matcher<O, T>(
    claim: impl Into<String>,
    verdict: impl Fn(&O) -> Observation<T> + 'static,
) -> Matcher<O, T> {
    Matcher { claim: claim.into(), expected: None, verdict: Box::new(verdict) }
}

/// Creates a matcher from its claim and a predicate.
///
/// ```
/// use harness_core::probe::{Observation, holds};
///
/// // In a check: `subject.keeps(has_two).await?;`.
/// let has_two = holds("has two entries", |list: &Vec<String>| list.len() == 2);
/// assert_eq!(has_two.matches(&vec!["a".to_owned(), "b".to_owned()]), Observation::Matched(()));
/// ```
pub fn holds<O>(claim: impl Into<String>, predicate: impl Fn(&O) -> bool + 'static) -> Matcher<O> {
    matcher(claim, move |observation| Observation::when(predicate(observation)))
}

/// The object does not exist.
///
/// ```
/// use harness_core::probe::{Observation, gone};
///
/// // In a check: `node.becomes(gone()).await?;`.
/// assert_eq!(gone::<String>().matches(&None), Observation::Matched(()));
/// ```
pub fn gone<O: 'static>() -> Matcher<Option<O>> {
    holds("is gone", |observation: &Option<O>| observation.is_none()).expecting("no such object")
}

/// The object exists.
///
/// ```
/// use harness_core::probe::{Observation, present};
///
/// // In a check: `node.keeps(present()).await?;`.
/// assert_eq!(present().matches(&Some("node")), Observation::Matched(()));
/// ```
pub fn present<O: 'static>() -> Matcher<Option<O>> {
    holds("is there", |observation: &Option<O>| observation.is_some())
}

/// Each of two observations fulfils its own matcher.
///
/// ```
/// use harness_core::probe::{Observation, both, gone, present};
///
/// // In a check: `(&web, &node).becomes(both(gone(), present())).await?;`.
/// assert_eq!(both(gone(), present()).matches(&(None::<String>, Some("node"))), Observation::Matched(()));
/// ```
pub fn both<A: 'static, B: 'static>(first: Matcher<A>, second: Matcher<B>) -> Matcher<(A, B)> {
    let claim = format!("{}, and {}", first.claim(), second.claim());
    let expected = format!("{}; {}", first.expected(), second.expected());
    let verdict = move |(a, b): &(A, B)| match first.matches(a) {
        Observation::Matched(()) => second.matches(b),
        other => other,
    };
    matcher(claim, verdict).expecting(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matchers_say_what_they_expect_and_match_literals() {
        let one = holds("is one", |n: &u8| *n == 1).expecting("1");
        assert_eq!((one.claim(), one.expected()), ("is one", "1"));
        assert_eq!(
            (one.matches(&1), one.matches(&2)),
            (Observation::Matched(()), Observation::Pending(String::new()))
        );
        let odd = matcher("is odd", |n: &u8| {
            if n % 2 == 1 { Observation::Matched(*n) } else { Observation::Impossible("even".into()) }
        });
        assert_eq!((odd.expected(), odd.matches(&3)), ("is odd", Observation::Matched(3)));
        let odd = odd.only();
        assert_eq!(
            (odd.matches(&3), odd.matches(&4)),
            (Observation::Matched(()), Observation::Impossible("even".into()))
        );
    }

    #[test]
    fn an_existing_object_is_not_gone() {
        assert_eq!(
            (gone().matches(&None::<u8>), present().matches(&Some(1))),
            (Observation::Matched(()), Observation::Matched(()))
        );
        assert_eq!(
            (gone().matches(&Some(1)), present().matches(&None::<u8>)),
            (Observation::when(false), Observation::when(false))
        );
    }

    #[test]
    fn both_have_to_hold() {
        let two = || both(holds("is one", |n: &u8| *n == 1), gone::<u8>());
        assert_eq!(two().claim(), "is one, and is gone");
        assert_eq!(two().matches(&(1, None)), Observation::Matched(()));
        assert_eq!(two().matches(&(2, None)), Observation::when(false));
        assert_eq!(two().matches(&(1, Some(1))), Observation::when(false));
    }
}
