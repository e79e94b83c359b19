//! Whether a cluster boots, by what can be seen of it: its Nodes, Pods and a canary.

use crate::k8s::{T_UNINIT, World, addresses, has_taint, provider_id, ready, taints};
use crate::probe::poll;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use std::time::Duration;
use tokio::time::Instant;

/// Where the canary is, and its name.
pub(super) const CANARY: (&str, &str) = ("default", "canary");

/// How long one look is from the next.
const INTERVAL: Duration = Duration::from_millis(100);

/// How long is waited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// With nothing changing for so long the boot is over.
    pub(super) quiet: Duration,
    /// Longer than this no boot takes.
    pub(super) longest: Duration,
}

/// What makes a boot.
#[derive(Clone, Debug)]
pub(super) struct Goal {
    /// The Nodes.
    pub(super) nodes: Vec<String>,
    /// Whether every one of them becomes Ready: there is a pod network.
    pub(super) ready: bool,
    /// Whether an ordinary Pod runs: some Node is Ready and free of taints that nobody removes.
    pub(super) canary: bool,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Everything of the goal is there.
    Booted,
    /// Nothing changes any more, and this is missing.
    Stuck(String),
}

/// All that a boot moves. Restarts of containers are left out: who starts again and again gets no further.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Facts {
    nodes: Vec<NodeFacts>,
    pods: Vec<PodFacts>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct NodeFacts {
    name: String,
    taints: Vec<String>,
    initialised: bool,
    addressed: bool,
    ready: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct PodFacts {
    name: String,
    uid: String,
    node: Option<String>,
    /// Whether any container has ever run.
    started: bool,
}

fn node_facts(node: &Node) -> NodeFacts {
    let usable = |(kind, _): &(String, String)| kind == "InternalIP" || kind == "ExternalIP";
    NodeFacts {
        name: node.name_any(),
        taints: taints(node),
        initialised: !has_taint(node, T_UNINIT) && provider_id(node).is_some(),
        addressed: addresses(node).iter().any(usable),
        ready: ready(node).as_deref() == Some("True"),
    }
}

fn pod_facts(pod: &Pod) -> PodFacts {
    let containers = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    let started = containers.into_iter().flatten().any(|container| {
        let state = container.state.as_ref();
        container.restart_count > 0 || state.is_some_and(|s| s.running.is_some() || s.terminated.is_some())
    });
    PodFacts {
        name: format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any()),
        uid: pod.uid().unwrap_or_default(),
        node: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
        started,
    }
}

impl Facts {
    fn of(world: &World, goal: &Goal) -> Facts {
        let mut nodes: Vec<NodeFacts> = world.nodes.all().iter().map(|node| node_facts(node)).collect();
        nodes.retain(|node| goal.nodes.contains(&node.name));
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        let mut pods: Vec<PodFacts> = world.pods.all().iter().map(|pod| pod_facts(pod)).collect();
        pods.sort_by(|a, b| a.name.cmp(&b.name));
        Facts { nodes, pods }
    }

    /// What of the goal is not there yet.
    fn missing(&self, goal: &Goal) -> Vec<String> {
        let mut missing = Vec::new();
        for name in &goal.nodes {
            let Some(node) = self.nodes.iter().find(|node| node.name == *name) else {
                missing.push(format!("Node {name} is not there"));
                continue;
            };
            let lacks = [
                (!node.initialised, "initialisation"),
                (!node.addressed, "an address"),
                (goal.ready && !node.ready, "readiness"),
            ];
            let lacking: Vec<&str> = lacks.iter().filter_map(|(lacks, what)| lacks.then_some(*what)).collect();
            if !lacking.is_empty() {
                missing.push(format!("Node {name} lacks {} ({})", lacking.join(", "), node.taints.join(", ")));
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
            (None, _) => format!("{} is on no Node", pod.name),
            (Some(node), false) => format!("{} on {node} has not started", pod.name),
            (Some(node), true) => format!("{} on {node} has started", pod.name),
        };
        let places: Vec<String> = self.pods.iter().map(place).collect();
        if places.is_empty() { "there is no Pod".to_owned() } else { places.join(", ") }
    }
}

/// Looks on until the cluster has booted, or nothing moves any more.
///
/// # Errors
/// It goes on and on.
pub(super) async fn settle(world: &World, goal: &Goal, patience: Patience) -> Result<End, String> {
    let mut last: Option<(Facts, Instant)> = None;
    let look = async |seen: &mut String| {
        let facts = Facts::of(world, goal);
        let missing = facts.missing(goal);
        if missing.is_empty() {
            return Ok(Some(End::Booted));
        }
        *seen = format!("{}; {}", missing.join("; "), facts.places());
        let now = Instant::now();
        match &last {
            Some((known, since)) if *known == facts => {
                Ok((now - *since >= patience.quiet).then(|| End::Stuck(seen.clone())))
            }
            _ => {
                last = Some((facts, now));
                Ok(None)
            }
        }
    };
    let what = "a boot, or an end to all changes,";
    poll(what, patience.longest, INTERVAL, look).await.map_err(|error| error.text)
}
