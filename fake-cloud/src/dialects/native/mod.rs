//! The fake cloud's own API, described in the README beside this file: the plainest example of a dialect.

mod errors;
mod routes;
mod wire;

use super::{Answer, Denial, Dialect, Plan, Request};

/// This dialect. Keeps nothing: the model has all it needs.
pub(super) struct Native;

impl Dialect for Native {
    fn plan(&self, request: &Request) -> Plan {
        routes::plan(request)
    }

    fn refuse(&self, denial: Denial) -> Answer {
        errors::denied(denial)
    }
}
