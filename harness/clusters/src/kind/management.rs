//! A management cluster of kind: its machine gets its pod network, and is ready for Pods before the cluster is used.

use super::access::KindMachines;
use super::exec::{Stdin, exec_ok};
use crate::error::ClusterError;
use crate::operation::PodNetwork;
use crate::record::Machine;
use harness_core::check::chain;
use harness_core::probe::{ReadError, poll};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long the machine's Node may take for each step.
const LIMIT: Duration = Duration::from_secs(120);
/// Time limit for one query.
const ASKED: Duration = Duration::from_secs(20);
const AGAIN: Duration = Duration::from_millis(200);
/// A query for the pod CIDRs of a Node.
const POD_CIDRS: &str = "{.spec.podCIDRs[*]}";
/// A query for whether a Node is Ready, and the keys of its remaining taints.
const STANDING: &str = "{.status.conditions[?(@.type=='Ready')].status} {.spec.taints[*].key}";

/// Sets up the pod network, and waits until all Nodes are Ready without startup taints.
///
/// # Errors
/// A Node gets no pod CIDR, or does not become Ready.
pub(super) async fn ready(cluster: &KindMachines) -> Result<(), ClusterError> {
    let mut networks = BTreeMap::new();
    for machine in &cluster.machines {
        let what = format!("a pod CIDR on Node {} of the management cluster", machine.name);
        let given = |said: &str| !said.is_empty();
        let cidrs = answer_once(cluster, machine, POD_CIDRS, &what, given).await?;
        networks.insert(machine.name.clone(), cidrs.split_whitespace().map(str::to_owned).collect());
    }
    cluster.set_pod_network(&PodNetwork::Present(networks)).await?;
    for machine in &cluster.machines {
        let what = format!("Node {} of the management cluster is Ready", machine.name);
        answer_once(cluster, machine, STANDING, &what, takes_pods).await?;
    }
    Ok(())
}

/// Whether a Node in this state accepts Pods.
fn takes_pods(standing: &str) -> bool {
    let mut words = standing.split_whitespace();
    words.next() == Some("True") && !words.any(|key| key.starts_with("node.kubernetes.io/"))
}

/// The answer for the machine's Node, once it is `enough`.
async fn answer_once(
    cluster: &KindMachines,
    machine: &Machine,
    path: &str,
    what: &str,
    enough: impl Fn(&str) -> bool,
) -> Result<String, ClusterError> {
    let path = format!("jsonpath={path}");
    let ask = [
        "kubectl",
        "--kubeconfig=/etc/kubernetes/admin.conf",
        "get",
        "node",
        machine.name.as_str(),
        "-o",
        path.as_str(),
    ];
    let read = async |seen: &mut String| {
        let said = exec_ok(&cluster.engine, machine, &ask, Stdin::Empty, ASKED).await;
        let said = said.map_err(|error| ReadError::passing(chain(&error)))?;
        *seen = said.stdout.trim().to_owned();
        Ok(enough(seen).then(|| seen.clone()))
    };
    poll(what, LIMIT, AGAIN, read).await.map_err(|error| ClusterError::TimedOut {
        what: what.to_owned(),
        limit: LIMIT,
        seen: error.text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_takes_pods_when_it_is_ready_and_nothing_of_its_start_is_left() {
        assert!(takes_pods("True"));
        assert!(takes_pods("True node-role.kubernetes.io/control-plane"));
        for not_yet in
            ["", "False node.kubernetes.io/not-ready", "True node.kubernetes.io/not-ready", "Unknown"]
        {
            assert!(!takes_pods(not_yet), "{not_yet}");
        }
    }
}
