//! Measures on kind clusters: one for each topology, made cold again between cells.

use super::observe::{
    CANARY, End, Goal, INTERVAL, Patience, SOON, create_canary, outcome, placed, remove_canary, settle,
    with_admission, with_refusals,
};
use super::question::Question;
use super::table::{INTERRUPTED, Measured};
use super::variant::{PlaceholderValues, Variant};
use super::{Row, play};
use bootstrap::{CloudEndpoint, Cni, KubeProxy, Source as Manifests, Topology, Version, YesNo};
use harness_clusters::API_SERVER_PORT;
use harness_config::{BackendChoice, ClusterKeys, NodeIp, RunFile, Source, plan};
use harness_core::check::chain;
use harness_core::events::Events;
use harness_core::probe::{ReadError, poll};
use harness_session::ccm::{Applier, CcmError, key_of, pods_gone};
use harness_session::k8s::{T_UNINIT, ready};
use harness_session::up::{Environment, Leave, Prepared};
use harness_session::{Network, Session, settle as settle_cluster};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The longest pause of a boot that continues: the scheduler retries unschedulable Pods every 30 s, the second restart of
/// a container waits for 20 s, the lease of a replica that exited lasts 15 s.
const QUIET: Duration = Duration::from_secs(35);
/// No boot that continues takes longer.
const LONGEST: Duration = Duration::from_secs(300);

/// Measures on kind clusters with the reference CCM.
#[derive(Debug)]
pub struct KindBench {
    kubernetes: Option<String>,
    events: Events,
    cancel: CancellationToken,
}

/// The cluster that a cell can share.
type Kind = (&'static str, bool);

fn kind_of(question: &Question) -> Result<Kind, String> {
    let cluster = &question.cell.cluster;
    if let Some(why) = question.case.not_observable_on.get("kind") {
        return Err(why.clone());
    }
    if cluster.cni == Cni::Kindnet {
        return Err("clusters of the harness use its own pod network instead of kindnet".to_owned());
    }
    let topology = match cluster.topology {
        Topology::SingleNode => "single",
        Topology::SingleControlPlane => {
            return Err("kind removes the control plane's taint from a single node".to_owned());
        }
        Topology::ControlPlaneAndWorker => "two-node",
        Topology::ThreeControlPlanes => {
            return Err("kind needs a load balancer image for three control planes".to_owned());
        }
        Topology::Hosted | Topology::WorkerOnly => {
            return Err("control planes of kind are Nodes of the cluster".to_owned());
        }
    };
    Ok((topology, cluster.node_ip == YesNo::Yes))
}

impl KindBench {
    /// Creates a bench for the built-in variants.
    pub fn new(kubernetes: Option<String>, events: Events, cancel: CancellationToken) -> KindBench {
        KindBench { kubernetes, events, cancel }
    }

    /// Why a kind cluster cannot show this cell, if it cannot.
    pub fn hidden(question: &Question) -> Option<String> {
        kind_of(question).err()
    }

    /// Measures all cells, one after another; calls `on_row` for each when it ends. Stops early when interrupted.
    ///
    /// # Errors
    /// A cluster cannot be created.
    pub async fn measure_all(
        &self,
        questions: Vec<Question>,
        on_row: impl Fn(&Row),
    ) -> Result<Vec<Row>, String> {
        let mut rows = Vec::new();
        let mut kinds: BTreeMap<Kind, Vec<Question>> = BTreeMap::new();
        for question in questions {
            match kind_of(&question) {
                Ok(kind) => kinds.entry(kind).or_default().push(question),
                Err(why) => {
                    let row = Row { question, measured: Measured::NotObservable { why } };
                    on_row(&row);
                    rows.push(row);
                }
            }
        }
        for ((topology, node_ip), questions) in kinds {
            if !self.cancel.is_cancelled() {
                rows.extend(self.on_one(topology, node_ip, questions, &on_row).await?);
            }
        }
        rows.sort_by(|a, b| a.question.case.name.cmp(&b.question.case.name));
        Ok(rows)
    }

    /// All cells of one kind of cluster. A cell that failed may have left something behind, so the next one gets another
    /// cluster.
    async fn on_one(
        &self,
        topology: &str,
        node_ip: bool,
        questions: Vec<Question>,
        on_row: &impl Fn(&Row),
    ) -> Result<Vec<Row>, String> {
        let (mut rows, mut left) = (Vec::new(), VecDeque::from(questions));
        while !left.is_empty() && !self.cancel.is_cancelled() {
            match self.until_one_fails(topology, node_ip, &mut left, on_row).await {
                Ok(measured) => rows.extend(measured),
                Err(why) if rows.is_empty() => return Err(why),
                // What was measured counts.
                Err(why) => rows.extend(left.drain(..).map(|question| Row {
                    question,
                    measured: Measured::Failed { why: format!("no further cluster: {why}") },
                })),
            }
        }
        Ok(rows)
    }

    /// Creates a cluster and measures cells on it, until one fails or none is left.
    async fn until_one_fails(
        &self,
        topology: &str,
        node_ip: bool,
        left: &mut VecDeque<Question>,
        on_row: &impl Fn(&Row),
    ) -> Result<Vec<Row>, String> {
        let overrides = RunFile {
            cluster: ClusterKeys {
                backend: Some(BackendChoice::Kind),
                topology: Some(topology.to_owned()),
                kubernetes: self.kubernetes.clone(),
                node_ip: Some(if node_ip { NodeIp::Kept } else { NodeIp::Dropped }),
                ..ClusterKeys::default()
            },
            ..RunFile::default()
        };
        let plan = plan(&Source::Defaults, overrides).map_err(|problems| problems.to_string())?;
        let (plan, _) = settle_cluster(plan).await;
        let mut environment = Environment::new(Prepared::new(Arc::new(plan)), 0);
        let measured = match environment.up(&self.events, &self.cancel).await {
            Err(error) => Err(chain(&error)),
            Ok(session) => {
                let mut rows = Vec::new();
                while let Some(question) = left.pop_front() {
                    let row = self.measure(&session, question).await;
                    on_row(&row);
                    let failed = matches!(row.measured, Measured::Failed { .. });
                    rows.push(row);
                    if failed || self.cancel.is_cancelled() {
                        break;
                    }
                }
                Ok(rows)
            }
        };
        if let Err(why) = environment.down(Leave::Nothing).await {
            self.events.say(format!("left behind ('ccm-conformance clean' tries again):\n{why}"));
        }
        measured
    }

    async fn measure(&self, session: &Session, question: Question) -> Row {
        let question = match self.asked_again(session, question.clone()) {
            Ok(question) => question,
            Err(measured) => return Row { question, measured },
        };
        let seen = async {
            let (first, others) = Boot::new(session, &question)?.through(true).await?;
            let mut ends = vec![first];
            if others {
                ends.push(Boot::new(session, &question)?.through(false).await?.0);
            }
            let (outcome, missing) = outcome(&ends);
            Ok::<_, String>(Measured::Seen { outcome, evicted: None, missing })
        };
        let measured = tokio::select! {
            measured = seen => measured.unwrap_or_else(|why| Measured::Failed { why }),
            () = self.cancel.cancelled() => Measured::Failed { why: INTERRUPTED.to_owned() },
        };
        Row { question, measured }
    }

    /// The cell's question for this version of Kubernetes.
    fn asked_again(&self, session: &Session, question: Question) -> Result<Question, Measured> {
        let served = Version { major: 1, minor: session.state().served_minor };
        let mut cluster = question.cell.cluster.clone();
        if question.case.kubernetes != Version::DEFAULT && question.case.kubernetes != served {
            let why = format!("it is about Kubernetes {}, but the cluster has {served}", cluster.version);
            return Err(Measured::NotObservable { why });
        }
        if cluster.kube_proxy != KubeProxy::Yes && session.state().cluster.api_server_for_pods.is_none() {
            let why = "the node image includes kube-proxy; this needs one without it".to_owned();
            return Err(Measured::NotObservable { why });
        }
        cluster.version = served;
        let sources = vec![Manifests::new(&format!("{}.yaml", question.case.name), &question.manifests)];
        match question.case.expectation(sources, &[cluster]) {
            Err(why) => Err(Measured::Failed { why }),
            Ok(mut expectation) => match expectation.cells.pop() {
                Some(cell) => Ok(Question { cell, ..question }),
                None => Err(Measured::Failed { why: "the model has no result".to_owned() }),
            },
        }
    }
}

/// One boot on a cluster that is made cold for it.
struct Boot<'a> {
    session: &'a Session,
    question: &'a Question,
    variant: Variant,
    plugin: Option<String>,
    applier: Applier,
    nodes: Vec<String>,
}

impl<'a> Boot<'a> {
    fn new(session: &'a Session, question: &'a Question) -> Result<Boot<'a>, String> {
        let state = session.state();
        let cell = &question.cell.cluster;
        let by_name = cell.cloud_endpoint == CloudEndpoint::Name;
        let address = state.cloud.ip.to_string();
        // Containers of a network resolve each other's names: the resolver of a kind Node asks Docker.
        let host = if by_name { format!("{}-cloud", state.cluster.name) } else { address.clone() };
        let machine = session.machines().iter().find_map(|machine| machine.ipv4);
        let around = PlaceholderValues {
            image: state.ccm_image.clone(),
            endpoint: state.cloud.endpoint.replace(&address, &host),
            token: state.replicas.first().map(|replica| replica.token.clone()).unwrap_or_default(),
            api_server: (machine.map(|ip| ip.to_string()).unwrap_or_default(), API_SERVER_PORT),
        };
        let mut variant = Variant::parse(&question.case.name, &question.manifests, &question.ccms, &around)?;
        let plugin = play::plugin(&variant);
        // If the image has no kube-proxy, cells with one get what it would provide.
        let api_server =
            state.cluster.api_server_for_pods.clone().filter(|_| cell.kube_proxy == KubeProxy::Yes);
        variant.inline(api_server.as_ref(), &state.idle_image, question.case.unmet.is_some());
        let applier = Applier::new(session.client().clone());
        let nodes = session.machines().iter().map(|machine| machine.name.clone()).collect();
        Ok(Boot { session, question, variant, plugin, applier, nodes })
    }

    /// Boots with the CCM first or last, and cleans up; returns whether there are other workloads.
    async fn through(self, ccm_first: bool) -> Result<(End, bool), String> {
        let end = match self.prepare().await {
            Ok(()) => self.boot(ccm_first).await,
            Err(why) => Err(why),
        };
        self.clean().await?;
        Ok((end?, !self.variant.others.is_empty()))
    }

    /// A cold cluster with the cell's taints, conditions and network, and the canary.
    async fn prepare(&self) -> Result<(), String> {
        let (session, cell) = (self.session, &self.question.cell.cluster);
        session.make_uninitialised(Network::Absent).await.map_err(|error| chain(&error))?;
        let api: Api<Node> = Api::all(session.client().clone());
        for name in &self.nodes {
            let node = api.get(name).await.map_err(|error| chain(&error))?;
            let patch = json!({"spec": {"taints": self.taints(&node)}});
            let patched = api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await;
            patched.map_err(|error| format!("the taints of Node {name}: {}", chain(&error)))?;
            if cell.routes == YesNo::Yes {
                play::set_network_unavailable(&api, name, "True").await?;
            }
        }
        if play::is_there_at_once(cell, self.plugin.as_deref()) {
            session.set_network(Network::Present).await.map_err(|error| chain(&error))?;
        }
        create_canary(session.client(), &session.state().idle_image).await
    }

    /// The initial taints of a Node: those of kubelet and node lifecycle, the control plane's, the network's.
    fn taints(&self, node: &Node) -> Vec<Value> {
        let cell = &self.question.cell.cluster;
        let now = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
        let kept = |key: &str| key == T_UNINIT || key.starts_with("node.kubernetes.io/");
        let mut taints: Vec<Value> =
            now.iter().filter(|taint| kept(&taint.key)).map(|taint| json!(taint)).collect();
        let role = self.session.state().roles.iter().find(|role| role.name == node.name_any());
        let write = |taint: &bootstrap::Taint| json!({"key": taint.key, "value": taint.value, "effect": taint.effect.to_string()});
        match &cell.control_plane_taints {
            Some(own) if Session::is_control_plane(node) => taints.extend(own.iter().map(write)),
            _ => taints.extend(role.into_iter().flat_map(|role| &role.taints).map(|taint| json!(taint))),
        }
        if self.has_startup_taint() {
            taints.push(write(&cell.startup_taint));
        }
        taints
    }

    fn has_startup_taint(&self) -> bool {
        matches!(self.question.cell.cluster.cni, Cni::StartupTaint | Cni::StartupTaintAndWaits)
    }

    /// Applies the manifests. Returns what the API server refused.
    async fn apply(&self, ccm_first: bool) -> Result<Vec<CcmError>, CcmError> {
        let mut refusals = self.applier.apply_each(&self.variant.surroundings).await?;
        let (first, second) = match ccm_first {
            true => (&self.variant.ccm, &self.variant.others),
            false => (&self.variant.others, &self.variant.ccm),
        };
        refusals.extend(self.applier.apply_each(first).await?);
        if !self.variant.others.is_empty() {
            placed(self.session.world(), first).await;
        }
        refusals.extend(self.applier.apply_each(second).await?);
        Ok(refusals)
    }

    async fn boot(&self, ccm_first: bool) -> Result<End, String> {
        let cell = &self.question.cell.cluster;
        let assumed = Variant::assumed(&self.question.case.assume)?;
        self.applier.apply(&assumed).await.map_err(|error| chain(&error))?;
        let refusals = self.apply(ccm_first).await.map_err(|error| chain(&error))?;
        let is_open = |name: &String| {
            self.session.world().nodes.find("", name).is_some_and(|node| {
                let lasting = |key: &str| {
                    key != T_UNINIT
                        && !key.starts_with("node.kubernetes.io/")
                        && key != cell.startup_taint.key
                };
                node.spec
                    .iter()
                    .flat_map(|spec| spec.taints.iter().flatten())
                    .all(|taint| !lasting(&taint.key))
            })
        };
        let networked = cell.cni != Cni::None;
        let goal = Goal {
            nodes: self.nodes.clone(),
            ready: networked,
            canary: networked && self.nodes.iter().any(is_open),
        };
        let patience = Patience { quiet: QUIET, longest: LONGEST };
        tokio::select! {
            end = settle(self.session.world(), &goal, patience, None) => {
                let end = with_admission(self.session.client(), &goal, end?).await?;
                Ok(with_refusals(end, &refusals))
            }
            never = self.play() => match never? {},
        }
    }

    /// Simulates the pod network: sets it up when its requirements are met, and removes its startup taint from Nodes that
    /// it has made Ready.
    async fn play(&self) -> Result<Infallible, String> {
        let (world, cell) = (self.session.world(), &self.question.cell.cluster);
        if !play::is_there_at_once(cell, self.plugin.as_deref()) {
            let plugin = self.plugin.as_deref();
            let due = async |_: &mut String| Ok(play::is_due(world, &self.nodes, cell, plugin).then_some(()));
            match poll("the pod network can be set up", LONGEST * 2, INTERVAL, due).await {
                Ok(()) => self.session.set_network(Network::Present).await.map_err(|error| chain(&error))?,
                Err(_) => return std::future::pending().await,
            }
        }
        if self.has_startup_taint() {
            let api: Api<Node> = Api::all(self.session.client().clone());
            for name in &self.nodes {
                let lifted = async |seen: &mut String| self.lift(&api, name, seen).await;
                poll("the startup taint is removed", SOON, INTERVAL, lifted)
                    .await
                    .map_err(|error| error.text)?;
            }
        }
        std::future::pending().await
    }

    async fn lift(&self, api: &Api<Node>, name: &str, seen: &mut String) -> Result<Option<()>, ReadError> {
        let own = &self.question.cell.cluster.startup_taint.key;
        let read = |error: kube::Error| ReadError::passing(chain(&error));
        let node = api.get(name).await.map_err(read)?;
        if ready(&node).as_deref() != Some("True") {
            "the Node is not Ready".clone_into(seen);
            return Ok(None);
        }
        let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
        let left: Vec<_> = taints.iter().filter(|taint| taint.key != *own).collect();
        // With the version that was read: a taint that was removed in the meantime must not come back.
        let version = node.metadata.resource_version;
        let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"taints": left}});
        api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.map_err(read)?;
        Ok(Some(()))
    }

    /// Removes everything that this boot added.
    async fn clean(&self) -> Result<(), String> {
        let client = self.session.client();
        let assumed = Variant::assumed(&self.question.case.assume)?;
        // The next CCM would wait for its Lease.
        let lease = self.session.state().lease.iter().map(|lease| {
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": lease.name, "namespace": lease.namespace}})
        });
        let made = self.variant.all().into_iter().filter(|document| !is_built_in(document));
        let all: Vec<Value> = assumed.into_iter().chain(lease).chain(made).collect();
        self.applier.remove(&all).await.map_err(|error| chain(&error))?;
        // Namespaces that stay lose what the manifests wrote to them, such as a level of Pod security.
        let kept = self.variant.all().into_iter().filter(is_built_in).map(|kept| bare(&kept));
        self.applier.apply(&kept.collect::<Vec<_>>()).await.map_err(|error| chain(&error))?;
        remove_canary(client).await?;
        let workloads: Vec<_> = self.variant.ccm.iter().chain(&self.variant.others).map(key_of).collect();
        pods_gone(self.session.world(), &workloads, Duration::from_secs(60))
            .await
            .map_err(|error| error.text)?;
        let canary = async |_: &mut String| {
            Ok(self.session.world().pods.find(CANARY.0, CANARY.1).is_none().then_some(()))
        };
        poll("the canary is gone", SOON, INTERVAL, canary).await.map_err(|error| error.text)?;
        if self.question.cell.cluster.routes == YesNo::Yes {
            let api: Api<Node> = Api::all(client.clone());
            for name in &self.nodes {
                play::set_network_unavailable(&api, name, "False").await?;
            }
        }
        Ok(())
    }
}

/// The namespace without what the manifests wrote to it: applying it removes these fields.
fn bare(namespace: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace["metadata"]["name"]}})
}

/// Whether a document is a namespace that every cluster has. It cannot be removed.
fn is_built_in(document: &Value) -> bool {
    let name = document["metadata"]["name"].as_str().unwrap_or_default();
    document["kind"] == "Namespace"
        && ["default", "kube-system", "kube-public", "kube-node-lease"].contains(&name)
}
