//! Boots with an obstacle: a pod network that waits for the CCM, missing cluster DNS, a cloud or an API
//! server that is not reachable yet, missing routes, a power failure, Nodes that are no longer Ready; and the
//! Pods that wait on a Node that joins (contract BOOT-DYN).

use super::needs::{COLD, INSIDE, INSTANCES, MACHINES};
use harness_testkit::prelude::*;
use std::time::{Duration, Instant};
use suites_common::joining::joined;

/// For how long a CCM that starts cannot reach its cloud. A CCM that ends because of that is started a third
/// time in that period.
const NO_CLOUD: Duration = Duration::from_secs(35);
/// For how long it cannot reach the API server: longer than the 10 s for which the framework waits before it ends.
const NO_API_SERVER: Duration = Duration::from_secs(20);
/// The calls with which a CCM looks up the machines of Nodes.
const LOOK_UPS: &[Op] = &[Op::InstanceGet, Op::InstanceList];
/// For how long the cloud does not know the machine of a Node that has joined.
const NO_MACHINE: Duration = Duration::from_secs(5);

/// For how long no Node is Ready: longer than a short toleration of half a minute.
const NOT_READY: Duration = Duration::from_secs(40);

pub(super) const CHECKS: &[Check] = &[
    Check::of("BOOT-DYN-03", |cx| Box::pin(boots_before_its_network(cx)))
        .needs(INSTANCES)
        .of_the_cloud(MACHINES)
        .with(COLD)
        .on_a_fresh_cluster()
        .takes(10),
    Check::of("BOOT-DYN-05", |cx| Box::pin(boots_without_dns(cx)))
        .needs(INSTANCES)
        .of_the_cloud(MACHINES)
        .with(COLD)
        .with(INSIDE)
        .with(&[Facility::CloudName])
        .on_a_fresh_cluster()
        .takes(10),
    Check::of("BOOT-DYN-06", |cx| Box::pin(boots_after_a_power_failure(cx)))
        .needs(INSTANCES)
        .of_the_cloud(MACHINES)
        .with(COLD)
        .with(&[Facility::NodeControl])
        .on_a_fresh_cluster()
        .takes(30),
    Check::of("BOOT-DYN-06.underway", |cx| Box::pin(boots_after_a_power_failure_on_the_way(cx)))
        .needs(INSTANCES)
        .of_the_cloud(MACHINES)
        .with(COLD)
        .with(&[Facility::NodeControl, Facility::Barriers])
        .on_a_fresh_cluster()
        .takes(30),
    Check::of("BOOT-DYN-07", |cx| Box::pin(boots_after_the_cloud(cx)))
        .needs(INSTANCES)
        .with(COLD)
        .with(&[Facility::Faults])
        .on_a_fresh_cluster()
        .takes(80),
    Check::of("BOOT-DYN-08", |cx| Box::pin(boots_after_the_api_server(cx)))
        .needs(INSTANCES)
        .of_the_cloud(MACHINES)
        .with(COLD)
        .with(&[Facility::ApiControl])
        .on_a_fresh_cluster()
        .takes(40),
    Check::of("BOOT-DYN-10", |cx| Box::pin(stays_on_nodes_that_are_not_ready(cx)))
        .needs(INSTANCES)
        .of_the_cloud(MACHINES)
        .with(COLD)
        .with(INSIDE)
        .on_a_fresh_cluster()
        .takes(50),
    Check::of("BOOT-DYN-11", |cx| Box::pin(boots_without_routes(cx)))
        .needs(&[Capability::Instances, Capability::Routes])
        .of_the_cloud(MACHINES)
        .with(COLD)
        .on_a_fresh_cluster()
        .takes(20),
    Check::of("BOOT-DYN-14", |cx| Box::pin(keeps_pods_off_until_then(cx))).needs(INSTANCES).takes(8),
];

async fn boots_before_its_network(cx: &CheckCx) -> Verdict {
    let cold = cx.cold_cluster(Network::Absent).await?.with_waiting_network();
    let canary = cx.waiting_canary().await?;
    cx.apply_as_shipped().await?;
    cx.all_initialised(&cold).await?;
    cx.pod_network_comes().await?;
    canary.gets_to_run().await
}

async fn boots_without_dns(cx: &CheckCx) -> Verdict {
    let mut cold = cx.cold_cluster(Network::Present).await?;
    cx.cluster_dns_is_away().await?;
    cx.apply_with_cloud_named(&mut cold).await?;
    cx.all_initialised(&cold).await
}

async fn boots_after_a_power_failure(cx: &CheckCx) -> Verdict {
    let cold = cx.cold_cluster(Network::Present).await?;
    cx.apply_as_shipped().await?;
    cx.all_initialised(&cold).await?;
    cx.power_fails().await?;
    cx.all_tainted_again(&cold).await?;
    // The previous leader's Lease has to expire first.
    cx.all_initialised_after(&cold, cx.limits().failover(), "power").await
}

async fn boots_after_a_power_failure_on_the_way(cx: &CheckCx) -> Verdict {
    let cold = cx.cold_cluster(Network::Present).await?;
    let look_ups = cx.cloud().anything().holds(LOOK_UPS).await?;
    cx.apply_as_shipped().await?;
    cx.boot(&cold).becomes(started()).within(cx.limits().start()).await?;
    look_ups.is_reached().await?;
    cx.power_fails().await?;
    look_ups.release().await?;
    // The previous leader's Lease has to expire first.
    cx.all_initialised_after(&cold, cx.limits().failover(), "power").await
}

async fn boots_after_the_cloud(cx: &CheckCx) -> Verdict {
    let cold = cx.cold_cluster(Network::Present).await?;
    let away = cx.cloud().anything().meets("refused connections", &[Effect::Refuse]).await?;
    cx.apply_as_shipped().await?;
    let boot = cx.boot(&cold);
    boot.becomes(started()).within(cx.limits().start()).when("while there is no cloud").await?;
    boot.keeps(uninitialised()).within(NO_CLOUD).when("while there is no cloud").await?;
    away.hits(1).await?;
    away.clear().await?;
    cx.all_initialised_after(&cold, NO_CLOUD, "the cloud").await
}

async fn boots_after_the_api_server(cx: &CheckCx) -> Verdict {
    let cold = cx.cold_cluster(Network::Present).await?;
    let away = cx.api_server_is_away().await?;
    cx.apply_as_shipped().await?;
    let boot = cx.boot(&cold);
    boot.becomes(started()).within(cx.limits().start()).when("while there is no API server").await?;
    boot.keeps(uninitialised()).within(NO_API_SERVER).when("while there is no API server").await?;
    away.restore().await?;
    cx.all_initialised_after(&cold, NO_API_SERVER, "the API server").await
}

async fn stays_on_nodes_that_are_not_ready(cx: &CheckCx) -> Verdict {
    let cold = cx.cold_cluster(Network::Present).await?;
    cx.apply_as_shipped().await?;
    cx.all_initialised(&cold).await?;
    // When hardly any Node is Ready, the node lifecycle controller evicts no Pods: it assumes that the fault
    // is its own.
    for number in 1..=cold.machines() {
        joined(cx, machine(&format!("ready-{number}"))).await?;
    }
    cx.pod_network_goes().await?;
    let stays = still_runs(cx.pods_that_run());
    cx.boot(&cold).keeps(stays).within(NOT_READY).when("while none of its Nodes is Ready").await?;
    cx.all_tainted_again(&cold).await?;
    cx.all_initialised(&cold).await
}

async fn boots_without_routes(cx: &CheckCx) -> Verdict {
    let mut cold = cx.cold_cluster(Network::Present).await?;
    cx.networks_are_unavailable(&mut cold).await?;
    let canary = cx.waiting_canary().await?;
    cx.apply_as_shipped().await?;
    cx.all_initialised(&cold).await?;
    // The scheduler keeps it off a Node whose network is unavailable.
    canary.gets_to_run().await
}

async fn keeps_pods_off_until_then(cx: &CheckCx) -> Verdict {
    // A machine that does not exist yet, instead of a fault: a CCM that lists machines would not meet the fault.
    let machine = cx.absent_machine(machine("joining"));
    let canary = cx.canary_on(&machine.name()).await?;
    let node = cx.node(machine.node().with_room()).await?;
    let began = Instant::now();
    canary.keeps(is_unplaced()).within(NO_MACHINE).when("while the cloud does not know its machine").await?;
    machine.appears().await?;
    let limit = cx.limits().nodes_after(began.elapsed() + cx.limits().instance_cache());
    node.becomes(initialised()).within(limit).when("once its machine is there").await?;
    // If Pods need a route, the scheduler also waits for the Node's route.
    let its_route = if cx.declares(Capability::Routes) { cx.limits().route() } else { Duration::ZERO };
    let limit = cx.limits().watch() + its_route;
    canary.becomes(is_placed()).within(limit).when("once its Node is initialised").await
}
