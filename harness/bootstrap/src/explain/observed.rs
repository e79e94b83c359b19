//! What was observed on a cluster, next to the model's explanation.

use super::explanation::Explanation;
use serde::{Deserialize, Serialize};

/// What was observed on a cluster that did not boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// Pods that do not run.
    pub pods: Vec<ObservedPod>,
    /// The Nodes.
    pub nodes: Vec<ObservedNode>,
}

/// A Pod, or a workload without Pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedPod {
    /// `namespace/name`.
    pub name: String,
    /// Its phase, or `none` if no Pod was created.
    pub phase: String,
    /// What the scheduler or the kubelet reports about it.
    pub says: String,
}

/// A Node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedNode {
    /// Its name.
    pub name: String,
    /// Its taints, as `key=value:effect`.
    pub taints: Vec<String>,
    /// Conditions that do not have their expected status, as `Ready=False (KubeletNotReady): message`.
    pub conditions: Vec<String>,
    /// Its addresses, as `InternalIP 172.18.0.2`.
    pub addresses: Vec<String>,
}

impl Explanation {
    /// The explanation, followed by the observations.
    pub fn with_observed(&self, observed: &Observed) -> String {
        let mut text = format!("expected from the manifests:\n{}", indented(&self.to_text()));
        text.push_str("observed:\n");
        text.push_str(&indented(&observed.to_text()));
        text
    }
}

impl Observed {
    /// The observations, one per line.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for pod in &self.pods {
            let says = if pod.says.is_empty() { String::new() } else { format!(": {}", pod.says) };
            text.push_str(&format!("Pod {} is {}{says}\n", pod.name, pod.phase));
        }
        for node in &self.nodes {
            let list = |items: &[String]| match items {
                [] => String::from("none"),
                items => items.join(", "),
            };
            let taints = list(&node.taints);
            text.push_str(&format!(
                "Node {} has the taints {taints}; addresses: {}\n",
                node.name,
                list(&node.addresses)
            ));
            for condition in &node.conditions {
                text.push_str(&format!("  {condition}\n"));
            }
        }
        if text.is_empty() {
            text.push_str("nothing\n");
        }
        text
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}
