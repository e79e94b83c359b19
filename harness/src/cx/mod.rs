//! `CheckCx`: the only thing a check's body receives.
//!
//! What a check makes through it is undone when the check ends, last first, whatever became of the check.

mod ccm;
mod cloud;
mod cold;
mod crash;
mod deadlock;
mod nodes;
mod services;
mod undo;

pub use crate::session::Network;
pub use ccm::End;
pub use cloud::Barrier;
pub use cold::{Canary, Cold};
pub use nodes::{NodePlan, Ready, address, taint, uninitialized};
pub use services::{ServicePlan, ServiceRef, load_balancer};

use crate::check::{Check as CheckOf, CheckId, Stop, Suite as SuiteOf};
use crate::config::Limits;
use crate::probe::{Judge, Observed, Probe, ReadError, poll};
use crate::session::{Seat, Session};
use kube::Client;
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
    probe: Probe,
    /// The journal's position when the check began.
    mark: u64,
    namespace: OnceCell<String>,
    undo: Mutex<Vec<Undo>>,
    services_made: Mutex<Vec<ServiceRef>>,
    /// The check's hold on the cluster.
    turn: Mutex<Option<File>>,
    /// Its part in the leader's crash, when it watches one.
    seat: tokio::sync::Mutex<Option<Seat>>,
    heartbeats: Mutex<BTreeMap<String, AbortHandle>>,
    facts: Mutex<BTreeMap<String, String>>,
}

impl std::fmt::Debug for CheckCx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CheckCx").finish_non_exhaustive()
    }
}

impl CheckCx {
    /// A context for one run of check `id`, which holds the cluster by `turn` and watches the crash of `seat`.
    ///
    /// # Errors
    /// When no client of its own can be made; the API server's audit log would not tell checks apart without.
    pub async fn new(
        id: CheckId,
        session: Arc<Session>,
        turn: File,
        seat: Option<Seat>,
    ) -> Result<CheckCx, Stop> {
        let client = session.client_named(&format!("ccm-conformance/{id}")).await?;
        let probe = Probe::new(session.world().pulse().clone());
        let mark = session.journal().position();
        let prefix = format!("{}-{}", label_of(id), session.next_suffix());
        Ok(CheckCx {
            id,
            prefix,
            session,
            client,
            probe,
            mark,
            namespace: OnceCell::new(),
            undo: Mutex::default(),
            services_made: Mutex::default(),
            turn: Mutex::new(Some(turn)),
            seat: tokio::sync::Mutex::new(seat),
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
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// This check's own client; its user agent names the check.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Waits until the judge says yes; see [`Probe::eventually`].
    ///
    /// # Errors
    /// As there; also when the run was interrupted.
    pub async fn eventually<O: Observed, T>(
        &self,
        promise: &str,
        limit: Duration,
        read: impl AsyncFnMut() -> Result<O, ReadError>,
        judge: Judge<O, T>,
    ) -> Result<T, Stop> {
        self.session.unless_interrupted(self.probe.eventually(promise, limit, read, judge)).await
    }

    /// Demands that the judge says yes for the whole window; see [`Probe::consistently`].
    ///
    /// # Errors
    /// As there; also when the run was interrupted.
    pub async fn consistently<O: Observed>(
        &self,
        promise: &str,
        window: Duration,
        read: impl AsyncFnMut() -> Result<O, ReadError>,
        judge: Judge<O, ()>,
    ) -> Result<(), Stop> {
        self.session.unless_interrupted(self.probe.consistently(promise, window, read, judge)).await
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

    /// The journal's position when the check began.
    pub fn mark(&self) -> u64 {
        self.mark
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
