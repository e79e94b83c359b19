//! The version of the framework from which a claim applies (contract section 22).

use std::fmt;

/// A change of the framework `k8s.io/cloud-provider` on which a claim is based. A CCM is judged by the version that it
/// declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Since {
    /// The minor version with the change, 30 for 1.30.
    pub minor: u32,
    /// The change.
    pub what: &'static str,
    /// What is expected of older versions.
    pub before: Before,
}

/// What is expected of a CCM whose framework is older than a change.
///
/// ```
/// # use harness_core::check::*; struct Cx; async fn body(_: &Cx) -> Verdict { Ok(()) }
/// const CHECK: Check<Cx> =
///     Check::own("ACME-LB-01", "restricts clients", "Acme handbook", |cx| Box::pin(body(cx)))
///         .since(28, "load balancers follow Nodes at once", Before::NotJudged);
/// assert!(CHECK.since.is_some_and(|since| since.minor == 28));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// Nothing: the claim is recorded but cannot fail.
    NotJudged,
    /// Something else, which the check's body checks; as text.
    Otherwise(&'static str),
}

impl fmt::Display for Since {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "framework 1.{} ({}); before: {}", self.minor, self.what, self.before)
    }
}

impl fmt::Display for Before {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Before::NotJudged => "recorded, not judged",
            Before::Otherwise(what) => what,
        })
    }
}
