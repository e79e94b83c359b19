//! A running environment: cluster, fake cloud and CCM, as one process of the run uses them.
//!
//! [`up`] creates and removes it; a [`Session`] joins it.

pub mod ccm;

mod addresses;
mod boot;
mod choose;
mod clients;
mod continuity;
mod crash;
mod ended;
mod environment_watch;
mod error;
mod excuse;
mod flood;
mod folder;
mod journal;
mod manifests;
mod never_runs;
mod object_events;
mod offer;
mod old_release;
mod out_of_reach;
mod record;
mod seed;
mod server;
mod site;
mod starting;
mod state;
mod suffix;
mod unfilled;
mod uninitialised;
mod unseen;
pub mod up;

pub use boot::{Circumstances, expectation, expected_boot, manifest_findings, refused_objects};
pub use choose::settle;
pub use continuity::{Break, Continuity, Rule, Window};
pub use crash::{Crash, Participant, SharedCrashes};
pub use error::SessionError;
pub use folder::{FOLDER_PREFIX, RunDir, StateError};
pub use harness_core::objects::show_entry;
/// The objects of the cluster.
pub use harness_objects as k8s;
pub use journal::{Beginning, CallObserver, Journal, Reader, is_lb_write};
pub use manifests::{POD_NETWORKS, load_manifests};
pub use record::disturbance;
pub use site::Site;
pub use state::{CcmState, NodeRole, ReleaseImage, Replaced, ReplicaRecord, RunState};
pub use suffix::suffix;
pub use unfilled::{TO_DO, unfilled};
pub use uninitialised::Network;
pub use unseen::OWNER_OF_NO_CCM;

use crate::ccm::{Ccm, CcmError, Form, Starts};
use crate::k8s::ClusterCaches;
use environment_watch::EnvironmentWatch;
use harness_clouds::{Cloud, Inventory};
use harness_clusters::{Cluster, ContainerOp, Machine, Operation};
use harness_config::{Limits, Location, RunPlan};
use harness_core::check::{Blocker, CheckError, Facility, chain};
use harness_core::events::{Events, Payload};
use harness_core::probe::Pulse;
use kube::Client;
use manifests::{old_release, surroundings};
use object_events::{tells, tells_of_ends};
use server::{client_of, has_server, world_of};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A process's view of the running environment.
pub struct Session {
    plan: Arc<RunPlan>,
    dir: RunDir,
    state: RunState,
    cluster: Cluster,
    client: Client,
    world: Arc<ClusterCaches>,
    ccm_site: Site,
    cloud: Cloud,
    cloud_before: Option<Inventory>,
    journal: Journal,
    continuity: Continuity,
    ccm: Ccm,
    /// The release that is installed before the CCM in an upgrade.
    old_release: Option<Ccm>,
    /// Why that release does not start, once that is known.
    old_release_fails: OnceLock<String>,
    events: Events,
    cancel: CancellationToken,
    environment_watch: EnvironmentWatch,
    suffix: AtomicU32,
    crashes: SharedCrashes,
    /// What the CCM did without a call being seen, once that is known.
    unseen: OnceLock<String>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

/// Writes to the stream of events: changes in the cluster, exits of the CCM's Pods, and all calls to the cloud.
fn tell_of_all(
    events: &Events,
    world: &ClusterCaches,
    (client, management): (&Client, Option<&Site>),
    journal: &Journal,
) {
    world.nodes.observe(tells(events));
    world.services.observe(tells(events));
    world.pods.observe(tells_of_ends(events, client));
    if let Some(site) = management {
        site.world().pods.observe(tells_of_ends(events, site.client()));
    }
    world.leases.observe(tells(events));
    let (stream, before) = (events.clone(), journal.position());
    journal.observe(Box::new(move |call| {
        // Earlier entries are from previous users of this cloud.
        if call.seq > before {
            stream.emit(record::cloud_call(call));
        }
    }));
}

impl Session {
    /// Joins the environment that `state` describes.
    ///
    /// # Errors
    /// When the API server, the cloud or the manifests cannot be read.
    pub async fn join(
        plan: Arc<RunPlan>,
        dir: RunDir,
        state: RunState,
        events: Events,
        cancel: CancellationToken,
    ) -> Result<Session, SessionError> {
        let events = events.of_lane(state.lane);
        state.keep_secret();
        let pulse = Pulse::default();
        let cluster = Cluster::attach(state.cluster.clone())?;
        let client = client_of(&state.cluster, "ccm-conformance").await?;
        let world = Arc::new(world_of(&state.cluster, &client, pulse.clone()).await?);
        let served = Site::new(cluster.clone(), client.clone(), world.clone());
        let management = match &state.management {
            None => None,
            Some(record) => Some(Site::join(record, pulse.clone()).await?),
        };
        let stream = events.clone();
        let cloud = Cloud::attach(&state.cloud)?.observed_by(move |what| stream.emit(disturbance(what)));
        let journal = Journal::follow(cloud.clone(), pulse, state.journal_from).await?;
        let continuity = Continuity::watch(plan.clone(), cloud.clone(), &world, &journal);
        let mut cloud_before = None;
        if events.is_begun_here() {
            if cloud.facilities().contains(&Facility::Inventory) {
                cloud_before = Some(cloud.inventory().await?);
            }
            tell_of_all(&events, &world, (&client, management.as_ref()), &journal);
        }
        let manifests = load_manifests(&plan)?;
        let surroundings = surroundings(&plan, &state);
        let replicas = state.replicas.iter().map(ReplicaRecord::replica).collect();
        let newcomers = state.newcomers.iter().map(ReplicaRecord::replica).collect();
        let hosting = management.as_ref().map(|site| site.hosting(&state.cluster)).transpose()?;
        let ccm = Ccm::new(
            served.side(),
            hosting,
            manifests,
            surroundings,
            (replicas, newcomers),
            state.lease.clone(),
        );
        let old_release = match management {
            None => old_release(&plan, &state, served.side())?,
            Some(_) => None,
        };
        // Names stay unique between the sessions and processes of one run.
        let seed = RandomState::new().hash_one(std::process::id());
        let suffix = AtomicU32::new((seed & 0xF_FFFF) as u32);
        let crashes = SharedCrashes::default();
        let heard = cloud.facilities().contains(&Facility::Journal).then(|| journal.clone());
        let server = has_server(&state.cluster).then(|| client.clone());
        let hosting = management.as_ref().map(|site| site.client().clone());
        let machines =
            std::iter::once(&served).chain(&management).map(|site| site.cluster().clone()).collect();
        let environment_watch = EnvironmentWatch::watch([server, hosting], machines, cloud.clone(), heard);
        Ok(Session {
            plan,
            dir,
            state,
            cluster,
            client,
            world,
            ccm_site: management.unwrap_or(served),
            cloud,
            cloud_before,
            journal,
            continuity,
            ccm,
            old_release,
            old_release_fails: OnceLock::new(),
            events,
            cancel,
            environment_watch,
            suffix,
            crashes,
            unseen: OnceLock::new(),
        })
    }

    /// The plan of the run.
    pub fn plan(&self) -> &RunPlan {
        &self.plan
    }

    /// The run's folder.
    pub fn dir(&self) -> &RunDir {
        &self.dir
    }

    /// The state that the run's processes share.
    pub fn state(&self) -> &RunState {
        &self.state
    }

    /// The stream of the run's events.
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// The cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The nodes' machines.
    pub fn machines(&self) -> &[Machine] {
        self.cluster.machines()
    }

    /// The harness's own client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// What the cluster's watches show.
    pub fn world(&self) -> &ClusterCaches {
        &self.world
    }

    /// The cluster of the CCM's Pods: the one that it serves, or the management cluster of a hosted one.
    pub fn ccm_site(&self) -> &Site {
        &self.ccm_site
    }

    /// The cloud.
    pub fn cloud(&self) -> &Cloud {
        &self.cloud
    }

    /// The contents of the cloud when this process joined; `None` if unknown, or if another process judges the run.
    pub fn cloud_before(&self) -> Option<&Inventory> {
        self.cloud_before.as_ref()
    }

    /// The cloud's journal.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The CCM under test.
    pub fn ccm(&self) -> &Ccm {
        &self.ccm
    }

    /// The wait limits of this run.
    pub fn limits(&self) -> &Limits {
        &self.plan.limits
    }

    /// The region and zone of the profile's machines.
    pub fn profile_location(&self) -> &Location {
        &self.plan.profile.location
    }

    /// The id of the machine with that name in the profile's cloud.
    pub fn profile_instance_id(&self, machine: &str) -> String {
        self.cloud.ids().make(machine)
    }

    /// Whether a providerID has the profile's format.
    pub fn profile_gives(&self, provider_id: &str) -> bool {
        self.plan.profile.provider_id.instance(provider_id).is_some()
    }

    /// The providerID of an instance in the profile's format.
    pub fn profile_provider_id(&self, instance_id: &str) -> String {
        self.plan.profile.provider_id.render(instance_id)
    }

    /// The crashes of the leader that checks watch together.
    pub fn crashes(&self) -> &SharedCrashes {
        &self.crashes
    }

    /// A number of 20 bits that no other check of this run has.
    pub fn next_number(&self) -> u32 {
        self.suffix.fetch_add(1, Ordering::Relaxed) & 0xF_FFFF
    }

    /// Sends a signal to the main process of a container of the CCM, on the node `node`.
    ///
    /// # Errors
    /// A message saying why it failed.
    pub async fn signal_container(&self, node: &str, id: &str, op: ContainerOp) -> Result<(), String> {
        let cluster = self.ccm_site.cluster();
        let machine = cluster.machines().iter().find(|machine| machine.name == node);
        let machine = machine.ok_or_else(|| format!("Node {node} has no machine"))?;
        cluster.operate(Operation::Container { machine, id, op }).await.map_err(|error| chain(&error))
    }

    /// The token that is cancelled when the run is interrupted.
    pub fn interruption(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Interrupts the run.
    pub fn interrupt(&self) {
        self.cancel.cancel();
    }

    /// Whether the run has been interrupted.
    pub fn is_interrupted(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// The state of the CCM, as the run's processes last recorded it.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn ccm_state(&self) -> Result<CcmState, StateError> {
        Ok(self.dir.read("ccm.json")?.unwrap_or(CcmState::Settled { form: Form::Absent }))
    }

    /// Deploys the CCM in a form, unless it already is in it, and waits until it leads. A form that could not start is
    /// not tried again, unless the cluster or the cloud was away.
    ///
    /// # Errors
    /// Why it does not start, with its last log lines.
    pub async fn ensure_ccm(&self, wanted: Form) -> Result<(), CheckError> {
        let _turn = self.dir.hold_ccm()?;
        let began = Instant::now();
        let outcome = match self.ccm_state()? {
            CcmState::Broken { why, by } => return Err(broken(why, by)),
            CcmState::Settled { form } if form == wanted => return Ok(()),
            CcmState::Returning { form } if form == wanted => self.bring_back(wanted).await,
            CcmState::Settled { form } | CcmState::Returning { form } => self.change_ccm(form, wanted).await,
        };
        match outcome {
            Ok(()) => {
                if wanted != Form::Absent && self.ccm.exists() {
                    self.events.emit(Payload::CcmLeads);
                }
                Ok(self.note_form(wanted)?)
            }
            Err(error) => {
                let lacks = if matches!(error, CcmError::NeverLeads(_)) { "lead" } else { "start" };
                let why = format!("the CCM under test does not {lacks}: {}", chain(&error));
                if let Err(away) = self.stood_since(began).await {
                    self.forget_ccm().await.map_err(|error| CheckError::Error(chain(&error)))?;
                    return Err(CheckError::Error(format!("{away}\n{why}")));
                }
                // Without Nodes nothing runs; a hosted CCM uses other Nodes.
                let lost = if self.state.management.is_some() { None } else { self.lost_nodes()? };
                // Files that a Pod lacks do not matter while something else hinders it.
                let missed = match &error {
                    CcmError::NeverRuns(_) => None,
                    _ => self.out_of_reach(wanted),
                };
                let (why, by) = match (lost, missed) {
                    (Some(lost), _) => (format!("{lost}; {why}"), Some(Blocker::KeepsNodes)),
                    (None, Some(missed)) => (format!("{missed}; {why}"), None),
                    (None, None) => (why, error.blocker()),
                };
                self.dir.write("ccm.json", &CcmState::Broken { why: why.clone(), by })?;
                Err(broken(why, by))
            }
        }
    }

    /// Removes the CCM in any form and forgets that it did not start, so that another one can be deployed on the same
    /// cluster.
    ///
    /// # Errors
    /// What could not be removed.
    pub async fn forget_ccm(&self) -> Result<(), SessionError> {
        for form in [Form::Replicas, Form::AsShipped] {
            self.ccm.remove(form).await?;
        }
        Ok(self.note_form(Form::Absent)?)
    }

    /// Removes what the harness deployed from a cluster that outlives the run; the run's own cluster is removed as a
    /// whole.
    ///
    /// # Errors
    /// What could not be removed.
    pub async fn leave(&self) -> Result<(), SessionError> {
        if self.state.cluster.is_ours() { Ok(()) } else { self.forget_ccm().await }
    }

    async fn bring_back(&self, form: Form) -> Result<(), CcmError> {
        self.ccm.forget_ended_leader().await?;
        self.ccm.start().await?;
        self.leading(form, Starts::from_now(&self.ccm.pods(form))).await
    }

    async fn change_ccm(&self, from: Form, to: Form) -> Result<(), CcmError> {
        self.ccm.remove(from).await?;
        self.ccm.apply(to).await?;
        if to == Form::Absent || !self.ccm.exists() {
            return Ok(());
        }
        self.leading(to, Starts::default()).await
    }

    /// Records that a check has disturbed the CCM, and that it may not have recovered yet.
    pub fn note_returning(&self) -> Result<(), StateError> {
        self.dir.write("ccm.json", &CcmState::Returning { form: Form::Replicas })
    }

    /// Records that a check has changed how the CCM is deployed.
    pub fn note_form(&self, form: Form) -> Result<(), StateError> {
        self.dir.write("ccm.json", &CcmState::Settled { form })
    }
}

/// Who is to blame for a CCM that does not start.
fn broken(why: String, by: Option<Blocker>) -> CheckError {
    match by {
        Some(by) => CheckError::Blocked { by, seen: why },
        None => CheckError::Error(why),
    }
}
