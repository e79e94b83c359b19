//! The fake cloud's own API, described in the README beside this file: the plainest example of a dialect.

mod errors;
mod routes;
mod wire;

use super::{Answer, Denial, Dialect, Kind, Plan, Request};

/// This dialect.
pub(super) const KIND: Kind = Kind {
    name: "native",
    title: "the fake cloud's own REST API, spoken by the reference CCM",
    new: || Box::new(Native),
};

/// Keeps nothing: the model has all it needs.
struct Native;

impl Dialect for Native {
    fn plan(&self, request: &Request) -> Plan {
        routes::plan(request)
    }

    fn refuse(&self, denial: Denial) -> Answer {
        errors::denied(denial)
    }
}
