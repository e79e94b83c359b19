//! The context that a check's body receives, and that all of its subjects use.

use super::network::Network;
use super::undo_steps::Undo;
use super::unmet_faults::Unmet;
use harness_clouds::{Cloud as CloudHandle, Entry};
use harness_clusters::images::{NAME_PREFIX, RunId};
use harness_config::{AnnotationEffect, Limits};
use harness_core::check::{Capability, CheckError, CheckId, Facility, label_of};
use harness_core::probe::{Probe, Promise, SingleRead, poll};
use harness_session::k8s::F_LB;
use harness_session::{Beginning, Journal, Participant, Session, disturbance, suffix};
use kube::Client;
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::task::AbortHandle;

/// Access to everything that a running check may use.
///
/// ```
/// # use harness_testkit::prelude::*;
/// async fn follows_ports(cx: &CheckCx) -> Verdict {
///     let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
///     web.patch(&serde_json::json!({"spec": {"ports": [{"port": 443}]}})).await?;
///     let listens = |lb: &LoadBalancer| lb.frontends.iter().all(|port| port.port == 443);
///     web.balancer().becomes(one_balancer("listens on port 443 only", listens)).await
/// }
/// ```
pub struct CheckCx {
    pub(super) id: CheckId,
    /// The prefix of all names of this check: its id and some random letters, so that a repeated run does not collide
    /// with leftovers.
    pub(super) prefix: String,
    pub(super) session: Arc<Session>,
    /// All lanes of the run, including this check's; only for checks that judge the whole run.
    pub(super) lanes: Vec<Arc<Session>>,
    pub(super) client: Client,
    /// The cloud; its faults and barriers belong to this check.
    pub(super) cloud: CloudHandle,
    pub(super) probe: Probe,
    /// The journal's position when the check began.
    pub(super) mark: u64,
    /// Keeps the later part of the journal in memory.
    beginning: Option<Beginning>,
    pub(super) namespace: OnceCell<String>,
    pub(super) other_namespace: OnceCell<String>,
    pub(super) undo: Mutex<Vec<Undo>>,
    /// Whether the cleanup has removed the finalizers of a Service that the CCM did not release in time.
    pub(super) released: AtomicBool,
    /// The check's own addresses.
    pub(super) network: Network,
    pub(super) machines_made: AtomicU8,
    /// The check's hold on the cluster.
    pub(super) turn: Mutex<Option<File>>,
    /// Its participation in the leader's crash, if it watches one.
    pub(super) participant: tokio::sync::Mutex<Option<Participant>>,
    pub(super) heartbeats: Mutex<BTreeMap<String, AbortHandle>>,
    pub(super) facts: Mutex<BTreeMap<String, String>>,
    /// The journal's position when the check last edited a Service.
    pub(super) edit: Mutex<Option<u64>>,
    /// Whether the check read calls although the cloud has no journal.
    pub(super) unheard: AtomicBool,
    pub(super) unmet: Unmet,
}

impl std::fmt::Debug for CheckCx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CheckCx").finish_non_exhaustive()
    }
}

impl CheckCx {
    /// Creates the context of one run of check `id`, which holds the cluster by `turn` and takes part in a crash as
    /// `participant`.
    ///
    /// # Errors
    /// When its own client cannot be created; without it the API server's audit log would not distinguish checks.
    pub async fn new(
        id: CheckId,
        session: Arc<Session>,
        turn: File,
        participant: Option<Participant>,
    ) -> Result<CheckCx, CheckError> {
        let client = session.client_named(&format!("ccm-conformance/{id}")).await?;
        let events = session.events().of_check(id.as_str());
        let probe = Probe::new(session.world().pulse().clone()).observed_by(Box::new(events.clone()));
        let cloud = session.cloud().observed_by(move |what| events.emit(disturbance(what)));
        let beginning = session.journal().begin();
        let number = session.next_number();
        let prefix = format!("{}-{}", label_of(id.as_str()), suffix(number));
        Ok(CheckCx {
            id,
            prefix,
            session,
            lanes: Vec::new(),
            client,
            cloud,
            probe,
            mark: beginning.position(),
            beginning: Some(beginning),
            namespace: OnceCell::new(),
            other_namespace: OnceCell::new(),
            undo: Mutex::default(),
            released: AtomicBool::new(false),
            network: Network::nth(number),
            machines_made: AtomicU8::default(),
            turn: Mutex::new(Some(turn)),
            participant: tokio::sync::Mutex::new(participant),
            heartbeats: Mutex::default(),
            facts: Mutex::default(),
            edit: Mutex::default(),
            unheard: AtomicBool::default(),
            unmet: Unmet::default(),
        })
    }

    /// Adds all lanes, for a check that judges the whole run.
    #[must_use]
    pub fn with_lanes(self, lanes: &[Arc<Session>]) -> CheckCx {
        CheckCx { lanes: lanes.to_vec(), ..self }
    }

    /// For a check that takes hours: calls that it has read may be dropped from memory.
    #[must_use]
    pub fn soaking(self, soaks: bool) -> CheckCx {
        let beginning = self.beginning.filter(|_| !soaks);
        CheckCx { beginning, ..self }
    }

    /// The check's id.
    pub fn id(&self) -> CheckId {
        self.id
    }

    /// The prefix of all names of this check.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether the CCM is expected to do what this minor version of the framework introduced: it declares that version or
    /// a later one, or is not built on the framework.
    pub fn framework_has(&self, minor: u32) -> bool {
        self.session.plan().profile.framework.has(minor)
    }

    /// Whether the CCM declares a capability.
    pub fn declares(&self, capability: Capability) -> bool {
        self.session.plan().profile.declares().contains(&capability)
    }

    /// How many Services, and how many Nodes, the CCM processes at the same time.
    pub fn workers(&self) -> u32 {
        self.session.plan().profile.workers
    }

    /// The finalizers that the CCM may add to a Service: that of Kubernetes, and those that the profile names.
    pub fn finalizers_of_the_ccm(&self) -> Vec<String> {
        let own = self.session.plan().profile.service_finalizers.iter().cloned();
        own.chain([F_LB.to_owned()]).collect()
    }

    /// The annotations of a Service whose load balancer is managed by another controller.
    pub fn implemented_elsewhere(&self) -> &BTreeMap<String, String> {
        &self.session.plan().profile.implemented_elsewhere
    }

    /// Annotations of the vendor that change a load balancer, and what they do.
    pub fn annotation_effects(&self) -> &BTreeMap<String, AnnotationEffect> {
        &self.session.plan().profile.annotation_effects
    }

    /// The duration of a soak check.
    pub fn soak(&self) -> Duration {
        self.session.plan().selection.soak.unwrap_or_default()
    }

    /// The seed for random choices: the run's, which its report shows.
    pub fn seed(&self) -> u64 {
        let (state, selection) = (self.session.state(), &self.session.plan().selection);
        let run = RunId::of_name(&format!("{NAME_PREFIX}{}", state.run_id));
        let of_the_run = || run.map_or(0, |run| run.seed());
        u64::from(state.cluster.about.seed.or(selection.seed).unwrap_or_else(of_the_run))
    }

    /// The wait limits of this run.
    pub fn limits(&self) -> &Limits {
        self.session.limits()
    }

    /// A client for the cluster in which the CCM's Pods run: the check's own if that is the served cluster.
    pub(super) fn pods_client(&self) -> Client {
        match self.session.state().management {
            None => self.client.clone(),
            Some(_) => self.session.ccm_site().client().clone(),
        }
    }

    /// Whether checks can create machines in the cloud; nothing creates any in a real one.
    pub fn makes_machines(&self) -> bool {
        self.session.cloud().facilities().contains(&Facility::Machines)
    }

    /// Whether checks can create routes in the cloud.
    pub fn makes_routes(&self) -> bool {
        self.session.cloud().facilities().contains(&Facility::Routes)
    }

    /// Whether only the harness, the CCM and the cluster's own controllers have a reason to write to its objects.
    pub fn owns_the_cluster(&self) -> bool {
        self.session.state().cluster.is_ours()
    }

    /// Whether faults can be injected into the cloud's answers.
    pub fn makes_faults(&self) -> bool {
        self.session.cloud().facilities().contains(&Facility::Faults)
    }

    /// The cloud's journal, on which a check's verdict is based.
    pub(super) fn heard(&self) -> &Journal {
        if !self.session.cloud().facilities().contains(&Facility::Journal) {
            self.unheard.store(true, Ordering::Relaxed);
        }
        self.session.journal()
    }

    /// The reason if the cloud is why something was not observed: it has no journal, and the check needed it.
    pub fn cannot_observe(&self) -> Option<String> {
        let unheard = self.unheard.load(Ordering::Relaxed);
        unheard.then(|| {
            format!(
                "the cloud's driver {} does not support {}",
                self.session.cloud().driver(),
                Facility::Journal
            )
        })
    }

    /// The running environment.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The check's own client of the API server.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// What waits for the objects of subjects in other crates.
    pub fn probe(&self) -> &Probe {
        &self.probe
    }

    /// Waits for a claim about something; a failure includes the cloud's last calls about that.
    pub(super) async fn wait(
        &self,
        promise: &Promise,
        look: &mut dyn SingleRead,
        concerns: &dyn Fn(&Entry) -> bool,
    ) -> Result<(), CheckError> {
        let outcome = self.session.unless_interrupted(self.probe.wait(promise, look)).await;
        outcome.map_err(|stop| match stop {
            CheckError::Violation(mut violation) => {
                violation.calls = self.last_calls(concerns);
                violation.calls.extend(self.silence(concerns));
                CheckError::Violation(violation)
            }
            other => other,
        })
    }

    /// Records a fact for the report: a measured time, or what an INFO row observed.
    pub fn record(&self, name: &str, value: impl std::fmt::Display) {
        self.facts.lock().expect("no holder of this lock panics").insert(name.to_owned(), value.to_string());
    }

    /// Facts recorded so far.
    pub fn facts(&self) -> BTreeMap<String, String> {
        self.facts.lock().expect("no holder of this lock panics").clone()
    }

    /// The largest share of a limit any wait has used, in percent.
    pub fn budget_used_percent(&self) -> Option<u32> {
        self.probe.used_percent()
    }

    /// Waits until the watches show the last write, so that later reads are not stale.
    pub(super) async fn caught_up(&self, shown: impl Fn() -> bool) -> Result<(), CheckError> {
        let arrived = async |seen: &mut String| {
            *seen = "an older version".to_owned();
            Ok(shown().then_some(()))
        };
        let limit = Duration::from_secs(10);
        poll("the watch shows what was written", limit, Duration::from_millis(5), arrived).await?;
        Ok(())
    }
}
