//! The version of the framework from which a claim applies (`docs/contract/framework.yaml`).

use std::fmt;

/// A change of the framework `k8s.io/cloud-provider` on which a claim is based. A CCM is judged by the version that it
/// declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Since {
    /// The minor version with the change, 30 for 1.30.
    pub minor: u32,
    /// The change, as a sentence.
    pub what: &'static str,
    /// The behaviour of older versions, as a sentence.
    pub older: &'static str,
    /// What is expected of them.
    pub before: Before,
}

/// What is expected of a CCM whose framework is older than a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Before {
    /// Nothing: the claim is recorded but cannot fail.
    NotJudged,
    /// Something else, which the check's body checks; as text.
    Otherwise(&'static str),
}

impl fmt::Display for Since {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "framework 1.{}. {} {} {}", self.minor, self.what, self.older, self.before)
    }
}

impl fmt::Display for Before {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Before::NotJudged => f.write_str("For them the claim is recorded and cannot fail."),
            Before::Otherwise(what) => write!(f, "For them the check expects: {what}."),
        }
    }
}
