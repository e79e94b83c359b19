//! How far a cold cluster has booted, and what blocks it.

use super::deadlock::Deadlock;
use super::undo_steps::Undo;
use super::{CheckCx, Cold, Subject};
use bootstrap::{Expectation, ObservedNode, ObservedPod};
use harness_clouds::Entry;
use harness_core::check::{CheckError, SubjectName, Verdict};
use harness_core::probe::{Matcher, Observation, Observed, ReadError, ReadSource, matcher};
use harness_session::ccm::{Form, crash_loops, unrecoverable};
use harness_session::expectation;
use harness_session::k8s::{T_UNINIT, addresses, has_taint, provider_id, taints};
use k8s_openapi::api::core::v1::{ContainerStatus, Node, Pod};
use kube::ResourceExt;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The progress of a boot, as a failure shows it.
pub struct Boot {
    nodes: Vec<Option<Arc<Node>>>,
    pub(super) pods: Vec<Arc<Pod>>,
    /// Whether these are the Pods of a deployed CCM.
    deployed: bool,
    /// Why the boot cannot continue.
    stuck: Option<String>,
}

#[cfg(test)]
impl Boot {
    /// A progress that only contains the CCM's Pods.
    pub(super) fn of_pods(pods: Vec<Arc<Pod>>) -> Boot {
        Boot { nodes: Vec::new(), pods, deployed: true, stuck: None }
    }
}

impl Observed for Boot {
    fn observed(&self) -> String {
        format!("{}; CCM Pods: {}", self.nodes.observed(), self.pods.observed())
    }
}

/// The boot of a cluster.
pub struct BootOf<'a> {
    cx: &'a CheckCx,
    nodes: Vec<super::Node<'a>>,
    deadlock: RefCell<Deadlock>,
}

impl Subject for BootOf<'_> {
    type Snapshot = Boot;

    fn cx(&self) -> &CheckCx {
        self.cx
    }

    fn name(&self) -> SubjectName {
        super::nodes::together("the cluster of", &self.nodes)
    }

    async fn read(&self, reach: ReadSource) -> Result<Boot, ReadError> {
        let nodes = futures::future::try_join_all(self.nodes.iter().map(|node| node.read(reach))).await?;
        let pods = self.cx.session.ccm().pods(Form::AsShipped);
        let seen_nodes = nodes.iter().flatten().map(|node| seen_node(node)).collect();
        let seen_pods = pods.iter().map(|pod| seen_pod(pod)).collect();
        let stuck = self.deadlock.borrow_mut().after(seen_pods, seen_nodes, Instant::now());
        Ok(Boot { nodes, pods, deployed: self.cx.session.ccm().exists(), stuck })
    }

    fn concerns(&self, call: &Entry) -> bool {
        self.nodes.iter().any(|node| node.concerns(call))
    }
}

/// Whether the CCM has initialised a Node. Checks NODE-ADDR judge which addresses it reports.
fn is_initialised(node: &Node) -> bool {
    let reachable = addresses(node).iter().any(|(kind, _)| kind != "Hostname");
    !has_taint(node, T_UNINIT) && provider_id(node).is_some() && reachable
}

/// What may happen to the CCM's Pods during the boot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pods {
    /// None of them crash-loops.
    Run,
    /// They may crash-loop: something that they need was missing, so the pauses between their starts have grown.
    MayCrash,
}

/// All Nodes are initialised; never, if nothing is deployed or the boot cannot continue.
fn all_initialised(pods: Pods) -> Matcher<Boot> {
    let expected = format!("every Node without {T_UNINIT}, with a providerID and an address");
    matcher("is initialised, with no manual step", move |seen: &Boot| {
        if seen.nodes.iter().all(|node| node.as_ref().is_some_and(|node| is_initialised(node))) {
            return Observation::Matched(());
        }
        if !seen.deployed {
            return Observation::Impossible("no CCM is deployed that could initialise a Node".to_owned());
        }
        let loops = |pod: &Arc<Pod>| if pods == Pods::Run { crash_loops(pod) } else { None };
        let hopeless = |pod: &Arc<Pod>| unrecoverable(pod).or_else(|| loops(pod));
        match seen.pods.iter().find_map(hopeless).or_else(|| seen.stuck.clone()) {
            Some(why) => Observation::Impossible(why),
            None => Observation::Pending(String::new()),
        }
    })
    .expecting(expected)
}

/// All Nodes exist as their kubelets registered them: none was initialised.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let cold = cx.cold_cluster(Network::Present).await?;
/// let away = cx.cloud().anything().meets("refused connections", &[Effect::Refuse]).await?;
/// cx.apply_as_shipped().await?;
/// cx.boot(&cold).keeps(uninitialised()).when("while there is no cloud").await?;
/// away.clear().await
/// # }
/// ```
pub fn uninitialised() -> Matcher<Boot> {
    matcher("stays uninitialised", |seen: &Boot| {
        let done = seen.nodes.iter().find_map(|node| match node {
            None => Some("a Node is gone".to_owned()),
            Some(node) if !has_taint(node, T_UNINIT) => {
                Some(format!("Node {} lost its taint", node.name_any()))
            }
            Some(_) => None,
        });
        done.map_or(Observation::Matched(()), Observation::Impossible)
    })
    .expecting(format!("every Node there, with {T_UNINIT}"))
}

/// A process of the CCM has been started at least once; never, if nothing is deployed.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let cold = cx.cold_cluster(Network::Present).await?;
/// cx.apply_as_shipped().await?;
/// cx.boot(&cold).becomes(started()).within(cx.limits().start()).await
/// # }
/// ```
pub fn started() -> Matcher<Boot> {
    matcher("has its CCM started", |seen: &Boot| match seen.pods.iter().any(|pod| has_started(pod)) {
        true => Observation::Matched(()),
        false if !seen.deployed => {
            Observation::Impossible("no CCM is deployed that could be started".to_owned())
        }
        false => seen
            .pods
            .iter()
            .find_map(|pod| unrecoverable(pod))
            .map_or(Observation::Pending(String::new()), Observation::Impossible),
    })
    .expecting("a container of the CCM that has been started")
}

/// A process of the CCM runs in one of the Pods that ran before (by their uids), and that Pod is not being deleted. A
/// replacement may have started too fast to be noticed.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let cold = cx.cold_cluster(Network::Present).await?;
/// cx.apply_as_shipped().await?;
/// cx.all_initialised(&cold).await?;
/// cx.boot(&cold).keeps(still_runs(cx.pods_that_run())).when("while its Nodes are not Ready").await
/// # }
/// ```
pub fn still_runs(ran: BTreeSet<String>) -> Matcher<Boot> {
    matcher("keeps its CCM", move |seen: &Boot| {
        let mut staying = seen.pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        if staying.any(|pod| is_running(pod) && pod.uid().is_some_and(|uid| ran.contains(&uid))) {
            return Observation::Matched(());
        }
        let left = match seen.pods.len() {
            0 => "the CCM has no Pod",
            _ => "every earlier Pod of the CCM is gone, is being deleted, or does not run",
        };
        Observation::Impossible(left.to_owned())
    })
    .expecting("a Pod of the CCM that ran before, still runs, and is not being deleted")
}

pub(super) fn is_running(pod: &Pod) -> bool {
    let statuses = pod.status.iter().flat_map(|s| s.container_statuses.iter().flatten());
    statuses.into_iter().any(|status| status.state.as_ref().is_some_and(|state| state.running.is_some()))
}

fn has_started(pod: &Pod) -> bool {
    let once = |status: &ContainerStatus| {
        let ends = [status.state.as_ref(), status.last_state.as_ref()];
        let ran = ends.into_iter().flatten().any(|s| s.running.is_some() || s.terminated.is_some());
        ran || status.restart_count > 0
    };
    pod.status.iter().flat_map(|s| s.container_statuses.iter().flatten()).any(once)
}

fn seen_pod(pod: &Pod) -> ObservedPod {
    let status = pod.status.as_ref();
    let conditions = status.and_then(|s| s.conditions.as_ref()).into_iter().flatten();
    let says = conditions.filter(|c| c.status != "True").find_map(|c| c.message.clone());
    ObservedPod {
        name: format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any()),
        phase: status.and_then(|s| s.phase.clone()).unwrap_or_else(|| "none".to_owned()),
        says: says.unwrap_or_default(),
    }
}

fn seen_node(node: &Node) -> ObservedNode {
    let conditions = node.status.as_ref().and_then(|s| s.conditions.as_ref()).into_iter().flatten();
    // All other conditions report problems, which exist unless the status is False.
    let wrong = conditions.filter(|c| c.status != if c.type_ == "Ready" { "True" } else { "False" });
    ObservedNode {
        name: node.name_any(),
        taints: taints(node),
        conditions: wrong
            .map(|c| {
                let (reason, message) =
                    (c.reason.as_deref().unwrap_or(""), c.message.as_deref().unwrap_or(""));
                format!("{}={} ({reason}): {message}", c.type_, c.status)
            })
            .collect(),
        addresses: addresses(node).into_iter().map(|(kind, address)| format!("{kind} {address}")).collect(),
    }
}

impl CheckCx {
    /// The boot of a cold cluster.
    pub fn boot(&self, cold: &Cold) -> BootOf<'_> {
        let still = self.limits().boot_stands_still();
        let deadlock = Deadlock::of(self.expected_boot(cold).as_ref(), still, Instant::now());
        let nodes = cold.nodes.iter().map(|name| self.real_node(name)).collect();
        BootOf { cx: self, nodes, deadlock: RefCell::new(deadlock) }
    }

    /// Waits until all real Nodes are initialised: no taint, a providerID, and an address besides the host name.
    ///
    /// # Errors
    /// [`CheckError::Violation`] after B-BOOT, with the Nodes and what the scheduler reports about the CCM's Pods; sooner
    /// if nothing changes any more and the boot model says that nothing can.
    pub async fn all_initialised(&self, cold: &Cold) -> Verdict {
        let all = all_initialised(Pods::Run);
        let boot = self.boot(cold);
        let outcome = boot.becomes(all).within(self.limits().boot()).await;
        self.explained(cold, outcome)
    }

    /// Like [`CheckCx::all_initialised`], after something that the CCM needs was unavailable for this long. The CCM may
    /// have exited because of that any number of times.
    ///
    /// # Errors
    /// [`CheckError::Violation`] after the longest back-off of a kubelet, and B-BOOT.
    pub async fn all_initialised_after(&self, cold: &Cold, away: Duration, what: &str) -> Verdict {
        let all = all_initialised(Pods::MayCrash);
        let boot = self.boot(cold);
        let limit = self.limits().restart_after(away) + self.limits().boot();
        let outcome = boot.becomes(all).within(limit).when(format!("once {what} is there")).await;
        self.explained(cold, outcome)
    }

    /// The uids of the running Pods of the CCM as shipped.
    pub fn pods_that_run(&self) -> BTreeSet<String> {
        let pods = self.session.ccm().pods(Form::AsShipped);
        pods.iter().filter(|pod| is_running(pod)).filter_map(|pod| pod.uid()).collect()
    }

    fn explained(&self, cold: &Cold, outcome: Verdict) -> Verdict {
        outcome.map_err(|stop| match stop {
            CheckError::Violation(mut violation) => {
                violation.explained = self.boot_explained(cold);
                CheckError::Violation(violation)
            }
            other => other,
        })
    }

    /// Puts the uninitialized taint back on every Node, so that the CCM has to initialise it again (contract ENV-08).
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn all_tainted_again(&self, cold: &Cold) -> Verdict {
        for name in &cold.nodes {
            self.real_node(name).retaint().await?;
        }
        Ok(())
    }

    /// Sets the condition `NetworkUnavailable` on all Nodes, as a cloud with routes does: it is cleared only when there
    /// is a route to the Node. Undone when the check ends.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn networks_are_unavailable(&self, cold: &mut Cold) -> Verdict {
        cold.circumstances.routes = true;
        for name in &cold.nodes {
            self.on_end(Undo::Unavailable(name.clone()));
            self.real_node(name).says_network_is_unavailable("True").await?;
        }
        Ok(())
    }

    pub(super) async fn undo_unavailable(&self, node: &str) -> Result<(), String> {
        let repaired = self.real_node(node).says_network_is_unavailable("False").await;
        repaired.map_err(CheckError::in_words)
    }

    /// The boot model's result for the manifests on this cluster.
    fn expected_boot(&self, cold: &Cold) -> Option<Expectation> {
        let plan = self.session.plan();
        expectation(&plan.profile, plan.cluster.desired(), &[cold.circumstances])?.ok()
    }

    /// The boot model's result for the manifests, and the observed state of Pods and Nodes.
    fn boot_explained(&self, cold: &Cold) -> Option<String> {
        let expectation = self.expected_boot(cold)?;
        let pods = self.session.ccm().pods(Form::AsShipped).iter().map(|pod| seen_pod(pod)).collect();
        let nodes = &self.session.world().nodes;
        let nodes =
            cold.nodes.iter().filter_map(|name| nodes.find("", name)).map(|n| seen_node(&n)).collect();
        Some(expectation.explain_with(&bootstrap::Observed { pods, nodes }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_that_took_the_place_of_one_is_none_that_stayed() {
        let pod = |uid: &str, deleted: bool| {
            let at = deleted.then_some("2026-01-01T00:00:00Z");
            let status = json!({"containerStatuses": [{"name": "c", "image": "i", "imageID": "", "ready": true,
                "restartCount": 0, "state": {"running": {}}}]});
            let pod =
                json!({"metadata": {"name": "p", "uid": uid, "deletionTimestamp": at}, "status": status});
            Arc::new(serde_json::from_value::<Pod>(pod).expect("a Pod"))
        };
        let seen = |pods| still_runs(BTreeSet::from(["1".to_owned()])).matches(&Boot::of_pods(pods));
        assert_eq!(seen(vec![pod("1", false), pod("2", false)]), Observation::Matched(()));
        for pods in [vec![pod("1", true), pod("2", false)], vec![pod("2", false)], vec![]] {
            assert!(matches!(seen(pods), Observation::Impossible(_)));
        }
    }
}
