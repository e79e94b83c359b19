//! Bringing the environment up, and taking it down whatever happened.
//!
//! Stages in order: images (beside the cluster), cluster, cloud, nodes known to the cloud. The CCM itself is deployed
//! by the first check that needs it: bootstrap checks need a cluster without one.

use super::cold::roles_of;
use super::{Session, SessionError, load_manifests};
use super::state::{ReplicaRecord, RunDir, RunState};
use crate::ccm::LeaseKey;
use crate::cloud::{CloudContainer, CloudRecord};
use crate::cluster::{Cluster, ClusterRecord, ClusterSpec};
use crate::config::{ClusterPlan, Image, RunPlan, workspace};
use crate::images::{Engine, Folders, ImageSource, Program, RunId, prepare};
use crate::k8s::client_for;
use crate::ledger::StageTime;
use crate::progress::Progress;
use fake_cloud::admin::{Address, Credential, Instance, InstanceState};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// What has been made so far and must be undone, whatever happens.
#[derive(Debug)]
pub struct Environment {
    plan: Arc<RunPlan>,
    run_id: RunId,
    dir: Option<RunDir>,
    engine: Option<Engine>,
    cluster: Option<ClusterRecord>,
    cloud: Option<CloudRecord>,
    /// How long each stage took, in order.
    pub stages: Vec<StageTime>,
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
        Environment { plan, run_id, dir: None, engine: None, cluster: None, cloud: None, stages: Vec::new() }
    }

    /// The run's id.
    pub fn run_id(&self) -> &RunId {
        &self.run_id
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
    pub async fn up(&mut self, progress: &Progress, cancel: &CancellationToken) -> Result<Arc<Session>, SessionError> {
        // What is wrong with the manifests is said before anything is started.
        load_manifests(&self.plan)?;
        self.dir = Some(RunDir::create(self.run_id.as_str())?);
        let state = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(SessionError::Interrupted),
            state = self.bring_up(progress) => state?,
        };
        let dir = self.dir.as_ref().expect("made above");
        dir.write("state.json", &state)?;
        let session = self.stage(progress, "nodes known to the cloud", async |this| {
            let dir = this.dir.as_ref().expect("made above").path().to_owned();
            let session =
                Session::join(this.plan.clone(), RunDir::join(&dir), state.clone(), cancel.clone()).await?;
            session.seed().await?;
            Ok(session)
        });
        Ok(Arc::new(session.await?))
    }

    async fn bring_up(&mut self, progress: &Progress) -> Result<RunState, SessionError> {
        let engine = Engine::connect().await.map_err(crate::images::ImageError::from)?;
        self.engine = Some(engine.clone());
        let scratch = self.dir.as_ref().expect("made before").path().to_owned();
        let root = workspace();
        let folders = Folders { workspace: &root, scratch: &scratch };
        let fake = ImageSource::Build(Program {
            package: "fake-cloud".to_owned(),
            bin: "fake-cloud".to_owned(),
            features: Some(vec!["server".to_owned()]),
        });
        let fake = self.stage(progress, "fake cloud image", async |_| Ok(prepare(&engine, &fake, folders).await?));
        let fake = fake.await?;
        let ccm = match self.plan.profile.image.clone() {
            None => None,
            Some(image) => {
                let source = match image {
                    Image::Reference(reference) => ImageSource::Reference(reference),
                    Image::Build(build) => ImageSource::Build(Program {
                        package: build.package,
                        bin: build.binary,
                        features: (!build.features.is_empty()).then(|| build.features.into_iter().collect()),
                    }),
                };
                let stage = self.stage(progress, "CCM image", async |_| Ok(prepare(&engine, &source, folders).await?));
                Some(stage.await?)
            }
        };
        let cluster = self.stage(progress, "cluster", async |this| this.create_cluster(&engine).await).await?;
        let archives: Vec<_> = std::iter::once(&fake).chain(ccm.as_ref()).map(|image| image.archive()).collect();
        self.stage(progress, "images into the nodes", async |_| {
            for archive in &archives {
                cluster.load_image(archive).await?;
            }
            Ok(())
        })
        .await?;
        let cloud = self.stage(progress, "fake cloud", async |this| {
            let record = CloudContainer::start(&engine, &this.run_id, &fake, &cluster.record().network, &this.plan.profile.dialect).await?;
            this.cloud = Some(record.clone());
            Ok(record)
        });
        let cloud = cloud.await?;
        let record = cluster.record();
        let (served_minor, roles) = self.inspect(&record).await?;
        Ok(RunState {
            run_id: self.run_id.as_str().to_owned(),
            cluster: record,
            cloud,
            ccm_image: ccm.as_ref().map(|i| i.reference.clone()).unwrap_or_default(),
            ccm_image_digest: ccm.as_ref().map(|i| i.digest.clone()).unwrap_or_default(),
            idle_image: fake.reference.clone(),
            replicas: self.replicas(),
            lease: self.plan.profile.capabilities.leader_election.then(|| LeaseKey {
                namespace: self.plan.profile.lease.namespace.clone(),
                name: self.plan.profile.lease.name.clone(),
            }),
            served_minor,
            roles,
        })
    }

    async fn create_cluster(&mut self, engine: &Engine) -> Result<Cluster, SessionError> {
        let dir = self.dir.as_ref().expect("made before").path().to_owned();
        let cluster = match &self.plan.cluster {
            ClusterPlan::Kind(kind) => {
                let prefix = self.plan.profile.provider_id.render("");
                let spec = ClusterSpec::new(&self.run_id, kind, &dir, prefix);
                Cluster::create(engine, &spec).await?
            }
            ClusterPlan::Existing(existing) => Cluster::existing(existing.kubeconfig.as_deref()).await?,
        };
        self.cluster = Some(cluster.record());
        Ok(cluster)
    }

    /// Minor version the API server reports, and what kubeadm wrote on the Nodes.
    async fn inspect(&self, record: &ClusterRecord) -> Result<(u32, Vec<super::NodeRole>), SessionError> {
        let client = client_for(&record.kubeconfig, "ccm-conformance").await?;
        let version = client.apiserver_version().await?;
        let digits: String = version.minor.chars().take_while(char::is_ascii_digit).collect();
        let minor = digits.parse().map_err(|_| {
            SessionError::Precondition(format!("the API server reports an unknown minor version {:?}", version.minor))
        })?;
        let nodes = Api::<Node>::all(client).list(&ListParams::default()).await?;
        Ok((minor, roles_of(&nodes.items)))
    }

    fn replicas(&self) -> Vec<ReplicaRecord> {
        let profile = &self.plan.profile;
        let count = if profile.capabilities.leader_election { profile.replicas.max(1) } else { 1 };
        ('a'..='z')
            .take(count as usize)
            .zip(0_u16..)
            .map(|(letter, offset)| ReplicaRecord {
                name: letter.to_string(),
                token: crate::cloud::fresh_token(),
                secure_port: profile.secure_port.saturating_add(offset),
            })
            .collect()
    }

    async fn stage<T>(
        &mut self,
        progress: &Progress,
        name: &str,
        work: impl AsyncFnOnce(&mut Environment) -> Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        let began = Instant::now();
        let shown = progress.stage(name);
        let outcome = work(self).await;
        shown.end(outcome.is_ok());
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.stages.push(StageTime { stage: name.to_owned(), took_ms });
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
            if let Some(cloud) = &self.cloud {
                if let Err(error) = CloudContainer::remove(engine, cloud).await {
                    failures.push(crate::check::chain(&error));
                }
            }
            // By label and name, not by what was recorded: a stage that was cut short recorded nothing.
            if let Err(error) = crate::cluster::remove_run(engine, &self.run_id).await {
                failures.push(crate::check::chain(&error));
            }
        }
        if let Some(dir) = self.dir.take() {
            if let Err(error) = dir.remove() {
                failures.push(crate::check::chain(&error));
            }
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
        let instances: Vec<Instance> =
            self.machines().iter().enumerate().map(|(index, machine)| self.instance_of(machine, index)).collect();
        self.cloud.put_instances(&instances).await?;
        if self.cluster.is_ours() {
            self.assert_uninitialised()?;
        }
        Ok(())
    }

    /// A real node's machine as the cloud sees it: its own addresses, and one that only the cloud can know.
    fn instance_of(&self, machine: &crate::cluster::Machine, index: usize) -> Instance {
        let id = format!("i-{}", machine.name);
        let mut addresses = Vec::new();
        for ip in [machine.ipv4.map(|ip| ip.to_string()), machine.ipv6.map(|ip| ip.to_string())].into_iter().flatten() {
            addresses.push(Address { kind: "InternalIP".to_owned(), address: ip });
        }
        addresses.push(Address { kind: "ExternalIP".to_owned(), address: format!("198.51.100.{}", 200 + index % 50) });
        Instance {
            provider_id: Some(self.profile_provider_id(&id)),
            id,
            name: machine.name.clone(),
            instance_type: "m1.large".to_owned(),
            zone: "zone-a".to_owned(),
            region: "region-1".to_owned(),
            addresses,
            labels: BTreeMap::new(),
            state: InstanceState::Running,
        }
    }
}

/// The nodes' names, for messages.
pub fn node_names(nodes: &[Node]) -> Vec<String> {
    nodes.iter().map(|node| node.name_any()).collect()
}
