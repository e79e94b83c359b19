//! The Kubernetes versions of the cluster's own parts: the control plane and the kubelets of real machines move to newer ones,
//! as administrators do it (contract UPG-13).

use super::undo_steps::Undo;
use super::{CheckCx, Node, Ready, Subject};
use harness_clusters::{KubeletOp, Operation, Part};
use harness_core::check::{CheckError, Verdict, chain};
use harness_core::probe::{Matcher, Observation, Observed, ReadError, ReadSource, matcher, poll, present};
use harness_session::ccm::Form;
use harness_session::k8s::ready;
use k8s_openapi::api::core::v1::{Node as NodeObject, Pod};
use kube::ResourceExt;
use kube::api::{Api, EvictParams, ListParams};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The annotation of Pods that a kubelet runs by itself, from a file.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// How often Pods that are still there are evicted again.
const AGAIN: Duration = Duration::from_millis(200);

/// A real machine of the cluster, whose kubelet can be replaced.
///
/// ```
/// # use harness_testkit::prelude::*; use std::time::Duration; async fn check(cx: &CheckCx) -> Verdict {
/// let minor = cx.control_plane_moves_on(Duration::from_secs(2)).await?;
/// let machines: Vec<OwnMachine<'_>> = cx.own_machines();
/// for machine in machines {
///     machine.drain().await?;
///     machine.replace_kubelet(minor, Duration::from_secs(10)).await?;
///     machine.uncordon().await?;
/// }
/// # Ok(()) }
/// ```
pub struct OwnMachine<'a> {
    cx: &'a CheckCx,
    name: String,
}

/// Its Node is Ready, and its kubelet has this minor version.
fn runs_kubelet(minor: u32) -> Matcher<Option<Arc<NodeObject>>> {
    matcher("is Ready with its new kubelet", move |node: &Option<Arc<NodeObject>>| {
        let Some(node) = node else { return Observation::Pending(String::new()) };
        let is_ready = ready(node).as_deref() == Some("True");
        Observation::when(is_ready && kubelet_of(node).and_then(minor_of) == Some(minor))
    })
    .expecting(format!("Ready, with a kubelet of Kubernetes 1.{minor}"))
}

fn kubelet_of(node: &NodeObject) -> Option<&str> {
    Some(&node.status.as_ref()?.node_info.as_ref()?.kubelet_version)
}

/// The minor version of a text like `v1.36.2`.
fn minor_of(version: &str) -> Option<u32> {
    version.strip_prefix("v1.")?.split(['.', '+', '-']).next()?.parse().ok()
}

/// Whether `kubectl drain --ignore-daemonsets` evicts this Pod.
fn is_drained(pod: &Pod) -> bool {
    let of_a_daemon_set = pod.owner_references().iter().any(|owner| owner.kind == "DaemonSet");
    !of_a_daemon_set && !pod.annotations().contains_key(MIRROR)
}

impl<'a> OwnMachine<'a> {
    /// The name of its Node.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its Node.
    pub fn node(&self) -> Node<'a> {
        self.cx.real_node(&self.name)
    }

    /// Whether a Pod of the CCM as shipped is placed there.
    pub fn has_the_ccm(&self) -> bool {
        let pods = self.cx.session.ccm().pods(Form::AsShipped);
        let places = pods.iter().filter_map(|pod| pod.spec.as_ref()?.node_name.as_deref());
        places.into_iter().any(|place| place == self.name)
    }

    /// Cordons its Node and evicts the Pods that it has then, except those of DaemonSets, as `kubectl drain` does; returns
    /// when they are gone.
    ///
    /// # Errors
    /// [`CheckError::Error`] when Pods stay, with what the API server answered.
    pub async fn drain(&self) -> Verdict {
        self.cx.on_end(Undo::Cordon(self.name.clone()));
        self.node().patch(&json!({"spec": {"unschedulable": true}})).await?;
        let pods: Api<Pod> = Api::all(self.cx.client.clone());
        let here = ListParams::default().fields(&format!("spec.nodeName={}", self.name));
        let passing = |error: kube::Error| ReadError::passing(chain(&error));
        let there = pods.list(&here).await?.items;
        let evicted: BTreeSet<Option<String>> =
            there.iter().filter(|pod| is_drained(pod)).map(|pod| pod.uid()).collect();
        let gone = async |seen: &mut String| {
            let mut left: Vec<Pod> = pods.list(&here).await.map_err(passing)?.items;
            // A Pod that tolerates everything may be placed there again.
            left.retain(|pod| evicted.contains(&pod.uid()));
            *seen = left.iter().map(ResourceExt::name_any).collect::<Vec<_>>().join(", ");
            for pod in left.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
                let namespaced: Api<Pod> =
                    Api::namespaced(self.cx.client.clone(), &pod.namespace().unwrap_or_default());
                match namespaced.evict(&pod.name_any(), &EvictParams::default()).await {
                    // A disruption budget protects it for now, or it has gone meanwhile.
                    Err(kube::Error::Api(status)) if [404, 429].contains(&status.code) => {
                        *seen = format!("Pod {}: {}", pod.name_any(), status.message);
                    }
                    other => drop(other.map_err(passing)?),
                }
            }
            Ok(left.is_empty().then_some(()))
        };
        let what = format!("no Pod on {} that 'kubectl drain --ignore-daemonsets' evicts", self.name);
        poll(&what, 2 * self.cx.limits().start(), AGAIN, gone).await?;
        Ok(())
    }

    /// Stops its kubelet for `away`, and starts one of this minor version of Kubernetes. Its Node is not Ready meanwhile.
    /// Returns when it is Ready again.
    ///
    /// # Errors
    /// When the Node is deleted meanwhile; [`CheckError::Error`] when the cluster cannot do it, or the new kubelet does not
    /// come up.
    pub async fn replace_kubelet(&self, minor: u32, away: Duration) -> Verdict {
        let machine = self.cx.session.machines().iter().find(|machine| machine.name == self.name);
        let machine = machine.ok_or_else(|| CheckError::Error(format!("no machine {}", self.name)))?;
        let cluster = self.cx.session.cluster();
        cluster.operate(Operation::Kubelet { machine, op: KubeletOp::Stop }).await?;
        // As the controller of Node health does once a kubelet is silent for 50 s.
        self.node().set_ready(Ready::Unknown).await?;
        self.node().keeps(present()).within(away).when("while its kubelet is replaced").await?;
        cluster.operate(Operation::Upgrade { part: Part::Kubelet(machine), minor }).await?;
        let node = self.node();
        let is_ready = async |seen: &mut String| {
            let snapshot = node.read(ReadSource::Origin).await?;
            *seen = snapshot.observed();
            Ok::<_, ReadError>(
                (runs_kubelet(minor).matches(&snapshot) == Observation::Matched(())).then_some(()),
            )
        };
        // A kubelet that does not come up says nothing about the CCM.
        let what = format!("Node {} is Ready with a kubelet of Kubernetes 1.{minor}", self.name);
        poll(&what, 3 * self.cx.limits().start(), AGAIN, is_ready).await?;
        Ok(())
    }

    /// Makes its Node accept new Pods again, as `kubectl uncordon` does.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn uncordon(&self) -> Verdict {
        self.cx.is_undone(&Undo::Cordon(self.name.clone()));
        self.node().patch(&json!({"spec": {"unschedulable": null}})).await
    }
}

impl CheckCx {
    /// The real machines of the cluster, those of the control plane first.
    pub fn own_machines(&self) -> Vec<OwnMachine<'_>> {
        let mut machines: Vec<_> = self.session.machines().iter().collect();
        machines.sort_by_key(|machine| machine.role != harness_clusters::Role::ControlPlane);
        let own = |machine: &harness_clusters::Machine| OwnMachine { cx: self, name: machine.name.clone() };
        machines.into_iter().map(own).collect()
    }

    /// The minor version of Kubernetes that the API server has now.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn served_minor(&self) -> Result<u32, CheckError> {
        let version = self.client.apiserver_version().await?.git_version;
        minor_of(&version)
            .ok_or_else(|| CheckError::Error(format!("the API server reports the version '{version}'")))
    }

    /// Moves the control plane to the next minor version, and returns that version. The CCM cannot reach the API server
    /// meanwhile, which takes a real one about half a minute, and a simulated one as long as `away`.
    ///
    /// # Errors
    /// When the cluster cannot do it.
    pub async fn control_plane_moves_on(&self, away: Duration) -> Result<u32, CheckError> {
        let minor = self.served_minor().await? + 1;
        let operation = Operation::Upgrade { part: Part::ControlPlane { away }, minor };
        self.session.through_absence(self.session.cluster().operate(operation)).await?;
        let now = self.served_minor().await?;
        if now != minor {
            return Err(CheckError::Error(format!(
                "the API server was moved to Kubernetes 1.{minor} and reports 1.{now}"
            )));
        }
        Ok(minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn minor_versions_are_read() {
        assert_eq!(minor_of("v1.36.2"), Some(36));
        assert_eq!(minor_of("v1.28-gke.1"), Some(28));
        assert_eq!(minor_of("v1.20.2+k3s1"), Some(20));
        assert_eq!((minor_of("1.36"), minor_of("v2.1.0"), minor_of("")), (None, None, None));
    }

    #[test]
    fn drain_leaves_daemon_sets_and_static_pods() {
        let pod = |metadata: Value| -> Pod {
            serde_json::from_value(json!({"metadata": metadata})).expect("a Pod")
        };
        let owned = |kind: &str| json!({"ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "u"}]});
        assert!(is_drained(&pod(json!({}))));
        assert!(is_drained(&pod(owned("ReplicaSet"))));
        assert!(!is_drained(&pod(owned("DaemonSet"))));
        assert!(!is_drained(&pod(json!({"annotations": {(MIRROR): "x"}}))));
    }

    #[test]
    fn a_node_is_done_when_it_is_ready_with_the_new_kubelet() {
        let seen = |version: &str, ready: &str| {
            let node = json!({"metadata": {"name": "n"}, "status": {
                "conditions": [{"type": "Ready", "status": ready}],
                "nodeInfo": {"kubeletVersion": version, "architecture": "", "bootID": "", "containerRuntimeVersion": "",
                    "kernelVersion": "", "kubeProxyVersion": "", "machineID": "", "operatingSystem": "", "osImage": "",
                    "systemUUID": ""}}});
            let node: NodeObject = serde_json::from_value(node).expect("a Node");
            runs_kubelet(36).matches(&Some(Arc::new(node)))
        };
        assert_eq!(seen("v1.36.2", "True"), Observation::Matched(()));
        assert_eq!(seen("v1.35.0", "True"), Observation::when(false));
        assert_eq!(seen("v1.36.2", "Unknown"), Observation::when(false));
    }
}
