//! `CheckCx`: the only thing a check's body receives.
//!
//! What a check makes through it is undone when the check ends, last first, whatever became of the check.

mod calls;
mod cloud;
mod cold;
mod crash;
mod deadlock;
mod faults;
mod heartbeat;
mod lease;
mod machines;
pub mod matchers;
mod nodes;
mod replicas;
mod services;
mod subject;
mod undo;

pub use crate::session::{Crash, Network};
pub use calls::{Calls, callers, no_calls, some_calls};
pub use cloud::Cloud;
pub use cold::{Canary, Cold};
pub use faults::{Barrier, Fault, FaultPlan, Target, met_by};
pub use lease::{Lease, StolenLease, held, holder_of, taken_over, transitions_of};
pub use machines::{Machine, MachinePlan, address, machine};
pub use nodes::{Node, NodePlan, Ready, taint, uninitialized};
pub use replicas::{End, Process, Replica, ends, is_back, runs};
pub use services::{Balancer, Service, ServicePlan, load_balancer};
pub use subject::{Subject, Wait};

use crate::check::{Check as CheckOf, CheckId, Stop, Suite as SuiteOf, chain};
use crate::cloud::{Cloud as CloudHandle, Entry};
use crate::config::Limits;
use crate::probe::{Look, Probe, Promise, poll};
use crate::session::{Participant, Session, disturbance};
use kube::Client;
use services::ServiceKey;
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::task::AbortHandle;
use undo::Undo;

/// A check's id as a part of names in Kubernetes and the cloud: small letters, digits and hyphens.
fn label_of(id: CheckId) -> String {
    id.as_str().to_lowercase().replace('.', "-")
}

/// A check as suites write it.
pub type Check = CheckOf<CheckCx>;
/// A suite as suites write it.
pub type Suite = SuiteOf<CheckCx>;

/// Everything one running check may touch.
pub struct CheckCx {
    id: CheckId,
    /// Start of every name this check gives: its id and a few random letters, so that a repeated run meets no leftover.
    prefix: String,
    session: Arc<Session>,
    client: Client,
    /// The cloud; its faults and barriers are this check's.
    cloud: CloudHandle,
    probe: Probe,
    /// The journal's position when the check began.
    mark: u64,
    namespace: OnceCell<String>,
    undo: Mutex<Vec<Undo>>,
    services_made: Mutex<Vec<ServiceKey>>,
    /// The check's hold on the cluster.
    turn: Mutex<Option<File>>,
    /// Its part in the leader's crash, when it watches one.
    participant: tokio::sync::Mutex<Option<Participant>>,
    heartbeats: Mutex<BTreeMap<String, AbortHandle>>,
    facts: Mutex<BTreeMap<String, String>>,
}

impl std::fmt::Debug for CheckCx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CheckCx").finish_non_exhaustive()
    }
}

impl CheckCx {
    /// A context for one run of check `id`, which holds the cluster by `turn` and takes part in a crash as `participant`.
    ///
    /// # Errors
    /// When no client of its own can be made; the API server's audit log would not tell checks apart without.
    pub async fn new(
        id: CheckId,
        session: Arc<Session>,
        turn: File,
        participant: Option<Participant>,
    ) -> Result<CheckCx, Stop> {
        let client = session.client_named(&format!("ccm-conformance/{id}")).await?;
        let events = session.events().of_check(id.as_str());
        let probe = Probe::new(session.world().pulse().clone()).observed_by(Box::new(events.clone()));
        let cloud = session.cloud().observed_by(move |what| events.emit(disturbance(what)));
        let mark = session.journal().position();
        let prefix = format!("{}-{}", label_of(id), session.next_suffix());
        Ok(CheckCx {
            id,
            prefix,
            session,
            client,
            cloud,
            probe,
            mark,
            namespace: OnceCell::new(),
            undo: Mutex::default(),
            services_made: Mutex::default(),
            turn: Mutex::new(Some(turn)),
            participant: tokio::sync::Mutex::new(participant),
            heartbeats: Mutex::default(),
            facts: Mutex::default(),
        })
    }

    /// The check's id.
    pub fn id(&self) -> CheckId {
        self.id
    }

    /// Start of every name this check gives.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The wait budgets in force.
    pub fn limits(&self) -> &Limits {
        self.session.limits()
    }

    /// The running environment.
    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Waits for a promise about something; when it is broken, with the cloud's last calls about that.
    async fn wait(
        &self,
        promise: &Promise,
        look: &mut dyn Look,
        concerns: &dyn Fn(&Entry) -> bool,
    ) -> Result<(), Stop> {
        let outcome = self.session.unless_interrupted(self.probe.wait(promise, look)).await;
        outcome.map_err(|stop| match stop {
            Stop::Unmet(mut unmet) => {
                unmet.calls = self.last_calls(concerns);
                Stop::Unmet(unmet)
            }
            other => other,
        })
    }

    /// Records a fact for the report: a measured time, what an INFO row saw.
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

    /// Waits until the watches show what was just written, so that no read sees the past.
    async fn caught_up(&self, shown: impl Fn() -> bool) -> Result<(), Stop> {
        let arrived = async |seen: &mut String| {
            *seen = "an older version".to_owned();
            Ok(shown().then_some(()))
        };
        let limit = Duration::from_secs(10);
        poll("the watch shows what was written", limit, Duration::from_millis(5), arrived).await?;
        Ok(())
    }
}

/// A deletion that found nothing to delete has reached its aim.
fn gone<T>(outcome: Result<T, kube::Error>) -> Result<(), String> {
    match outcome {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(chain(&error)),
    }
}
