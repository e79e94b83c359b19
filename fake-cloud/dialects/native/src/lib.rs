//! The fake cloud's own API, described in the README in this folder: the simplest example of a dialect.

mod errors;
mod operations;
mod queries;
mod routes;
mod wire;

use errors::Native;
use fake_cloud_driver::{InstanceIds, Shown};
use fake_cloud_kit::{Answer, Denial, Dialect, DialectInfo, Error, Plan, Request, Voice};

/// The dialect, as the table of dialects lists it.
pub const DIALECT: DialectInfo = DialectInfo {
    name: "native",
    title: "the fake cloud's own REST API, spoken by the reference CCM",
    instance_ids: InstanceIds::Text,
    shown: Shown::ALL,
    metadata: false,
    hosts: &[],
    new: || Box::new(Native),
};

impl Dialect for Native {
    fn plan(&self, request: &Request) -> Plan {
        routes::plan(request)
    }

    fn refuse(&self, denial: Denial) -> Answer {
        self.answer(Err(Error::Denied(denial)))
    }
}
