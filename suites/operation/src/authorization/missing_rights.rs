//! A right is taken away from a running CCM: only the work that needs it stops, and it resumes without a
//! restart when the right is back (AUTH-02 to -06, -08, -09). RBAC is evaluated at every request, so the CCM
//! keeps running.

use super::least_rights::{emptied, least, right_of};
use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1 as core;
use kube::ResourceExt;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;
use suites_common::joining::{joined, registered};

const INSTANCES: &[Capability] = &[Capability::Instances];
const LB: &[Capability] = &[Capability::LoadBalancer];
const BOTH: &[Capability] = &[Capability::Instances, Capability::LoadBalancer];
const FLAGGED: &[Capability] = &[Capability::Instances, Capability::FrameworkFlags];
pub(super) const TRIAL: &[Facility] = &[Facility::CcmControl];

pub(super) const CHECKS: &[Check] = &[
    Check::of("AUTH-02", |cx| Box::pin(repairs_no_label(cx, "AUTH-02")))
        .needs(INSTANCES)
        .with(TRIAL)
        .on_a_fresh_cluster(),
    Check::of("AUTH-03", |cx| Box::pin(initialises_none(cx)))
        .needs(INSTANCES)
        .with(TRIAL)
        .on_a_fresh_cluster(),
    Check::of("AUTH-04", |cx| Box::pin(repairs_no_label(cx, "AUTH-04")))
        .needs(INSTANCES)
        .with(TRIAL)
        .on_a_fresh_cluster(),
    Check::of("AUTH-05", |cx| Box::pin(deletes_none(cx)))
        .needs(INSTANCES)
        .with(TRIAL)
        .on_a_fresh_cluster()
        .takes(5),
    Check::of("AUTH-06", |cx| Box::pin(writes_no_addresses(cx)))
        .needs(FLAGGED)
        .with(TRIAL)
        .on_a_fresh_cluster(),
    Check::of("AUTH-08", |cx| Box::pin(makes_no_balancer(cx)))
        .by_calls()
        .needs(LB)
        .with(TRIAL)
        .on_a_fresh_cluster()
        .takes(5),
    Check::of("AUTH-09", |cx| Box::pin(works_without_events(cx)))
        .needs(BOTH)
        .with(TRIAL)
        .on_a_fresh_cluster(),
];

/// A running CCM whose rights a check can remove and restore.
pub(super) struct Worker<'a> {
    cx: &'a CheckCx,
    pub(super) trial: Trial<'a>,
    row: &'static str,
    whole: Vec<Grant>,
    less: Vec<Grant>,
}

impl<'a> Worker<'a> {
    /// Starts one. `lacking`: the row whose rights it does not have at the start.
    pub(super) async fn start(
        cx: &'a CheckCx,
        row: &'static str,
        lacking: bool,
        arguments: &[&str],
    ) -> Result<Worker<'a>, CheckError> {
        let namespace = cx.lease_namespace();
        let rights = RefCell::new((Vec::new(), Vec::new()));
        let choose = |granted: &[Grant]| {
            let whole = least(granted, &[], &namespace);
            let less = emptied(&whole, least(granted, &[row], &namespace));
            *rights.borrow_mut() = (whole.clone(), less.clone());
            if lacking { less } else { whole }
        };
        let trial = cx.ccm_as(choose, arguments).await?;
        let (whole, less) = rights.into_inner();
        Ok(Worker { cx, trial, row, whole, less })
    }

    /// Removes the row's rights; they are gone when this returns.
    pub(super) async fn loses_it(&self) -> Result<(), CheckError> {
        let right = right_of(self.row, &self.cx.lease_namespace());
        self.trial.may(&self.less, &right, false).await
    }

    /// Restores the rights.
    pub(super) async fn has_it_again(&self) -> Result<(), CheckError> {
        let right = right_of(self.row, &self.cx.lease_namespace());
        self.trial.may(&self.whole, &right, true).await
    }

    /// Checks that the process keeps running, although requests were denied.
    pub(super) async fn keeps_running(&self) -> Verdict {
        let still = self.trial.is(keeps_running()).await;
        self.trial.explained(still).await
    }

    /// Waits until a state is reached, in time and before the process ends.
    pub(super) async fn sees<S: Subject, T: 'static>(
        &self,
        subject: &S,
        wanted: Matcher<S::Snapshot, T>,
        limit: Duration,
        when: &str,
    ) -> Result<T, CheckError>
    where
        S::Snapshot: 'static,
    {
        let both = (&self.trial, subject);
        let seen = both.becomes(unless_it_ends(wanted)).within(limit).when(when).await;
        self.trial.explained(seen).await
    }

    /// Waits until the CCM has done some work.
    async fn has_begun(&self) -> Verdict {
        let (_, node) = registered(self.cx, machine("first")).await?;
        self.sees(&node, initialised(), self.cx.limits().start(), "with all of its rights").await.map(drop)
    }
}

/// Records whether the CCM did the work without the right, as a CCM that uses another way does.
fn unless_another_way(cx: &CheckCx, left_undone: Verdict) -> Verdict {
    match left_undone {
        Err(CheckError::Violation(_)) => {
            cx.record("another-way", "it did it without this right");
            Ok(())
        }
        other => other,
    }
}

async fn repairs_no_label(cx: &CheckCx, row: &'static str) -> Verdict {
    let worker = Worker::start(cx, row, false, &[]).await?;
    worker.has_begun().await?;
    let (_, node) = joined(cx, machine("labelled")).await?;
    worker.loses_it().await?;
    node.label(L_TYPE, Some("edited")).await?;
    let edited = labelled("edited");
    let stays = node.keeps(edited).within(cx.limits().settle()).await;
    unless_another_way(cx, stays)?;
    worker.keeps_running().await?;
    worker.has_it_again().await?;
    let kind = node_type(cx, &node)?;
    let repaired = labelled(kind);
    worker.sees(&node, repaired, cx.limits().nodes_after(cx.limits().settle()), "as it may again").await
}

/// The value of its beta label, which is the correct one (contract fact 4).
fn node_type(cx: &CheckCx, node: &Node<'_>) -> Result<String, CheckError> {
    let name = Subject::name(node).name;
    let found = cx.all_nodes()?.into_iter().find(|node| node.name_any() == name);
    let twin = found.and_then(|node| node.labels().get(B_TYPE).cloned());
    twin.ok_or_else(|| CheckError::Error(format!("Node {name} has lost {}", B_TYPE)))
}

fn labelled(value: impl Into<String>) -> Matcher<Option<Arc<core::Node>>> {
    let value = value.into();
    let expected = format!("{L_TYPE}={value}");
    holds("has its instance type", move |node: &Option<Arc<core::Node>>| {
        node.as_ref().is_some_and(|node| node.labels().get(L_TYPE) == Some(&value))
    })
    .expecting(expected)
}

fn is_tainted() -> Matcher<Option<Arc<core::Node>>> {
    holds("is not initialised", |node: &Option<Arc<core::Node>>| {
        node.as_ref().is_some_and(|node| has_taint(node, T_UNINIT))
    })
    .expecting(T_UNINIT)
}

async fn initialises_none(cx: &CheckCx) -> Verdict {
    let worker = Worker::start(cx, "AUTH-03", false, &[]).await?;
    worker.has_begun().await?;
    worker.loses_it().await?;
    let (_, node) = registered(cx, machine("refused")).await?;
    let stays = node.keeps(is_tainted()).within(cx.limits().settle()).await;
    unless_another_way(cx, stays)?;
    worker.keeps_running().await?;
    worker.has_it_again().await?;
    let limit = cx.limits().nodes_after(cx.limits().settle());
    worker.sees(&node, initialised(), limit, "as it may again").await.map(drop)
}

async fn deletes_none(cx: &CheckCx) -> Verdict {
    let worker = Worker::start(cx, "AUTH-05", false, &[]).await?;
    worker.has_begun().await?;
    let gone_machine = cx.machine(machine("gone")).await?;
    let node = cx.node(gone_machine.initialised_node().ready(Ready::False)).await?;
    worker.loses_it().await?;
    gone_machine.delete().await?;
    let limit = cx.limits().life_of_machine() + cx.limits().event();
    let events = node.events();
    worker.sees(&events, tells("Warning", "DeletingNodeFailed"), limit, "as it may not delete it").await?;
    node.is(present()).await?;
    worker.keeps_running().await?;
    worker.has_it_again().await?;
    worker.sees(&node, gone(), cx.limits().life(), "as it may again").await
}

fn has_none_but_the_hostname() -> Matcher<Option<Arc<core::Node>>> {
    holds("has no addresses", |node: &Option<Arc<core::Node>>| {
        node.as_ref().is_some_and(|node| addresses(node).iter().all(|(kind, _)| kind == "Hostname"))
    })
    .expecting("no address but a Hostname")
}

fn has_some() -> Matcher<Option<Arc<core::Node>>> {
    holds("has addresses", |node: &Option<Arc<core::Node>>| {
        node.as_ref().is_some_and(|node| {
            !has_taint(node, T_UNINIT) && addresses(node).iter().any(|(kind, _)| kind != "Hostname")
        })
    })
    .expecting(format!("no {T_UNINIT}, and an address that is not a Hostname"))
}

/// The period of the refresh that the trial uses, so that the check does not wait long.
const REFRESH: &str = "--node-status-update-frequency=3s";

async fn writes_no_addresses(cx: &CheckCx) -> Verdict {
    let worker = Worker::start(cx, "AUTH-06", false, &[REFRESH]).await?;
    worker.has_begun().await?;
    worker.loses_it().await?;
    let (_, node) = registered(cx, machine("bare")).await?;
    let none = node.keeps(has_none_but_the_hostname()).within(cx.limits().settle()).await;
    unless_another_way(cx, none)?;
    worker.keeps_running().await?;
    worker.has_it_again().await?;
    worker.sees(&node, has_some(), 2 * cx.limits().watch(), "as it may again").await
}

async fn makes_no_balancer(cx: &CheckCx) -> Verdict {
    let worker = Worker::start(cx, "AUTH-08", false, &[]).await?;
    let first = cx.service(load_balancer("first").port(80)).await?;
    let limit = cx.limits().start() + cx.limits().load_balancer_work();
    worker.sees(&first.balancer(), one_active(), limit, "with all of its rights").await?;
    worker.loses_it().await?;
    let web = cx.service(load_balancer("web").port(80)).await?;
    let events = web.events();
    let (failed, limit) = (tells("Warning", "SyncLoadBalancerFailed"), cx.limits().event());
    worker.sees(&events, failed, limit, "as it cannot put its finalizer there").await?;
    web.calls().writes().keeps(no_calls()).within(cx.limits().settle()).await?;
    worker.keeps_running().await?;
    worker.has_it_again().await?;
    let limit = cx.limits().service_after(2) + cx.limits().load_balancer_work();
    let lb = worker.sees(&web.balancer(), one_active(), limit, "as it may again").await?;
    web.becomes(publishes(&lb)).within(cx.limits().load_balancer()).await
}

async fn works_without_events(cx: &CheckCx) -> Verdict {
    let worker = Worker::start(cx, "AUTH-09", false, &[]).await?;
    worker.has_begun().await?;
    worker.loses_it().await?;
    let (_, node) = registered(cx, machine("untold")).await?;
    node.becomes(initialised()).when("though it may write no Event").await?;
    let web = cx.service(load_balancer("untold").port(80)).await?.provisioned().await?;
    web.delete().await?;
    web.becomes(gone()).within(cx.limits().load_balancer()).when("though it may write no Event").await?;
    let still =
        (&worker.trial, &node).keeps(both(keeps_running(), present())).within(cx.limits().settle()).await;
    worker.trial.explained(still).await
}
