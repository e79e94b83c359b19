//! Authorisation: the least rights do, each that is missing costs what it is for and nothing else, and no right is granted
//! that nothing needs (contract AUTH).

mod credentials;
mod granted;
mod least;
mod refused;
mod serving;
mod start;
mod volumes;

pub(crate) use least::least_rights;

use harness_testkit::prelude::*;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "authorization",
    proves: "it works with the least rights, a right that is missing does no more harm than it must, and none is granted that it does not need",
    judges: Party::Ccm,
    tables: &[
        granted::CHECKS,
        refused::CHECKS,
        start::CHECKS,
        serving::CHECKS,
        credentials::CHECKS,
        volumes::CHECKS,
    ],
};
