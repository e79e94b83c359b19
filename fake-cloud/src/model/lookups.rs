//! Single objects and lists as they are, never stale: for the checks a dialect makes itself.

use super::{Cloud, Refusal};
use crate::admin::{Auxiliary, LoadBalancer};
use std::time::Duration;

impl Cloud {
    /// One auxiliary object of that kind.
    pub(crate) fn auxiliary(&self, kind: &str, id: &str) -> Result<&Auxiliary, Refusal> {
        self.auxiliaries.get(kind, id)
    }

    /// All auxiliary objects of that kind.
    pub(crate) fn auxiliaries(&self, kind: &str) -> impl Iterator<Item = &Auxiliary> {
        self.auxiliaries.iter().filter(move |aux| aux.kind == kind)
    }

    /// All load balancers.
    pub(crate) fn load_balancers(&mut self, now: Duration) -> impl Iterator<Item = &LoadBalancer> {
        self.load_balancers.settle(now);
        self.load_balancers.iter()
    }
}
