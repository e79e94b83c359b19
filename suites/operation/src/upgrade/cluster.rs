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
        .takes(30)
        .takes_on_machines(110),
    on_an_earlier_version(1, Check::of("UPG-13.kubelets", |cx| Box::pin(bears_new_kubelets(cx))))
        .takes(50)
        .takes_on_machines(190),
    on_an_earlier_version(3, Check::of("UPG-13.skew", |cx| Box::pin(serves_older_kubelets(cx))))
        .takes(55)
        .takes_on_machines(190),
];

/// A check on a cluster that is this many minor versions behind that of the run, where the CCM runs as shipped.
const fn on_an_earlier_version(minors: u32, check: Check) -> Check {
    check
        .needs(&[Capability::Instances])
        .by_calls()
        .with(&[
            Facility::CcmControl,
            Facility::KubeletControl,
            Facility::PodNetworkControl,
            Facility::BootsInside,
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
    /// A Node that is behind all of them, if they have Nodes.
    backend: Option<Node<'a>>,
    /// The position of the cloud's journal.
    mark: u64,
    at: Instant,
}

/// The CCM as shipped has initialised all real Nodes, and serves a Service of each traffic policy.
async fn begins(cx: &CheckCx) -> Result<Before<'_>, CheckError> {
    let cold = cx.cold_cluster(Network::Present).await?;
    cx.apply_as_shipped().await?;
    cx.all_initialised(&cold).await?;
    let (mut balancers, mut backend) = (Vec::new(), None);
    if cx.declares(Capability::LoadBalancer) {
        if cx.declares(Capability::NodeTargets) {
            backend = Some(has_a_backend(cx).await?);
        }
        balancers = served(cx).await?;
    }
    // The addresses may come this long after the taint was removed.
    pause(cx.limits().addresses_after_taint()).await;
    let nodes = cx.own_machines().into_iter().map(async |machine| Initialised::now(machine.node()).await);
    let nodes = futures::future::try_join_all(nodes).await?;
    Ok(Before { cold, nodes, balancers, backend, mark: cx.cloud().mark_now().await?, at: Instant::now() })
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
        let when = "after the kubelet of one more machine moved";
        still_works(cx, &format!("next-{}", left.len()), Duration::ZERO, when).await?;
        left.make_contiguous().sort_by_key(OwnMachine::has_the_ccm);
    }
    Ok(())
}

/// The CCM may have lost its Lease and started again, as often as a kubelet restarts it while the API server is away, so it
/// gets the time for both.
async fn still_works(cx: &CheckCx, suffix: &str, away: Duration, when: &'static str) -> Verdict {
    let (_, node) = registered(cx, machine(suffix)).await?;
    let limit = cx.limits().restart_after(away)
        + cx.limits().start()
        + cx.failover_as_shipped()
        + cx.limits().watch();
    node.becomes(initialised()).within(limit).when(when).await?;
    works(cx, &format!("{suffix}-again"), when).await
}

/// Moves the control plane to the next minor version, waits until the CCM works again, and returns that version.
async fn control_plane_moves(cx: &CheckCx, before: &Before<'_>, away: Duration) -> Result<u32, CheckError> {
    let began = Instant::now();
    let minor = cx.control_plane_moves_on(away).await?;
    let away = began.elapsed();
    cx.record(&format!("to_1_{minor}_ms"), away.as_millis());
    // As its kubelet does: the Node was not heard of for so long that it may count as lost.
    if let Some(node) = &before.backend {
        node.set_ready(Ready::True).await?;
    }
    still_works(cx, &format!("on-{minor}"), away, "after the control plane moved to the next version")
        .await?;
    Ok(minor)
}

async fn outlives_its_api_server(cx: &CheckCx) -> Verdict {
    let before = begins(cx).await?;
    control_plane_moves(cx, &before, cx.renews_as_shipped() + SHORT).await?;
    before.has_stayed(cx).await
}

async fn bears_new_kubelets(cx: &CheckCx) -> Verdict {
    let before = begins(cx).await?;
    let minor = control_plane_moves(cx, &before, SHORT).await?;
    kubelets_follow(cx, minor).await?;
    before.has_stayed(cx).await
}

async fn serves_older_kubelets(cx: &CheckCx) -> Verdict {
    let before = begins(cx).await?;
    let mut minor = 0;
    for _ in 0..3 {
        minor = control_plane_moves(cx, &before, SHORT).await?;
    }
    before.has_stayed(cx).await?;
    cx.all_tainted_again(&before.cold).await?;
    for machine in cx.own_machines() {
        let node = machine.node();
        let done = node.becomes(initialised()).within(2 * cx.limits().watch());
        done.when("although its kubelet is three versions behind the API server").await?;
    }
    pause(cx.limits().addresses_after_taint()).await;
    let before = Before { at: Instant::now(), ..before };
    kubelets_follow(cx, minor).await?;
    before.has_stayed(cx).await
}
