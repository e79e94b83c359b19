//! Authorisation: the minimal rights are enough, a missing right affects only the work that needs it, and no
//! unneeded right is granted (contract AUTH).

mod credentials;
mod granted_rights;
mod least_rights;
mod missing_rights;
mod serving;
mod start;
mod volumes;

pub(crate) use least_rights::least_rights;

use harness_testkit::prelude::*;

/// The suite of authorisation.
pub const SUITE: Suite = Suite {
    name: "authorization",
    proves: "the CCM works with the least permissions, does no harm if one is missing, and is granted none that it does not need",
    judges: Party::Ccm,
    tables: &[
        granted_rights::CHECKS,
        missing_rights::CHECKS,
        start::CHECKS,
        serving::CHECKS,
        credentials::CHECKS,
        volumes::CHECKS,
    ],
};
