//! Judges: pure values that say what they expect and whether an observation fulfils it.

/// What a judge makes of an observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen<T> {
    /// The promise is fulfilled.
    Yes(T),
    /// Not yet, and why.
    NotYet(String),
    /// It never will be: the wait ends at once.
    Never(String),
}

impl Seen<()> {
    /// `Yes` when it holds, `NotYet` with no words of its own when it does not.
    pub fn when(holds: bool) -> Seen<()> {
        if holds { Seen::Yes(()) } else { Seen::NotYet(String::new()) }
    }
}

/// Says in words what it expects and judges observations of type `O`, yielding a `T`.
pub struct Judge<O, T> {
    expected: String,
    verdict: Verdict<O, T>,
}

type Verdict<O, T> = Box<dyn Fn(&O) -> Seen<T>>;

impl<O, T> Judge<O, T> {
    /// The words for 'expected'.
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// The verdict on one observation.
    pub fn judge(&self, observation: &O) -> Seen<T> {
        (self.verdict)(observation)
    }
}

/// A judge from its words and a function.
pub fn judge<O, T>(expected: impl Into<String>, verdict: impl Fn(&O) -> Seen<T> + 'static) -> Judge<O, T> {
    Judge { expected: expected.into(), verdict: Box::new(verdict) }
}

/// A judge from its words and a predicate.
pub fn holds<O>(expected: impl Into<String>, predicate: impl Fn(&O) -> bool + 'static) -> Judge<O, ()> {
    judge(expected, move |observation| Seen::when(predicate(observation)))
}

/// The object is not there.
pub fn absent<O>(what: &str) -> Judge<Option<O>, ()> {
    holds(format!("no {what}"), |observation: &Option<O>| observation.is_none())
}

/// At least so many.
pub fn at_least<O>(count: usize, what: &str) -> Judge<Vec<O>, ()> {
    holds(format!("at least {count} {what}"), move |list: &Vec<O>| list.len() >= count)
}

/// Exactly so many; yields them.
pub fn exactly<O: Clone + 'static>(count: usize, what: &str) -> Judge<Vec<O>, Vec<O>> {
    judge(format!("exactly {count} {what}"), move |list: &Vec<O>| {
        if list.len() == count { Seen::Yes(list.clone()) } else { Seen::NotYet(String::new()) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn judges_say_what_they_expect_and_judge_literals() {
        let one = exactly::<u8>(1, "load balancer");
        assert_eq!(one.expected(), "exactly 1 load balancer");
        assert_eq!(one.judge(&vec![7]), Seen::Yes(vec![7]));
        assert_eq!(one.judge(&vec![]), Seen::NotYet(String::new()));
        assert_eq!(absent::<u8>("Node").judge(&None), Seen::Yes(()));
        assert_eq!(at_least::<u8>(2, "refusals").judge(&vec![1]), Seen::NotYet(String::new()));
    }
}
