//! Bootstrap without a deadlock: the CCM, deployed as its vendor ships it, breaks the chicken-and-egg cycle
//! on a cold cluster (contract BOOT-DYN).

mod lost_machine;
mod manifests;
mod more_replicas;
mod needs;
mod obstacles;
mod serving;

use harness_testkit::prelude::*;
use needs::{COLD, INSIDE, INSTANCES, MACHINES};

/// The suite of bootstrap.
pub const SUITE: Suite = Suite {
    name: "deadlock-free-bootstrap",
    proves: "the manifests as shipped bring up a cold cluster: CCM, CNI and scheduler do not wait for one another",
    judges: Party::Ccm,
    tables: &[
        CHECKS,
        obstacles::CHECKS,
        lost_machine::CHECKS,
        serving::CHECKS,
        more_replicas::CHECKS,
        manifests::CHECKS,
    ],
};

const CHECKS: &[Check] = &[
    Check::of("BOOT-DYN-04", |cx| Box::pin(boots_without_network(cx)))
        .needs(INSTANCES)
        .of_the_cloud(MACHINES)
        .with(COLD)
        .on_a_fresh_cluster()
        .takes(5),
    Check::of(Blocker::Boots.check(), |cx| Box::pin(boots_cold(cx)))
        .needs(INSTANCES)
        .of_the_cloud(MACHINES)
        .with(COLD)
        .on_a_fresh_cluster()
        .takes(10),
    Check::of("BOOT-DYN-02", |cx| Box::pin(boots_single_node(cx)))
        .needs(INSTANCES)
        .of_the_cloud(MACHINES)
        .with(COLD)
        .with(INSIDE)
        .with(&[Facility::SingleNode])
        .on_a_fresh_cluster()
        .takes(5),
];

async fn boots_without_network(cx: &CheckCx) -> Verdict {
    let cold = cx.cold_cluster(Network::Absent).await?;
    cx.apply_as_shipped().await?;
    cx.all_initialised(&cold).await?;
    cx.none_is_ready(&cold).await
}

async fn boots_cold(cx: &CheckCx) -> Verdict {
    let cold = cx.cold_cluster(Network::Present).await?;
    // An ordinary workload, like one of a user or CoreDNS: it has to wait for the initialisation, and then
    // has to run.
    let canary = cx.waiting_canary().await?;
    cx.apply_as_shipped().await?;
    cx.all_initialised(&cold).await?;
    canary.gets_to_run().await
}

async fn boots_single_node(cx: &CheckCx) -> Verdict {
    let mut cold = cx.cold_cluster(Network::Present).await?;
    cx.dedicated_control_plane(&mut cold).await?;
    cx.apply_as_shipped().await?;
    cx.all_initialised(&cold).await
}
