//! The cluster moves to a newer Kubernetes under the CCM, as administrators upgrade it: first the control plane, then one
//! kubelet after the other (contract UPG-13). The cluster begins with an earlier version than that of the run.

use super::kept::{has_a_backend, unchanged};
use super::nodes::Initialised;
use super::rollout::served;
use super::works::works;
use harness_testkit::prelude::*;
use harness_testkit::{Cold, Network, Rule};
use std::collections::VecDeque;
use std::time::Duration;
use suites_common::joining::registered;
use tokio::time::Instant;

pub(super) const CHECKS: &[Check] = &[
    on_an_earlier_version(1, Check::of("UPG-13.api-server", |cx| Box::pin(outlives_its_api_server(cx))))
        .takes(20),
    on_an_earlier_version(1, Check::of("UPG-13.kubelets", |cx| Box::pin(bears_new_kubelets(cx)))).takes(45),
    on_an_earlier_version(3, Check::of("UPG-13.skew", |cx| Box::pin(serves_older_kubelets(cx)))).takes(45),
];

/// A check on a cluster that is this many minor versions behind that of the run, where the CCM runs as shipped.
const fn on_an_earlier_version(minors: u32, check: Check) -> Check {
    check
        .needs(&[Capability::Instances])
        .with(&[
            Facility::CcmControl,
            Facility::KubeletControl,
            Facility::PodNetworkControl,
            Facility::BootsInside,
            Facility::ApiControl,
            Facility::VersionControl,
        ])
        .in_a_dedicated_cluster(Environment::Earlier { minors })
}

/// For how long an API server is away that is replaced by one that has been pulled already.
const SHORT: Duration = Duration::from_secs(2);

/// What the CCM has made before the upgrade.
struct Before<'a> {
    cold: Cold,
    nodes: Vec<Initialised<'a>>,
    balancers: Vec<(Service<'a>, LoadBalancer)>,
    /// The position of the cloud's journal.
    mark: u64,
    at: Instant,
}

/// The CCM as shipped has initialised all real Nodes, and serves a Service of each traffic policy.
async fn begins(cx: &CheckCx) -> Result<Before<'_>, CheckError> {
    let cold = cx.cold_cluster(Network::Present).await?;
    cx.apply_as_shipped().await?;
    cx.all_initialised(&cold).await?;
    let mut balancers = Vec::new();
    if cx.declares(Capability::LoadBalancer) {
        if cx.declares(Capability::NodeTargets) {
            has_a_backend(cx).await?;
        }
        balancers = served(cx).await?;
    }
    let nodes = cx.own_machines().into_iter().map(async |machine| Initialised::now(machine.node()).await);
    let nodes = futures::future::try_join_all(nodes).await?;
    Ok(Before { cold, nodes, balancers, mark: cx.cloud().mark_now().await?, at: Instant::now() })
}

impl Before<'_> {
    /// Nothing of it was replaced, or lost something in between, and it is complete.
    async fn has_stayed(&self, cx: &CheckCx) -> Verdict {
        let limit = cx.limits().load_balancer();
        for (web, lb) in &self.balancers {
            web.balancer().becomes(unchanged(lb)).within(limit).when("after the upgrade").await?;
            web.calls().of(&[Op::LbCreate, Op::LbDelete]).since(self.mark).is(no_calls()).await?;
            web.is(publishes(lb)).await?;
            let rules = [Rule::Backends, Rule::Addresses, Rule::Settings, Rule::Firewall];
            let losses = web.losses_since(self.at, &rules);
            losses.can_be_seen().await?;
            losses.is(nothing_lost()).await?;
        }
        self.nodes.iter().try_for_each(|node| node.has_stayed_since(self.at))
    }
}

/// Replaces the kubelets of all machines one after the other: each is drained, away for a while, and takes Pods again. That
/// of the control plane is the first. After it, those on which the CCM does not run are preferred, so that it sees as much of
/// this as possible.
async fn kubelets_follow(cx: &CheckCx, minor: u32) -> Verdict {
    let mut left = VecDeque::from(cx.own_machines());
    while let Some(machine) = left.pop_front() {
        machine.drain().await?;
        machine.replace_kubelet(minor, cx.limits().life()).await?;
        machine.uncordon().await?;
        still_works(cx, &format!("next-{}", left.len()), "after the kubelet of one more machine moved")
            .await?;
        left.make_contiguous().sort_by_key(OwnMachine::has_the_ccm);
    }
    Ok(())
}

/// The CCM may have lost its Lease and started again, so it gets the time for both.
async fn still_works(cx: &CheckCx, suffix: &str, when: &'static str) -> Verdict {
    let (_, node) = registered(cx, machine(suffix)).await?;
    let limit = cx.limits().start() + cx.failover_as_shipped() + cx.limits().watch();
    node.becomes(initialised()).within(limit).when(when).await?;
    works(cx, &format!("{suffix}-again"), when).await
}

async fn outlives_its_api_server(cx: &CheckCx) -> Verdict {
    let before = begins(cx).await?;
    let away = cx.renews_as_shipped() + SHORT;
    let minor = cx.control_plane_moves_on(away).await?;
    cx.record("minor", minor);
    still_works(cx, "after", "after the control plane moved to the next version").await?;
    before.has_stayed(cx).await
}

async fn bears_new_kubelets(cx: &CheckCx) -> Verdict {
    let before = begins(cx).await?;
    let minor = cx.control_plane_moves_on(SHORT).await?;
    kubelets_follow(cx, minor).await?;
    before.has_stayed(cx).await
}

async fn serves_older_kubelets(cx: &CheckCx) -> Verdict {
    let before = begins(cx).await?;
    let mut minor = 0;
    for _ in 0..3 {
        minor = cx.control_plane_moves_on(SHORT).await?;
    }
    still_works(cx, "ahead", "while its API server is three versions ahead of the kubelets").await?;
    cx.all_tainted_again(&before.cold).await?;
    for machine in cx.own_machines() {
        let node = machine.node();
        let done = node.becomes(initialised()).within(2 * cx.limits().watch());
        done.when("although its kubelet is three versions behind the API server").await?;
    }
    let at = Instant::now();
    let before = Before { at, ..before };
    kubelets_follow(cx, minor).await?;
    before.has_stayed(cx).await
}
