//! Bringing the environment up, and taking it down whatever happened.
//!
//! Stages in order: images (beside the cluster) or the CCM's program, cluster, cloud, nodes known to the cloud. The CCM
//! itself is deployed by the first check that needs it: bootstrap checks need a cluster without one.

mod containers;
mod in_process;

use super::cold::roles_of;
use super::state::{ReplicaRecord, RunDir, RunState};
use super::{Session, SessionError, load_manifests};
use crate::ccm::LeaseKey;
use crate::cloud::{CloudRecord, fresh_token};
use crate::cluster::{ClusterRecord, ProviderIds, cleanup};
use crate::config::{BackendKind, OwnCluster, ProviderId, RunPlan};
use crate::events::Events;
use crate::images::{Engine, RunId};
use crate::k8s::client_for;
use crate::ledger::StageTime;
use in_process::InProcess;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// What a backend has brought up.
struct Parts {
    cluster: ClusterRecord,
    cloud: CloudRecord,
    ccm_image: String,
    ccm_image_digest: String,
    idle_image: String,
    served_minor: u32,
    nodes: Vec<Node>,
    changes: Vec<String>,
}

/// What has been made so far and must be undone, whatever happens.
#[derive(Debug)]
pub struct Environment {
    plan: Arc<RunPlan>,
    run_id: RunId,
    dir: Option<RunDir>,
    engine: Option<Engine>,
    in_process: InProcess,
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
        Environment {
            plan,
            run_id,
            dir: None,
            engine: None,
            in_process: InProcess::default(),
            stages: Mutex::default(),
        }
    }

    /// The run's id.
    pub fn run_id(&self) -> &RunId {
        &self.run_id
    }

    /// How long each stage took, in the order they ended. Some run side by side.
    pub fn stages(&self) -> Vec<StageTime> {
        self.stages.lock().expect("no holder of this lock panics").clone()
    }

    /// Whether what was made lives in this process, and ends with it.
    pub fn is_in_process(&self) -> bool {
        self.in_process.is_up()
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
        events: &Events,
        cancel: &CancellationToken,
    ) -> Result<Arc<Session>, SessionError> {
        // What is wrong with the manifests is said before anything is started.
        load_manifests(&self.plan)?;
        if self.plan.cluster.backend() != BackendKind::Embedded {
            self.engine = Some(Engine::connect().await.map_err(crate::images::ImageError::from)?);
        }
        self.dir = Some(RunDir::create(self.run_id.as_str())?);
        let state = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(SessionError::Interrupted),
            state = self.bring_up(events) => state?,
        };
        let dir = self.dir.as_ref().expect("made above");
        dir.write("state.json", &state)?;
        let place = dir.path().to_owned();
        let joined = async {
            let session = Session::join(
                self.plan.clone(),
                RunDir::join(&place),
                state.clone(),
                events.clone(),
                cancel.clone(),
            )
            .await?;
            session.seed().await?;
            Ok(session)
        };
        Ok(Arc::new(self.stage(events, "nodes known to the cloud", joined).await?))
    }

    async fn bring_up(&mut self, events: &Events) -> Result<RunState, SessionError> {
        match self.plan.cluster.backend() {
            BackendKind::Embedded => self.bring_up_in_process(events).await,
            BackendKind::Auto | BackendKind::Kind | BackendKind::Existing => {
                self.bring_up_containers(events).await
            }
        }
    }

    /// What the kubelets of a cluster of the harness's own write into `spec.providerID`.
    fn provider_ids(&self, own: &OwnCluster) -> ProviderIds {
        match own.provider_id {
            ProviderId::Empty => ProviderIds::Empty,
            ProviderId::Chosen => ProviderIds::Chosen {
                format: self.plan.profile.provider_id.clone(),
                ids: self.plan.profile.instance_ids(),
            },
        }
    }

    /// What every process of the run has to know, whatever the cluster is made of.
    fn state(&self, parts: Parts) -> Result<RunState, SessionError> {
        let profile = &self.plan.profile;
        Ok(RunState {
            run_id: self.run_id.as_str().to_owned(),
            cluster: parts.cluster,
            cloud: parts.cloud,
            ccm_image: parts.ccm_image,
            ccm_image_digest: parts.ccm_image_digest,
            idle_image: parts.idle_image,
            replicas: self.replicas()?,
            lease: profile.capabilities.leader_election.then(|| LeaseKey {
                namespace: profile.lease.namespace.clone(),
                name: profile.lease.name.clone(),
            }),
            served_minor: parts.served_minor,
            roles: roles_of(&parts.nodes),
            changes: parts.changes,
        })
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
        events: &Events,
        name: &str,
        work: impl Future<Output = Result<T, SessionError>>,
    ) -> Result<T, SessionError> {
        let began = Instant::now();
        let shown = events.stage(name);
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
        self.in_process.stop().await;
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
