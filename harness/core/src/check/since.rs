//! Since which version of the framework a claim holds (contract section 22).

use std::fmt;

/// A change of the framework `k8s.io/cloud-provider` that a claim rests on. A CCM is judged by the version it declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Since {
    /// The minor version that brought it, 30 for 1.30.
    pub minor: u32,
    /// What it brought.
    pub what: &'static str,
    /// What is expected of older ones.
    pub before: Before,
}

/// What is expected of a CCM whose framework is older than a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// Nothing: the claim is recorded and never failed.
    NotJudged,
    /// Something else, which the check's body asks for; in words.
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
