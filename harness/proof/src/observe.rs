//! Observes whether a cluster boots: its Nodes, its Pods and a canary.

use bootstrap::Outcome;
use harness_core::check::chain;
use harness_core::probe::{ReadError, poll};
use harness_session::ccm::CcmError;
use harness_session::k8s::{ClusterCaches, T_UNINIT, addresses, has_taint, provider_id, ready, taints};
use k8s_openapi::api::core::v1::{Node, Pod, ServiceAccount};
use kube::api::{Api, DeleteParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

/// The namespace and name of the canary.
pub(super) const CANARY: (&str, &str) = ("default", "canary");

/// Interval between two looks.
pub(super) const INTERVAL: Duration = Duration::from_millis(100);

/// How long something that must exist before the boot may take.
pub(super) const SOON: Duration = Duration::from_secs(30);

/// A cluster without changes for this long is not busy.
const CALM: Duration = Duration::from_secs(4);

/// How long to wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// When nothing has changed for this long, the boot is over.
    pub(super) quiet: Duration,
    /// No boot takes longer than this.
    pub(super) longest: Duration,
}

/// The goal of a boot.
#[derive(Clone, Debug)]
pub(super) struct Goal {
    /// The Nodes.
    pub(super) nodes: Vec<String>,
    /// Whether all of them become Ready, because there is a pod network.
    pub(super) ready: bool,
    /// Whether an ordinary Pod runs: some Node is Ready and has no permanent taints.
    pub(super) canary: bool,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The goal is reached.
    Booted,
    /// Nothing changes any more, and this is missing.
    Stuck(String),
}

/// Everything that a boot changes. Restarts of containers, and replacements of a Pod by another of the same owner, do not
/// count: repeated starts or replacements are not progress.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Facts {
    nodes: Vec<NodeFacts>,
    pods: BTreeSet<PodFacts>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct NodeFacts {
    name: String,
    taints: Vec<String>,
    initialised: bool,
    addressed: bool,
    ready: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PodFacts {
    /// Its owner's name, or its own.
    name: String,
    node: Option<String>,
    /// Whether any container has ever run.
    started: bool,
}

/// Whether the Node has an address besides its host name.
pub(super) fn is_addressed(node: &Node) -> bool {
    let usable = |(kind, _): &(String, String)| kind == "InternalIP" || kind == "ExternalIP";
    addresses(node).iter().any(usable)
}

/// Whether a container of the Pod runs.
pub(super) fn runs(pod: &Pod) -> bool {
    let containers = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    containers.into_iter().flatten().any(|c| c.state.as_ref().is_some_and(|state| state.running.is_some()))
}

/// Creates a Pod without special requirements: no toleration, no host network.
///
/// # Errors
/// What the API server refuses.
pub(super) async fn create_canary(client: &Client, image: &str) -> Result<(), String> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), CANARY.0);
    let made = async |_: &mut String| {
        accounts.get_opt("default").await.map_err(|error| ReadError::passing(chain(&error)))
    };
    poll("the service account 'default'", SOON, INTERVAL, made).await.map_err(|error| error.text)?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), CANARY.0);
    let pod = ordinary(CANARY.1, image)?;
    pods.create(&PostParams::default(), &pod).await.map_err(|error| chain(&error))?;
    Ok(())
}

/// Removes the Pod of [`create_canary`]; does not wait until it is gone.
///
/// # Errors
/// What the API server refuses.
pub(super) async fn remove_canary(client: &Client) -> Result<(), String> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), CANARY.0);
    match pods.delete(CANARY.1, &DeleteParams::default().grace_period(0)).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other.map(drop).map_err(|error| format!("the canary: {}", chain(&error))),
    }
}

fn ordinary(name: &str, image: &str) -> Result<Pod, String> {
    let pod = json!({
        "metadata": {"name": name},
        "spec": {
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {"name": "idle", "image": image, "args": ["idle"], "imagePullPolicy": "IfNotPresent"},
            ],
        },
    });
    serde_json::from_value(pod).map_err(|error| format!("the manifest of a Pod: {error}"))
}

/// The end of a boot after which ordinary Pods must be possible: they have to be admitted, too. The canary is older than
/// the webhooks and policies of the manifests.
///
/// # Errors
/// The manifest of the Pod cannot be made.
pub(super) async fn with_admission(client: &Client, goal: &Goal, end: End) -> Result<End, String> {
    if end != End::Booted || !goal.canary {
        return Ok(end);
    }
    let pods: Api<Pod> = Api::namespaced(client.clone(), CANARY.0);
    let pod = ordinary("ordinary", "ordinary")?;
    let dry = PostParams { dry_run: true, field_manager: None };
    let admitted = async |seen: &mut String| match pods.create(&dry, &pod).await {
        Ok(_) => Ok(Some(())),
        Err(error) => {
            *seen = chain(&error);
            Ok(None)
        }
    };
    match poll("the admission of an ordinary Pod", SOON, INTERVAL, admitted).await {
        Ok(()) => Ok(End::Booted),
        Err(error) => Ok(End::Stuck(format!("ordinary Pods are refused: {}", error.text))),
    }
}

fn node_facts(node: &Node) -> NodeFacts {
    NodeFacts {
        name: node.name_any(),
        taints: taints(node),
        initialised: !has_taint(node, T_UNINIT) && provider_id(node).is_some(),
        addressed: is_addressed(node),
        ready: ready(node).as_deref() == Some("True"),
    }
}

fn pod_facts(pod: &Pod) -> PodFacts {
    let containers = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    let started = containers.into_iter().flatten().any(|container| {
        let state = container.state.as_ref();
        container.restart_count > 0 || state.is_some_and(|s| s.running.is_some() || s.terminated.is_some())
    });
    let owner = pod.owner_references().iter().find(|owner| owner.controller == Some(true));
    let name = owner.map_or_else(|| pod.name_any(), |owner| owner.name.clone());
    PodFacts {
        name: format!("{}/{name}", pod.namespace().unwrap_or_default()),
        node: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
        started,
    }
}

impl Facts {
    fn of(world: &ClusterCaches, goal: &Goal) -> Facts {
        let mut nodes: Vec<NodeFacts> = world.nodes.all().iter().map(|node| node_facts(node)).collect();
        nodes.retain(|node| goal.nodes.contains(&node.name));
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        let pods = world.pods.all().iter().map(|pod| pod_facts(pod)).collect();
        Facts { nodes, pods }
    }

    /// The part of the goal that is not reached yet.
    fn missing(&self, goal: &Goal) -> Vec<String> {
        let mut missing = Vec::new();
        for name in &goal.nodes {
            let Some(node) = self.nodes.iter().find(|node| node.name == *name) else {
                missing.push(format!("Node {name} does not exist"));
                continue;
            };
            let lacks = [
                (!node.initialised, "initialisation"),
                (!node.addressed, "an address"),
                (goal.ready && !node.ready, "readiness"),
            ];
            let lacking: Vec<&str> =
                lacks.iter().filter_map(|(lacks, what)| lacks.then_some(*what)).collect();
            if !lacking.is_empty() {
                missing.push(format!(
                    "Node {name} lacks {} ({})",
                    lacking.join(", "),
                    node.taints.join(", ")
                ));
            }
        }
        let canary = format!("{}/{}", CANARY.0, CANARY.1);
        if goal.canary && !self.pods.iter().any(|pod| pod.name == canary && pod.started) {
            missing.push("an ordinary Pod does not run".to_owned());
        }
        missing
    }

    fn places(&self) -> String {
        let place = |pod: &PodFacts| match (&pod.node, pod.started) {
            (None, _) => format!("{} is not on a Node", pod.name),
            (Some(node), false) => format!("{} on {node} has not started", pod.name),
            (Some(node), true) => format!("{} on {node} has started", pod.name),
        };
        let places: Vec<String> = self.pods.iter().map(place).collect();
        if places.is_empty() { "there is no Pod".to_owned() } else { places.join(", ") }
    }
}

/// The result with what the API server refused, which probably explains it.
pub(super) fn with_refusals(end: End, refusals: &[CcmError]) -> End {
    match end {
        End::Stuck(why) if !refusals.is_empty() => {
            let refused: Vec<String> = refusals.iter().map(|error| chain(error)).collect();
            End::Stuck(format!("{}; {why}", refused.join("; ")))
        }
        end => end,
    }
}

/// Watches until the cluster has booted, or nothing changes any more. `turn` is released as soon as the cluster is calm:
/// waiting clusters do not slow down others.
///
/// # Errors
/// It never stops changing.
pub(super) async fn settle(
    world: &ClusterCaches,
    goal: &Goal,
    patience: Patience,
    turn: Option<OwnedSemaphorePermit>,
) -> Result<End, String> {
    let mut turn = turn;
    let mut calm = Calm::default();
    let mut seen_pods = BTreeSet::new();
    let look = async |seen: &mut String| {
        let facts = Facts::of(world, goal);
        let missing = facts.missing(goal);
        if missing.is_empty() {
            return Ok(Some(End::Booted));
        }
        *seen = format!("{}; {}", missing.join("; "), facts.places());
        // Pods that are replaced endlessly come and go: only something new is a change.
        let now = Facts { pods: seen_pods.union(&facts.pods).cloned().collect(), nodes: facts.nodes };
        seen_pods.clone_from(&now.pods);
        let quiet = calm.after(now, Instant::now());
        if quiet >= CALM {
            turn = None;
        }
        Ok((quiet >= patience.quiet).then(|| End::Stuck(seen.clone())))
    };
    let what = "a boot, or an end to all changes,";
    poll(what, patience.longest, INTERVAL, look).await.map_err(|error| error.text)
}

/// How long nothing has changed.
#[derive(Debug, Default)]
struct Calm {
    facts: Option<Facts>,
    looked: Option<Instant>,
    lasted: Duration,
}

impl Calm {
    /// Takes the current observation. Time in which this machine could not look does not count: it had no time for the
    /// cluster either.
    fn after(&mut self, facts: Facts, now: Instant) -> Duration {
        let since = self.looked.map_or(Duration::ZERO, |looked| now - looked);
        self.looked = Some(now);
        if self.facts.as_ref() == Some(&facts) {
            self.lasted += since.min(INTERVAL * 2);
        } else {
            self.facts = Some(facts);
            self.lasted = Duration::ZERO;
        }
        self.lasted
    }
}

/// Waits until the Pods of these workloads are on Nodes, if they get that far.
pub(super) async fn placed(world: &ClusterCaches, workloads: &[Value]) {
    let names: Vec<&str> = workloads.iter().filter_map(|w| w["metadata"]["name"].as_str()).collect();
    let all = async |_: &mut String| {
        let pods = world.pods.all();
        let bound = |name: &&&str| {
            pods.iter().any(|pod| {
                let own = pod.metadata.name.as_ref().is_some_and(|own| own.starts_with(**name));
                own && pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())
            })
        };
        Ok((names.iter().filter(bound).count() == names.len()).then_some(()))
    };
    // Those that find no Node still come second: that is the order.
    let _ = poll("Pods on Nodes", Duration::from_secs(5), INTERVAL, all).await;
}

/// The combined result of several orders of one boot, and what was missing in one that did not boot.
pub(super) fn outcome(ends: &[End]) -> (Outcome, Option<String>) {
    let stuck = ends.iter().find_map(|end| match end {
        End::Booted => None,
        End::Stuck(missing) => Some(missing.clone()),
    });
    let outcome = match (&stuck, ends.contains(&End::Booted)) {
        (None, _) => Outcome::Boots,
        (Some(_), true) => Outcome::SomeOrders,
        (Some(_), false) => Outcome::Deadlock,
    };
    (outcome, stuck)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goal(canary: bool) -> Goal {
        Goal { nodes: vec!["a".to_owned()], ready: true, canary }
    }

    fn facts(initialised: bool, canary: Option<bool>) -> Facts {
        let name = "a".to_owned();
        let pod = |started| PodFacts {
            name: format!("{}/{}", CANARY.0, CANARY.1),
            node: Some("a".to_owned()),
            started,
        };
        Facts {
            nodes: vec![NodeFacts { name, taints: Vec::new(), initialised, addressed: true, ready: true }],
            pods: canary.into_iter().map(pod).collect(),
        }
    }

    #[test]
    fn a_boot_is_every_node_and_the_canary_where_one_is_promised() {
        assert!(facts(true, Some(true)).missing(&goal(true)).is_empty());
        assert!(facts(true, Some(false)).missing(&goal(false)).is_empty());
        assert_eq!(facts(true, Some(false)).missing(&goal(true)), ["an ordinary Pod does not run"]);
        assert_eq!(facts(true, None).missing(&goal(true)).len(), 1);
        assert_eq!(facts(false, Some(true)).missing(&goal(true)), ["Node a lacks initialisation ()"]);
        let absent = Facts { nodes: Vec::new(), pods: BTreeSet::new() };
        assert_eq!(absent.missing(&goal(false)), ["Node a does not exist"]);
    }

    #[test]
    fn only_time_in_which_nothing_was_seen_to_change_is_quiet() {
        let (mut calm, began) = (Calm::default(), Instant::now());
        let mut after = |facts, ms| calm.after(facts, began + Duration::from_millis(ms));
        assert_eq!(after(facts(false, None), 0), Duration::ZERO);
        assert_eq!(after(facts(false, None), 100), Duration::from_millis(100));
        assert_eq!(after(facts(false, None), 200), Duration::from_millis(200));
        assert_eq!(after(facts(false, None), 9_000), Duration::from_millis(400), "the machine was busy");
        assert_eq!(after(facts(true, None), 9_100), Duration::ZERO, "something changed");
    }

    #[test]
    fn orders_that_end_differently_are_some_orders() {
        let stuck = || End::Stuck("x".to_owned());
        assert_eq!(outcome(&[End::Booted, End::Booted]), (Outcome::Boots, None));
        assert_eq!(outcome(&[stuck(), stuck()]), (Outcome::Deadlock, Some("x".to_owned())));
        assert_eq!(outcome(&[End::Booted, stuck()]), (Outcome::SomeOrders, Some("x".to_owned())));
    }
}
