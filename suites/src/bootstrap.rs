//! Deadlock-free bootstrap: the CCM as its vendor ships it breaks the chicken-and-egg cycle on a cold cluster
//! (contract BOOT-DYN).

use harness::check::{Capability, Facility, Stop, Verdict};
use harness::cx::{Check, CheckCx, Cold, Network, Suite};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "deadlock-free-bootstrap",
    proves: "the manifests as shipped bring a cold cluster up: no wait of CCM, CNI and scheduler for one another",
    tables: &[CHECKS],
};

const MACHINES: &[Facility] = &[Facility::Machines];
const COLD: &[Facility] =
    &[Facility::CcmControl, Facility::KubeletControl, Facility::PodNetworkControl, Facility::BootsInside];
const SEED: &str = "the project's seed articles";

const CHECKS: &[Check] = &[
    Check::must(
        "BOOT-DYN-04",
        "without any pod network the CCM runs and initialises every Node",
        SEED,
        |cx| Box::pin(boots_without_network(cx)),
    )
    .needs(&[Capability::Instances])
    .of_the_cloud(MACHINES)
    .with(COLD)
    .cold()
    .takes(5),
    Check::must("BOOT-DYN-01", "a cold cluster boots without a manual step", SEED, |cx| {
        Box::pin(boots_cold(cx))
    })
    .needs(&[Capability::Instances])
    .of_the_cloud(MACHINES)
    .with(COLD)
    .cold()
    .takes(10),
    Check::must("BOOT-DYN-02", "a cluster of one control-plane node boots", SEED, |cx| {
        Box::pin(boots_single_node(cx))
    })
    .needs(&[Capability::Instances])
    .of_the_cloud(MACHINES)
    .with(COLD)
    .cold()
    .takes(5),
];

async fn boots_without_network(cx: &CheckCx) -> Verdict {
    let cold = cx.cold_cluster(Network::Absent).await?;
    cx.apply_as_shipped().await?;
    cx.all_initialised(&cold).await?;
    none_ready(cx, &cold)
}

/// Without a pod network no Node can be Ready; if one is, the check has not shown what it claims.
fn none_ready(cx: &CheckCx, cold: &Cold) -> Verdict {
    let ready = cold.nodes().iter().filter(|name| {
        cx.find_node(name).is_some_and(|node| harness::k8s::ready(&node).as_deref() == Some("True"))
    });
    match ready.cloned().collect::<Vec<String>>() {
        list if list.is_empty() => Ok(()),
        list => Err(Stop::Error(format!(
            "Nodes are Ready although no pod network was set up: {}",
            list.join(", ")
        ))),
    }
}

async fn boots_cold(cx: &CheckCx) -> Verdict {
    let cold = cx.cold_cluster(Network::Present).await?;
    // An ordinary workload, as a user or CoreDNS would be: it has to wait for initialisation, then run.
    let canary = cx.create_canary().await?;
    cx.canary_waits(&canary).await?;
    cx.apply_as_shipped().await?;
    cx.all_initialised(&cold).await?;
    cx.canary_runs(&canary).await
}

async fn boots_single_node(cx: &CheckCx) -> Verdict {
    let machines = cx.session().machines().len();
    if machines != 1 {
        return Err(Stop::NotObservable(format!(
            "this cluster has {machines} nodes; use the topology 'single'"
        )));
    }
    let cold = cx.cold_cluster(Network::Present).await?;
    cx.apply_as_shipped().await?;
    cx.all_initialised(&cold).await
}
