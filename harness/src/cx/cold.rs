//! A cold cluster and the CCM as shipped, for bootstrap checks.

use super::deadlock::Deadlock;
use super::{CheckCx, Undo};
use crate::ccm::Form;
use crate::check::{Stop, Verdict};
use crate::k8s::{T_UNINIT, addresses, has_taint, provider_id, taints};
use crate::probe::{Observed, ReadError, Seen, holds, judge, poll};
use crate::session::{Network, expectation};
use bootstrap::{Cni, Expectation, ObservedNode, ObservedPod};
use k8s_openapi::api::core::v1::{Node, Pod, ServiceAccount};
use kube::ResourceExt;
use kube::api::{Api, PostParams};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A cluster no CCM has touched: its Nodes.
#[derive(Clone, Debug)]
pub struct Cold {
    nodes: Vec<String>,
    network: Network,
}

impl Cold {
    /// Names of the real Nodes.
    pub fn nodes(&self) -> &[String] {
        &self.nodes
    }
}

/// A Pod that wants nothing special: it runs when, and only when, its node is usable.
#[derive(Clone, Debug)]
pub struct Canary {
    namespace: String,
    name: String,
}

/// How far a boot has come, as a failure shows it.
struct Boot {
    nodes: Vec<Option<Arc<Node>>>,
    pods: Vec<Arc<Pod>>,
    /// Why it will come no further.
    stuck: Option<String>,
}

impl Observed for Boot {
    fn observed(&self) -> String {
        format!("{}; CCM Pods: {}", self.nodes.observed(), self.pods.observed())
    }
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
    // Every other condition names a trouble, which is there when it is not False.
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
    /// Takes the CCM away and makes the cluster cold, with or without a pod network. Undone when the check ends.
    ///
    /// # Errors
    /// When a node does not come back as its kubelet registers it.
    pub async fn cold_cluster(&self, network: Network) -> Result<Cold, Stop> {
        self.session.ensure_ccm(Form::Absent).await?;
        self.on_end(Undo::Cold);
        self.session
            .unless_interrupted(async { Ok(self.session.make_uninitialised(network).await?) })
            .await?;
        Ok(Cold { nodes: self.session.real_nodes(), network })
    }

    /// Applies the vendor's manifests as they are; waits for nothing.
    ///
    /// # Errors
    /// What the API server refuses.
    pub async fn apply_as_shipped(&self) -> Verdict {
        self.session.note_form(Form::AsShipped)?;
        Ok(self.session.ccm().apply(Form::AsShipped).await?)
    }

    /// Waits until every real Node is initialised: no taint, a providerID, and an address only the cloud knows.
    ///
    /// # Errors
    /// [`Stop::Unmet`] after B-BOOT, with the Nodes and what the scheduler says of the CCM's Pods; sooner when nothing
    /// moves any more and the boot model says that nothing can.
    pub async fn all_initialised(&self, cold: &Cold) -> Verdict {
        let deployed = self.session.ccm().exists();
        let still = self.limits().boot_stands_still();
        let mut deadlock = Deadlock::of(self.expected_boot(cold).as_ref(), still, Instant::now());
        let read = async || {
            let nodes: Vec<_> = cold.nodes.iter().map(|name| self.find_node(name)).collect();
            let pods = self.session.ccm().pods(Form::AsShipped);
            let seen_nodes = nodes.iter().flatten().map(|node| seen_node(node)).collect();
            let seen_pods = pods.iter().map(|pod| seen_pod(pod)).collect();
            let stuck = deadlock.after(seen_pods, seen_nodes, Instant::now());
            Ok(Boot { nodes, pods, stuck })
        };
        let expected = format!("every Node without {T_UNINIT}, with providerID and the cloud's ExternalIP");
        let all = judge(expected, move |seen: &Boot| {
            let done = |node: &Option<Arc<Node>>| {
                node.as_ref().is_some_and(|n| {
                    let external = addresses(n).iter().any(|(kind, _)| kind == "ExternalIP");
                    !has_taint(n, T_UNINIT) && provider_id(n).is_some() && external
                })
            };
            if seen.nodes.iter().all(done) {
                return Seen::Yes(());
            }
            if !deployed {
                return Seen::Never("nothing is deployed that could initialise a Node".to_owned());
            }
            match seen.pods.iter().find_map(|pod| crate::ccm::hopeless(pod)).or_else(|| seen.stuck.clone()) {
                Some(why) => Seen::Never(why),
                None => Seen::NotYet(String::new()),
            }
        });
        let promise = "every Node is initialised, with no manual step";
        let outcome = self.eventually(promise, self.limits().boot(), read, all).await;
        outcome.map_err(|stop| match stop {
            Stop::Unmet(mut unmet) => {
                unmet.explained = self.boot_explained(cold);
                Stop::Unmet(unmet)
            }
            other => other,
        })
    }

    /// What the boot model says of the manifests on this cluster.
    fn expected_boot(&self, cold: &Cold) -> Option<Expectation> {
        let cni = if cold.network == Network::Present { Cni::Independent } else { Cni::None };
        let plan = self.session.plan();
        expectation(&plan.profile, plan.cluster.desired(), &[cni])?.ok()
    }

    /// What the boot model says of the manifests, and what is seen of Pods and Nodes.
    fn boot_explained(&self, cold: &Cold) -> Option<String> {
        let expectation = self.expected_boot(cold)?;
        let pods = self.session.ccm().pods(Form::AsShipped).iter().map(|pod| seen_pod(pod)).collect();
        let nodes =
            cold.nodes.iter().filter_map(|name| self.find_node(name)).map(|n| seen_node(&n)).collect();
        Some(expectation.explain_with(&bootstrap::Observed { pods, nodes }))
    }

    /// Creates a canary Pod: no tolerations, no host network.
    ///
    /// # Errors
    /// What the API server refuses.
    pub async fn create_canary(&self) -> Result<Canary, Stop> {
        let namespace = self.namespace().await?;
        self.service_account_made(&namespace).await?;
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "canary"},
            "spec": {
                "automountServiceAccountToken": false,
                "terminationGracePeriodSeconds": 0,
                "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"},
                                {"key": "node-role.kubernetes.io/master", "operator": "Exists"}],
                "containers": [{"name": "idle", "image": self.session.state().idle_image, "args": ["idle"],
                                "imagePullPolicy": "IfNotPresent"}],
            },
        }))
        .map_err(|error| Stop::Error(format!("the canary's manifest: {error}")))?;
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &namespace);
        let created = api.create(&PostParams::default(), &pod).await?;
        Ok(Canary { namespace, name: created.name_any() })
    }

    /// Pods are refused in a namespace whose default service account the controller manager has not made yet; on a
    /// cluster that has just come up that takes some seconds.
    async fn service_account_made(&self, namespace: &str) -> Verdict {
        let api: Api<ServiceAccount> = Api::namespaced(self.client.clone(), namespace);
        let made = async |seen: &mut String| {
            *seen = "no service account 'default'".to_owned();
            let found = api.get_opt("default").await;
            found.map_err(|error| ReadError::passing(crate::check::chain(&error)))
        };
        let what = "the namespace has its default service account";
        poll(what, self.limits().start(), Duration::from_millis(100), made).await?;
        Ok(())
    }

    fn find_canary(&self, canary: &Canary) -> Option<Arc<Pod>> {
        self.session.world().pods.find(&canary.namespace, &canary.name)
    }

    /// Proves the instrument: before any CCM runs the canary cannot be scheduled.
    ///
    /// # Errors
    /// [`Stop::Error`] when it runs all the same: then the cluster is not cold.
    pub async fn canary_waits(&self, canary: &Canary) -> Verdict {
        let unschedulable = holds("the scheduler finds no node for the canary", |pod: &Option<Arc<Pod>>| {
            let status = pod.as_ref().and_then(|p| p.status.as_ref());
            let conditions = status.and_then(|s| s.conditions.as_ref());
            conditions.into_iter().flatten().any(|c| c.type_ == "PodScheduled" && c.status == "False")
        });
        let read = async || Ok(self.find_canary(canary));
        // A cluster that has just come up may still wait for its scheduler.
        let outcome =
            self.eventually("without a CCM a Pod waits", self.limits().start(), read, unschedulable).await;
        outcome.map_err(|stop| match stop {
            Stop::Unmet(unmet) => Stop::Error(format!("the cluster is not cold: {unmet}")),
            other => other,
        })
    }

    /// Waits until the canary runs.
    ///
    /// # Errors
    /// [`Stop::Unmet`] with what keeps it from running.
    pub async fn canary_runs(&self, canary: &Canary) -> Verdict {
        let running = holds("the canary Running", |pod: &Option<Arc<Pod>>| {
            pod.as_ref().and_then(|p| p.status.as_ref()).and_then(|s| s.phase.as_deref()) == Some("Running")
        });
        let read = async || Ok(self.find_canary(canary));
        self.eventually(
            "an ordinary Pod runs once the Nodes are initialised",
            self.limits().start(),
            read,
            running,
        )
        .await
    }

    /// Takes the CCM as shipped away again and gives the nodes their pod network back.
    pub(super) async fn undo_cold(&self) -> Result<(), String> {
        let text = |error: Stop| match error {
            Stop::Unmet(unmet) => unmet.to_string(),
            Stop::Error(text) | Stop::NotObservable(text) => text,
        };
        self.session.ensure_ccm(Form::Absent).await.map_err(text)?;
        self.session.set_network(Network::Present).await.map_err(|error| crate::check::chain(&error))
    }
}
