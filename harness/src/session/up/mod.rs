//! Bringing the environment up, and taking it down whatever happened.
//!
//! A run is [`Prepared`] once; each of its lanes is an [`Environment`] with a cluster, a cloud and a CCM of its own.
//! Stages in order: images (beside the cluster) or the CCM's program, cluster, cloud, nodes known to the cloud. The CCM
//! itself is deployed by the first check that needs it: bootstrap checks need a cluster without one.

mod prepared;
mod raise;
mod stage;
mod teardown;

pub use prepared::Prepared;

use super::state::{ReplicaRecord, RunDir, RunState};
use super::uninitialised::roles_of;
use super::{Session, SessionError, load_manifests};
use crate::ccm::LeaseKey;
use crate::check::chain;
use crate::cloud::{CloudRecord, CloudSpec, Place, RunningCloud, fresh_token, network_of, start};
use crate::cluster::{
    CloudSite, ClusterRecord, ClusterSpec, Lifetime, ProgramImage, ProviderIds, Runs, begin, facts,
};
use crate::config::{ProviderId, RunPlan};
use crate::events::Events;
use crate::images::{Engine, ImageError, RunId};
use crate::k8s::{addresses, client_for};
use futures::FutureExt;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};
use prepared::Artifacts;
use raise::raise;
use stage::stage;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use teardown::Teardown;
use tokio_util::sync::CancellationToken;

/// One lane's cluster, cloud and CCM, from before they are there until they are gone.
#[derive(Debug)]
pub struct Environment {
    prepared: Arc<Prepared>,
    lane: u32,
    id: RunId,
    dir: Option<RunDir>,
    teardown: Teardown,
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
    /// The lane of that number, 0 where the run has only one. Nothing made yet.
    pub fn new(prepared: Arc<Prepared>, lane: u32) -> Environment {
        let id = prepared.run.lane(lane);
        Environment { prepared, lane, id, dir: None, teardown: Teardown::default() }
    }

    /// The lane's id: the run's where there is only one.
    pub fn run_id(&self) -> &RunId {
        &self.id
    }

    /// Whether what was made lives in this process, and ends with it.
    pub fn is_in_process(&self) -> bool {
        self.dir.is_some() && facts(self.plan().cluster.backend()).lifetime == Lifetime::Process
    }

    /// The lane's folder, once made.
    pub fn dir(&self) -> Option<&RunDir> {
        self.dir.as_ref()
    }

    fn plan(&self) -> &Arc<RunPlan> {
        &self.prepared.plan
    }

    /// Brings everything up and joins it. What was begun is remembered here even when a later stage fails or the
    /// future is dropped, so that [`Environment::down`] can undo it.
    ///
    /// # Errors
    /// The first stage that fails, with the way out.
    pub async fn up(
        &mut self,
        events: &Events,
        cancel: &CancellationToken,
    ) -> Result<Arc<Session>, SessionError> {
        // What is wrong with the manifests is said before anything is started.
        load_manifests(self.plan())?;
        let dir = RunDir::create(self.id.as_str())?;
        let place = dir.path().to_owned();
        self.dir = Some(dir);
        let state = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(SessionError::Interrupted),
            state = self.bring_up(events) => state?,
        };
        RunDir::join(&place).write("state.json", &state)?;
        let joined = async {
            let (plan, dir) = (self.plan().clone(), RunDir::join(&place));
            let session = Session::join(plan, dir, state, events.clone(), cancel.clone()).await?;
            session.seed().await?;
            Ok::<_, SessionError>(session)
        };
        Ok(Arc::new(stage(events, "nodes known to the cloud", joined).await?))
    }

    async fn bring_up(&mut self, events: &Events) -> Result<RunState, SessionError> {
        let prepared = self.prepared.clone();
        let kind = self.plan().cluster.backend();
        let early = match facts(kind).runs {
            Runs::Programs => Some(prepared.artifacts(events).await?),
            Runs::Images => None,
        };
        let programs = early.map(|artifacts| artifacts.programs.clone()).unwrap_or_default();
        let backend = begin(kind, self.spec(programs));
        let made = async {
            match early {
                Some(artifacts) => Ok(artifacts),
                None => prepared.artifacts(events).await,
            }
        };
        let (cluster, artifacts) = raise(backend, &mut self.teardown, events, made).await?;
        let (served_minor, nodes) = inspect(&cluster).await?;
        let cloud = self.start_cloud(&cluster, artifacts, &nodes, events).await?;
        let profile = &self.plan().profile;
        Ok(RunState {
            run_id: self.id.as_str().to_owned(),
            lane: self.lane,
            roles: roles_of(&nodes),
            cluster,
            cloud,
            ccm_image: artifacts.ccm_image.clone(),
            ccm_image_digest: artifacts.ccm_image_digest.clone(),
            idle_image: artifacts.idle_image.clone(),
            replicas: self.replicas()?,
            lease: profile.capabilities.leader_election.then(|| LeaseKey {
                namespace: profile.lease.namespace.clone(),
                name: profile.lease.name.clone(),
            }),
            served_minor,
            changes: artifacts.changes.clone(),
        })
    }

    fn spec(&self, programs: Vec<ProgramImage>) -> ClusterSpec {
        let plan = self.plan();
        let chosen = plan.cluster.desired().own().map(|own| own.provider_id);
        ClusterSpec {
            run: self.id.clone(),
            desired: plan.cluster.desired().clone(),
            provider_ids: match chosen {
                Some(ProviderId::Empty) | None => ProviderIds::Empty,
                Some(ProviderId::Chosen) => ProviderIds::Chosen {
                    format: plan.profile.provider_id.clone(),
                    ids: plan.profile.instance_ids(),
                },
            },
            programs,
            folder: self.dir.as_ref().expect("made before").path().to_owned(),
            evidence: plan.output.join("evidence/cluster"),
        }
    }

    /// Starts the cloud where the cluster's machines can reach it.
    async fn start_cloud(
        &mut self,
        cluster: &ClusterRecord,
        artifacts: &Artifacts,
        nodes: &[Node],
        events: &Events,
    ) -> Result<CloudRecord, SessionError> {
        let running: Arc<Mutex<Option<RunningCloud>>> = Arc::default();
        let held = running.clone();
        self.teardown.push("cloud", move || {
            async move {
                let cloud = held.lock().expect("no holder of this lock panics").take();
                match cloud {
                    Some(cloud) => cloud.stop().await.map_err(|error| chain(&error)),
                    // The container of one that did not come up goes with the cluster: by the lane's label.
                    None => Ok(()),
                }
            }
            .boxed_local()
        });
        let dialect = self.plan().profile.dialect.clone();
        let network = match &cluster.cloud_site {
            CloudSite::ThisMachine => None,
            CloudSite::Network(network) => Some(network.clone()),
            CloudSite::BesideNodes => Some(network_beside(nodes).await?),
        };
        let started = async {
            let Some(network) = network else {
                let spec = CloudSpec { dialect: &dialect, place: Place::ThisProcess };
                return Ok::<_, SessionError>(start(spec).await?);
            };
            let Some(images) = &artifacts.images else {
                return Err(SessionError::Precondition(format!(
                    "there is no image of the fake cloud for network {network}: the {} backend runs programs",
                    cluster.backend
                )));
            };
            let engine = Engine::connect().await.map_err(ImageError::from)?;
            let place = Place::BesideMachines {
                run: &self.id,
                engine: &engine,
                network: &network,
                image: &images.cloud,
            };
            Ok(start(CloudSpec { dialect: &dialect, place }).await?)
        };
        let cloud = stage(events, "cloud", started).await?;
        let record = cloud.record().clone();
        *running.lock().expect("no holder of this lock panics") = Some(cloud);
        Ok(record)
    }

    fn replicas(&self) -> Result<Vec<ReplicaRecord>, SessionError> {
        let profile = &self.plan().profile;
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

    /// Undoes everything, last first, trying all of it; or, told to leave everything, leaves it.
    ///
    /// # Errors
    /// What could not be removed, one line each.
    pub async fn down(mut self, leave: Leave) -> Result<(), String> {
        if leave == Leave::Everything {
            return Ok(());
        }
        let removed = self.teardown.run().await;
        let folder = self.dir.take().map_or(Ok(()), RunDir::remove).map_err(|error| chain(&error));
        let failures: Vec<String> = [removed, folder].into_iter().filter_map(Result::err).collect();
        if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
    }
}

/// Minor version the API server reports, and the Nodes there are.
async fn inspect(record: &ClusterRecord) -> Result<(u32, Vec<Node>), SessionError> {
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
async fn network_beside(nodes: &[Node]) -> Result<String, SessionError> {
    let engine = Engine::connect().await.map_err(ImageError::from)?;
    let own: Vec<IpAddr> =
        nodes.iter().flat_map(addresses).filter_map(|(_, address)| address.parse().ok()).collect();
    let found = network_of(&engine, &own).await.map_err(ImageError::from)?;
    found.ok_or_else(|| {
        SessionError::Precondition(
            "the existing cluster's nodes are no containers of this Docker engine, so they could not reach a \
             fake cloud that runs here; use a cluster on this engine (kind, k3d, minikube with Docker)"
                .to_owned(),
        )
    })
}
