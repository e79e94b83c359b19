//! Bringing the environment up, and taking it down whatever happened.
//!
//! Stages in order: images (beside the cluster), cluster, cloud, nodes known to the cloud. The CCM itself is deployed
//! by the first check that needs it: bootstrap checks need a cluster without one.

use super::cold::roles_of;
use super::state::{ReplicaRecord, RunDir, RunState};
use super::{Session, SessionError, load_manifests};
use crate::ccm::{Form, LeaseKey};
use crate::cloud::{Cloud, CloudSpec, fresh_token, network_of};
use crate::cluster::{
    Cluster, ClusterRecord, KindSpec, Machine, PodNetworkWish, ProviderIds, cleanup, preflight,
};
use crate::config::{ClusterPlan, Image, ProviderId, RunPlan, workspace};
use crate::images::{Engine, Folders, ImageSource, PreparedImage, Program, RunId, prepare};
use crate::k8s::{addresses, client_for, provider_id};
use crate::ledger::StageTime;
use crate::progress::Progress;
use fake_cloud::admin::{Address, Credential, Instance, InstanceState};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use std::collections::BTreeMap;
use std::future::Future;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// What has been made so far and must be undone, whatever happens.
#[derive(Debug)]
pub struct Environment {
    plan: Arc<RunPlan>,
    run_id: RunId,
    dir: Option<RunDir>,
    engine: Option<Engine>,
    stages: Mutex<Vec<StageTime>>,
}

/// How the environment is left at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// Nothing stays.
    Nothing,
    /// Everything stays, for somebody to look at; `clean` removes it.
    Everything,
}

impl Environment {
    /// Nothing made yet.
    pub fn new(plan: Arc<RunPlan>) -> Environment {
        let run_id = RunId::fresh();
        Environment { plan, run_id, dir: None, engine: None, stages: Mutex::default() }
    }

    /// The run's id.
    pub fn run_id(&self) -> &RunId {
        &self.run_id
    }

    /// How long each stage took, in the order they ended. Some run side by side.
    pub fn stages(&self) -> Vec<StageTime> {
        self.stages.lock().expect("no holder of this lock panics").clone()
    }

    /// The run's folder, once made.
    pub fn dir(&self) -> Option<&RunDir> {
        self.dir.as_ref()
    }

    /// Brings everything up and joins it. What was made is remembered here even when a later stage fails or the
    /// future is dropped, so that [`Environment::down`] can undo it.
    ///
    /// # Errors
    /// The first stage that fails, with the way out.
    pub async fn up(
        &mut self,
        progress: &Progress,
        cancel: &CancellationToken,
    ) -> Result<Arc<Session>, SessionError> {
        // What is wrong with the manifests is said before anything is started.
        load_manifests(&self.plan)?;
        self.engine = Some(Engine::connect().await.map_err(crate::images::ImageError::from)?);
        self.dir = Some(RunDir::create(self.run_id.as_str())?);
        let state = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(SessionError::Interrupted),
            state = self.bring_up(progress) => state?,
        };
        let dir = self.dir.as_ref().expect("made above");
        dir.write("state.json", &state)?;
        let place = dir.path().to_owned();
        let joined = async {
            let session =
                Session::join(self.plan.clone(), RunDir::join(&place), state.clone(), cancel.clone()).await?;
            session.seed().await?;
            Ok(session)
        };
        Ok(Arc::new(self.stage(progress, "nodes known to the cloud", joined).await?))
    }

    async fn bring_up(&self, progress: &Progress) -> Result<RunState, SessionError> {
        let engine = Engine::connect().await.map_err(crate::images::ImageError::from)?;
        if let ClusterPlan::Kind(_) = &self.plan.cluster {
            // What is missing on this machine is said before anything is compiled.
            let found = preflight(&engine).await.map_err(crate::cluster::ClusterError::from)?;
            found.warnings.iter().for_each(|warning| progress.say(&format!("warning: {warning}")));
        }
        // Images are compiled while kind works; the first failure ends both.
        let (cluster, (fake, ccm)) = tokio::try_join!(
            self.stage(progress, "cluster", self.create_cluster(&engine)),
            self.prepare_images(&engine, progress),
        )?;
        let record = cluster.record().clone();
        if record.kind.is_some() {
            let loaded = async {
                for image in std::iter::once(&fake).chain(ccm.as_ref()) {
                    cluster.load_image(image.archive()).await?;
                }
                Ok(())
            };
            self.stage(progress, "images into the nodes", loaded).await?;
        }
        let (served_minor, nodes) = self.inspect(&record).await?;
        let network = match &record.kind {
            Some(kind) => kind.network.clone(),
            None => self.network_beside(&engine, &nodes).await?,
        };
        let started = async {
            let dialect = &self.plan.profile.dialect;
            Ok(Cloud::start(
                &engine,
                CloudSpec { run: &self.run_id, network: &network, dialect, image: &fake },
            )
            .await?)
        };
        let cloud = self.stage(progress, "fake cloud", started).await?.record().clone();
        Ok(RunState {
            run_id: self.run_id.as_str().to_owned(),
            cluster: record,
            cloud,
            ccm_image: ccm.as_ref().map(|i| i.reference.clone()).unwrap_or_default(),
            ccm_image_digest: ccm.as_ref().map(|i| i.digest.clone()).unwrap_or_default(),
            idle_image: fake.reference.clone(),
            replicas: self.replicas()?,
            lease: self.plan.profile.capabilities.leader_election.then(|| LeaseKey {
                namespace: self.plan.profile.lease.namespace.clone(),
                name: self.plan.profile.lease.name.clone(),
            }),
            served_minor,
            roles: roles_of(&nodes),
        })
    }

    /// The fake cloud's image and the CCM's, if the profile has one; one after the other, as both are cargo's.
    async fn prepare_images(
        &self,
        engine: &Engine,
        progress: &Progress,
    ) -> Result<(PreparedImage, Option<PreparedImage>), SessionError> {
        let scratch = self.dir.as_ref().expect("made before").path().to_owned();
        let root = workspace();
        let folders = Folders { workspace: &root, scratch: &scratch };
        let program = |package: String, bin, features| ImageSource::Build(Program { package, bin, features });
        let fake = program("fake-cloud".to_owned(), "fake-cloud".to_owned(), Some(vec!["server".to_owned()]));
        let prepared = async { Ok(prepare(engine, &fake, folders).await?) };
        let fake = self.stage(progress, "fake cloud image", prepared).await?;
        let source = match self.plan.profile.image.clone() {
            None => return Ok((fake, None)),
            Some(Image::Reference(reference)) => ImageSource::Reference(reference),
            Some(Image::Build(build)) => {
                let features = (!build.features.is_empty()).then(|| build.features.into_iter().collect());
                program(build.package, build.binary, features)
            }
        };
        let prepared = async { Ok(prepare(engine, &source, folders).await?) };
        let ccm = self.stage(progress, "CCM image", prepared).await?;
        Ok((fake, Some(ccm)))
    }

    async fn create_cluster(&self, engine: &Engine) -> Result<Cluster, SessionError> {
        let folder = self.dir.as_ref().expect("made before").path().to_owned();
        match &self.plan.cluster {
            ClusterPlan::Kind(kind) => {
                let provider_id = match kind.provider_id {
                    ProviderId::Empty => ProviderIds::Empty,
                    ProviderId::Chosen => ProviderIds::Chosen {
                        format: self.plan.profile.provider_id.clone(),
                        ids: self.plan.profile.instance_ids(),
                    },
                };
                let spec = KindSpec {
                    run: self.run_id.clone(),
                    topology: kind.topology.clone(),
                    kubernetes: kind.kubernetes.clone(),
                    provider_id,
                    node_ip: kind.node_ip,
                    folder,
                    evidence: Some(self.plan.output.join("evidence/cluster")),
                };
                let told = |step: &str| tracing::info!(step, "cluster");
                Ok(Cluster::create(engine, &spec, &told).await?)
            }
            ClusterPlan::Existing(existing) => Ok(Cluster::existing(existing.kubeconfig.as_deref())?),
        }
    }

    /// Minor version the API server reports, and the Nodes there are.
    async fn inspect(&self, record: &ClusterRecord) -> Result<(u32, Vec<Node>), SessionError> {
        let client = client_for(&record.kubeconfig, "ccm-conformance").await?;
        let version = client.apiserver_version().await?;
        let digits: String = version.minor.chars().take_while(char::is_ascii_digit).collect();
        let minor = digits.parse().map_err(|_| {
            SessionError::Precondition(format!(
                "the API server reports an unknown minor version {:?}",
                version.minor
            ))
        })?;
        let nodes = Api::<Node>::all(client).list(&ListParams::default()).await?;
        Ok((minor, nodes.items))
    }

    /// Where the fake cloud has to be so that the Nodes of a cluster that was there before can reach it.
    async fn network_beside(&self, engine: &Engine, nodes: &[Node]) -> Result<String, SessionError> {
        let own: Vec<IpAddr> =
            nodes.iter().flat_map(addresses).filter_map(|(_, address)| address.parse().ok()).collect();
        let found = network_of(engine, &own).await.map_err(crate::images::ImageError::from)?;
        found.ok_or_else(|| {
            SessionError::Precondition(
                "the existing cluster's nodes are no containers of this Docker engine, so they could not reach a \
                 fake cloud that runs here; use a cluster on this engine (kind, k3d, minikube with Docker)"
                    .to_owned(),
            )
        })
    }

    fn replicas(&self) -> Result<Vec<ReplicaRecord>, SessionError> {
        let profile = &self.plan.profile;
        let count = if profile.capabilities.leader_election { profile.replicas.max(1) } else { 1 };
        ('a'..='z')
            .take(count as usize)
            .zip(0_u16..)
            .map(|(letter, offset)| {
                // The ports next to the framework's 10258 belong to the scheduler and the controller manager.
                let secure_port = profile.secure_port.saturating_add(offset * 100);
                Ok(ReplicaRecord { name: letter.to_string(), token: fresh_token()?, secure_port })
            })
            .collect()
    }

    async fn stage<T>(
        &self,
        progress: &Progress,
        name: &str,
        work: impl Future<Output = Result<T, SessionError>>,
    ) -> Result<T, SessionError> {
        let began = Instant::now();
        let shown = progress.stage(name);
        let outcome = work.await;
        shown.end(outcome.is_ok());
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut stages = self.stages.lock().expect("no holder of this lock panics");
        stages.push(StageTime { stage: name.to_owned(), took_ms });
        outcome
    }

    /// Undoes everything, last first, trying all of it; or, told to leave everything, says where it is.
    ///
    /// # Errors
    /// What could not be removed, one line each.
    pub async fn down(mut self, leave: Leave) -> Result<(), String> {
        if leave == Leave::Everything {
            return Ok(());
        }
        let mut failures = Vec::new();
        if let Some(engine) = &self.engine {
            // By label and name, not by what was recorded: a stage that was cut short recorded nothing.
            if let Err(error) = cleanup(engine, &self.run_id).await {
                failures.push(crate::check::chain(&error));
            }
        }
        if let Some(dir) = self.dir.take()
            && let Err(error) = dir.remove()
        {
            failures.push(crate::check::chain(&error));
        }
        if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
    }
}

impl Session {
    /// Tells the cloud of the real Nodes (contract ENV-05) and of the replicas' credentials, then checks that the
    /// Nodes are as a kubelet with an external cloud provider registers them, and gives them their pod network.
    ///
    /// # Errors
    /// When a Node is not, or the cloud refuses.
    pub async fn seed(&self) -> Result<(), SessionError> {
        for replica in &self.state.replicas {
            let credential = Credential { name: replica.name.clone(), token: replica.token.clone() };
            self.cloud.put_credential(&credential).await?;
        }
        let instances: Vec<Instance> = if self.state.cluster.kind.is_some() {
            self.machines().iter().enumerate().map(|(i, machine)| self.instance_of(machine, i)).collect()
        } else {
            // The CCM deletes NotReady Nodes the cloud does not know: it has to know every one (contract ENV-05).
            self.world
                .nodes
                .all()
                .iter()
                .enumerate()
                .map(|(i, node)| self.instance_of_node(node, i))
                .collect()
        };
        self.cloud.put_instances(&instances).await?;
        self.assert_no_ccm()?;
        self.assert_uninitialised()?;
        match &self.state.cluster.kind {
            Some(kind) if kind.pod_network == PodNetworkWish::Switchable => {
                self.set_network(super::Network::Present).await
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Two CCMs under one name would be one that nobody deployed: a cluster that has it already is not touched.
    fn assert_no_ccm(&self) -> Result<(), SessionError> {
        let pods = [Form::Replicas, Form::AsShipped].into_iter().flat_map(|form| self.ccm.pods(form));
        match pods.map(|pod| pod.name_any()).collect::<Vec<String>>() {
            names if names.is_empty() => Ok(()),
            names => Err(SessionError::Precondition(format!(
                "the cluster runs the CCM under test already (Pods {}); remove it first",
                names.join(", ")
            ))),
        }
    }

    /// A real node's machine as the cloud sees it: its own addresses, and one that only the cloud can know.
    fn instance_of(&self, machine: &Machine, index: usize) -> Instance {
        let own = [machine.ipv4.map(|ip| ip.to_string()), machine.ipv6.map(|ip| ip.to_string())];
        let provider_id = self.plan.profile.provider_id_of(&machine.name);
        self.real_instance(&machine.name, provider_id, own.into_iter().flatten(), index)
    }

    /// The machine of a Node that was there before the harness.
    fn instance_of_node(&self, node: &Node, index: usize) -> Instance {
        let name = node.name_any();
        let provider_id = provider_id(node).unwrap_or_else(|| self.plan.profile.provider_id_of(&name));
        let own = addresses(node).into_iter().filter(|(kind, _)| kind == "InternalIP").map(|(_, ip)| ip);
        self.real_instance(&name, provider_id, own, index)
    }

    fn real_instance(
        &self,
        name: &str,
        provider_id: String,
        own: impl Iterator<Item = String>,
        index: usize,
    ) -> Instance {
        let internal = own.map(|address| Address { kind: "InternalIP".to_owned(), address });
        let external = format!("198.51.100.{}", 200 + index % 50);
        let external = Address { kind: "ExternalIP".to_owned(), address: external };
        let (format, ids) = (&self.plan.profile.provider_id, self.plan.profile.instance_ids());
        // A Node that was there before may have an id of another form; its machine is then found by name.
        let id = format.instance(&provider_id).filter(|id| ids.allow(id)).map(str::to_owned);
        Instance {
            id: id.unwrap_or_else(|| ids.make(name)),
            provider_id: Some(provider_id),
            name: name.to_owned(),
            instance_type: "m1.large".to_owned(),
            zone: self.profile_location().zone.clone(),
            region: self.profile_location().region.clone(),
            addresses: internal.chain(std::iter::once(external)).collect(),
            labels: BTreeMap::new(),
            state: InstanceState::Running,
        }
    }
}
