//! The fake cloud's own API, described in the README in this folder: the simplest example of a dialect.

mod errors;
mod operations;
mod queries;
mod routes;
mod wire;

pub(super) use errors::Native;
use fake_cloud_kit::{Answer, Denial, Dialect, Error, Plan, Request, Voice};

impl Dialect for Native {
    fn plan(&self, request: &Request) -> Plan {
        routes::plan(request)
    }

    fn refuse(&self, denial: Denial) -> Answer {
        self.answer(Err(Error::Denied(denial)))
    }
}
