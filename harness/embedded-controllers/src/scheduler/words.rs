//! The scheduler's messages, which differ between versions. Pure functions.
//!
//! Sources: Kubernetes' `pkg/scheduler/framework/types.go` (`FitError`), the filter plugins' reasons, and the
//! changelog of 1.35 (no taint key in the message any more, #134740).

use std::collections::BTreeMap;

use embedded_runtime::settings::KubernetesVersion;

/// The reason why a Node does not take a Pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    Unschedulable,
    NodeName,
    Taint {
        key: String,
        value: String,
    },
    NodeAffinity,
    /// The Pod names another Node in a field.
    OtherNode,
    HostPorts,
    Insufficient(String),
    TooManyPods,
    /// A persistent volume claim that does not exist.
    Claim(String),
    /// The Node lacks the label of a topology spread constraint.
    SpreadLabel,
    Spread,
    PodAffinity,
    PodAntiAffinity,
    ExistingAntiAffinity,
}

impl Reason {
    /// Whether the removal of other Pods from the Node could help.
    fn preemption_may_help(&self) -> bool {
        match self {
            Reason::HostPorts
            | Reason::Insufficient(_)
            | Reason::TooManyPods
            | Reason::Spread
            | Reason::PodAntiAffinity
            | Reason::ExistingAntiAffinity => true,
            Reason::Unschedulable
            | Reason::NodeName
            | Reason::Taint { .. }
            | Reason::NodeAffinity
            | Reason::OtherNode
            | Reason::Claim(_)
            | Reason::SpreadLabel
            | Reason::PodAffinity => false,
        }
    }

    fn words(&self, version: KubernetesVersion) -> Vec<String> {
        let minor = version.minor;
        let one = |text: &str| vec![text.to_owned()];
        let affinity = if minor <= 20 {
            "node(s) didn't match Pod's node affinity"
        } else {
            "node(s) didn't match Pod's node affinity/selector"
        };
        // Until 1.21, the message had a general reason next to the specific one.
        let rules = |particular: &str| {
            let mut words = Vec::new();
            if minor <= 21 {
                words.push("node(s) didn't match pod affinity/anti-affinity rules".to_owned());
            }
            words.push(particular.to_owned());
            words
        };
        match self {
            Reason::Unschedulable => one("node(s) were unschedulable"),
            Reason::NodeName => one("node(s) didn't match the requested node name"),
            Reason::Taint { key, value } => match minor {
                ..=23 => vec![format!("node(s) had taint {{{key}: {value}}}, that the pod didn't tolerate")],
                24..=34 => vec![format!("node(s) had untolerated taint {{{key}: {value}}}")],
                35.. => one("node(s) had untolerated taint(s)"),
            },
            Reason::NodeAffinity => one(affinity),
            Reason::OtherNode if minor >= 27 => one("node(s) didn't satisfy plugin(s) [NodeAffinity]"),
            Reason::OtherNode => one(affinity),
            Reason::HostPorts => one("node(s) didn't have free ports for the requested pod ports"),
            Reason::Insufficient(resource) => vec![format!("Insufficient {resource}")],
            Reason::TooManyPods => one("Too many pods"),
            Reason::Claim(name) => vec![format!("persistentvolumeclaim {name:?} not found")],
            Reason::SpreadLabel => {
                one("node(s) didn't match pod topology spread constraints (missing required label)")
            }
            Reason::Spread => one("node(s) didn't match pod topology spread constraints"),
            Reason::PodAffinity => rules("node(s) didn't match pod affinity rules"),
            Reason::PodAntiAffinity => rules("node(s) didn't match pod anti-affinity rules"),
            Reason::ExistingAntiAffinity => rules("node(s) didn't satisfy existing pods anti-affinity rules"),
        }
    }
}

/// Whether the Pod may evict others from a Node (`preemptionPolicy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Preemption {
    LowerPriority,
    Never,
}

/// The message for a Pod that fits nowhere: `nodes` has, for each Node, the reasons why it does not take the Pod.
pub(crate) fn message(nodes: &[Vec<Reason>], preemption: Preemption, version: KubernetesVersion) -> String {
    let total = nodes.len();
    if total == 0 {
        return "no nodes available to schedule pods".to_owned();
    }
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for words in nodes.iter().flatten().flat_map(|reason| reason.words(version)) {
        *counts.entry(words).or_default() += 1;
    }
    let mut text = format!("0/{total} nodes are available: {}.", histogram(&counts));
    if version.minor < 24 {
        return text;
    }
    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    for node in nodes {
        let outcome = if node.iter().all(Reason::preemption_may_help) {
            "No preemption victims found for incoming pod"
        } else {
            "Preemption is not helpful for scheduling"
        };
        *outcomes.entry(outcome.to_owned()).or_default() += 1;
    }
    text.push(' ');
    if matches!(version.minor, 34 | 35) {
        // Dynamic resource allocation adds this for every Pod in these versions.
        text.push_str("no new claims to deallocate, ");
    }
    match preemption {
        Preemption::Never => text.push_str("preemption: not eligible due to preemptionPolicy=Never."),
        Preemption::LowerPriority => {
            text.push_str(&format!("preemption: 0/{total} nodes are available: {}.", histogram(&outcomes)));
        }
    }
    if matches!(version.minor, 27 | 28) {
        // These versions end the sentence with two full stops.
        text.push('.');
    }
    text
}

/// Formats `1 a, 2 b`, sorted as text like the scheduler does.
fn histogram(counts: &BTreeMap<String, usize>) -> String {
    let mut all: Vec<_> = counts.iter().map(|(words, count)| format!("{count} {words}")).collect();
    all.sort();
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(minor: u32, nodes: &[Vec<Reason>]) -> String {
        message(nodes, Preemption::LowerPriority, KubernetesVersion { minor, patch: 0 })
    }

    fn uninitialized() -> Vec<Reason> {
        vec![Reason::Taint {
            key: "node.cloudprovider.kubernetes.io/uninitialized".to_owned(),
            value: "true".to_owned(),
        }]
    }

    #[test]
    fn each_version_has_its_words() {
        let nodes = [uninitialized()];
        assert_eq!(
            says(36, &nodes),
            "0/1 nodes are available: 1 node(s) had untolerated taint(s). preemption: 0/1 nodes are available: \
             1 Preemption is not helpful for scheduling."
        );
        assert_eq!(
            says(34, &nodes),
            "0/1 nodes are available: 1 node(s) had untolerated taint \
             {node.cloudprovider.kubernetes.io/uninitialized: true}. no new claims to deallocate, preemption: \
             0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        );
        assert_eq!(
            says(20, &nodes),
            "0/1 nodes are available: 1 node(s) had taint {node.cloudprovider.kubernetes.io/uninitialized: true}, \
             that the pod didn't tolerate."
        );
        assert!(says(28, &nodes).ends_with("scheduling.."));
        assert_eq!(says(36, &[]), "no nodes available to schedule pods");
    }

    #[test]
    fn reasons_are_counted_over_nodes_and_sorted_as_text() {
        let nodes = [uninitialized(), vec![Reason::HostPorts], vec![Reason::HostPorts]];
        assert_eq!(
            says(36, &nodes),
            "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 node(s) didn't have free ports for the \
             requested pod ports. preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, \
             2 No preemption victims found for incoming pod."
        );
        let full = [vec![Reason::Insufficient("cpu".to_owned()), Reason::Insufficient("memory".to_owned())]];
        assert!(
            says(36, &full)
                .starts_with("0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory. ")
        );
    }
}
