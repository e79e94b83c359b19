//! The CCM as a program that is operated: it keeps running and reports its state (contract OBS).

mod capabilities;
mod flags;
mod metrics;
mod serving;
mod status_pages;
mod termination;
mod user_agent;
mod zones;

use harness_testkit::prelude::*;

/// The suite of operation.
pub const SUITE: Suite = Suite {
    name: "operation",
    proves: "the CCM stays up, whatever it is given to do, and reports its state to those who may read it",
    judges: Party::Ccm,
    tables: &[
        capabilities::CHECKS,
        flags::CHECKS,
        serving::CHECKS,
        status_pages::CHECKS,
        metrics::CHECKS,
        termination::CHECKS,
        user_agent::CHECKS,
        zones::CHECKS,
        CHECKS,
    ],
};

const CHECKS: &[Check] = &[Check::of(Blocker::StaysUp.check(), |cx| Box::pin(stays_up(cx)))
    .of_the_cloud(&[])
    .with(&[Facility::CcmControl])
    .after_the_run()];

async fn stays_up(cx: &CheckCx) -> Verdict {
    cx.ccm_runs().await?;
    // An end of a moment ago has been reported by then.
    cx.ends().keeps(none()).within(cx.ends().reporting_time()).when("by themselves").await
}
