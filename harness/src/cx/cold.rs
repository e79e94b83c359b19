//! A cold cluster and the CCM as shipped, for bootstrap checks.

use super::deadlock::Deadlock;
use super::made::Undo;
use super::{CheckCx, Subject};
use crate::ccm::Form;
use crate::check::{Stop, SubjectName, Verdict};
use crate::cloud::Entry;
use crate::k8s::{T_UNINIT, addresses, has_taint, provider_id, taints};
use crate::probe::{Matcher, Observed, Reach, ReadError, Seen, holds, matcher, poll};
use crate::session::{Network, expectation};
use bootstrap::{Cni, Expectation, ObservedNode, ObservedPod};
use k8s_openapi::api::core::v1::{Node, Pod, ServiceAccount};
use kube::ResourceExt;
use kube::api::{Api, PostParams};
use serde_json::json;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A cluster no CCM has touched: its Nodes.
#[derive(Clone, Debug)]
pub struct Cold {
    pub(super) nodes: Vec<String>,
    network: Network,
}

/// A Pod that wants nothing special: it runs when, and only when, its node is usable.
#[derive(Clone)]
pub struct Canary<'a> {
    cx: &'a CheckCx,
    namespace: String,
    name: String,
    uid: Option<String>,
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

/// The boot of a cluster.
struct BootOf<'a> {
    cx: &'a CheckCx,
    nodes: Vec<super::Node<'a>>,
    deadlock: RefCell<Deadlock>,
}

impl Subject for BootOf<'_> {
    type Seen = Boot;

    fn cx(&self) -> &CheckCx {
        self.cx
    }

    fn name(&self) -> SubjectName {
        let names: Vec<String> = self.nodes.iter().map(|node| Subject::name(node).name).collect();
        SubjectName { kind: "the cluster of", name: names.join(", "), uid: None }
    }

    async fn read(&self, reach: Reach) -> Result<Boot, ReadError> {
        let nodes = futures::future::try_join_all(self.nodes.iter().map(|node| node.read(reach))).await?;
        let pods = self.cx.session.ccm().pods(Form::AsShipped);
        let seen_nodes = nodes.iter().flatten().map(|node| seen_node(node)).collect();
        let seen_pods = pods.iter().map(|pod| seen_pod(pod)).collect();
        let stuck = self.deadlock.borrow_mut().after(seen_pods, seen_nodes, Instant::now());
        Ok(Boot { nodes, pods, stuck })
    }

    fn concerns(&self, call: &Entry) -> bool {
        self.nodes.iter().any(|node| node.concerns(call))
    }
}

/// Whether the CCM has made a Node usable. Which of its machine's addresses it has to report is for NODE-ADDR to say.
fn is_initialised(node: &Node) -> bool {
    let reachable = addresses(node).iter().any(|(kind, _)| kind != "Hostname");
    !has_taint(node, T_UNINIT) && provider_id(node).is_some() && reachable
}

/// Every Node is initialised; never, when nothing is deployed or nothing can go on.
fn all_initialised(deployed: bool) -> Matcher<Boot> {
    let expected = format!("every Node without {T_UNINIT}, with a providerID and an address");
    matcher("is initialised, with no manual step", move |seen: &Boot| {
        if seen.nodes.iter().all(|node| node.as_ref().is_some_and(|node| is_initialised(node))) {
            return Seen::Yes(());
        }
        if !deployed {
            return Seen::Never("nothing is deployed that could initialise a Node".to_owned());
        }
        let hopeless =
            |pod: &Arc<Pod>| crate::ccm::unrecoverable(pod).or_else(|| crate::ccm::crash_loops(pod));
        match seen.pods.iter().find_map(hopeless).or_else(|| seen.stuck.clone()) {
            Some(why) => Seen::Never(why),
            None => Seen::NotYet(String::new()),
        }
    })
    .expecting(expected)
}

impl Subject for Canary<'_> {
    type Seen = Option<Arc<Pod>>;

    fn cx(&self) -> &CheckCx {
        self.cx
    }

    fn name(&self) -> SubjectName {
        let name = format!("{}/{}", self.namespace, self.name);
        SubjectName { kind: "Pod", name, uid: self.uid.clone() }
    }

    async fn read(&self, reach: Reach) -> Result<Self::Seen, ReadError> {
        match reach {
            Reach::Nearest => Ok(self.cx.session.world().pods.current()?.find(&self.namespace, &self.name)),
            Reach::Origin => {
                let api: Api<Pod> = Api::namespaced(self.cx.client.clone(), &self.namespace);
                Ok(api.get_opt(&self.name).await?.map(Arc::new))
            }
        }
    }

    fn concerns(&self, _: &Entry) -> bool {
        false
    }
}

impl Canary<'_> {
    /// Proves the instrument: before any CCM runs the canary cannot be scheduled. A cluster that has just come up may
    /// still wait for its scheduler.
    ///
    /// # Errors
    /// [`Stop::Error`] when it runs all the same: then the cluster is not cold.
    pub async fn has_to_wait(&self) -> Verdict {
        let unschedulable = holds("finds no node", |pod: &Option<Arc<Pod>>| {
            let status = pod.as_ref().and_then(|p| p.status.as_ref());
            let conditions = status.and_then(|s| s.conditions.as_ref());
            conditions.into_iter().flatten().any(|c| c.type_ == "PodScheduled" && c.status == "False")
        });
        let wait = self.becomes(unschedulable).within(self.cx.limits().start()).when("without a CCM");
        wait.await.map_err(|stop| match stop {
            Stop::Unmet(unmet) => Stop::Error(format!("the cluster is not cold: {unmet}")),
            other => other,
        })
    }

    /// Waits until it runs.
    ///
    /// # Errors
    /// [`Stop::Unmet`] with what keeps it from running.
    pub async fn gets_to_run(&self) -> Verdict {
        let running = holds("is Running", |pod: &Option<Arc<Pod>>| {
            pod.as_ref().and_then(|p| p.status.as_ref()).and_then(|s| s.phase.as_deref()) == Some("Running")
        });
        self.becomes(running).within(self.cx.limits().start()).when("once the Nodes are initialised").await
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

    /// Waits until every real Node is initialised: no taint, a providerID, and an address besides its host name.
    ///
    /// # Errors
    /// [`Stop::Unmet`] after B-BOOT, with the Nodes and what the scheduler says of the CCM's Pods; sooner when nothing
    /// moves any more and the boot model says that nothing can.
    pub async fn all_initialised(&self, cold: &Cold) -> Verdict {
        let still = self.limits().boot_stands_still();
        let deadlock = Deadlock::of(self.expected_boot(cold).as_ref(), still, Instant::now());
        let nodes = cold.nodes.iter().map(|name| self.real_node(name)).collect();
        let boot = BootOf { cx: self, nodes, deadlock: RefCell::new(deadlock) };
        let all = all_initialised(self.session.ccm().exists());
        boot.becomes(all).within(self.limits().boot()).await.map_err(|stop| match stop {
            Stop::Unmet(mut unmet) => {
                unmet.explained = self.boot_explained(cold);
                Stop::Unmet(unmet)
            }
            other => other,
        })
    }

    /// That no real Node is Ready: without a pod network none can be, and if one is, a boot without network shows
    /// nothing.
    ///
    /// # Errors
    /// [`Stop::Error`] naming those that are.
    pub async fn none_is_ready(&self, cold: &Cold) -> Verdict {
        let mut ready = Vec::new();
        for name in &cold.nodes {
            let node = self.real_node(name).read(Reach::Origin).await?;
            if node.and_then(|node| crate::k8s::ready(&node)).as_deref() == Some("True") {
                ready.push(name.as_str());
            }
        }
        if ready.is_empty() {
            return Ok(());
        }
        Err(Stop::Error(format!("Nodes are Ready although no pod network was set up: {}", ready.join(", "))))
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
        let nodes = &self.session.world().nodes;
        let nodes =
            cold.nodes.iter().filter_map(|name| nodes.find("", name)).map(|n| seen_node(&n)).collect();
        Some(expectation.explain_with(&bootstrap::Observed { pods, nodes }))
    }

    /// Creates a canary Pod: no tolerations, no host network.
    ///
    /// # Errors
    /// What the API server refuses.
    pub async fn canary(&self) -> Result<Canary<'_>, Stop> {
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
        Ok(Canary { cx: self, namespace, name: created.name_any(), uid: created.uid() })
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

    /// Takes the CCM as shipped away again and gives the nodes their pod network back.
    pub(super) async fn undo_cold(&self) -> Result<(), String> {
        self.session.ensure_ccm(Form::Absent).await.map_err(in_words)?;
        self.session.set_network(Network::Present).await.map_err(|error| crate::check::chain(&error))
    }
}

pub(super) fn in_words(stop: Stop) -> String {
    match stop {
        Stop::Unmet(unmet) => unmet.to_string(),
        Stop::Blocked { by, seen } => by.broken(seen).to_string(),
        Stop::Error(text) | Stop::NotObservable(text) => text,
    }
}
