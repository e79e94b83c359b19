//! Creates the environment, and removes it whatever happened.
//!
//! A run is [`Prepared`] once; each of its lanes is an [`Environment`] with its own cluster, cloud and CCM. Stages in
//! order: images or the CCM's program, cluster, cloud, nodes known to the cloud. Images are built while the cluster
//! starts, and so is the cloud if its address is known before the cluster is up. The CCM itself is deployed by the first
//! check that needs it: bootstrap checks need a cluster without one.

mod cloud;
mod credentials;
mod in_use;
mod metadata;
mod own_image;
mod prepared;
mod raise;
mod stage;
mod teardown;

pub use prepared::Prepared;

use super::boot::check_accepted;
use super::choose::{check_hosting, check_image, check_real};
use super::folder::RunDir;
use super::manifests::{lease_of, manifests_of};
use super::state::{Credentials, Replaced, ReplicaRecord, RunState};
use super::uninitialised::roles_of;
use super::{Session, SessionError, load_manifests};
use crate::k8s::client_for;
use cloud::{WantedCloud, check_engine};
use harness_clouds::fresh_token;
use harness_clusters::images::RunId;
use harness_clusters::reaper;
use harness_clusters::{
    CloudSite, ClusterRecord, ClusterSpec, Fidelity, Lifetime, ProgramImage, ProviderIds, Purpose, Runs,
    begin, facts,
};
use harness_config::{BackendKind, NodeIp, ProviderId, RunPlan, ServingCertificates, Topology};
use harness_core::check::chain;
use harness_core::events::Events;
use harness_core::files;
use harness_core::ledger::{SetBy, Setting};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};
use prepared::Artifacts;
use raise::{Backends, Raised, raise};
use stage::stage;
use std::sync::Arc;
use teardown::Teardown;
use tokio_util::sync::CancellationToken;

/// Number of additional replicas that checks can start: with two it makes five (contract BOOT-DYN-13).
const NEWCOMERS: usize = 3;
/// The name of an image credential provider in the cloud's journal.
const PLUGIN: &str = "plugin";
/// The name of an old release in the cloud's journal.
const OLD_RELEASE: &str = "old";

/// One lane's cluster, cloud and CCM, from before they exist until they are gone.
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
    /// Everything is removed.
    Nothing,
    /// Everything stays, for the user to look at; `clean` removes it.
    Everything,
}

/// The events of creating a cluster; without a cluster there are none.
fn stages_of(backend: BackendKind, events: &Events) -> Events {
    match facts(backend).fidelity {
        Fidelity::Absent => events.without_stages(),
        Fidelity::Real | Fidelity::Simulated => events.clone(),
    }
}

/// How a hosted CCM differs from what its manifests say.
fn hosted_on(there: &ClusterRecord) -> Setting {
    let (backend, of) = (there.backend, &there.about);
    let version = of.kubernetes.as_deref().unwrap_or("unknown");
    let what = format!(
        "the workload runs on a management cluster (backend {backend}, topology {}, Kubernetes {version}) and reaches \
         this cluster by a kubeconfig",
        of.topology
    );
    Setting::of_manifests(what, SetBy::Profile)
}

/// Checks a plan for errors that are known before anything is started: in the manifests, of the image, of the cluster.
///
/// # Errors
/// Why the environment cannot be created with this plan.
pub fn startable(plan: &RunPlan) -> Result<(), SessionError> {
    load_manifests(plan)?;
    if let Some(old) = &plan.old_release {
        manifests_of(&old.profile)?;
    }
    check_accepted(plan)?;
    check_hosting(plan)?;
    check_image(plan)?;
    check_real(plan)?;
    Ok(harness_clusters::check(plan.cluster.backend(), plan.cluster.desired())?)
}

impl Environment {
    /// The lane with that number, 0 if the run has only one. Nothing is created yet.
    pub fn new(prepared: Arc<Prepared>, lane: u32) -> Environment {
        let id = prepared.run.lane(lane);
        Environment { prepared, lane, id, dir: None, teardown: Teardown::default() }
    }

    /// The id of the run.
    pub fn run(&self) -> &RunId {
        &self.prepared.run
    }

    /// The lane's id: the run's if there is only one.
    pub fn run_id(&self) -> &RunId {
        &self.id
    }

    /// Whether the environment lives in this process, and ends with it.
    pub fn is_in_process(&self) -> bool {
        self.dir.is_some() && facts(self.plan().cluster.backend()).lifetime == Lifetime::Process
    }

    /// The lane's folder, once it is created.
    pub fn dir(&self) -> Option<&RunDir> {
        self.dir.as_ref()
    }

    fn plan(&self) -> &Arc<RunPlan> {
        &self.prepared.plan
    }

    /// Creates everything and joins it. Everything that was started is recorded even if a later stage fails or the future
    /// is dropped, so that [`Environment::down`] can undo it.
    ///
    /// # Errors
    /// The first stage that fails, with a remedy.
    pub async fn up(
        &mut self,
        events: &Events,
        cancel: &CancellationToken,
    ) -> Result<Arc<Session>, SessionError> {
        startable(self.plan())?;
        let credentials = credentials::read(self.plan())?;
        if !self.prepared.uses_engine() {
            check_engine(self.plan()).await?;
        }
        let dir = RunDir::create(self.id.as_str())?;
        let place = dir.path().to_owned();
        self.dir = Some(dir);
        let state = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(SessionError::Interrupted),
            state = self.bring_up(events, credentials) => state?,
        };
        RunDir::join(&place).write("state.json", &state)?;
        let joined = async {
            let (plan, dir) = (self.plan().clone(), RunDir::join(&place));
            let session = Session::join(plan, dir, state, events.clone(), cancel.clone()).await?;
            session.seed().await?;
            Ok::<_, SessionError>(session)
        };
        let stage_of = match facts(self.plan().cluster.backend()).fidelity {
            Fidelity::Absent => "cloud",
            Fidelity::Real | Fidelity::Simulated => "nodes known to the cloud",
        };
        let session = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(SessionError::Interrupted),
            session = stage(events, stage_of, joined) => session?,
        };
        // The machine and the manifests are the same for every lane.
        if self.lane == 0 && session.has_no_mounts() {
            session.tell_of_confinement().await;
            let came_up = session.comes_up_without_mounts();
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(SessionError::Interrupted),
                came_up = stage(events, "CCM without mounts", came_up) => came_up?,
            }
        }
        Ok(Arc::new(session))
    }

    async fn bring_up(
        &mut self,
        events: &Events,
        credentials: Credentials,
    ) -> Result<RunState, SessionError> {
        let prepared = self.prepared.clone();
        let folder = self.dir.as_ref().expect("made before").path().to_owned();
        let kind = self.plan().cluster.backend();
        if prepared.uses_engine() || self.plan().profile.cloud.driver_image().is_some() {
            reaper::uses_engine();
        }
        let events = &stages_of(kind, events);
        let early = match facts(kind).runs {
            Runs::Programs => Some(prepared.artifacts(events).await?),
            Runs::Images => None,
        };
        let programs = early.map(|artifacts| artifacts.programs.clone()).unwrap_or_default();
        let management = match self.plan().profile.is_hosted() {
            true => Some(begin(kind, self.management_spec(programs.clone())?)),
            false => None,
        };
        // The programs are on the machines of the CCM's Pods.
        let programs = if management.is_some() { Vec::new() } else { programs };
        let backends = Backends { served: begin(kind, self.spec(programs)), management };
        let made = async {
            match early {
                Some(artifacts) => Ok(artifacts),
                None => prepared.artifacts(events).await,
            }
        };
        let ((mut replicas, mut newcomers), mut plugin) = (self.replicas(&credentials)?, self.plugin()?);
        let mut old_release = self.old_release(&credentials)?;
        let callers = replicas.iter().chain(&newcomers).chain(&plugin).chain(&old_release);
        let names: Vec<String> = callers.map(|replica| replica.name.clone()).collect();
        let source = &prepared.plan.profile.cloud;
        let wanted = WantedCloud { run: &self.id, cloud: source, replicas: &names, folder: &folder, events };

        let early = async |teardown: &mut Teardown, site: CloudSite, artifacts: &Artifacts| {
            wanted.start(teardown, &site, &[], artifacts).await
        };
        let raised = raise(backends, &mut self.teardown, events, made, early);
        let Raised { cluster, management, artifacts, cloud } = raised.await?;
        let (served_minor, nodes) = inspect(&cluster).await?;
        in_use::spare(&cluster, &nodes, self.plan(), events).await?;
        let cloud = match cloud {
            Some(cloud) => cloud,
            None => wanted.start(&mut self.teardown, &cluster.cloud_site, &nodes, artifacts).await?,
        };
        let metadata = metadata::reached(management.as_ref().unwrap_or(&cluster), &cloud).await?;
        let callers = replicas.iter_mut().chain(&mut newcomers).chain(&mut plugin).chain(&mut old_release);
        for replica in callers {
            let own = cloud.endpoints.get(&replica.name);
            replica.endpoint = own.unwrap_or(&cloud.endpoint).clone();
        }
        let hosted = management.as_ref().map(hosted_on);
        let profile = &self.plan().profile;
        Ok(RunState {
            run_id: self.id.as_str().to_owned(),
            lane: self.lane,
            roles: roles_of(&nodes),
            cluster,
            management,
            cloud,
            journal_from: 0,
            metadata,
            ccm_image: artifacts.ccm_image.clone(),
            ccm_image_digest: artifacts.ccm_image_digest.clone(),
            ccm_command: artifacts.ccm_command.clone(),
            idle_image: artifacts.idle_image.clone(),
            idle_command: artifacts.idle_command.clone(),
            replicas,
            newcomers,
            old_release,
            old_image: artifacts.old_image.clone(),
            plugin,
            replaced: self.replaced()?,
            lease: lease_of(profile),
            served_minor,
            credentials,
            changes: artifacts.changes.iter().cloned().chain(hosted).collect(),
        })
    }

    fn spec(&self, programs: Vec<ProgramImage>) -> ClusterSpec {
        let plan = self.plan();
        let chosen = plan.cluster.desired().own().map(|own| own.provider_id);
        let egress = plan.profile.network_proxy.as_ref().map(|proxy| files::read(&proxy.egress));
        ClusterSpec {
            run: self.id.clone(),
            purpose: Purpose::Served,
            desired: plan.cluster.desired().clone(),
            provider_ids: match chosen {
                Some(ProviderId::Empty) | None => ProviderIds::Empty,
                Some(ProviderId::Chosen) => ProviderIds::Chosen {
                    format: plan.profile.provider_id.clone(),
                    ids: plan.profile.instance_ids(),
                },
            },
            // Unreadable files are judged by checks, and no API server starts with them.
            network_proxy: egress.and_then(Result::ok),
            programs,
            folder: self.dir.as_ref().expect("made before").path().to_owned(),
            evidence: plan.output.join("evidence/cluster"),
        }
    }

    /// The management cluster of a hosted CCM: one node, with the same Kubernetes.
    fn management_spec(&self, programs: Vec<ProgramImage>) -> Result<ClusterSpec, SessionError> {
        let plan = self.plan();
        let cluster = plan.cluster.clone().with(|own| {
            own.topology = Topology::Single;
            own.node_ip = NodeIp::Kept;
            own.serving = ServingCertificates::SelfSigned;
        });
        Ok(ClusterSpec {
            purpose: Purpose::Management,
            desired: cluster.desired().clone(),
            provider_ids: ProviderIds::Empty,
            network_proxy: None,
            folder: self.dir.as_ref().expect("made before").folder("management")?,
            evidence: plan.output.join("evidence/management"),
            ..self.spec(programs)
        })
    }

    /// What the image credential provider under test gets from the cloud.
    fn plugin(&self) -> Result<Option<ReplicaRecord>, SessionError> {
        let Some(_) = &self.plan().profile.image_credentials else { return Ok(None) };
        let (name, token, endpoint) = (PLUGIN.to_owned(), fresh_token()?, String::new());
        Ok(Some(ReplicaRecord { name, token, secure_port: 0, endpoint }))
    }

    /// What an old release gets from the cloud.
    fn old_release(&self, credentials: &Credentials) -> Result<Option<ReplicaRecord>, SessionError> {
        if !self.plan().profile.has_ccm() {
            return Ok(None);
        }
        let token = credentials.token().map_or_else(fresh_token, Ok)?;
        let (name, secure_port) = (OLD_RELEASE.to_owned(), self.plan().profile.secure_port);
        Ok(Some(ReplicaRecord { name, token, secure_port, endpoint: String::new() }))
    }

    fn replaced(&self) -> Result<Option<Replaced>, SessionError> {
        if !self.plan().profile.has_ccm() {
            return Ok(None);
        }
        Ok(Some(Replaced { first: fresh_token()?, then: fresh_token()? }))
    }

    /// The replicas, and the additional ones that checks can start.
    fn replicas(
        &self,
        credentials: &Credentials,
    ) -> Result<(Vec<ReplicaRecord>, Vec<ReplicaRecord>), SessionError> {
        let profile = &self.plan().profile;
        if !profile.has_ccm() {
            return Ok(Default::default());
        }
        let (count, more) = match profile.capabilities.leader_election {
            true => (profile.replicas.max(1) as usize, NEWCOMERS),
            false => (1, 0),
        };
        let all: Result<Vec<ReplicaRecord>, SessionError> = ('a'..='z')
            .take(count + more)
            .zip(0_u16..)
            .map(|(letter, offset)| {
                // The ports next to the framework's 10258 belong to the scheduler and the controller manager.
                let secure_port = match profile.secure_port {
                    0 => 0,
                    first => first.saturating_add(offset * 100),
                };
                let token = credentials.token().map_or_else(fresh_token, Ok)?;
                let name = letter.to_string();
                // The address of the cloud is known once it runs.
                Ok(ReplicaRecord { name, token, secure_port, endpoint: String::new() })
            })
            .collect();
        let mut all = all?;
        let newcomers = all.split_off(count.min(all.len()));
        Ok((all, newcomers))
    }

    /// Undoes everything, the last first, and tries all of it; or keeps everything, if requested.
    ///
    /// # Errors
    /// What could not be removed, one line each.
    pub async fn down(mut self, leave: Leave) -> Result<(), String> {
        if leave == Leave::Everything {
            if let Some(dir) = self.dir.take() {
                dir.leave();
            }
            return Ok(());
        }
        let removed = self.teardown.run().await;
        let folder = self.dir.take().map_or(Ok(()), RunDir::remove).map_err(|error| chain(&error));
        let failures: Vec<String> = [removed, folder].into_iter().filter_map(Result::err).collect();
        if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
    }
}

/// The minor version that the API server reports, and the existing Nodes.
async fn inspect(record: &ClusterRecord) -> Result<(u32, Vec<Node>), SessionError> {
    if facts(record.backend).fidelity == Fidelity::Absent {
        return Ok((0, Vec::new()));
    }
    let client = client_for(&record.kubeconfig, "ccm-conformance").await?;
    let version = client.apiserver_version().await?;
    let digits: String = version.minor.chars().take_while(char::is_ascii_digit).collect();
    let minor = digits.parse().map_err(|_| {
        SessionError::Precondition(format!(
            "the API server reports an unknown minor version '{}'",
            version.minor
        ))
    })?;
    let nodes = Api::<Node>::all(client).list(&ListParams::default()).await?;
    Ok((minor, nodes.items))
}
